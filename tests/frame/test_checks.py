"""`test`: its checks, its tests, and what runs them without it."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from grpo_course.workshop import kernels, tests

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def started(monkeypatch):
    """The commands that `test` starts; those that hold a word of `fails` fail."""
    commands, fails = [], set()

    def python(command, root):
        commands.append(command)
        return int(bool(fails & set(command)))

    monkeypatch.setattr(kernels, "python", python)
    return type("Started", (), {"commands": commands, "fails": fails})


def test_every_check_runs_then_the_tests_then_the_notebooks(started):
    assert tests.main(["-x"], ROOT) == 0
    *checks, pytest_command = started.commands
    assert checks == [*tests.CHECKS.values()]
    assert pytest_command[:2] == ["-m", "pytest"] and pytest_command[-1] == "-x"
    assert "--nbval" in pytest_command


@pytest.mark.parametrize("failing", ["ruff", "mypy", "pytest"])
def test_one_failure_fails_the_command_and_stops_nothing(started, failing, capsys):
    started.fails.add(failing)
    assert tests.main([], ROOT) == 1
    assert len(started.commands) == len(tests.CHECKS) + 1
    last = capsys.readouterr().out.splitlines()[-1:]
    assert ("FAILED" in str(last)) == (failing != "pytest")


def test_checks_alone(started):
    assert tests.main([tests.CHECKS_ONLY], ROOT) == 0
    assert started.commands == [*tests.CHECKS.values()]
    started.fails.add("mypy")
    assert tests.main([tests.CHECKS_ONLY], ROOT) == 1


def test_the_commit_hook_runs_these_checks_and_downloads_nothing():
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    ((repository, (hook,)),) = [
        (each["repo"], each["hooks"]) for each in yaml.safe_load(text)["repos"]
    ]
    assert (repository, hook["language"]) == ("local", "system")
    assert hook["entry"] == f"python3 -m grpo_course test {tests.CHECKS_ONLY}"
    assert hook["pass_filenames"] is False


@pytest.mark.slow
def test_the_tests_run_without_nbval(tmp_path):
    """The notebooks need it, and those who only run the unit tests do not."""
    missing = "raise ModuleNotFoundError('No module named nbval')\n"
    (tmp_path / "nbval.py").write_text(missing, encoding="utf-8")
    start = f"import sys, pytest; sys.path.insert(0, {str(tmp_path)!r}); pytest.main()"
    one = "tests/frame/test_environment.py::test_every_dependency_is_pinned"
    options = ["-p", "no:nbval", "-p", "no:cacheprovider"]
    command = [sys.executable, "-c", start, *options, one]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
