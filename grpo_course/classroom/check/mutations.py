"""Mutants of a solution: the same code with one learner's mistake in it.

`mutants` takes a solution apart, turns one piece after another by the rules, and gives
each variant as a function, with words for whoever wrote it. Nothing is made until an
answer is wrong.
"""

import ast
import copy
import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from grpo_course.classroom.check.rules import NAMES, RULES
from grpo_course.classroom.check.slips import slips

METHODS = ("exp", "expm1", "log", "minimum", "maximum")
WITH_AXIS = (*NAMES["REDUCE"], *NAMES["ALONG"])


@dataclass(frozen=True)
class Mutant:
    """A solution with one mistake: `change` is the new piece of code."""

    kind: str
    change: str
    words: str
    function: Callable
    tree: ast.Module
    by_rule: bool


@cache
def first_mutants(solution: Callable) -> tuple[Mutant, ...]:
    """All mutants of a solution with one mistake, made once."""
    return tuple(mutants(canonical(solution), solution))


def pairs_of_mutants(solution: Callable) -> Iterator[tuple[Mutant, Mutant]]:
    """Mutants with two mistakes, both by a rule: (the first one, both of them)."""
    for one in first_mutants(solution):
        if one.by_rule:
            for both in mutants(one.tree, solution, with_slips=False):
                yield one, both


def mutants(
    tree: ast.Module, solution: Callable, with_slips: bool = True
) -> Iterator[Mutant]:
    """Each variant of `tree` that one rule or slip makes at one place."""
    seen = {ast.unparse(tree)}
    for node in [n for n in ast.walk(tree) if isinstance(n, ast.expr | ast.Return)]:
        slipped = slips(node, tree) if with_slips else ()
        for by_rule, changes in ((True, _by_rules(node)), (False, slipped)):
            for kind, words, new in changes:
                # deepcopy takes `new` for a copy of `node`, and so puts it there.
                mutated = copy.deepcopy(tree, {id(node): new})
                code = ast.unparse(mutated)
                if code not in seen:
                    seen.add(code)
                    made = _compiled(code, solution)
                    yield Mutant(kind, _piece(new), words, made, mutated, by_rule)


def _piece(new: ast.AST) -> str:
    """The new piece of code; of a result only what is done to it."""
    return getattr(new, "piece", None) or ast.unparse(new)


def canonical(solution: Callable) -> ast.Module:
    """The code of a plain function, with calls written as the rules expect them."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(solution)))
    definition = tree.body[0]
    if ast.get_docstring(definition):
        definition.body = definition.body[1:]
    return ast.fix_missing_locations(_AsMethods().visit(tree))


class _AsMethods(ast.NodeTransformer):
    """torch.exp(x) -> x.exp(), x.sum(-1) -> x.sum(dim=-1), and -1 is one number."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return ast.Constant(-node.operand.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        if node.func.attr in METHODS and _is_module(node.func.value):
            node.func.value, *node.args = node.args
        if node.func.attr in WITH_AXIS and len(node.args) == 1:
            axis = ast.keyword("dim", node.args.pop())
            node.keywords = [axis, *node.keywords]
        return node


def _is_module(node: ast.expr) -> bool:
    return ast.unparse(node) == "torch"


def _by_rules(node: ast.AST) -> Iterator[tuple[str, str, ast.expr]]:
    for kind, words, pattern, replacement in _parsed_rules():
        found: dict = {}
        if _matches(pattern, node, found):
            named = {word: found.get(word, "") for word in NAMES}
            yield (
                kind,
                words.format(**named),
                _Filled(found).visit(copy.deepcopy(replacement)),
            )


@cache
def _parsed_rules() -> tuple:
    return tuple(
        (rule.kind, rule.words, _expression(pattern), _expression(replacement))
        for rule in RULES
        for pattern, replacement in rule.pairs
    )


def _expression(code: str) -> ast.expr:
    return _AsMethods().visit(ast.parse(code, mode="eval").body)


def _is_capital(pattern: object) -> bool:
    return isinstance(pattern, ast.Name) and len(pattern.id) == 1


def _matches(pattern: object, node: object, found: dict) -> bool:
    """Whether a node looks like the pattern; what its capitals stand for is noted."""
    if _is_capital(pattern) and isinstance(node, ast.expr):
        before = found.setdefault(pattern.id, node)
        return ast.dump(before) == ast.dump(node)
    if isinstance(pattern, str) and pattern in NAMES:
        return node in NAMES[pattern] and found.setdefault(pattern, node) == node
    if isinstance(pattern, list):
        return len(pattern) == len(node) and all(
            map(_matches, pattern, node, [found] * len(node))
        )
    if isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and all(
            _matches(getattr(pattern, name), getattr(node, name), found)
            for name in pattern._fields
            if name != "ctx"
        )
    return type(pattern) is type(node) and pattern == node


class _Filled(ast.NodeTransformer):
    """A replacement with what the capitals stand for in it."""

    def __init__(self, found: dict):
        self.found = found

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.found.get(node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        node.attr = self.found.get(node.attr, node.attr)
        return self.generic_visit(node)


def _compiled(code: str, solution: Callable) -> Callable:
    space = dict(solution.__globals__)
    with warnings.catch_warnings(action="ignore"):  # of what no learner would write
        exec(compile(code, "<mutant>", "exec"), space)
    return space[solution.__name__]
