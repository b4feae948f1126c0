"""A code cell in parts, where what it prints and draws is too much for one slide."""

import ast
from itertools import product

from nbformat import NotebookNode

from grpo_course.workshop.deck.fold import DRAWS, REVEALS, SHOWS, part
from grpo_course.workshop.deck.heights import picture_size
from grpo_course.workshop.deck.needs import Statement, statements, text


def taken_apart(cell: NotebookNode) -> list[NotebookNode]:
    """A cell as one that prints and one for each picture; none where that cannot be."""
    body = statements(cell.source)
    draws = drawing(body)
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
        draw = DRAWS.search(each.text) or each.reads & axes
        if draw and not isinstance(each.node, ast.FunctionDef):
            draws.append(each)
            axes |= each.sets
    return draws


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
        if DRAWS.search(each.text) or not groups:
            groups.append([])
        groups[-1].append(each)
    return groups if len(groups) == pictures else [draws]
