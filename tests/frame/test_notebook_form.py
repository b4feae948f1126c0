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
EVERY = (*form.CHECKS, *form.LESSON)
MOST_BYTES = 1_500_000
# 00 and 11 compare no training; 10 is a hunt; runs of 12 and 15 take too long.
NOTHING_TO_CHANGE = ("00", "10", "11", "12", "15")


@pytest.mark.parametrize("check", EVERY, ids=lambda check: check.__name__)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_form(path, check):
    problems = check(form.read(path))
    assert not problems, "\n".join(f"{path.name} {problem}" for problem in problems)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_enough_to_open_anywhere(path):
    """Films are the most of it: the cure is fewer values of a knob, and a new save."""
    assert path.stat().st_size < MOST_BYTES


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_that_compares_training_lets_the_learner_change_it(path):
    cells = [cell for cell in form.read(path).cells if CHANGE_IT in tags(cell)]
    assert bool(cells) != path.stem.startswith(NOTHING_TO_CHANGE)


@pytest.mark.parametrize("before, path", [*pairwise(NOTEBOOKS)], ids=lambda p: p.stem)
def test_the_map_and_the_notebook_before_lead_to_each_notebook(before, path):
    texts = [c.source for c in form.read(NOTEBOOKS[0]).cells if c.cell_type != "code"]
    (table,) = (text for text in texts if text.startswith("## The map"))
    assert f"\n| [`{path.stem}`]({path.name}) |" in table
    last = [cell.source for cell in form.read(before).cells][-3:]
    assert path.stem in "".join(last)


def test_a_good_notebook_has_no_complaints(make, lesson):
    plain = make.notebook(make.text(), make.code())
    assert {c.__name__: c(plain) for c in form.CHECKS if c(plain)} == {}
    assert {c.__name__: c(lesson) for c in EVERY if c(lesson)} == {}


def output(kind, **fields):
    return [v4.new_output(kind, **fields)]


def shown(text, **data):
    return output("display_data", data={"text/plain": text, **data})


WIDGET = shown("interactive(children=())", **{form.WIDGET_VIEW: {"model_id": "x"}})


BROKEN = [
    (form.count_gaps, {"execution_count": None}),
    (form.count_gaps, {"execution_count": 3}),
    (form.silent_cells, {"outputs": []}),
    (form.standard_error, {"outputs": output("stream", name="stderr", text="Warn")}),
    (form.errors, {"outputs": output("error", ename="ValueError", evalue="no")}),
    (form.marker_comments, {"source": "# NBVAL_SKIP\n1"}),
    (form.long_lines, {"outputs": output("stream", name="stdout", text="x" * 80)}),
    (form.long_lines, {"outputs": shown("x" * 80)}),
    (form.live_widgets, {"outputs": WIDGET}),
    (form.machine_paths, {"outputs": shown("/home/ada/x")}),
    (form.machine_paths, {"outputs": shown("", **{"text/html": "/tmp/x"})}),
    (form.machine_paths, {"outputs": shown("C:\\Users\\ada")}),
    (form.unchecked_ignored, {"metadata": {"tags": [form.IGNORED]}}),
    (form.invalid, {"outputs": [{"output_type": "stream"}]}),
]


@pytest.mark.parametrize("check, change", BROKEN)
def test_each_rule_can_be_broken(make, check, change):
    notebook = make.notebook(make.text(), make.code())
    notebook.cells[1].update(nbformat.from_dict(change))
    problems = check(notebook)
    assert len(problems) == 1
    assert problems[0].startswith("cell 1: ") or check is form.invalid


def test_repeated_ids(make):
    notebook = make.notebook(make.text(), make.code(), make.text())
    notebook.cells[2].id = notebook.cells[0].id
    assert [line[:7] for line in form.repeated_ids(notebook)] == ["cell 2:"]


def test_other_kernel(make):
    notebook = make.notebook(make.code())
    notebook.metadata.kernelspec = {"name": "conda-env", "display_name": "mine"}
    notebook.metadata.language_info.version = "3.12.1"
    assert len(form.other_kernel(notebook)) == 2


