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

from grpo_course.classroom.old_check.exercise import Exercise
from grpo_course.classroom.old_check.patterns import (
    AsMethods,
    expression,
    filled,
    matches,
)
from grpo_course.classroom.old_check.rules import NAMES, RULES
from grpo_course.classroom.old_check.slips import slips

ARROW = " => "
LOST = " lost"
REDUCED = ("return (...).float().mean", "return (...).su", "return (...).sq")


@dataclass(frozen=True)
class Mutant:
    """A solution with one mistake: `change` is the new piece of code."""

    kind: str
    change: str
    words: str
    function: Callable
    tree: ast.Module
    by_rule: bool


def first_mutants(exercise: Exercise) -> tuple[Mutant, ...]:
    """All mutants of a solution with one mistake, made once."""
    own = tuple(pair for pair in exercise.words.items() if ARROW in pair[0])
    found = _first_mutants(exercise.solution, own)
    return tuple(each for each in found if _can_show(each, exercise))


def _can_show(mutant: Mutant, exercise: Exercise) -> bool:
    """A lost gradient shows where gradients are compared, a lost axis where one is."""
    if mutant.kind == "frozen":
        return mutant.change.removesuffix(".detach()") in exercise.gradient_to
    return bool(exercise.axes.get("return")) or not mutant.change.startswith(REDUCED)


@cache
def _first_mutants(solution: Callable, own: tuple) -> tuple[Mutant, ...]:
    rules = tuple(_parsed("own", words, key) for key, words in own) + _shared_rules()
    found = _mutants(canonical(solution), solution, rules, slips)
    # Of two that behave alike the shorter is the simpler explanation.
    return tuple(sorted(found, key=lambda each: len(ast.unparse(each.tree))))


def pairs_of_mutants(exercise: Exercise) -> Iterator[tuple[Mutant, Mutant]]:
    """Mutants with two mistakes, both by a rule: (the first one, both of them)."""
    for one in first_mutants(exercise):
        if not one.by_rule or not one.words:
            continue
        for both in second_mutants(exercise, one):
            # Of what is left when two things are lost, others tell more.
            if both.words and not (LOST in one.kind and LOST in both.kind):
                yield one, both


def second_mutants(exercise: Exercise, one: Mutant) -> Iterator[Mutant]:
    """The mutants of a mutant: with a second mistake, by a rule."""
    return _mutants(one.tree, exercise.solution, _shared_rules(), lambda *_: ())


def _mutants(
    tree: ast.Module, solution: Callable, rules: tuple, slips_at: Callable
) -> Iterator[Mutant]:
    """Each variant of `tree` that one rule or slip makes at one place."""
    seen = {ast.unparse(tree)}
    for node in filter(_is_read, ast.walk(tree)):
        for by_rule, changes in (
            (True, _by_rules(node, rules)),
            (False, slips_at(node, tree)),
        ):
            for kind, words, new in changes:
                # deepcopy takes `new` for a copy of `node`, and so puts it there.
                mutated = copy.deepcopy(tree, {id(node): new})
                code = ast.unparse(mutated)
                if code not in seen:
                    seen.add(code)
                    made = _compiled(mutated, solution)
                    yield Mutant(kind, _piece(new, node), words, made, mutated, by_rule)


def _is_read(node: ast.AST) -> bool:
    """An expression whose value is used, not a name that gets one."""
    stored = isinstance(getattr(node, "ctx", None), ast.Store)
    return isinstance(node, ast.expr | ast.Return) and not stored


def _piece(new: ast.AST, old: ast.AST) -> str:
    """The new piece of code; of a result only what is done to it."""
    code = ast.unparse(new)
    if isinstance(old, ast.Return) and old.value is not None:
        whole = ast.unparse(old.value)
        return code.replace(f"({whole})", "(...)").replace(whole, "(...)")
    return code


def canonical(solution: Callable) -> ast.Module:
    """The code of a plain function, with calls written as the rules expect them."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(solution)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef), "a solution is a plain function"
    if ast.get_docstring(definition):
        definition.body = definition.body[1:]
    return ast.fix_missing_locations(AsMethods().visit(tree))


def _by_rules(node: ast.AST, rules: tuple) -> Iterator[tuple[str, str, ast.expr]]:
    for kind, words, pattern, replacement in rules:
        found: dict = {}
        if matches(pattern, node, found):
            named = {word: found.get(word, "") for word in NAMES}
            new = filled(replacement, found)
            yield kind, words.format(**named) if kind != "own" else words, new


@cache
def _shared_rules() -> tuple:
    return tuple(
        _parsed(rule.kind, rule.words, pair) for rule in RULES for pair in rule.pairs
    )


def _parsed(kind: str, words: str, pair: str) -> tuple:
    return kind, words, *map(expression, pair.split(ARROW))


def _compiled(tree: ast.Module, solution: Callable) -> Callable:
    ast.fix_missing_locations(tree)
    space = dict(solution.__globals__)
    with warnings.catch_warnings(action="ignore"):  # of what no learner would write
        exec(compile(tree, "<mutant>", "exec"), space)
    return space[solution.__name__]
