"""The stored form of every notebook, and proof that each rule can be broken."""

from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from grpo_course.workshop import form

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("check", form.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_form(path, check):
    problems = check(form.read(path))
    assert not problems, "\n".join(f"{path.name} {problem}" for problem in problems)


@pytest.mark.parametrize("before, path", [*pairwise(NOTEBOOKS)], ids=lambda p: p.stem)
def test_the_map_and_the_notebook_before_lead_to_each_notebook(before, path):
    texts = [c.source for c in form.read(NOTEBOOKS[0]).cells if c.cell_type != "code"]
    (table,) = (text for text in texts if text.startswith("## The map"))
    assert f"\n| [`{path.stem}`]({path.name}) |" in table
    last = [cell.source for cell in form.read(before).cells][-3:]
    assert path.stem in "".join(last)


def test_a_good_notebook_has_no_complaints(make, lesson):
    for notebook in (make.notebook(make.text(), make.code()), lesson):
        assert {c.__name__: c(notebook) for c in form.CHECKS if c(notebook)} == {}


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
