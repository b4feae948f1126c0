"""`run` and `save` with real kernels, and nbval on what `save` stored."""

import json
import subprocess
import sys

import pytest
from nbformat import v4

from grpo_course import __main__ as command_line
from grpo_course.workshop import form, kernels, tests
from grpo_course.workshop import run as run_command
from grpo_course.workshop import save as save_command


@pytest.fixture
def checkout(tmp_path):
    """A checkout without notebooks."""
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "notebooks").mkdir()
    return tmp_path


PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);"


def write(checkout, name, *sources, tags=()):
    """Store a notebook of code cells as JupyterLab would: random ids, never run."""
    path = checkout / "notebooks" / f"{name}.ipynb"
    cells = [v4.new_code_cell(s, metadata={"tags": list(tags)}) for s in sources]
    cells.insert(0, v4.new_markdown_cell("# Tiny"))
    made = v4.new_notebook(cells=cells, metadata={"authors": [{"name": "me"}]})
    del cells[1]["id"]
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


@pytest.mark.slow
def test_save_is_deterministic_and_leaves_a_clean_form(checkout, capsys):
    sources = ["x = 2 + 2\nx", "print('a')\nprint('b')", PLOT]
    path = write(checkout, "01_tiny", *sources)
    kept = form.read(path).cells[0].id
    assert save_command.main([], checkout) == 0
    first = path.read_bytes()
    assert save_command.main(["01"], checkout) == 0
    assert path.read_bytes() == first
    assert capsys.readouterr().out.split()[1::2] == ["saved", "unchanged"]
    stored = form.read(path)
    # It does not call setup(), so its picture has no text.
    assert ["alternative text" in line for line in form.stored(stored)] == [True]
    assert stored.cells[0].id == kept
    assert set(stored.metadata) == {"kernelspec", "language_info", "rise"}
    assert stored.cells[2].outputs[0].text == "a\nb\n"
    assert first.endswith(b"}\n")
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "source, complaint",
    [
        ("1 / 0", "cell 1: ZeroDivisionError: division by zero"),
        (
            "import sys; print('careful', file=sys.stderr)",
            "cell 1: it writes to stderr",
        ),
        ("import os; print(os.getcwd())", "cell 1: its output shows the path"),
    ],
)
def test_save_refuses_and_leaves_the_file_alone(checkout, capsys, source, complaint):
    path = write(checkout, "02_bad", source)
    before = path.read_bytes()
    assert save_command.main([], checkout) == 1
    assert complaint in capsys.readouterr().out
    assert path.read_bytes() == before


def test_run_reports_each_notebook_and_writes_nothing(checkout, capsys):
    write(checkout, "01_good", "open('made.txt', 'w').close()")
    write(checkout, "02_bad", "x = 1", "raise ValueError('no such rule')")
    before = {p.name: p.read_bytes() for p in (checkout / "notebooks").iterdir()}
    assert run_command.main([], checkout) == 1
    good, bad = capsys.readouterr().out.splitlines()
    assert good.startswith("01_good") and good.endswith("ok")
    assert bad.endswith("FAILED, cell 2: ValueError: no such rule")
    after = {p.name: p.read_bytes() for p in (checkout / "notebooks").iterdir()}
    assert after == before


SAY_VARIABLES = """
import os
raise SystemError(os.environ.get("ATEN_CPU_CAPABILITY"), os.environ.get("MKL_CBWR"))
"""
SHOW_VARIABLE = "import os; print(os.environ.get('ATEN_CPU_CAPABILITY'))"


def test_each_processor_reaches_its_kernels_and_no_other(checkout, capsys):
    write(checkout, "01_says", SAY_VARIABLES)
    assert run_command.main(["01", "--cpu", "default", "compatible"], checkout)
    printed = capsys.readouterr().out.splitlines()
    assert [(line.split()[1], line[line.index("(") :]) for line in printed] == [
        ("default", "('default', None)"),
        ("compatible", "(None, 'COMPATIBLE')"),
    ]


@pytest.mark.slow
def test_torch_calculates_as_on_the_processor_that_is_named(checkout, capsys):
    told = "import torch; raise SystemError(torch.backends.cpu.get_cpu_capability())"
    write(checkout, "01_says", told)
    run_command.main(["--cpu", "default"], checkout)
    assert "SystemError: DEFAULT" in capsys.readouterr().out


def test_an_unknown_processor_lists_the_known(checkout, capsys):
    with pytest.raises(SystemExit):
        run_command.main(["--cpu", "cray"], checkout)
    told = capsys.readouterr().err
    assert all(name in told for name in kernels.CPUS)


@pytest.mark.slow
def test_twice_names_every_cell_that_runs_only_once(checkout, capsys):
    sources = ["x = [1]", "x.pop()", "x = [1]; del x", "print(1)", "1 / 0"]
    path = write(checkout, "01_once", *sources[:4])
    assert run_command.main([], checkout) == 0
    assert run_command.main(["--twice"], checkout) == 1
    line = capsys.readouterr().out.splitlines()[-1]
    assert "cell 2, the second time: IndexError" in line
    assert line.count("second time") == 1
    write(checkout, "01_once", *sources)
    assert run_command.main(["--twice"], checkout) == 1
    assert "FAILED, cell 5: ZeroDivisionError" in capsys.readouterr().out
    write(checkout, path.stem, "x = [1]", "x.pop()", tags=("raises-exception",))
    assert run_command.main(["--twice"], checkout) == 0


def test_an_unknown_notebook_lists_the_known(checkout):
    write(checkout, "01_good", "1")
    with pytest.raises(SystemExit, match="01_good"):
        run_command.main(["07"], checkout)


@pytest.mark.slow
def test_nbval_passes_what_save_stored_and_fails_a_changed_number(checkout):
    """A closing `;` included, which nbval alone would get wrong.

    One of the notebooks that `test` executes as on another processor is stored as on
    this one.
    """
    other = write(checkout, next(iter(kernels.ELSEWHERE)), SHOW_VARIABLE)
    path = write(checkout, "01_tiny", "print(41 + 1)", PLOT, SHOW_VARIABLE)
    assert save_command.main([], checkout) == 0
    changed = path.with_name("02_changed.ipynb")
    text = path.read_text(encoding="utf-8").replace('"42\\n"', '"43\\n"')
    changed.write_text(text, encoding="utf-8")
    settings = ["-c", "pyproject.toml", "-p", "conftest", "-p", "no:cacheprovider"]
    options = [*settings, *tests.NOTEBOOKS, "--color=no"]
    options += map(str, (other, path, changed))
    command = [sys.executable, "-m", "pytest", *options]
    root = command_line.ROOT
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert "2 failed, 5 passed" in done.stdout.splitlines()[-1]
    assert "'43" in done.stdout and "'42" in done.stdout
    assert "'None" in done.stdout and "'default" in done.stdout
    assert f"as on another processor: {kernels.ELSEWHERE}" in done.stdout


def test_what_is_executed_elsewhere_is_there():
    stems = {path.stem for path in (command_line.ROOT / "notebooks").glob("*.ipynb")}
    assert kernels.ELSEWHERE and kernels.ELSEWHERE.keys() <= stems
    assert {*kernels.ELSEWHERE.values()} <= {"default", "compatible"}
    assert kernels.elsewhere("00_welcome") == {}