def test_tags_lift_rules(make):
    """An announced error is fine; a picture's text may be wide."""
    raising = make.code("1/0", "raises-exception")
    raising.outputs = output("error", ename="ZeroDivisionError", evalue="")
    knobs = make.code("knobs", form.IGNORED)
    assert form.unchecked_ignored(make.notebook(knobs))
    knobs.metadata.tags.append("change-it")
    assert form.unchecked_ignored(make.notebook(knobs)) == []
    picture = make.code("plot")
    picture.outputs = shown("x" * 99, **{"image/png": "aGk="})
    notebook = make.notebook(raising, knobs, picture)
    for check in (form.errors, form.long_lines):
        assert check(notebook) == []
    assert form.unchecked_ignored(notebook) == []


def test_the_bytes_of_a_picture_are_no_path(make):
    frame = "data:image/png;base64,AB/mnt/CJYy+/home/x="
    for page, problems in ((frame, 0), (frame + '" alt="/mnt/x"', 1)):
        cell = make.code()
        cell.update(nbformat.from_dict({"outputs": shown("", **{"text/html": page})}))
        assert len(form.machine_paths(make.notebook(cell))) == problems


def test_machine_paths_names_given_folders(make):
    printed = make.code(printed="in /srv/course/x\n")
    notebook = make.notebook(printed)
    assert form.machine_paths(notebook) == []
    assert "/srv/course" in form.machine_paths(notebook, ("/srv/course",))[0]


def exercise(make, task="**Exercise 1.1** · difficulty 1 of 3 · 5 minutes"):
    """The three cells of an exercise."""
    stub = make.code("f = check(f)")
    return [make.text(task, "exercise"), stub, make.text("A hint.", "solution")]


@pytest.mark.parametrize(
    "source, wrong",
    [("verdict('A', a, b)", 0), ("print(a)", 1), ("verdict('A', a, b)\nassert a", 1)],
)
def test_a_cell_to_change_gives_a_verdict_and_asserts_nothing(make, source, wrong):
    notebook = make.notebook(make.code(source, "change-it"))
    checks = (form.experiments_to_change, form.bare_assertions)
    assert sum(len(check(notebook)) for check in checks) == wrong


def test_no_learner_meets_a_bare_assertion(make):
    notebook = make.notebook(make.code("x = 1\nassert x"), make.code("expect(x, '')"))
    (told,) = form.bare_assertions(notebook)
    assert told.startswith("cell 0:")


def test_two_exercises_may_share_three_cells(make):
    both = "**Exercise 1.1** · 5 minutes\n\n**Exercise 1.2** · 6 minutes"
    notebook = make.notebook(*exercise(make, both))
    assert exercise_cells.stated(notebook.cells) == [("1.1", 5), ("1.2", 6)]
    assert len(exercise_cells.triples(notebook.cells)) == 1
    assert form.exercises(notebook) == []


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
    assert [line[:7] for line in form.exercises(notebook)] == complaints


def test_opening(make):
    problems = form.opening(make.notebook(make.text("## Title")))
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
    problems = form.closing(make.notebook(make.text("# A"), make.text(last)))
    assert (problems == []) == closes


def test_slide_types(make):
    notebook = make.notebook(make.text(), make.code())
    notebook.cells[0].metadata.slideshow.slide_type = "slides"
    del notebook.cells[1].metadata["slideshow"]
    found = [line[:7] for line in form.slide_types(notebook)]
    assert found == ["cell 0:", "cell 1:"]


def test_heading_jumps(make):
    jump = make.notebook(make.text("# A"), make.text("### C"))
    assert [line[:7] for line in form.heading_jumps(jump)] == ["cell 1:"]
    fine = make.notebook(make.text("# A\n## B\n### C\n## D\n```\n#### no\n```"))
    assert form.heading_jumps(fine) == []
