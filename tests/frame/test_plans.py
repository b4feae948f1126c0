"""The plans name what is in the notebooks, in its order, and leave minutes free."""

from pathlib import Path

import pytest

from grpo_course.workshop import form, plans
from grpo_course.workshop.cells import heading, sections

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {
    path.stem: form.read(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
}
PLANS = plans.read(ROOT)
PARTS = [
    pytest.param(part, id=f"{name} {part.notebook}")
    for name, plan in PLANS.items()
    for part in plan.parts
]


def headings(notebook):
    _, *rest = sections(NOTEBOOKS[notebook].cells)
    return [heading(section) for section in rest]


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_takes_notebooks_in_their_order(name):
    plan = PLANS[name]
    names = [part.notebook for part in plan.parts]
    assert names == sorted(names) and len(set(names)) == len(names)
    left = {*plan.homework, *plan.reading}
    assert {*names, *left} <= set(NOTEBOOKS) and not left & set(names)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_names_headings_of_its_notebook_in_their_order(part):
    there = headings(part.notebook)
    for named in (part.sections, part.without):
        assert named is None or named == [h for h in there if h in named]
    assert part.sections is None or part.without is None


@pytest.mark.parametrize("part", PARTS)
def test_a_part_names_exercises_of_its_sections(part):
    cells = NOTEBOOKS[part.notebook].cells
    found = plans.exercises(part, cells)
    assert part.exercises is None or list(found) == part.exercises


def test_what_is_left_out_is_not_told(make):
    cells = [make.text(text) for text in ("# T", "## A", "words", "## B", "## C")]

    def told(**stated):
        found = plans.told(plans.Part("00", **stated), cells)
        return [[cell.source for cell in section] for section in found]

    assert told() == [["# T"], ["## A", "words"], ["## B"], ["## C"]]
    assert told(sections=["A", "C"]) == [["## A", "words"], ["## C"]]
    assert told(without=["A", "C"]) == [["## B"]]


def test_an_exercise_that_is_not_told_is_refused(make):
    cells = [
        make.text(text)
        for text in ("# T", "## A", "## B\n\n**Exercise 1.1** 5 minutes")
    ]
    part = plans.Part("00", sections=["B"], exercises=["1.1"])
    assert plans.exercises(part, cells) == {"1.1": 5}
    with pytest.raises(SystemExit, match=r"exercise 1\.1 .* 00"):
        plans.exercises(part._replace(sections=["A"]), cells)
