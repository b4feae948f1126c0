"""Copies to work in: kept, brought up to date, never overwritten; who finds what."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import nbformat
import pytest
from nbformat import sign, v4

from grpo_course.classroom import record
from tools import lab, links, progress
from tools.notebook import WIDGET_VIEW, read
from tools.run import choose

ROOT = Path(__file__).resolve().parents[2]
NAME = "03_deltas.ipynb"
SIGN = sign.NotebookNotary.sign


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A checkout with two notebooks, whose JupyterLab is a list of what it was given"""
    started = []
    monkeypatch.setattr(lab, "serve", lambda *given: started.append(given) or 0)
    for name in ("00_welcome", "03_deltas"):
        write(tmp_path / "notebooks" / f"{name}.ipynb", "x = 1", "y = 2")
    return type("Course", (), {"root": tmp_path, "started": started})


def write(path, *sources, printed="1\n"):
    """A notebook as the course stores it."""
    cells = [v4.new_markdown_cell(f"# {path.stem}", id="title")]
    for number, source in enumerate(sources):
        output = v4.new_output("stream", text=printed)
        cells.append(v4.new_code_cell(source, id=f"c{number}", outputs=[output]))
    path.parent.mkdir(exist_ok=True)
    path.write_text(nbformat.writes(v4.new_notebook(cells=cells)), encoding="utf-8")


def edit(path, old, new):
    """What a learner types into a cell; JupyterLab then writes the file in its way."""
    book = read(path)
    for cell in book.cells:
        cell.source = cell.source.replace(old, new)
    path.write_text(json.dumps(book, indent=4), encoding="utf-8")


def run_in_jupyterlab(path):
    """What JupyterLab writes after Run All and a look at the cells' properties."""
    book = read(path)
    for cell in book.cells:
        cell.metadata |= {"editable": True, "slideshow": {"slide_type": ""}, "tags": []}
        cell.metadata["execution"] = {"iopub.execute_input": "2026-01-01"}
        if cell.cell_type == "code":
            cell.outputs = [v4.new_output("stream", text="something else\n")]
            cell.execution_count = 99
    book.metadata["language_info"] = {"name": "python", "version": "3.11.2"}
    book.cells.append(v4.new_code_cell(""))  # after Shift+Enter in the last cell
    path.write_text(json.dumps(book, indent=1), encoding="utf-8")


def start(course, *arguments):
    assert lab.main(list(arguments), course.root) == 0
    return course.root / lab.FOLDER / NAME


def files(course):
    return sorted(path.name for path in (course.root / lab.FOLDER).iterdir())


def test_a_copy_has_no_cell_for_colab_and_counts_its_own(course):
    path = course.root / "notebooks" / NAME
    book = read(path)
    links.add(book, path.stem, "https://github.com/ada/grpo")
    path.write_text(nbformat.writes(book), encoding="utf-8")
    copy = read(start(course))
    assert "google.colab" in book.cells[1].source
    assert [cell.source for cell in copy.cells[1:]] == ["x = 1", "y = 2"]
    assert [cell.execution_count for cell in copy.cells[1:]] == [1, 2]


def test_what_is_written_in_a_copy_stays_and_the_course_s_own_is_untouched(course):
    own = course.root / "notebooks" / NAME
    before = own.read_bytes()
    copy = start(course)
    edit(copy, "x = 1", "x = 100")
    mine = copy.read_bytes()
    start(course)
    assert copy.read_bytes() == mine and own.read_bytes() == before
    assert files(course) == ["00_welcome.ipynb", NAME]


def test_a_copy_that_was_only_run_is_kept_and_follows_the_course(course, capsys):
    copy = start(course)
    run_in_jupyterlab(copy)
    after = copy.read_bytes()
    start(course)
    assert copy.read_bytes() == after, "nothing is new: its outputs are the learner's"
    write(course.root / "notebooks" / NAME, "x = 1", "y = 3")
    start(course)
    assert read(copy).cells[2].source == "y = 3"
    assert files(course) == ["00_welcome.ipynb", NAME]
    assert capsys.readouterr().out == lab.UPDATED.format(NAME) + "\n"


