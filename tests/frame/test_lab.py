"""Copies to work in: kept, brought up to date, never overwritten; who finds what."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbformat import sign, v4

from grpo_course.classroom import record
from tools import lab, links, progress
from tools.notebook import WIDGET_VIEW, read

ROOT = Path(__file__).resolve().parents[2]
NAME = "03_deltas.ipynb"
SIGN = sign.NotebookNotary.sign


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A checkout with two notebooks, whose JupyterLab is a list of what it was given"""
    started = []
    monkeypatch.setattr(lab, "serve", lambda *given: started.append(given) or 0)
    own, folder = tmp_path / "notebooks" / NAME, tmp_path / lab.FOLDER
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    write(own.with_name("00_welcome.ipynb"))
    write(own)
    return SimpleNamespace(root=tmp_path, own=own, copy=folder / NAME, started=started)


def write(path, y="y = 2", printed="1\n"):
    """A notebook as the course stores it."""
    cells = [v4.new_markdown_cell(f"# {path.stem}", id="title")]
    for source in ("x = 1", y):
        output = v4.new_output("stream", text=printed)
        cells.append(v4.new_code_cell(source, id=source[0], outputs=[output]))
    path.parent.mkdir(exist_ok=True)
    path.write_text(nbformat.writes(v4.new_notebook(cells=cells)), encoding="utf-8")


def edit(path, change):
    """What a learner does to a notebook; JupyterLab then writes the file in its way."""
    book = read(path)
    change(book)
    path.write_text(json.dumps(book, indent=4), encoding="utf-8")
    return path.read_bytes()


def run_in_jupyterlab(book):
    """What JupyterLab writes after Run All and a look at the cells' properties."""
    for cell in book.cells:
        cell.metadata |= {"editable": True, "slideshow": {"slide_type": ""}, "tags": []}
        cell.metadata["execution"] = {"iopub.execute_input": "2026-01-01"}
        if cell.cell_type == "code":
            cell.outputs = [v4.new_output("stream", text="something else\n")]
            cell.execution_count = 99
    book.metadata["language_info"] = {"name": "python", "version": "3.11.2"}
    book.cells.append(v4.new_code_cell(""))  # after Shift+Enter in the last cell


def start(course, *arguments):
    """Start the course; the names that then lie beside the copy of 00."""
    assert lab.main(list(arguments), course.root) == 0
    names = {path.name for path in course.copy.parent.iterdir()}
    return sorted(names - {"00_welcome.ipynb"})


def test_a_copy_that_was_only_run_is_kept_and_follows_the_course(course, capsys):
    """It has no cell for Colab, and counts its own."""
    book = read(course.own)
    links.add(book, course.own.stem, "https://github.com/ada/grpo")
    course.own.write_text(nbformat.writes(book), encoding="utf-8")
    start(course)
    cells = read(course.copy).cells
    assert [cell.source for cell in cells[1:]] == ["x = 1", "y = 2"]
    assert [cell.execution_count for cell in cells[1:]] == [1, 2]
    mine = edit(course.copy, run_in_jupyterlab)
    start(course)
    assert course.copy.read_bytes() == mine, "its outputs are the learner's"
    assert capsys.readouterr().out == ""
    write(course.own, "y = 3")
    assert start(course) == [NAME] and read(course.copy).cells[2].source == "y = 3"
    assert capsys.readouterr().out == lab.UPDATED.format(NAME) + "\n"


EDITS = {
    "source": lambda book: book.cells[1].update(source="x = 100"),
    "kind": lambda book: book.cells[1].update(v4.new_markdown_cell("x = 1")),
    "order": lambda book: book.cells.append(book.cells.pop(1)),
    "gone": lambda book: book.cells.pop(1),
    "more": lambda book: book.cells.append(v4.new_code_cell("z = 1")),
}
BY_HAND = {"by hand": lambda book: EDITS["source"](book) or book.metadata.clear()}
BROKEN = ("{ broken", "[]", "{}", '{"cells": [{}]}')


@pytest.mark.parametrize("change", [*EDITS, *BY_HAND, *BROKEN])
def test_what_an_owner_has_changed_stays_and_the_new_one_comes_beside(
    course, capsys, change
):
    start(course)
    if change in (EDITS | BY_HAND):
        edit(course.copy, (EDITS | BY_HAND)[change])
    else:
        course.copy.write_text(change, encoding="utf-8")
    mine = course.copy.read_bytes()
    new = course.copy.with_name("03_deltas.new.ipynb")
    second = course.copy.with_name("03_deltas.new-2.ipynb")
    names = [NAME] if change in EDITS else [NAME, new.name]  # what it knows not is old
    assert start(course) == names
    write(course.own, printed="another\n")  # new outputs alone are no news
    assert start(course) == names
    for number in (3, 4):  # nobody touches the first: the second takes its place
        write(course.own, f"y = {number}")
        capsys.readouterr()
        assert start(course) == [NAME, new.name]
        assert read(new).cells[2].source == f"y = {number}"
        said = capsys.readouterr().out
        assert said.count("\n") == 1 and NAME in said and new.name in said
        start(course)
        assert capsys.readouterr().out == "", "it is said once"
    also_mine = edit(new, EDITS["source"])
    write(course.own, "y = 5")
    before = course.own.read_bytes()
    assert start(course) == [NAME, second.name, new.name]
    assert read(second).cells[2].source == "y = 5"
    assert (course.copy.read_bytes(), new.read_bytes()) == (mine, also_mine)
    assert course.own.read_bytes() == before


