"""Which statements of a notebook a choice of its cells needs, found by names.

Whoever tells a few sections of a notebook has to run what they lean on: imports,
settings, functions, a run that was trained earlier. `needed` walks backwards and keeps
each statement that sets or changes a name which is read further down.
"""

import ast
import builtins
import re
from collections.abc import Iterable
from typing import NamedTuple

from nbformat import NotebookNode

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
MAYBE = (ast.If, ast.Try, ast.While)  # these may leave a name as it was
ONLY_LOOKS = ("print", "plot", "show", "draw", "display", "play", "slide", "verdict")
CHANGES = ("train", "warm_start", "learn", "fit")  # they change a model they are given
MAKES = re.compile(r"= [\w.]*\b[A-Z]\w*\(")  # an object of a class
NOTES = re.compile(r'^(?:del )?[A-Z][A-Z_]+\[("\w+")\]', re.MULTILINE)  # in a table
KNOWN = {*dir(builtins), "get_ipython", "display"}


class Statement(NamedTuple):
    """A statement with its lines, comments above it included."""

    text: str
    node: ast.stmt
    sets: set[str]
    reads: set[str]
    changes: set[str]  # names whose value it may change without setting them


def statements(source: str) -> list[Statement]:
    """The statements of a cell; those that share a line are one."""
    lines, found, begin = source.splitlines(), [], 0
    nodes = ast.parse(source).body
    for k, node in enumerate(nodes):
        end = node.end_lineno or 0
        if k + 1 < len(nodes) and nodes[k + 1].lineno <= end:
            continue
        inside = [n for n in nodes[: k + 1] if n.lineno > begin]
        sets, reads = in_order(inside)
        changes = set().union(*map(changed, inside))
        text = "\n".join(lines[begin:end])
        found.append(Statement(text, node, sets, reads, changes))
        begin = end
    return found


def in_order(body: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """The names that statements set, and those they read before they set them."""
    sets: set[str] = set()
    reads: set[str] = set()
    for node in body:
        new, read = names(node)
        reads |= read - sets
        sets |= new
    return sets, reads


def names(node: ast.AST) -> tuple[set[str], set[str]]:
    """The names that a piece of code sets and reads, those inside it left out."""
    if isinstance(node, ast.Name):
        stored = isinstance(node.ctx, ast.Store)
        return ({node.id}, set()) if stored else (set(), {node.id})
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(a.asname or a.name).split(".")[0] for a in node.names}, set()
    if isinstance(node, ast.For):
        targets = names(node.target)[0]
        sets, reads = in_order([*node.body, *node.orelse])
        return sets | targets, names(node.iter)[1] | (reads - targets)
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return assigned(node)
    sets, reads = in_order(ast.iter_child_nodes(node))
    if isinstance(node, FUNCTIONS):
        return of_function(node)
    if isinstance(node, COMPREHENSIONS):
        bound = set().union(*(names(each.target)[0] for each in node.generators))
        read = (names(each)[1] for each in ast.iter_child_nodes(node))
        return set(), set().union(*read) - bound
    if isinstance(node, ast.ExceptHandler):
        return sets, reads - {node.name}
    return ({node.name}, reads) if isinstance(node, ast.ClassDef) else (sets, reads)


def of_function(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
) -> tuple[set[str], set[str]]:
    """The name of a function, and the names that its body takes from outside."""
    arguments = {argument.arg for argument in all_arguments(node.args)}
    body = node.body if isinstance(node.body, list) else [node.body]
    sets = set().union(*(names(each)[0] for each in body))
    reads = set().union(*(names(each)[1] for each in ast.iter_child_nodes(node)))
    name = set() if isinstance(node, ast.Lambda) else {node.name}
    return name, reads - sets - arguments


def assigned(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> tuple[set, set]:
    """What an assignment sets and reads: the value is read first."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    sets, reads = in_order([*([node.value] if node.value else []), *targets])
    return sets, reads | (sets if isinstance(node, ast.AugAssign) else set())


def all_arguments(given: ast.arguments) -> list[ast.arg]:
    """Every argument of a function."""
    stars = [each for each in (given.vararg, given.kwarg) if each]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *stars]


def changed(statement: ast.AST) -> set[str]:
    """Names whose values a statement may change: `x[0] = 1`, `x.append(1)`, `f(x)`."""
    found: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript | ast.Attribute):
            found |= set() if isinstance(node.ctx, ast.Load) else {root(node)}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func).split(".")[-1]
            if not called.startswith(ONLY_LOOKS):
                found |= names(node.value)[1]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith(CHANGES):
            found |= set().union(*(names(each)[1] for each in node.args), set())
    return found - {""}


def root(node: ast.AST) -> str:
    """The name at the left end of `name.a[0].b`."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def needed(code: list[list[Statement]], chosen: set[int]) -> list[list[Statement]]:
    """Of each cell the statements that the chosen cells need, theirs included.

    Raises ValueError if a name is read that nothing sets.
    """
    reads, changes = in_full([statement for cell in code for statement in cell])
    wanted: set[str] = set()
    known = set(KNOWN)
    kept: list[list[Statement]] = [[] for _ in code]
    for place in reversed(range(len(code))):
        for each in reversed(code[place]):
            if place in chosen or (each.sets | changes[id(each)]) & wanted:
                kept[place].insert(0, each)
                known |= each.sets
                wanted -= set() if isinstance(each.node, MAYBE) else each.sets
                wanted |= reads[id(each)]
    if missing := {name for name in wanted - known if name.isidentifier()}:
        raise ValueError(f"nothing sets {sorted(missing)}, which chosen cells read")
    return kept


def in_full(body: list[Statement]) -> tuple[dict[int, set], dict[int, set]]:
    """What each statement reads and changes, through functions and through objects.

    A function reads what its body names; `optimizer.step()` changes the model that the
    optimizer was made with; who says "mine" reads what `MODES["mine"] = f` has noted.
    """
    reads, changes = {}, {}
    noted = {key for each in body for key in NOTES.findall(each.text)}
    bodies: dict[str, set[str]] = {}
    made_with: dict[str, set[str]] = {}
    for each in body:
        reads[id(each)] = each.reads | (closure(each.reads, bodies) - each.sets)
        reads[id(each)] |= {key for key in noted if key in each.text}
        changes[id(each)] = closure(each.changes, made_with)
        changes[id(each)] |= set(NOTES.findall(each.text))
        if isinstance(each.node, ast.FunctionDef):
            bodies[each.node.name] = each.reads
        if MAKES.search(each.text):
            made_with |= dict.fromkeys(each.sets, each.reads - each.sets)
    return reads, changes


def closure(read: set[str], bodies: dict[str, set[str]]) -> set[str]:
    """The names, and those that the functions among them read when they are called."""
    found, left = set(read), list(read)
    while left:
        for name in bodies.get(left.pop(), set()) - found:
            found.add(name)
            left.append(name)
    return found


def unseen(cells: list[NotebookNode], chosen: set[int]) -> dict[int, str]:
    """The code of each cell that the chosen cells need."""
    code = [cell for cell in cells if cell.cell_type == "code"]
    places = {place for place, cell in enumerate(code) if id(cell) in chosen}
    kept = needed([statements(cell.source) for cell in code], places)
    return {id(cell): text(each) for cell, each in zip(code, kept, strict=True)}


def text(body: list[Statement]) -> str:
    """Statements as the source of a cell."""
    lines = "\n".join(each.text for each in body).strip("\n")
    return re.sub(r"\n{3,}", "\n\n", lines)
