"""The stored form of every notebook, and proof that each rule can be broken."""

from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from grpo_course.workshop import exercise_cells, form
from grpo_course.workshop.cells import CHANGE_IT, tags

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_BYTES = 1_500_000
# 00 and 11 compare no training; 10 is a hunt; runs of 12 and 15 take too long.
NOTHING_TO_CHANGE = ("00", "10", "11", "12", "15")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_form(path):
    notebook = form.read(path)
    problems = form.stored(notebook) + form.lesson(notebook)
    assert not problems, "\n".join(problems)
    # Films are the most of it: the cure is fewer values of a knob, and a new save.
    assert path.stat().st_size < MOST_BYTES
    to_change = [cell for cell in notebook.cells if CHANGE_IT in tags(cell)]
    assert bool(to_change) != path.stem.startswith(NOTHING_TO_CHANGE)


@pytest.mark.parametrize("before, path", [*pairwise(NOTEBOOKS)], ids=lambda p: p.stem)
def test_the_map_and_the_notebook_before_lead_to_each_notebook(before, path):
    texts = [c.source for c in form.read(NOTEBOOKS[0]).cells if c.cell_type != "code"]
    (table,) = (text for text in texts if text.startswith("## The map"))
    assert f"\n| [`{path.stem}`]({path.name}) |" in table
    assert path.stem in form.read(before).cells[-1].source


def test_a_good_notebook_has_no_complaints(make, lesson):
    assert form.stored(make.notebook(make.text(), make.code())) == []
    assert form.stored(lesson) + form.lesson(lesson) == []


def output(kind, **fields):
    return [v4.new_output(kind, **fields)]


def display(text, **data):
    return output("display_data", data={"text/plain": text, **data})


FRAME = "data:image/png;base64,AB/mnt/CJYy+/home/x="


@pytest.mark.parametrize(
    "change",
    [
        {"execution_count": None},
        {"execution_count": 3},
        {"outputs": []},
        {"outputs": output("stream", name="stderr", text="Warn")},
        {"outputs": output("error", ename="ValueError", evalue="no")},
        {"outputs": output("stream", name="stdout", text="x" * 80)},
        {"outputs": display("x" * 80)},
        {"outputs": display("interactive()", **{form.WIDGET_VIEW: {"model_id": "x"}})},
        {"outputs": display("<Figure>", **{"image/png": "aGk="})},
        {"outputs": display("/home/ada/x")},
        {"outputs": display("", **{"text/html": f'{FRAME}" alt="/mnt/x"'})},
        {"outputs": display("C:\\Users\\ada")},
        {"id": "cell-0"},
        {"outputs": [{"output_type": "stream"}]},
    ],
)
def test_each_rule_of_storing_can_be_broken(make, change):
    notebook = make.notebook(make.text(), make.code())
    notebook.cells[1].update(nbformat.from_dict(change))
    (problem,) = form.stored(notebook)
    assert problem.startswith(("cell 1: ", "not a valid notebook"))


def test_what_is_announced_or_never_seen_is_let_through(make):
    raising = make.code("1/0", "raises-exception")
    raising.outputs = output("error", ename="ZeroDivisionError", evalue="")
    picture = make.code("plot")
    picture.outputs = display("x" * 99, **{"text/html": FRAME})
    assert form.stored(make.notebook(raising, picture)) == []
    printed = make.notebook(make.code(printed="in /srv/course/x\n"))
    assert form.stored(printed) == []
    assert "/srv/course" in form.accidents(printed, ("/srv/course",))[0]


def test_another_kernel_is_seen(make):
    notebook = make.notebook(make.code())
    notebook.metadata.language_info.version = "3.12.1"
    assert len(form.stored(notebook)) == 1


TASK = "**Exercise 1.1** · difficulty 1 of 3 · 5 minutes"


@pytest.mark.parametrize(
    "damage",
    [
        lambda cells: cells[0].update(source="# Title\n\n**You need:** nothing."),
        lambda cells: cells[-1].update(source="## What you saw\n\nIt."),
        lambda cells: cells.pop(3),
        lambda cells: cells[1].metadata.tags.clear(),
        lambda cells: cells[2].update(source="f(1)"),
        lambda cells: cells[1].update(source="**Exercise 1.1** Do it."),
        lambda cells: cells[4].update(source="print(a)"),
        lambda cells: cells[4].update(source="verdict('A', a, b)\nassert a"),
    ],
)
def test_each_rule_of_a_lesson_can_be_broken(make, lesson, damage):
    title, *_, end = lesson.cells
    task, stub = make.text(TASK, "exercise"), make.code("f = check(f)")
    knobs = make.code("verdict('A', a, b)", CHANGE_IT)
    cells = [title, task, stub, make.text("A hint.", "solution"), knobs, end]
    assert form.lesson(make.notebook(*cells)) == []
    damage(cells)
    assert form.lesson(make.notebook(*cells))


def test_two_exercises_may_share_three_cells(make):
    both = f"{TASK}\n\n**Exercise 1.2** · 6 minutes"
    three = make.text(both, "exercise"), make.code("f = check(f)")
    three = (*three, make.text("A hint.", "solution"))
    assert exercise_cells.stated(three) == [("1.1", 5), ("1.2", 6)]
    assert len(exercise_cells.triples(list(three))) == 1