@pytest.mark.parametrize("change", ["source", "kind", "order", "gone", "more"])
def test_where_both_changed_the_new_one_is_put_beside(course, capsys, change):
    copy = start(course)
    book = read(copy)
    if change == "source":
        book.cells[1].source += "  # mine"
    elif change == "kind":
        book.cells[1] = v4.new_markdown_cell(book.cells[1].source)
    elif change == "order":
        book.cells.append(book.cells.pop(1))
    elif change == "gone":
        del book.cells[1]
    else:
        book.cells.append(v4.new_code_cell("z = 1"))
    copy.write_text(nbformat.writes(book), encoding="utf-8")
    mine = copy.read_bytes()
    write(course.root / "notebooks" / NAME, "x = 1", "y = 3")
    start(course)
    said = capsys.readouterr().out
    assert copy.read_bytes() == mine
    new = copy.with_name("03_deltas.new.ipynb")
    assert read(new).cells[2].source == "y = 3"
    assert said.count("\n") == 1 and NAME in said and new.name in said
    start(course)
    assert capsys.readouterr().out == "", "it is said once"


def test_the_new_one_beside_is_never_overwritten_either(course):
    copy = start(course)
    edit(copy, "x = 1", "x = 100")
    new, second = (
        copy.with_name(f"03_deltas.{word}.ipynb") for word in ("new", "new-2")
    )
    for number in (3, 4):  # nobody touches the first: the second takes its place
        write(course.root / "notebooks" / NAME, "x = 1", f"y = {number}")
        start(course)
        assert read(new).cells[2].source == f"y = {number}"
    edit(new, "y = 4", "y = 44")
    mine = new.read_bytes()
    write(course.root / "notebooks" / NAME, "x = 1", "y = 5")
    start(course)
    assert new.read_bytes() == mine
    assert read(second).cells[2].source == "y = 5"


def test_new_outputs_alone_are_not_offered_beside_what_the_learner_wrote(course):
    copy = start(course)
    edit(copy, "x = 1", "x = 100")
    write(course.root / "notebooks" / NAME, "x = 1", "y = 2", printed="another\n")
    start(course)
    assert files(course) == ["00_welcome.ipynb", NAME]


