"""The budgets of every notebook; each can be exceeded."""

from pathlib import Path

import pytest

from grpo_course.workshop import budgets, exercise_cells, form
from grpo_course.workshop.cells import CHANGE_IT, tags

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_BYTES = 1_500_000


@pytest.mark.parametrize("check", budgets.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_keeps_its_budgets(path, check):
    problems = check(form.read(path))
    assert not problems, "\n".join(f"{path.name} {problem}" for problem in problems)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_enough_to_open_anywhere(path):
    """Films are the most of it: the cure is fewer values of a knob, and a new save."""
    assert path.stat().st_size < MOST_BYTES


# 00 and 11 compare no training; 10 is a hunt; runs of 12 and 15 take too long.
NOTHING_TO_CHANGE = ("00", "10", "11", "12", "15")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_that_compares_training_lets_the_learner_change_it(path):
    cells = [cell for cell in form.read(path).cells if CHANGE_IT in tags(cell)]
    assert bool(cells) != path.stem.startswith(NOTHING_TO_CHANGE)


def test_a_good_lesson_has_no_complaints(lesson):
    assert {c.__name__: c(lesson) for c in budgets.CHECKS if c(lesson)} == {}


def test_cell_number(make, lesson):
    assert budgets.cell_number(make.notebook(make.text()))
    many = make.notebook(*[make.text() for _ in range(71)])
    assert budgets.cell_number(many) == [
        "it has 71 cells beside its exercises; a notebook has 40 to 70"
    ]
    assert budgets.cell_number(lesson) == []


def exercise(make, task="**Exercise 1.1** · difficulty 1 of 3 · 5 minutes"):
    """The three cells of an exercise."""
    stub = make.code("f = check(f)")
    return [make.text(task, "exercise"), stub, make.text("A hint.", "solution")]


def test_the_cells_of_exercises_do_not_count(make):
    full = [make.text() for _ in range(70)]
    colab = make.code("%pip install it", "colab")
    task, *rest = exercise(make)
    assert budgets.cell_number(make.notebook(*full, task, colab, *rest)) == []
    poor = make.notebook(*[make.text() for _ in range(39)], *exercise(make))
    assert budgets.cell_number(poor)


@pytest.mark.parametrize(
    "source, wrong",
    [("verdict('A', a, b)", 0), ("print(a)", 1), ("verdict('A', a, b)\nassert a", 1)],
)
def test_a_cell_to_change_gives_a_verdict_and_asserts_nothing(make, source, wrong):
    notebook = make.notebook(make.code(source, "change-it"))
    checks = (exercise_cells.experiments_to_change, exercise_cells.bare_assertions)
    assert sum(len(check(notebook)) for check in checks) == wrong


def test_no_learner_meets_a_bare_assertion(make):
    notebook = make.notebook(make.code("x = 1\nassert x"), make.code("expect(x, '')"))
    (told,) = exercise_cells.bare_assertions(notebook)
    assert told.startswith("cell 0:")


def test_two_exercises_may_share_three_cells(make):
    both = "**Exercise 1.1** · 5 minutes\n\n**Exercise 1.2** · 6 minutes"
    notebook = make.notebook(*exercise(make, both))
    assert exercise_cells.stated(notebook.cells) == [("1.1", 5), ("1.2", 6)]
    assert len(exercise_cells.triples(notebook.cells)) == 1
    assert budgets.exercises(notebook) == []


@pytest.mark.parametrize(
    "damage, complaints",
    [
        (lambda cells: cells.pop(2), ["cell 0:"]),
        (lambda cells: cells.pop(0), ["cell 1:"]),
        (lambda cells: cells.reverse(), ["cell 0:", "cell 2:"]),
        (lambda cells: cells[0].metadata.tags.clear(), ["cell 0:", "cell 2:"]),
        (lambda cells: cells[1].update(source="f(1)"), ["cell 0:", "cell 2:"]),
        (lambda cells: cells[0].update(source="Do it."), ["cell 0:"]),
    ],
)
def test_exercises(make, damage, complaints):
    cells = exercise(make)
    damage(cells)
    notebook = make.notebook(*cells)
    assert [line[:7] for line in budgets.exercises(notebook)] == complaints


def lines(count):
    return "x = 1\n\n" * count


def test_code_lengths(make):
    too_long = make.notebook(*[make.code() for _ in range(10)], make.code(lines(31)))
    assert budgets.code_lengths(too_long) == ["cell 10: 31 lines of code; 30 at most"]
    slow = make.notebook(make.code(lines(9)), make.code(lines(9)), make.code())
    assert ["median" in line for line in budgets.code_lengths(slow)] == [True]
    many = make.notebook(*[make.code() for _ in range(4)], make.code(lines(21)))
    assert budgets.code_lengths(many) == [
        "cells [4]: over 20 lines; one cell in ten may be"
    ]
    rare = make.notebook(*[make.code() for _ in range(9)], make.code(lines(21)))
    assert budgets.code_lengths(rare) == []


def test_code_runs(make):
    run = make.notebook(make.text(), make.code(), make.code(), make.code())
    assert [line[:7] for line in budgets.code_runs(run)] == ["cell 3:"]
    assert budgets.code_runs(make.notebook(make.text(), make.code(), make.code())) == []


@pytest.mark.parametrize(
    "source, tags, fits",
    [
        ("too few words", (), False),
        ("word " * 60, (), True),
        ("word " * 61, (), False),
        ("word " * 61, ("derivation",), True),
        ("word " * 151, ("derivation",), False),
        ("word " * 400, ("solution",), True),
        ("short", ("exercise",), True),
        ("| a | b |", ("reference",), True),
        ("## A heading only", (), True),
        ("word " * 10 + "$a + b$ ```\n" + "code " * 99 + "```", (), True),
    ],
)
def test_text_lengths(make, source, tags, fits):
    problems = budgets.text_lengths(
        make.notebook(make.code(), make.text(source, *tags))
    )
    assert [line[:7] for line in problems] == ([] if fits else ["cell 1:"])


def test_late_code(make):
    texts = [make.text() for _ in range(4)]
    assert budgets.late_code(make.notebook(*texts, make.code()))
    assert budgets.late_code(make.notebook(*texts[:3], make.code())) == []


def test_opening(make):
    problems = budgets.opening(make.notebook(make.text("## Title")))
    assert len(problems) == 3
    wanted = ("'# '", "You need", "**Minutes:** 30")
    assert all(w in problem for w, problem in zip(wanted, problems, strict=True))


@pytest.mark.parametrize(
    "last, closes",
    [
        ("## What you saw\n\nIt. Next: 02.", True),
        ("## What you saw\n\nIt.\n\n## Next\n\nMore.", True),
        ("## What you saw\n\n[On](02_policy.ipynb)", True),
        ("## What you saw\n\nIt.", False),
        ("## Something else\n\nNext: 02.", False),
        ("## What you saw\n\nIt.\n\n## More\n\nNext: 02.", False),
    ],
)
def test_closing(make, last, closes):
    problems = budgets.closing(make.notebook(make.text("# A"), make.text(last)))
    assert (problems == []) == closes


def test_slide_types(make):
    notebook = make.notebook(make.text(), make.code())
    notebook.cells[0].metadata.slideshow.slide_type = "slides"
    del notebook.cells[1].metadata["slideshow"]
    found = [line[:7] for line in budgets.slide_types(notebook)]
    assert found == ["cell 0:", "cell 1:"]


def test_heading_jumps(make):
    jump = make.notebook(make.text("# A"), make.text("### C"))
    assert [line[:7] for line in budgets.heading_jumps(jump)] == ["cell 1:"]
    fine = make.notebook(make.text("# A\n## B\n### C\n## D\n```\n#### no\n```"))
    assert budgets.heading_jumps(fine) == []
