"""What of a code cell stands on a slide, and what runs beside it unseen."""

import ast
import operator
import re
from collections.abc import Iterable
from typing import NamedTuple

from nbformat import NotebookNode, v4

from grpo_course.workshop.deck.needs import Statement, names, statements, text

DRAWS = re.compile(r"\b(axes_row|subplots|play|slide|look_back|(?:plot|draw)_\w+)\(")
SETS_AXES = re.compile(r"^\w+\.(set_\w+|legend|axh?line|axvline|axis|text|plot)\(")
SHOWS = re.compile(r"\b(print|show|display|check)\(")
SHORT = 5  # lines of a statement that a room can do without
REVEALS = re.compile(r"^\w+\.reveal\(")
CAME_OUT = "Came out:"


class Folded(NamedTuple):
    """A cell in the order in which it runs: before, on the slide, after."""

    before: str
    shown: str
    after: str  # how a guess came out, and assertions

    def cells(self, cell: NotebookNode, hide: bool) -> list[NotebookNode]:
        """The cell as up to three; its outputs stay with what is shown."""
        if hide:
            return [part(cell, joined(*self), cell.outputs, hidden=True)]
        mine, revealed = divided(cell.outputs) if self.after else (cell.outputs, [])
        front = [skipped(self.before)] if self.before else []
        back = [part(cell, self.after, revealed, hidden=True)] if revealed else []
        if self.after and not revealed:
            back = [skipped(self.after)]
        return [*front, part(cell, self.shown, mine), *back]


def fold(source: str, most_lines: int) -> Folded:
    """Set apart imports, settings that lead up to it, assertions and reveals."""
    body = list(map(without_inner_assertions, statements(source)))
    imports = [s for s in body if isinstance(s.node, ast.Import | ast.ImportFrom)]
    rest = [s for s in body if s not in imports]
    after = last(rest)
    shown = [s for s in rest if s not in after]
    before = []
    while lines(shown) > most_lines and can_lead(shown):
        before.append(shown.pop(0))
    return Folded(text(imports + before), text(shown), text(after))


def without_inner_assertions(statement: Statement) -> Statement:
    """A loop without the assertions inside it, and what is computed for these alone."""
    if only_asserts(statement.node):
        return statement
    nodes = [n for n in ast.walk(statement.node) if isinstance(n, ast.stmt)]
    dropped = lines_of(n for n in nodes if only_asserts(n))
    read: dict[bool, set[str]] = {True: set(), False: set()}  # in dropped lines, or not
    for n in ast.walk(statement.node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
            read[n.lineno in dropped].add(n.id)
    assigned = [n for n in nodes if isinstance(n, ast.Assign) and names(n)[0]]
    dropped |= lines_of(n for n in assigned if names(n)[0] <= read[True] - read[False])
    rows = statement.text.split("\n")
    first = (statement.node.end_lineno or 0) - len(rows) + 1
    kept = [row for k, row in enumerate(rows, start=first) if k not in dropped]
    return statement._replace(text="\n".join(kept))


def lines_of(nodes: Iterable[ast.stmt]) -> set[int]:
    """The numbers of the lines of statements."""
    return {k for n in nodes for k in range(n.lineno, (n.end_lineno or 0) + 1)}


def only_asserts(node: ast.AST) -> bool:
    """Whether code does nothing but assert, as expect() does, or reveal an answer."""
    if isinstance(node, ast.If):
        return all(map(only_asserts, [*node.body, *node.orelse]))
    if isinstance(node, ast.For):
        asserts = list(map(only_asserts, node.body))
        computes = [isinstance(n, ast.Assign) for n in node.body]
        return any(asserts) and all(map(operator.or_, asserts, computes))
    called = getattr(getattr(node, "value", None), "func", None)
    reveals = getattr(called, "attr", "") == "reveal"
    expects = getattr(called, "id", "") == "expect"
    return isinstance(node, ast.Assert) or expects or reveals


def last(body: list[Statement]) -> list[Statement]:
    """Assertions, how a guess came out, and what is computed for these alone."""
    found: list[Statement] = []
    for place in reversed(range(len(body))):
        each = body[place]
        read = set().union(*(s.reads for s in found)) if found else set()
        elsewhere = [s for s in body[place + 1 :] if s not in found]
        used = each.sets & set().union(*(s.reads for s in elsewhere), set())
        silent = isinstance(each.node, ast.Assign | ast.AugAssign | ast.FunctionDef)
        helps = silent and each.sets & read and not used and not each.changes
        ends = only_asserts(each.node) or REVEALS.match(each.text.strip())
        if ends or (helps and not DRAWS.search(each.text)):
            found.insert(0, each)
    return found


def can_lead(body: list[Statement]) -> bool:
    """Whether the first statement may run in a cell before: short and silent."""
    seen = DRAWS.search(body[0].text) or SHOWS.search(body[0].text)
    return len(body) > 1 and lines(body[:1]) <= SHORT and not seen


def only_draws(source: str) -> bool:
    """Whether code does nothing but draw: then its picture says it all."""
    body = statements(source)
    return bool(body) and all(
        DRAWS.search(s.text) or SETS_AXES.match(s.text) for s in body
    )


def tells(cell: NotebookNode) -> bool:
    """Whether a cell says how a guess came out, and nothing else."""
    return any(o.get("text", "").startswith(CAME_OUT) for o in cell.get("outputs", []))


def take_answer(outputs: list) -> tuple[str, list]:
    """How the one guess of a cell came out, if there is one, and its other outputs."""
    others, revealed = divided(outputs)
    told = "".join(output.text for output in revealed).split(CAME_OUT)
    return (told[1].strip(), others) if len(told) == 2 else ("", outputs)


def lines(body: list[Statement]) -> int:
    """The lines that statements take."""
    return text(body).count("\n") + 1


def joined(*sources: str) -> str:
    """Several sources as one."""
    return "\n".join(filter(None, sources))


def divided(outputs: list[NotebookNode]) -> tuple[list, list]:
    """Outputs, and what of them a reveal has printed."""
    mine, revealed = [], []
    for output in outputs:
        rows = output.get("text", "").splitlines(keepends=True)
        told = "".join(row for row in rows if row.startswith(CAME_OUT))
        if not told:
            mine.append(output)
            continue
        revealed.append(v4.new_output("stream", name="stdout", text=told))
        printed = "".join(row for row in rows if not row.startswith(CAME_OUT))
        if printed:
            mine.append(v4.new_output("stream", name="stdout", text=printed))
    return mine, revealed


def part(
    cell: NotebookNode, source: str, outputs: list, hidden: bool = False
) -> NotebookNode:
    """A part of a code cell, with its tags."""
    made = v4.new_code_cell(source, outputs=outputs, execution_count=1)
    made.metadata["tags"] = list(cell.metadata.get("tags", []))
    if hidden:
        made.metadata["jupyter"] = {"source_hidden": True}
    return made


def skipped(source: str) -> NotebookNode:
    """A cell that runs and is not seen."""
    cell = v4.new_code_cell(source, execution_count=1)
    cell.metadata["slideshow"] = {"slide_type": "skip"}
    return cell
