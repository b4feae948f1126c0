"""Slips that no pattern expresses: another name, another number, a result reduced."""

import ast
import copy
import re
from collections.abc import Iterator

Slip = tuple[str, str, ast.AST]


def slips(node: ast.AST, tree: ast.Module) -> Iterator[Slip]:
    """(kind, words, new node) of each slip that can happen at this node."""
    arguments = [each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)]
    parameters = [name for name in arguments if name != "_"]
    match node:
        case ast.Name(ctx=ast.Load()):
            if node.id in parameters:
                yield from _names(node.id, parameters)
                yield from _frozen(node.id, tree)
        case ast.Constant(value=bool() | str() | None):
            return
        case ast.Constant(value=int() | float() as number):
            yield from _numbers(number)
        case ast.GeneratorExp() | ast.ListComp() if node.generators[0].ifs:
            new = copy.deepcopy(node)
            new.generators[0].ifs = []
            yield "all counted", "You count all of them: a condition is missing.", new
        case ast.Call(func=ast.Name(id="zip")):
            yield from _in_all_places(node, parameters)
        case ast.Call(func=ast.Name(id="range")):
            yield from _ranges(node)
        case ast.Return(value=ast.expr() as value):
            yield from _results(value)


def _names(name: str, parameters: list[str]) -> Iterator[Slip]:
    for other in parameters:
        if other != name:
            words = f"You use `{other}` where `{name}` belongs."
            yield "another name", words, _expression(other)
    words = f"`{name}` is not used in one place where it has to be."
    yield "not used", words, _expression("1.0")
    words = f"You use the first row of `{name}` only. Every row counts."
    yield "first row", words, _expression(f"{name}[:1]")
    if name == "deltas":
        words = "You drop the sign of `deltas`: a bad response is pushed up then."
        yield "sign dropped", words, _expression("deltas.abs()")
    if name == "mask":
        words = "The mask is the wrong way round: True marks what counts."
        yield "mask inverted", words, _expression("~mask")


def _in_all_places(node: ast.Call, parameters: list[str]) -> Iterator[Slip]:
    """One argument is taken for another wherever it stands in a call."""
    for name in parameters:
        for other in parameters:
            code = re.sub(rf"\b{name}\b", other, ast.unparse(node))
            if code != ast.unparse(node):
                words = f"You use `{other}` where `{name}` belongs."
                yield "another name", words, _expression(code)


def _frozen(name: str, tree: ast.Module) -> Iterator[Slip]:
    """One of several uses is detached; of a single one general advice says enough."""
    uses = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name]
    if len(uses) > 1:
        words = (
            f"The values are right, but `{name}` is detached in one of its places, and "
            "part of the gradient is lost."
        )
        yield "frozen", words, _expression(f"{name}.detach()")


def _numbers(value: float) -> Iterator[Slip]:
    if isinstance(value, int):
        for near in (value + 1, value - 1):
            words = "You are off by one: count by hand where it begins and ends."
            yield "off by one", words, ast.Constant(near)
    elif 0 < value < 0.01:
        words = (
            "Your small number is too small against the rounding error of a mean, or "
            "so large that it changes the result."
        )
        for other in (0.0, 1e-8, 0.1):
            yield "epsilon", words, ast.Constant(other)
    else:
        words = "A number in your function is not the one that the task names."
        for other in (value + 0.1, value - 0.1):
            yield "another number", words, ast.Constant(round(other, 4))


def _ranges(node: ast.Call) -> Iterator[Slip]:
    *start, stop = map(ast.unparse, node.args)
    first = start[0] if start else "0"
    for code in (f"range({first} + 1, {stop})", f"range({first}, {stop} + 1)"):
        words = "Your loop begins or ends one place off: it counts from 0 up to n - 1."
        yield "range", words, _expression(code)
    words = "Your loop leaves out the last one."
    yield "range", words, _expression(f"range({first}, {stop} - 1)")


RESULTS = {
    "-({})": ("negated", "The sign is reversed: this is minus what is asked for."),
    "({}).float().mean()": (
        "mean taken",
        "You average at the end. Return what stands before that.",
    ),
    "({}).sum()": ("sum taken", "You add up at the end. Return what stands before it."),
    "({}).float().mean(-1)": (
        "mean taken",
        "You average along the last axis at the end. It has to stay.",
    ),
    "({}).sum(-1)": (
        "sum taken",
        "You add up along the last axis at the end. It has to stay.",
    ),
    "({}).all()": (
        "one for all",
        "One answer for the whole batch: each row has its own.",
    ),
    "~({})": ("inverted", "The other way round: True and False are swapped."),
    "({}).squeeze()": (
        "squeezed too much",
        "squeeze() without an axis also drops a batch, trial or pos axis of size 1. "
        "Say which axis has to go, or leave it out.",
    ),
}


def _results(value: ast.expr) -> Iterator[Slip]:
    for code, (kind, words) in RESULTS.items():
        yield kind, words, ast.Return(_expression(code.format(ast.unparse(value))))


def _expression(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body
