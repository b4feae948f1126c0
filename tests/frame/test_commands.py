"""The commands: making the environment (with fakes), running, saving (for real)."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from nbformat import v4

from grpo_course import __main__ as command_line
from grpo_course.workshop import bench, environment, form, installed, pip_options
from grpo_course.workshop import run as run_command
from grpo_course.workshop import save as save_command


@pytest.fixture
def checkout(tmp_path):
    """An empty checkout, and every command that would be run in it."""
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "constraints.txt").write_text("torch==2.13.*\n")
    (tmp_path / "notebooks").mkdir()
    return tmp_path


@pytest.fixture
def machine(monkeypatch):
    """A machine that makes environments and installs packages without doing so."""
    commands, fails = [], set()

    def run(command, quiet=False):
        words = [str(word) for word in command]
        kind = next(word for word in ("venv", "install", "--version") if word in words)
        commands.append(words)
        if kind in fails:
            return 1
        if kind == "venv":
            python = environment.venv_python(Path(words[-1]))
            python.parent.mkdir(parents=True, exist_ok=True)
            python.touch()
        return 0

    monkeypatch.setattr(environment, "run", run)
    monkeypatch.setattr(pip_options, "answers", lambda url, seconds: False)
    monkeypatch.setattr(installed, "from_checkout", lambda root: False)
    return type("Machine", (), {"commands": commands, "fails": fails})


def kinds(machine):
    words = [set(command) for command in machine.commands]
    return [k for w in words for k in ("venv", "install", "--version") if k in w]


def test_old_python_is_refused_with_the_cure():
    with pytest.raises(environment.NotReady, match=r"3\.11 or newer.*3\.9"):
        environment.check_python((3, 9))
    environment.check_python((3, 11))


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(environment.NotReady, match=r"no pyproject\.toml"):
        environment.ensure(tmp_path, ())


def test_first_call_makes_and_installs_second_starts_at_once(checkout, machine):
    python = environment.ensure(checkout, ("test",))
    assert python == environment.venv_python(checkout / ".venv")
    assert kinds(machine) == ["venv", "install"]
    install = machine.commands[-1]
    assert install[-1] == f"-e{checkout}[test]"
    assert install[install.index("-c") + 1] == str(checkout / "constraints.txt")
    machine.commands.clear()
    for extras in [("test",), ()]:
        assert environment.ensure(checkout, extras) == python
    assert machine.commands == []


def test_a_further_extra_is_added_and_none_is_lost(checkout, machine):
    environment.ensure(checkout, ())
    environment.ensure(checkout, ("test",))
    environment.ensure(checkout, ("slides",))
    assert machine.commands[-1][-1] == f"-e{checkout}[slides,test]"
    assert kinds(machine).count("venv") == 1


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_requirement_installs_again(checkout, machine, name):
    environment.ensure(checkout, ())
    (checkout / name).write_text("changed\n")
    machine.commands.clear()
    environment.ensure(checkout, ())
    assert kinds(machine) == ["--version", "install"]


def test_pip_failure_names_the_cure_and_the_half_made_venv_is_remade(checkout, machine):
    machine.fails.add("install")
    with pytest.raises(environment.NotReady, match=r"(?s)pip could not.*No network"):
        environment.ensure(checkout, ())
    assert not environment.is_stamped(checkout / ".venv", checkout, ())
    machine.fails.clear()
    machine.commands.clear()
    environment.ensure(checkout, ())
    assert kinds(machine) == ["venv", "install"]
    assert "--clear" in machine.commands[0]


def test_a_venv_without_pip_is_remade(checkout, machine):
    environment.ensure(checkout, ())
    (checkout / ".venv" / environment.STAMP).write_text("{ broken")
    machine.fails.add("--version")
    environment.ensure(checkout, ())
    assert kinds(machine)[-3:] == ["--version", "venv", "install"]


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_missing_venv_module_names_the_package(
    checkout, machine, monkeypatch, module
):
    real = environment.importlib.util.find_spec
    monkeypatch.setattr(
        environment.importlib.util,
        "find_spec",
        lambda name: None if name == module else real(name),
    )
    with pytest.raises(environment.NotReady, match="apt install python3-venv"):
        environment.ensure(checkout, ())
    assert machine.commands == []


def test_a_venv_that_cannot_be_made_says_so(checkout, machine):
    machine.fails.add("venv")
    with pytest.raises(environment.NotReady, match="could not be made"):
        environment.ensure(checkout, ())
    assert kinds(machine) == ["venv"]


def test_an_environment_that_has_the_course_is_used(checkout, machine, monkeypatch):
    monkeypatch.setattr(installed, "from_checkout", lambda root: root == checkout)
    monkeypatch.setattr(installed, "missing_packages", lambda extras: [])
    assert environment.ensure(checkout, ("test",)) == Path(sys.executable)
    assert environment.is_running(Path(sys.executable))
    monkeypatch.setattr(installed, "missing_packages", lambda extras: ["ruff"])
    assert environment.ensure(checkout, ("test",)).parent.parent.name == ".venv"


def test_a_restart_that_leads_nowhere_stops(monkeypatch):
    python = Path("/nowhere/.venv/bin/python")
    monkeypatch.setenv(environment.RESTARTED, str(python))
    with pytest.raises(environment.NotReady, match=r"Delete the folder \.venv"):
        environment.restart(python, ["test"])


def test_this_environment_has_the_course_from_this_checkout(tmp_path):
    assert installed.from_checkout(command_line.ROOT)
    assert not installed.from_checkout(tmp_path)
    assert installed.missing_packages(("test",)) == []


@pytest.mark.parametrize(
    "line, extras, name",
    [
        ("torch==2.13.*", (), "torch"),
        ('ruff; extra == "test"', ("test",), "ruff"),
        ('ruff>=1; extra == "test"', (), None),
        ("no-such-package-here", (), "no-such-package-here"),
    ],
)
def test_wanted_names(line, extras, name):
    assert installed.name_if_wanted(line, extras) == name


def test_cpu_index_only_on_linux_without_gpu(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(pip_options.shutil, "which", lambda name: None)
    monkeypatch.setattr(pip_options, "answers", lambda url, seconds: True)
    assert pip_options.torch_options() == ["--extra-index-url", pip_options.CPU_INDEX]
    monkeypatch.setattr(pip_options, "answers", lambda url, seconds: False)
    assert pip_options.torch_options() == []
    assert "several gigabytes" in capsys.readouterr().out
    monkeypatch.setattr(pip_options.shutil, "which", lambda name: "/usr/bin/" + name)
    assert pip_options.torch_options() == []
    monkeypatch.setattr(sys, "platform", "darwin")
    assert pip_options.torch_options() == []
    assert capsys.readouterr().out == ""


def test_an_address_that_does_not_exist_does_not_answer():
    assert not pip_options.answers("file:///no/such/file", 5)
    assert pip_options.answers(Path(__file__).as_uri(), 5)


def test_unknown_command_lists_the_known(capsys):
    assert command_line.main(["tset"]) == 2
    assert "test " in capsys.readouterr().err
    assert command_line.main([]) == 0
    assert "lab" in capsys.readouterr().out


def test_bench_without_benchmarks_helps_and_names_unknown_ones(tmp_path, capsys):
    assert bench.main([], tmp_path) == 0
    assert "bench_NAME.py" in capsys.readouterr().err
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "bench_one.py").write_text("raise SystemExit(3)\n")
    assert bench.main(["two"], tmp_path) == 2
    assert "one" in capsys.readouterr().err
    assert bench.main(["one"], tmp_path) == 1


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
    checks = set(form.CHECKS) - {form.untold_pictures}  # it does not call setup()
    assert [line for check in checks for line in check(stored)] == []
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


def test_an_unknown_notebook_lists_the_known(checkout):
    write(checkout, "01_good", "1")
    with pytest.raises(SystemExit, match="01_good"):
        run_command.main(["07"], checkout)


def test_nbval_passes_what_save_stored_and_fails_a_changed_number(checkout):
    """A closing `;` included, which nbval alone would get wrong."""
    path = write(checkout, "01_tiny", "print(41 + 1)", PLOT)
    assert save_command.main([], checkout) == 0
    settings = ["-c", "pyproject.toml", "-p", "conftest", "-p", "no:cacheprovider"]
    nbval = [sys.executable, "-m", "pytest", *settings, str(path)]
    run = partial(subprocess.run, nbval, cwd=command_line.ROOT, capture_output=True)
    assert run(text=True).stdout.splitlines()[-1].count("2 passed") == 1
    text = path.read_text(encoding="utf-8").replace('"42\\n"', '"43\\n"')
    path.write_text(text, encoding="utf-8")
    assert "1 failed, 1 passed" in run(text=True).stdout.splitlines()[-1]