def test_the_course_s_own_outputs_are_trusted_and_no_others(course, monkeypatch):
    """So a film plays before its cell is run, and what is put into a copy does not."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(course.root / "new" / "jupyter"))
    monkeypatch.setattr(sign.NotebookNotary, "sign", SIGN)
    copy = start(course)
    is_trusted = lambda: sign.NotebookNotary().check_signature(read(copy))  # noqa: E731
    assert is_trusted()
    run_in_jupyterlab(copy)
    start(course)
    assert not is_trusted()


@pytest.mark.parametrize("text", ["{ broken", "[]", "{}", '{"cells": [{}]}'])
def test_a_copy_that_cannot_be_read_is_left_alone(course, text):
    copy = start(course)
    copy.write_text(text, encoding="utf-8")
    start(course)
    assert copy.read_text(encoding="utf-8") == text
    assert read(copy.with_name("03_deltas.new.ipynb")).cells[1].source == "x = 1"


def test_a_copy_made_by_hand_is_not_overwritten(course):
    copy = course.root / lab.FOLDER / NAME
    write(copy, "x = 7", "y = 2")
    before = copy.read_bytes()
    start(course)
    assert copy.read_bytes() == before
    assert "03_deltas.new.ipynb" in files(course)


def test_reset_makes_a_fresh_copy_and_keeps_every_old_one(course, capsys):
    copy = start(course)
    for number in (1, 2):
        edit(copy, "x = 1", f"x = 10{number}")
        start(course, "--reset", "03", "--no-browser")
        assert read(copy).cells[1].source == "x = 1"
        assert "03_deltas.old" in capsys.readouterr().out
    names = ["03_deltas.old-2.ipynb", "03_deltas.old.ipynb"]
    assert files(course) == sorted(["00_welcome.ipynb", NAME, *names])
    kept = [read(copy.with_name(name)).cells[1].source for name in names]
    assert kept == ["x = 102", "x = 101"]


def test_a_mistyped_reset_is_no_option_of_jupyterlab(course, capsys):
    with pytest.raises(SystemExit):
        lab.main(["--rest", "03"], course.root)
    assert "did you mean --reset?" in capsys.readouterr().err
    assert course.started == []


def test_reset_of_what_is_not_there_changes_nothing(course):
    copy = start(course)
    edit(copy, "x = 1", "x = 100")
    with pytest.raises(SystemExit, match="no notebook '99'"):
        lab.main(["--reset", "03", "99"], course.root)
    assert read(copy).cells[1].source == "x = 100"
    assert files(course) == ["00_welcome.ipynb", NAME]


@pytest.mark.parametrize(
    "arguments, name",
    [([], "00_welcome"), (["--reset", "03", "00"], "03_deltas")],
)
def test_jupyterlab_serves_the_checkout_and_its_address_opens_the_copy(
    course, arguments, name
):
    """The pictures lie beside `work/`: from a server in it, they would not be found."""
    start(course, *arguments, "--port=9000", "--no-browser")
    ((command, root, variables),) = course.started
    assert root == course.root
    assert f"--ServerApp.root_dir={course.root}" in command
    assert f"--LabApp.default_url=/lab/tree/work/{name}.ipynb" in command
    assert command[-2:] == ["--port=9000", "--no-browser"]
    folder = course.root / "work"  # with the layout, so that no other course's opens
    kept = {record.FOLDER: str(folder), lab.LAYOUT: str(folder / ".jupyterlab")}
    assert variables == kept | lab.defaults()


def test_what_the_user_has_set_in_jupyterlab_comes_first(monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "mine")
    mine, ours = lab.defaults()["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    (path,) = Path(ours).rglob("*.json")
    assert mine == "mine" and json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def learner(monkeypatch, tmp_path):
    """A kernel that `lab` started, in which a cell has changed the folder."""
    monkeypatch.setattr(record, "learner_is_here", lambda: True)
    monkeypatch.setenv(record.FOLDER, str(tmp_path / lab.FOLDER))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")


def test_progress_is_kept_in_the_workspace_wherever_a_cell_runs(learner, tmp_path):
    record.keep("exercises", "3.1", "v")
    assert record.read(tmp_path / lab.FOLDER) == {"exercises": {"3.1": "v"}}
    assert record.kept("exercises") == {"3.1": "v"}
    assert list((tmp_path / "elsewhere").iterdir()) == []


ASK = 'guess = predict("Which way?", "up", "down")'
KEPT = {
    "exercises": {"1.1": "v", "1.2": "x", "9.9": "v"},
    "guesses": {"Which way?": {"guess": "up", "answer": "up"}, "old": {"guess": "up"}},
}


@pytest.mark.parametrize("folder", ["work", "notebooks"])
def test_progress_shows_every_notebook_and_exports_every_item(
    folder, tmp_path, monkeypatch, capsys, make
):
    """From any folder: the workspace's, or that of who works in the course's own."""
    task = "**Exercise 1.{}** · difficulty 1 of 3 · 5 minutes"
    cells = [make.text("# T\n\n**Minutes:** 20."), make.code(ASK, "predict")]
    cells += [make.text(task.format(number), "exercise") for number in (1, 2)]
    for name in ("work", "notebooks", "elsewhere"):
        (tmp_path / name).mkdir()
    path = tmp_path / "notebooks" / NAME
    path.write_text(nbformat.writes(make.notebook(*cells)), encoding="utf-8")
    (tmp_path / folder / record.NAME).write_text(json.dumps(KEPT), encoding="utf-8")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert progress.main(["--export", "ada.csv"], tmp_path) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[1].split() == ["03_deltas", "30", "1", "of", "2", "1", "of", "1"]
    assert table[2].split()[1:] == table[1].split()[1:]
    rows = Path("ada.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert rows == [
        "ada,03_deltas,exercise,1.1,right,,",
        "ada,03_deltas,exercise,1.2,not right yet,,",
        "ada,03_deltas,guess,Which way?,right,up,up",
    ]


@pytest.mark.parametrize(
    "kept, state",
    [
        ({}, "no guess yet"),
        ({"guess": "up"}, "not seen yet"),
        ({"guess": "up", "answer": "down"}, "wrong"),
    ],
)
def test_the_states_of_a_guess(make, kept, state):
    book = make.notebook(make.code(ASK, "predict"))
    (row,) = progress.items(book, {"guesses": {"Which way?": kept}})
    assert row[2] == state


def test_git_sees_nothing_of_a_workspace():
    """Notebooks, what cells write, progress; what the commands of the text write."""
    inside = ["work/03_deltas.ipynb", "work/runs/a/metrics.jsonl", "work/my_task.py"]
    commands = ["my_task.py", "runs/mine/metrics.jsonl"]
    paths = [*inside, f"work/{record.NAME}", *commands]
    listed = ["git", "check-ignore", "--no-index", *paths]
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True)
    assert found.stdout.split() == paths


TARGET = re.compile(r"\]\(([^)\s]+)|\b(?:src|href)=[\"']([^\"']+)")


def lost(sources, folder):
    """What texts show or link to that is not there for a copy of their notebook.

    `work/` lies beside `notebooks/`: the same paths lead on from there,
    but of the folder itself only notebooks are copied.
    """
    found = ["".join(pair) for text in sources for pair in TARGET.findall(text)]
    own = [urlsplit(each).path for each in found if not urlsplit(each).scheme]
    books = [x for x in own if "/" not in x and x.endswith(".ipynb")]
    gone = [x for x in books if not (folder / x).exists()]
    others = [x for x in own if x and x not in books]
    from_copy = {
        x: Path(os.path.normpath(folder.parent / lab.FOLDER / x)) for x in others
    }
    return gone + [x for x, path in from_copy.items() if not path.exists()]


@pytest.mark.parametrize(
    "path", choose(ROOT / "notebooks", []), ids=lambda path: path.stem
)
def test_what_a_notebook_shows_and_links_to_is_there_for_a_copy(path):
    texts = [c.source for c in read(path).cells if c.cell_type == "markdown"]
    assert lost(texts, path.parent) == []


def test_a_shell_that_knows_no_comment_starts_the_course_all_the_same(course):
    """zsh on a Mac hands on what stands behind a #."""
    lab.main(["--no-browser", "#", "makes", "the", "environment"], course.root)
    (command, _, _) = course.started[0]
    assert "--no-browser" in command and not {"#", "makes"} & set(command)


