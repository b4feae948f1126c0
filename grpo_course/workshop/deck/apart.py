"""A code cell in parts, where what it prints and draws is too much for one slide."""

import ast
from itertools import product

from nbformat import NotebookNode

from grpo_course.workshop.deck.fold import DRAWS, REVEALS, SHOWS, part
from grpo_course.workshop.deck.heights import picture_size
from grpo_course.workshop.deck.needs import KNOWN, Statement, statements, text


def taken_apart(cell: NotebookNode) -> list[NotebookNode]:
    """A cell as one that prints and one for each picture; none where that cannot be."""
    body = statements(cell.source)
    draws = with_means(drawing(body), body)
    others = [s for s in body if s not in draws]
    drawn = [o for o in cell.outputs if picture_size(o)]
    printed = [o for o in cell.outputs if o not in drawn]
    if not drawn or not draws or not may_wait(draws, others):
        return []
    groups = by_picture(draws, len(drawn))
    shares = [[picture] for picture in drawn] if len(groups) > 1 else [drawn]
    if printed:
        groups, shares = [others, *groups], [printed, *shares]
    else:
        groups[0] = [*others, *groups[0]]
    pairs = list(zip(groups, shares, strict=True))
    return [part(cell, text(g), o) for g, o in pairs] if len(pairs) > 1 else []


def drawing(body: list[Statement]) -> list[Statement]:
    """The statements that draw, or change what was drawn."""
    draws: list[Statement] = []
    axes: set[str] = set()
    for each in body:
        if is_drawn(each) or (each.reads & axes and not is_function(each)):
            draws.append(each)
            axes |= each.sets
    return draws


def with_means(draws: list[Statement], body: list[Statement]) -> list[Statement]:
    """What draws, with the functions and words that it alone reads."""
    for each in reversed(body):
        others = [s for s in body if s not in draws and s is not each]
        read = set().union(
            *(s.reads for s in draws if s.node.lineno > each.node.lineno)
        )
        elsewhere = set().union(*(s.reads | s.changes for s in others))
        if is_words(each) and each.sets & read and not each.sets & elsewhere:
            more = [s for s in body if s in draws or s is each]
            draws = more if may_wait(more, others) else draws
    return draws


def is_drawn(each: Statement) -> bool:
    """Whether a statement makes a picture, and does not say only how."""
    return bool(DRAWS.search(each.text)) and not is_function(each)


def is_function(each: Statement) -> bool:
    """Whether a statement defines a function."""
    return isinstance(each.node, ast.FunctionDef)


def is_words(each: Statement) -> bool:
    """Whether a statement only puts together what is there, or defines a function."""
    if is_function(each):
        return True
    calls = (n.func for n in ast.walk(each.node) if isinstance(n, ast.Call))
    called = {f.id for f in calls if isinstance(f, ast.Name)}
    assigns = isinstance(each.node, ast.Assign | ast.AugAssign)
    return assigns and called <= KNOWN and not each.changes


def may_wait(draws: list[Statement], others: list[Statement]) -> bool:
    """Whether drawing may come after all else, and prints nothing itself."""
    if SHOWS.search(text(draws)):
        return False
    for late, early in product(draws, others):
        # The answer to a guess leaves what it is given as it is.
        changes = set() if REVEALS.match(early.text) else early.changes
        moved = late.node.lineno < early.node.lineno
        if moved and late.reads & (early.sets | changes):
            return False
    return True


def by_picture(draws: list[Statement], pictures: int) -> list[list[Statement]]:
    """The statements of each picture; of all, where it is not seen which are whose."""
    groups: list[list[Statement]] = []
    for each in draws:
        last = groups[-1] if groups else []
        if not last or (is_drawn(each) and any(map(is_drawn, last))):
            groups.append([])
        groups[-1].append(each)
    return groups if len(groups) == pictures else [draws]