def test_reset_makes_a_fresh_copy_and_keeps_every_old_one_but_not_if_mistyped(
    course, capsys
):
    start(course)
    for number in (1, 2):
        edit(course.copy, lambda book, n=number: book.cells[1].update(source=f"x={n}"))
        files = start(course, "--reset", "03", "--no-browser")
        assert read(course.copy).cells[1].source == "x = 1"
        assert "03_deltas.old" in capsys.readouterr().out
    names = ["03_deltas.old-2.ipynb", "03_deltas.old.ipynb"]
    assert files == sorted([NAME, *names])
    kept = [read(course.copy.with_name(name)).cells[1].source for name in names]
    assert kept == ["x=2", "x=1"]
    mine, begun = edit(course.copy, EDITS["source"]), len(course.started)
    for told in ("--rest 03", "--reset 03 99"):
        with pytest.raises(SystemExit) as refused:
            lab.main(told.split(), course.root)
        said = f"{refused.value} {capsys.readouterr().err}"
        assert "did you mean --reset?" in said or "no notebook '99'" in said
        assert len(course.started) == begun and course.copy.read_bytes() == mine


def test_the_course_s_own_outputs_are_trusted_and_no_others(course, monkeypatch):
    """So a film plays before its cell is run, and what is put into a copy does not."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(course.root / "new" / "jupyter"))
    monkeypatch.setattr(sign.NotebookNotary, "sign", SIGN)
    for is_trusted in (True, False):
        start(course)
        found = sign.NotebookNotary().check_signature(read(course.copy))
        assert found is is_trusted
        edit(course.copy, run_in_jupyterlab)


@pytest.mark.parametrize(
    "arguments, name",
    [([], "00_welcome"), (["--reset", "03", "00"], "03_deltas")],
)
def test_jupyterlab_serves_the_checkout_and_its_address_opens_the_copy(
    course, arguments, name, monkeypatch
):
    """The pictures lie beside `work/`: from a server in it, they would not be found."""
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "mine")
    own = ["--port=9000", "--no-browser"]
    start(course, *arguments, *own, "#", "what", "zsh", "hands", "on")
    ((command, root, variables),) = course.started
    assert root == course.root
    assert f"--ServerApp.root_dir={course.root}" in command
    assert f"--LabApp.default_url=/lab/tree/work/{name}.ipynb" in command
    assert command[-2:] == own
    mine, ours = variables.pop("JUPYTER_CONFIG_PATH").split(os.pathsep)
    assert mine == "mine" and list(Path(ours).rglob("*.json"))
    folder = course.copy.parent  # with the layout, so that no other course's opens
    kept = {record.FOLDER: str(folder), lab.LAYOUT: str(folder / ".jupyterlab")}
    assert variables == kept


SERVE = "from tools import lab; sys.exit(lab.serve(sys.argv[1:], '.', {}))"
RESTART = """
import pathlib, subprocess
from grpo_course import install
here, begin = pathlib.Path(sys.executable), subprocess.Popen
install.os.name = "nt"  # there, `lab` waits for itself in `.venv`
subprocess.Popen = lambda given: begin([given[0], *given[3:]])
sys.exit(install.restart(here, sys.argv[1:]))
"""
SERVER = """
import signal, sys, time
stop = lambda *_: (time.sleep(0.6), print("ended", flush=True), sys.exit(5))
signal.signal(signal.SIGINT, stop)
print("up", flush=True)
time.sleep(30)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="Windows has no such signal")
@pytest.mark.parametrize("program", [SERVE, RESTART], ids=["serve", "restart"])
def test_a_server_is_waited_for_until_it_has_ended(program):
    """Ctrl-C reaches it too: nobody kills it before its kernels are stopped."""
    command = [sys.executable, "-c", f"import sys\n{program}", "-c", SERVER]
    options = {"stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    told = subprocess.Popen(command, start_new_session=True, **options)
    assert "up\n" in iter(told.stdout.readline, "")
    os.killpg(told.pid, signal.SIGINT)  # as a terminal does
    assert told.communicate(timeout=20)[0] == "ended\n" and told.returncode == 5


# What is kept of a learner


def test_progress_is_kept_in_the_workspace_wherever_a_cell_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(record, "learner_is_here", lambda: True)
    monkeypatch.setenv(record.FOLDER, str(tmp_path / lab.FOLDER))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    record.keep("exercises", "3.1", "v")
    assert record.read(tmp_path / lab.FOLDER) == {"exercises": {"3.1": "v"}}
    assert record.kept("exercises") == {"3.1": "v"}
    assert list((tmp_path / "elsewhere").iterdir()) == []


GUESSES = {
    "A": ({"guess": "up", "answer": "up"}, "right,up,up"),
    "B": ({"guess": "up", "answer": "down"}, "wrong,up,down"),
    "C": ({"guess": "up"}, "not seen yet,up,"),
    "D": ({}, "no guess yet,,"),
}


@pytest.mark.parametrize("folder", ["work", "notebooks"])
def test_progress_shows_every_notebook_and_exports_every_item(
    folder, tmp_path, monkeypatch, capsys, make
):
    """From any folder: the workspace's, or that of who works in the course's own."""
    task = "**Exercise 1.{}** · difficulty 1 of 3 · 5 minutes"
    cells = [make.text("# T\n\n**Minutes:** 20.")]
    cells += [make.text(task.format(number), "exercise") for number in (1, 2)]
    for ask in GUESSES:
        cells += [make.code(f'g = predict("{ask}", "up", "down")', "predict")]
    for name in ("work", "notebooks", "elsewhere"):
        (tmp_path / name).mkdir()
    path = tmp_path / "notebooks" / NAME
    path.write_text(nbformat.writes(make.notebook(*cells)), encoding="utf-8")
    kept = {
        "exercises": {"1.1": "v", "1.2": "x", "9.9": "v"},
        "guesses": {ask: found for ask, (found, _) in GUESSES.items()},
    }
    (tmp_path / folder / record.NAME).write_text(json.dumps(kept), encoding="utf-8")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert progress.main(["--export", "ada.csv"], tmp_path) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[1].split() == ["03_deltas", "30", "1", "of", "2", "1", "of", "4"]
    assert table[2].split()[1:] == table[1].split()[1:]
    rows = Path("ada.csv").read_text(encoding="utf-8").splitlines()[1:]
    guesses = [f"guess,{ask},{told}" for ask, (_, told) in GUESSES.items()]
    exercises = ["exercise,1.1,right,,", "exercise,1.2,not right yet,,"]
    assert rows == [f"ada,03_deltas,{each}" for each in exercises + guesses]
    assert progress.main(["--export", "bo.csv"], tmp_path) == 0
    capsys.readouterr()
    assert progress.main(["--merge", "bo.csv", "ada.csv"], tmp_path) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[1].split() == ["ada", "1", "of", "2", "3", "of", "4"]
    assert told[2].split()[0] == "bo" and told[-1].split() == ["1.2", "2", "of", "2"]
    Path("other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    for name, cure in {"other.csv": "--export ada.csv", "none.csv": "No such"}.items():
        with pytest.raises(SystemExit):
            progress.main(["--merge", name], tmp_path)
        assert cure in capsys.readouterr().err


def test_git_sees_nothing_of_a_workspace():
    """Notebooks, what cells write, progress; what the commands of the text write."""
    paths = [f"work/{name}" for name in (NAME, "runs/a/metrics.jsonl", record.NAME)]
    paths += ["work/my_task.py", "my_task.py", "runs/mine/metrics.jsonl"]
    listed = ["git", "check-ignore", "--no-index", *paths]
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True)
    assert found.stdout.split() == paths


# Buttons and sliders of a saved notebook

BUTTONS = {"model_name": "ToggleButtonsModel", "state": {"layout": "IPY_MODEL_b2"}}
STORED = {"a1": BUTTONS, "b2": {"state": {}}, "c3": {"state": {}}}
NEWER = {"state": {"value": 1}}
PARTS = {"a1": BUTTONS, "b2": STORED["b2"]}


def with_widgets(states, *shown):
    outputs = [{"data": {WIDGET_VIEW: {"model_id": each}}} for each in shown]
    text = {"cell_type": "markdown", "source": "Guess."}
    code = {"cell_type": "code", "outputs": [{"text": "7"}, *outputs]}
    widgets = {} if states is None else {"widgets": {lab.STATE: {"state": states}}}
    return {"cells": [text, code], "metadata": widgets}


@pytest.mark.parametrize(
    "states, shown, saved",
    [
        (None, ["a1"], PARTS),  # with what it consists of, and no more
        ({"d4": NEWER}, ["a1", "d4"], PARTS | {"d4": NEWER}),
        ({"a1": NEWER}, ["a1"], {"a1": NEWER}),  # what the kernel knows comes first
        ({"b2": NEWER}, ["a1"], {"a1": BUTTONS, "b2": NEWER}),
        (None, [], {}),
        (None, ["z9"], {}),
    ],
)
def test_what_an_output_shows_outlives_its_kernel(tmp_path, states, shown, saved):
    before = json.dumps(with_widgets(STORED, "a1"))
    (tmp_path / "00.ipynb").write_text(before, encoding="utf-8")
    server = SimpleNamespace(root_dir=str(tmp_path))

    def save(content, kind="notebook", name="00.ipynb"):
        model = {"type": kind, "content": content}
        lab.keep_widgets(model=model, path=name, contents_manager=server)
        return content

    assert lab.states(save(with_widgets(states, *shown))) == saved
    assert lab.states(save(with_widgets(None, *shown), name="new.ipynb")) == {}
    assert save("text", kind="file") == "text"