SERVE = """
import sys
from tools import lab
sys.exit(lab.serve(sys.argv[1:], ".", {}))
"""
RESTART = """
import subprocess, sys
from pathlib import Path
from grpo_course import install
python = Path(sys.executable)
install.os.name = "nt"  # there, `lab` waits for itself in `.venv`
open_process = subprocess.Popen
subprocess.Popen = lambda given: open_process([given[0], *given[3:]])
sys.exit(install.restart(python, sys.argv[1:]))
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="Windows has no such signal")
@pytest.mark.parametrize("serve", [SERVE, RESTART], ids=["serve", "restart"])
def test_a_server_is_waited_for_until_it_has_ended(serve):
    """Ctrl-C reaches it too: nobody kills it before its kernels are stopped."""
    waits = ["import signal, sys, time", "signal.signal(signal.SIGINT, "]
    waits[1] += "lambda *_: (time.sleep(0.6), print('ended', flush=True), sys.exit(5)))"
    waits += ["print('up', flush=True)", "time.sleep(30)"]
    server = ["-c", "\n".join(waits)]
    told = subprocess.Popen(
        [sys.executable, "-c", serve, *server],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=ROOT,
    )
    assert "up\n" in iter(told.stdout.readline, "")
    os.killpg(told.pid, signal.SIGINT)  # as a terminal does
    assert told.communicate(timeout=20)[0] == "ended\n" and told.returncode == 5


BUTTONS = {"model_name": "ToggleButtonsModel", "state": {"layout": "IPY_MODEL_b2"}}
STORED = {"a1": BUTTONS, "b2": {"state": {}}, "c3": {"state": {}}}


def with_widgets(states, *shown):
    outputs = [{"data": {WIDGET_VIEW: {"model_id": each}}} for each in shown]
    text = {"cell_type": "markdown", "source": "Guess."}
    code = {"cell_type": "code", "outputs": [{"text": "7"}, *outputs]}
    made = {"cells": [text, code], "metadata": {}}
    if states is not None:
        made["metadata"]["widgets"] = {lab.STATE: {"state": states}}
    return made


@pytest.fixture
def save(tmp_path):
    """Save over a file with other states; what is written then."""
    path = tmp_path / "00.ipynb"
    path.write_text(json.dumps(with_widgets(STORED, "a1")), encoding="utf-8")
    server = SimpleNamespace(root_dir=str(tmp_path))

    def saved(content, kind="notebook", name="00.ipynb"):
        model = {"type": kind, "content": content}
        lab.keep_widgets(model=model, path=name, contents_manager=server)
        return lab.states(content) if kind == "notebook" else content

    return saved


def test_what_an_output_shows_is_kept_with_its_parts_and_no_more(save):
    assert save(with_widgets(None, "a1")) == {"a1": BUTTONS, "b2": STORED["b2"]}


def test_what_the_kernel_knows_comes_first(save):
    new = {"state": {"value": 1}}
    assert save(with_widgets({"d4": new}, "a1", "d4")).keys() == {"a1", "b2", "d4"}
    assert save(with_widgets({"a1": new}, "a1")) == {"a1": new}


def test_a_notebook_without_widgets_and_other_files_stay_as_they_are(save):
    assert save(with_widgets(None)) == {} == save(with_widgets(None, "z9"))
    assert save(with_widgets(None, "a1"), name="new.ipynb") == {}
    assert save("text", kind="file") == "text"
