"""The way in: which Python is used, what is installed, and the words for what fails."""

import errno
import os
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from grpo_course import __main__ as command_line
from grpo_course import install
from tools import lab

ROOT = Path(__file__).resolve().parents[2]
PROJECT = """\
[project]
dependencies = ["torch==2.13.*", "numpy"]
[project.optional-dependencies]
test = ["pytest>=8"]
"""


@pytest.fixture
def checkout(tmp_path):
    """Nothing but what an install reads, in a folder with a name like any other."""
    root = tmp_path / "gründlich geübt"
    root.mkdir()
    (root / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (root / "constraints.txt").write_text("torch==2.13.*\n", encoding="utf-8")
    return root


@pytest.fixture
def called(monkeypatch):
    """The commands and their variables; what `fails` names fails."""
    calls, fails, compiled = [], set(), []

    def call(command, env=None, **_):
        if "compileall" in command:
            compiled.append(len(calls))
            return 1  # some package has a file for another Python: no matter
        calls.append((command, env))
        if "venv" in command:
            python = install.venv_python(Path(command[-1]))
            python.parent.mkdir(parents=True, exist_ok=True)
            python.touch()
        if "install" in command and "torch" not in fails:
            packages = Path(command[0]).parents[1] / "lib/python3/site-packages"
            (packages / "torch").mkdir(parents=True, exist_ok=True)
        return int(bool(fails & {*command}))

    def disk_usage(path):
        return SimpleNamespace(free=1e9 if "disk" in fails else 2e9)

    monkeypatch.setattr(install.subprocess, "call", call)
    monkeypatch.setattr(install, "answers", lambda url, seconds: False)
    monkeypatch.setattr(install, "has_all", lambda root, extras: False)
    monkeypatch.setattr(install.shutil, "disk_usage", disk_usage)
    return SimpleNamespace(calls=calls, fails=fails, compiled=compiled)


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
    monkeypatch.setattr(sys, "prefix", str(checkout / ".venv"))  # one of their own
    assert install.python_for(checkout, ()) == Path(sys.executable)


def test_otherwise_a_venv_is_made_once_and_again_when_the_pins_change(
    checkout, called, monkeypatch
):
    python = install.python_for(checkout, ())
    assert python == install.venv_python(checkout / ".venv")
    pip = called.calls[-1][0]
    pins = checkout / "constraints.txt"
    assert pip[-4:] == [str(pins), "-e", str(checkout), "--no-compile"]
    install.python_for(checkout, ())
    assert kinds(called) == ["venv", "install"]
    install.python_for(checkout, ("test",))  # more is wanted: nothing is lost
    assert kinds(called)[2:] == ["--version", "install"]
    assert called.calls[-1][0][-1].endswith("[test]")
    assert called.compiled == [2]  # on all cores, where nothing was compiled yet
    for text in ("torch==2.14.*\n", pins.read_text(encoding="utf-8")):
        pins.write_text(text, encoding="utf-8")
        called.fails ^= {"install"}  # what fails half-way is not what was before
        with suppress(install.NotReady):
            install.python_for(checkout, ())
    assert called.calls[5][0][-1].endswith("[test]") and len(called.calls) == 8
    # Who runs in it has everything, and follows the pins all the same.
    monkeypatch.setattr(install, "has_all", lambda root, extras: True)
    monkeypatch.setattr(sys, "prefix", str(checkout / ".venv"))
    pins.write_text("torch==2.15.*\n", encoding="utf-8")
    install.python_for(checkout, ())
    assert len(called.calls) == 10


@pytest.mark.parametrize(
    "fails, told, tried",
    [
        ("disk", "less than 2 GB free", []),
        ("venv", "could not be made.*apt install", ["venv"]),
        ("install", "last lines say why.*connection", ["venv", "install"]),
        ("torch", "has no torch.*pip config list", ["venv", "install"]),
    ],
)
def test_what_fails_is_told_and_taken_up_again(checkout, called, fails, told, tried):
    called.fails.add(fails)
    with pytest.raises(install.NotReady, match=f"(?s){told}"):
        install.python_for(checkout, ())
    assert kinds(called) == tried
    called.fails.clear()
    install.python_for(checkout, ())
    again = kinds(called)[len(tried) :]
    assert again[-1] == "install"
    install.python_for(checkout, ())
    assert kinds(called) == [*tried, *again]


def test_what_is_half_made_is_made_anew(checkout, called):
    install.python_for(checkout, ())
    (checkout / ".venv" / install.STAMP).write_text("{ broken", encoding="utf-8")
    called.fails.add("--version")
    install.python_for(checkout, ())
    assert kinds(called)[2:] == ["--version", "venv", "install"]
    assert "--clear" in called.calls[-2][0]
    install.venv_python(checkout / ".venv").unlink()  # the stamp alone is no Python
    install.python_for(checkout, ())
    assert kinds(called)[5:] == ["venv", "install"]


def test_settings_of_a_user_s_pip_do_no_harm(checkout, called, monkeypatch):
    for name in (*install.ELSEWHERE, "PIP_INDEX_URL"):
        monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.setenv("PIP_USER", "1")
    install.python_for(checkout, ())
    variables = called.calls[-1][1]
    assert not {*install.ELSEWHERE} & {*variables} and variables["PIP_USER"] == "0"
    assert variables["PIP_INDEX_URL"] == "/elsewhere"


def test_another_python_is_refused_with_the_cure():
    cure = r"(?s)3\.11 to 3\.14.*3\.14 -m grpo"
    for version in [(3, 10), (3, 15)]:
        with pytest.raises(install.NotReady, match=cure):
            install.check_python(version)
    install.check_python((3, 11))


def test_the_cpu_build_comes_on_linux_without_a_gpu(monkeypatch, capsys):
    nowhere, here = "file:///no/such/file", Path(__file__).as_uri()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    monkeypatch.setattr(install, "CPU_INDEX", here)
    assert install.torch_index() == ["--extra-index-url", here]
    monkeypatch.setattr(install, "CPU_INDEX", nowhere)
    assert install.torch_index() == []
    assert "several gigabytes" in capsys.readouterr().out
    monkeypatch.setattr(install.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert install.torch_index() == [] and capsys.readouterr().out == ""


def test_a_restart_that_leads_nowhere_stops(monkeypatch):
    python = Path("/nowhere/.venv/bin/python")
    monkeypatch.setenv(install.RESTARTED, str(python))
    with pytest.raises(install.NotReady, match=r"Delete the folder \.venv"):
        install.restart(python, ["test"])


# The commands


@pytest.fixture
def ready(monkeypatch):
    """This Python has everything."""
    monkeypatch.setattr(install, "python_for", lambda *_, **__: Path(sys.executable))


def test_help_and_what_is_unknown(capsys, monkeypatch, tmp_path):
    assert command_line.main(["tset"]) == 2
    assert "Did you mean test?" in capsys.readouterr().err
    assert command_line.main([]) == 0
    asked = []  # whether to install
    monkeypatch.setattr(
        install,
        "python_for",
        lambda *_, install: asked.append(install) or tmp_path / "python",
    )
    assert command_line.main(["lab", "--help"]) == 0 and asked == [False]
    assert "once the course is" in capsys.readouterr().out


@pytest.mark.parametrize("name", command_line.HAND_ON)
def test_help_of_what_hands_its_options_on_starts_nothing(ready, capsys, name):
    assert command_line.main([name, "--help"]) == 0
    assert f"`{name}" in capsys.readouterr().out.replace("python3 -m grpo_course ", "")


@pytest.mark.parametrize("name", ["gguf", "torch._C", "grpo_course.files"])
def test_what_cannot_be_imported_ends_in_words_and_a_bug_of_ours_does_not(
    ready, monkeypatch, capsys, name
):
    """ImportError as well: a package of another version, or a damaged one."""
    kind = ModuleNotFoundError if name == "gguf" else ImportError

    def refuse(*given):
        raise kind(f"no {name}", name=name)

    monkeypatch.setattr(lab, "main", refuse)
    if name.startswith("grpo_course"):
        with pytest.raises(ImportError):
            command_line.main(["lab"])
        return
    assert command_line.main(["lab"]) == 1
    *_, cure = capsys.readouterr().err.strip().splitlines()
    given = shlex.split(cure.partition(": ")[2])
    assert given[:4] == [sys.executable, "-m", "pip", "install"]
    assert given[4:6] == ["-c", str(ROOT / "constraints.txt")]
    assert given[-1] == name.partition(".")[0]


def test_a_cure_is_quoted_for_the_shell_and_a_wheel_names_its_own_python(
    monkeypatch, tmp_path
):
    python = tmp_path / "my env" / "python3"
    monkeypatch.setattr(sys, "executable", str(python))
    given = install.pip_install("trl==1.16.*", "gguf>=0.10")
    assert shlex.split(given)[0] == str(python)
    assert "'trl==1.16.*' 'gguf>=0.10'" in given
    assert install.call("fetch") == "python3 -m grpo_course fetch"
    monkeypatch.setattr(install, "ROOT", tmp_path)  # no checkout
    assert shlex.split(install.call("fetch"))[0] == str(python)
    assert "constraints" not in install.pip_install("gguf")
    python.parent.mkdir()
    python.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(python.parent))  # as in an activated environment
    assert install.call("fetch") == "python3 -m grpo_course fetch"


def test_an_extra_is_read_from_the_metadata_where_pip_has_installed_the_course(
    monkeypatch, tmp_path
):
    lines = ["torch<2.14", "gguf>=0.10; extra == 'smollm2'", 'mypy ; extra == "test"']
    monkeypatch.setattr(install.metadata, "requires", lambda name: lines)
    assert install.requirements(tmp_path, "smollm2") == ["gguf>=0.10"]
    assert install.requirements(tmp_path, "test") == ["mypy"]
    assert install.requirements(tmp_path) == ["torch<2.14"]
    assert install.lacking(["pytest>=8", "no-such-package==1.*"]) == [
        "no-such-package==1.*"
    ]


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


def test_a_full_disk_or_a_closed_folder_is_told_in_words(ready, monkeypatch, capsys):
    def refuse(*given):
        raise OSError(errno.ENOSPC, "no", "work/00.ipynb")

    monkeypatch.setattr(lab, "main", refuse)
    assert command_line.main(["lab"]) == 1
    told = capsys.readouterr().err
    assert "'work/00.ipynb'" in told and "Free up some space" in told


def test_kernels_find_the_course_of_this_checkout(ready, monkeypatch):
    seen = {}
    monkeypatch.setattr(lab, "main", lambda *_: seen.update(os.environ) or 0)
    monkeypatch.setenv("PYTHONPATH", "/before")
    assert command_line.main(["lab"]) == 0
    assert seen["PYTHONPATH"].split(os.pathsep) == [str(ROOT), "/before"]
