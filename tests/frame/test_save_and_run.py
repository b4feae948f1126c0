"""`save`, `run`, `test` and `bench`, with real kernels, and nbval on what is stored."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from nbformat import v4

from grpo_course.classroom import record
from tools import run, save
from tools.notebook import read, stored

ROOT = Path(__file__).resolve().parents[2]
PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);"
SHOW_VARIABLE = "import os; print(os.environ.get('ATEN_CPU_CAPABILITY'))"
TABLE = """\
| notebook | minutes | words |
|---|---|---|
| 01_work | 0 | an exercise |
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout without notebooks."""
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "notebooks").mkdir()
    return tmp_path


def write(checkout, name, *sources):
    """Store a notebook of code cells as JupyterLab would: random ids, never run."""
    path = checkout / "notebooks" / f"{name}.ipynb"
    cells = [v4.new_markdown_cell("# Tiny"), *map(v4.new_code_cell, sources)]
    made = v4.new_notebook(cells=cells, metadata={"authors": [{"name": "me"}]})
    del cells[1]["id"]
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


@pytest.mark.slow
def test_save_is_deterministic_and_leaves_a_clean_form(checkout, capsys):
    sources = ["x = 2 + 2\nx", "print('a')\nprint('b')", PLOT]
    path = write(checkout, "01_tiny", *sources)
    kept = read(path).cells[0].id
    page, told = checkout / "README.md", "- **Does it still run?** Yes."
    page.write_text(told + "\n")
    assert save.main(["--form-only"], checkout) == 1
    assert "never run" in capsys.readouterr().out and page.read_text() == told + "\n"
    assert save.main([], checkout) == 0
    said = page.read_text()
    assert said.startswith(told + " Every notebook was last executed")
    save.state_run(page, 600)
    assert page.read_text() == said.replace(" 0 min", " 10 min")
    first = path.read_bytes()
    assert save.main(["01"], checkout) == 0
    assert path.read_bytes() == first
    assert capsys.readouterr().out.split()[1::2] == ["saved", "unchanged"]
    # It does not call setup(), so its picture has no text.
    assert ["alternative text" in line for line in stored(read(path))] == [True]
    assert read(path).cells[0].id == kept
    assert set(read(path).metadata) == {"kernelspec", "language_info", "rise"}
    assert read(path).cells[2].outputs[0].text == "a\nb\n"
    assert first.endswith(b"}\n")
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "source, complaint",
    [
        ("1 / 0", "cell 1: ZeroDivisionError: division by zero"),
        ("import sys; print('careful', file=sys.stderr)", "cell 1: it writes to"),
        ("import os; print(os.getcwd())", "cell 1: its output shows the path"),
    ],
)
def test_save_refuses_and_leaves_the_file_alone(checkout, capsys, source, complaint):
    path = write(checkout, "02_bad", source)
    before = path.read_bytes()
    assert save.main([], checkout) == 1
    assert complaint in capsys.readouterr().out
    assert path.read_bytes() == before


def test_ids_are_kept_or_made_and_what_a_machine_adds_goes():
    def made(name):
        cells = [v4.new_markdown_cell(text) for text in ("# T", "t", "s")]
        cells[2].metadata["tags"] = ["solution"]
        slide = {"slideshow": {"slide_type": "skip"}, "tags": ["a"]}
        chosen = v4.new_code_cell("1", metadata=slide | {"execution": {"busy": "2026"}})
        timed = "GRPO 650   9.5 ms, 1.5 msgs\n"
        chosen.outputs = [v4.new_output("stream", name="stdout", text=timed)]
        cells += [chosen, v4.new_code_cell("2")]
        notebook = v4.new_notebook(cells=cells, metadata={"widgets": {"state": {}}})
        cells[0].id = cells[2].id = "kept"  # nbformat would repair it
        del cells[1]["id"], cells[3]["id"]
        save.give_ids(notebook, name)
        save.tidy(notebook)
        return notebook

    ids = [[cell.id for cell in made(name).cells] for name in ("01", "01", "02")]
    assert ids[0][0] == "kept" and len({*ids[0]}) == 5
    assert ids[0][:4] == ids[1][:4] and ids[0][1] != ids[2][1]
    notebook = made("01")
    kinds = [cell.metadata["slideshow"]["slide_type"] for cell in notebook.cells]
    assert kinds == ["slide", "subslide", "skip", "skip", "fragment"]
    chosen = notebook.cells[3]
    assert set(chosen.metadata) == {"slideshow", "tags"}
    assert chosen.outputs[0].text == "GRPO 650     ? ms, 1.5 msgs\n"
    assert "widgets" not in notebook.metadata


def test_minutes_add_the_exercises_and_fill_the_tables(checkout):
    task = "**Exercise 1.1** · difficulty 1 of 3 · 5 minutes"
    cells = [v4.new_markdown_cell("# W\n\n**Minutes:** 30."), v4.new_markdown_cell("")]
    path = checkout / "notebooks" / "01_work.ipynb"
    (checkout / "INSTRUCTORS.md").write_text(TABLE, encoding="utf-8")

    def saved(text):
        cells[1].source = text
        path.write_text(json.dumps(v4.new_notebook(cells=cells)), encoding="utf-8")
        assert save.main(["--form-only"], checkout) == 0
        cells[0].source = read(path).cells[0].source
        table = (checkout / "INSTRUCTORS.md").read_text(encoding="utf-8")
        return cells[0].source.splitlines()[-1], table

    both = "35 (30 without numbered exercises)"
    for text, told, number in [(task, both, 35), (task, both, 35), ("", "30", 30)]:
        table = TABLE.replace("| 0 |", f"| {number} |")
        assert saved(text) == (f"**Minutes:** {told}.", table)
    path.unlink()
    with pytest.raises(SystemExit, match="A table names 01_work"):
        save.documents(checkout)


@pytest.mark.slow
def test_run_reports_each_notebook_and_writes_nothing(checkout, capsys):
    write(checkout, "01_good", "open('made.txt', 'w').close()")
    variables = "import os; n = os.environ; raise SystemError(n['ATEN_CPU_CAPABILITY'])"
    write(checkout, "02_bad", "x = 1", variables)

    def files():
        return {p.name: p.read_bytes() for p in (checkout / "notebooks").iterdir()}

    before = files()
    assert run.run(["--cpu", "default"], checkout) == 1
    good, bad = capsys.readouterr().out.splitlines()
    assert good.startswith("01_good") and good.endswith("ok")
    assert bad.endswith("FAILED, cell 2: SystemError: default")
    assert files() == before
    with pytest.raises(SystemExit, match="01_good"):
        run.run(["07"], checkout)


@pytest.mark.slow
def test_run_twice_says_which_cells_differ_when_they_are_run_again(checkout, capsys):
    """Sampled without a seed, read from what a cell itself replaced, or grown."""
    seeded = "import random; random.seed(0); print(random.random())"
    write(checkout, "01_good", seeded, "x = [1]\nx", PLOT, "print('a'); 1")
    sources = {
        "import random\nrandom.seed(0)": "",
        "print('same'); print(random.random())": "it prints '0.7579",
        "f = lambda n: n\ng = f": "",
        "h = g; del g": "it stops with NameError: name 'g'",
        "seen = [*globals().get('seen', []), 1]\nseen": "it prints '[1, 1]', not '[1]'",
        "print(len(seen))": "",
        "assert len(seen) == 2": "",
    }
    path = write(checkout, "02_bad", *sources)
    book = json.loads(path.read_text())
    book["cells"].insert(3, {**book["cells"][2], "id": "ignored"})
    book["cells"][3]["metadata"] = {"tags": ["nbval-ignore-output"]}
    path.write_text(json.dumps(book))
    assert run.run(["--twice"], checkout) == 1
    good, bad = capsys.readouterr().out.splitlines()
    assert good.endswith("ok")
    found = bad.partition("FAILED, ")[2].split("; ")
    assert [line.split(":")[0] for line in found] == ["cell 2", "cell 5", "cell 6"]
    for line, words in zip(found, filter(None, sources.values()), strict=True):
        assert f"run again, {words}" in line
    assert run.run(["02"], checkout) == 1  # the last cell wants two runs of that one


@pytest.mark.parametrize("option", ["", "--learner"])
def test_run_has_buttons_and_sliders_on_demand(checkout, monkeypatch, option):
    write(checkout, "01_tiny", "1")
    seen = []
    monkeypatch.setenv(record.STORED, "1")
    monkeypatch.setenv(record.FOLDER, "of_a_learner")
    monkeypatch.setattr(run, "run_one", lambda *_: not seen.extend(os.environ))
    assert run.run(option.split(), checkout) == 0
    assert (record.STORED in seen) is (record.FOLDER in seen) is (not option)


def test_a_number_is_one_notebook(tmp_path):
    for name in ("00_a", "03_deltas", "10_b", "13_c"):
        (tmp_path / f"{name}.ipynb").touch()
    for number in ("3", "03", "03_deltas", "03_deltas.ipynb"):
        assert [p.stem for p in run.choose(tmp_path, [number])] == ["03_deltas"]
    with pytest.raises(SystemExit, match="no notebook '2'"):
        run.choose(tmp_path, ["2"])


@pytest.mark.slow
def test_nbval_passes_what_save_stored_and_fails_a_changed_number(checkout):
    """Also with a closing `;`, and one that `test` runs as on another processor."""
    other = write(checkout, next(iter(run.ELSEWHERE)), SHOW_VARIABLE)
    path = write(checkout, "01_tiny", "print(41 + 1)", PLOT, SHOW_VARIABLE)
    assert save.main([], checkout) == 0
    text = path.read_text(encoding="utf-8").replace('"42\\n"', '"43\\n"')
    path.write_text(text, encoding="utf-8")
    settings = ["-c", "pyproject.toml", "-p", "conftest", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *settings, *run.NOTEBOOKS, "--color=no"]
    command += map(str, (other, path))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "2 failed, 2 passed" in done.stdout.splitlines()[-1]
    assert "'43" in done.stdout and "'42" in done.stdout
    assert "'None" in done.stdout and "'default" in done.stdout
    assert (ROOT / "notebooks" / f"{other.stem}.ipynb").exists()


@pytest.fixture
def started(monkeypatch):
    """The commands that are started; those that hold a word of `fails` fail."""
    commands, fails = [], set()

    def python(command, folder):
        commands.append(command)
        return int(bool(fails & set(command)))

    monkeypatch.setattr(run, "python", python)
    return type("Started", (), {"commands": commands, "fails": fails})


@pytest.fixture
def checks(monkeypatch):
    """Three checks in place of the real ones, of which the second complains."""
    says = {"a": "print('fine')", "b": "raise SystemExit('wrong')", "c": ""}
    made = {name: ["-c", program] for name, program in says.items()}
    monkeypatch.setattr(run, "CHECKS", made)
    return made


@pytest.mark.parametrize("failing", ["b", "pytest", ""])
def test_tests_notebooks_and_every_check_run_and_what_fails_is_said_last(
    started, checks, failing, capsys
):
    started.fails.add(failing)
    if failing != "b":
        del checks["b"]
    assert run.test(["-x"], ROOT) == int(bool(failing))
    (command,) = started.commands
    assert command[:2] == ["-m", "pytest"] and command[-1] == "-x"
    assert "--nbval" in command
    told = capsys.readouterr().out
    wrong = "== b\nwrong\n" * (failing == "b")
    last = "== FAILED: b\n" * (failing == "b")
    assert told == f"== a\nfine\n{wrong}== c\n{last}"


def test_the_commit_hook_runs_the_checks_alone_and_downloads_nothing(started, checks):
    assert run.test([run.CHECKS_ONLY], ROOT) == 1
    assert started.commands == []
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (repository,) = yaml.safe_load(text)["repos"]
    (hook,) = repository["hooks"]
    assert (repository["repo"], hook["language"]) == ("local", "system")
    assert hook["entry"] == f"python3 -m grpo_course test {run.CHECKS_ONLY}"
