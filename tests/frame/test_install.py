"""The way in: which Python is used, what is installed, and the words for what fails."""

import errno
import json
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from grpo_course import __main__ as command_line
from grpo_course import install
from tools import lab

ROOT = Path(__file__).resolve().parents[2]
DISK = namedtuple("DISK", "total used free")
PROJECT = """\
[project]
dependencies = ["torch==2.13.*", "numpy"]
[project.optional-dependencies]
test = ["pytest>=8"]
"""


@pytest.fixture(params=["a checkout", "gründlich geübt"])
def checkout(tmp_path, request):
    """Nothing but what an install reads, in a folder with a name like any other."""
    root = tmp_path / request.param
    root.mkdir()
    (root / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (root / "constraints.txt").write_text("torch==2.13.*\n", encoding="utf-8")
    return root


@pytest.fixture
def called(monkeypatch):
    """The commands and their variables; they succeed, and `venv` leaves a Python."""
    calls, fails = [], set()

    def call(command, env=None, **_):
        calls.append((command, env or {}))
        if "venv" in command:
            python = install.venv_python(Path(command[-1]))
            python.parent.mkdir(parents=True, exist_ok=True)
            python.touch()
        if "install" in command and "torch" not in fails:
            packages = Path(command[0]).parents[1] / "lib/python3/site-packages"
            (packages / "torch").mkdir(parents=True, exist_ok=True)
        return int(bool(fails & {*command}))

    monkeypatch.setattr(install.subprocess, "call", call)
    monkeypatch.setattr(install, "answers", lambda url, seconds: False)
    monkeypatch.setattr(install, "has_all", lambda root, extras: False)
    monkeypatch.setattr(install.shutil, "disk_usage", lambda path: DISK(9, 0, 2e9))
    call.calls, call.fails = calls, fails
    return call


def kinds(called):
    words = ("venv", "--version", "install")
    return [next(word for word in words if word in c) for c, _ in called.calls]


def test_the_running_python_is_used_where_it_has_everything(checkout, monkeypatch):
    """Whichever checkout the course was installed from, if from any."""
    have = {"torch", "numpy"}
    monkeypatch.setattr(
        install.metadata, "distributions", lambda name: [name] * (name in have)
    )
    assert install.python_for(checkout, ()) == Path(sys.executable)
    assert not install.has_all(checkout, ("test",))
    have.add("pytest")
    assert install.has_all(checkout, ("test",))


def test_otherwise_a_venv_is_made_once_and_again_when_the_pins_change(checkout, called):
    python = install.python_for(checkout, ())
    assert python == install.venv_python(checkout / ".venv")
    (pip, variables) = called.calls[-1]
    assert pip[-3:-1] == [str(checkout / "constraints.txt"), "-e"]
    assert pip[-1] == str(checkout) and variables["PIP_USER"] == "0"
    install.python_for(checkout, ())
    assert kinds(called) == ["venv", "install"]
    install.python_for(checkout, ("test",))  # more is wanted: nothing is lost
    assert kinds(called)[2:] == ["--version", "install"]
    assert called.calls[-1][0][-1].endswith("[test]")
    (checkout / "constraints.txt").write_text("torch==2.14.*\n", encoding="utf-8")
    install.python_for(checkout, ())
    assert called.calls[-1][0][-1].endswith("[test]") and len(called.calls) == 6


def test_a_failed_install_is_told_and_taken_up_again(checkout, called):
    called.fails.add("install")
    for _ in range(2):
        with pytest.raises(install.NotReady, match=r"(?s)last lines.*connection"):
            install.python_for(checkout, ())
    called.fails.clear()
    install.python_for(checkout, ())
    assert kinds(called) == ["venv", "install", *["--version", "install"] * 2]
    called.fails.add("--version")  # what is half made is made anew
    (checkout / ".venv" / install.STAMP).unlink()
    install.python_for(checkout, ())
    assert kinds(called)[-3:] == ["--version", "venv", "install"]
    assert "--clear" in called.calls[-2][0]


def test_an_own_venv_in_the_checkout_is_left_alone(checkout, called, monkeypatch):
    monkeypatch.setattr(install, "has_all", lambda root, extras: True)
    monkeypatch.setattr(sys, "prefix", str(checkout / ".venv"))
    assert install.python_for(checkout, ()) == Path(sys.executable)
    assert called.calls == []


def test_settings_of_a_user_s_pip_do_no_harm(checkout, called, monkeypatch):
    for name in install.ELSEWHERE:
        monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("PIP_INDEX_URL", "https://example.org")
    install.python_for(checkout, ())
    variables = called.calls[-1][1]
    assert not {*install.ELSEWHERE} & {*variables} and variables["PIP_USER"] == "0"
    assert variables["PIP_INDEX_URL"] == "https://example.org"


def test_packages_that_a_file_of_pip_s_sends_elsewhere_are_told(checkout, called):
    called.fails.add("torch")
    with pytest.raises(install.NotReady, match=r"has no torch(?s:.*)pip config list"):
        install.python_for(checkout, ())
    assert not (checkout / ".venv" / install.STAMP).exists()


@pytest.mark.parametrize("version", [(3, 9), (3, 10), (3, 15)])
def test_another_python_is_refused_with_the_cure(version):
    with pytest.raises(install.NotReady, match=r"3\.11 to 3\.14.*(?s:.*)3\.14 -m grpo"):
        install.check_python(version)
    install.check_python((3, 11))


def test_a_full_disk_is_told_before_anything_is_made(checkout, called, monkeypatch):
    monkeypatch.setattr(install.shutil, "disk_usage", lambda path: DISK(9, 0, 1e9))
    with pytest.raises(install.NotReady, match="less than 2 GB free"):
        install.python_for(checkout, ())
    assert called.calls == []


def test_a_python_that_cannot_make_an_environment_is_told(checkout, called):
    called.fails.add("venv")
    with pytest.raises(install.NotReady, match=r"could not be made(?s:.*)apt install"):
        install.python_for(checkout, ())
    assert kinds(called) == ["venv"]


def test_the_cpu_build_comes_on_linux_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    monkeypatch.setattr(install, "answers", lambda url, seconds: True)
    assert install.torch_index() == ["--extra-index-url", install.CPU_INDEX]
    monkeypatch.setattr(install, "answers", lambda url, seconds: False)
    assert (
        install.torch_index() == [] and "several gigabytes" in capsys.readouterr().out
    )
    monkeypatch.setattr(install.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert install.torch_index() == [] and capsys.readouterr().out == ""


def test_an_address_answers_or_not():
    assert not install.answers("file:///no/such/file", 5)
    assert install.answers(Path(__file__).as_uri(), 5)


def test_a_restart_that_leads_nowhere_stops(monkeypatch):
    python = Path("/nowhere/.venv/bin/python")
    monkeypatch.setenv(install.RESTARTED, str(python))
    with pytest.raises(install.NotReady, match=r"Delete the folder \.venv"):
        install.restart(python, ["test"])


# The commands


def test_help_and_what_is_unknown(capsys, monkeypatch, tmp_path):
    assert command_line.main(["tset"]) == 2
    assert "Did you mean test?" in capsys.readouterr().err
    assert command_line.main([]) == 0
    grouped = [name for names in command_line.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(command_line.COMMANDS)
    monkeypatch.setattr(install, "python_for", lambda *_, **__: tmp_path / "python")
    assert command_line.main(["lab", "--help"]) == 0
    assert "once the course is" in capsys.readouterr().out


@pytest.mark.slow
def test_without_a_checkout_training_works_and_the_rest_says_what_it_needs(tmp_path):
    """As from a wheel: in another project, or on Colab."""
    (tmp_path / "grpo_course").symlink_to(ROOT / "grpo_course")
    program = "import grpo_course.__main__ as m, pathlib, sys\n"
    program += "m.ROOT = pathlib.Path('here')\nsys.exit(m.main(sys.argv[1:]))"

    def run(*arguments):
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert "--config" in run("train", "--help").stdout
    told = run("lab")
    assert told.returncode == 1 and "works in a checkout" in told.stderr


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_full_disk_or_a_closed_folder_is_told_in_words(monkeypatch, capsys, number):
    def refuse(*given):
        raise OSError(number, "no", "work/00.ipynb")

    monkeypatch.setattr(install, "python_for", lambda *_, **__: Path(sys.executable))
    monkeypatch.setattr(lab, "main", refuse)
    assert command_line.main(["lab"]) == 1
    told = capsys.readouterr().err
    assert "'work/00.ipynb'" in told and "Free up some space" in told


def test_kernels_find_the_course_of_this_checkout(monkeypatch):
    seen = {}
    monkeypatch.setattr(install, "python_for", lambda *_, **__: Path(sys.executable))
    monkeypatch.setattr(lab, "main", lambda *_: seen.update(os.environ) or 0)
    monkeypatch.setenv("PYTHONPATH", "/before")
    assert command_line.main(["lab"]) == 0
    assert seen["PYTHONPATH"].split(os.pathsep) == [str(ROOT), "/before"]


def test_a_damaged_stamp_is_none(tmp_path):
    for text in ("{ broken", json.dumps({"files": ""})):
        (tmp_path / install.STAMP).write_text(text, encoding="utf-8")
        assert install.kept(tmp_path) == {}
