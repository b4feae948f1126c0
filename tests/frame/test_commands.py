"""The commands: making the environment (with fakes), help, bench, what is unknown."""

import errno
import json
import os
import re
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from grpo_course import __main__ as command_line
from grpo_course.workshop import (
    bench,
    environment,
    installed,
    lab,
    machine,
    pip_options,
    pip_run,
    stamp,
)

DISK = namedtuple("DISK", "total used free")


@pytest.fixture
def checkout(tmp_path):
    """An empty checkout, and every command that would be run in it."""
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "constraints.txt").write_text("torch==2.13.*\n")
    (tmp_path / "notebooks").mkdir()
    return tmp_path


@pytest.fixture(name="machine")
def fake_machine(monkeypatch):
    """A machine that makes environments and installs packages without doing so."""
    commands, fails = [], set()

    def run(command, quiet=False):
        words = [str(word) for word in command]
        kind = next(word for word in KINDS if word in words)
        commands.append(words)
        if kind in fails:
            return 1
        if kind == "venv":
            python = environment.venv_python(Path(words[-1]))
            python.parent.mkdir(parents=True, exist_ok=True)
            python.touch()
            pip = python.parents[1] / "lib" / "python3.11" / "site-packages"
            (pip / "pip-25.0.dist-info").mkdir(parents=True, exist_ok=True)
        return 0

    def pip(command, log):
        log.write_text("ERROR: it rains\n", encoding="utf-8")
        return run(command)

    monkeypatch.setattr(environment, "run", run)
    monkeypatch.setattr(pip_run, "run", pip)
    monkeypatch.setattr(pip_options, "answers", lambda url, seconds: False)
    monkeypatch.setattr(pip_options, "has_cpu_wheel", lambda python: False)
    monkeypatch.setattr(installed, "from_checkout", lambda root: False)
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: DISK(9, 0, 2e9))
    return type("Machine", (), {"commands": commands, "fails": fails})


KINDS = ("venv", "install", "--version")


def kinds(machine):
    words = [set(command) for command in machine.commands]
    return [k for w in words for k in KINDS if k in w]


@pytest.mark.parametrize("version", [(3, 9), (3, 10), (3, 15), (4, 0)])
def test_a_python_that_the_pins_do_not_run_on_is_refused_with_the_cure(
    version, monkeypatch
):
    monkeypatch.setattr(machine.shutil, "which", lambda name: None)
    said = r"needs Python 3\.11 to 3\.14; this is {}\.{} ".format(*version)
    offered = re.escape(f": {machine.python(machine.COMMON)} -m grpo")
    with pytest.raises(environment.NotReady, match=f"{said}(?s:.*){offered}"):
        environment.check_python(version)


def test_a_tested_python_that_is_installed_is_named(monkeypatch):
    have = ("python3", "python3.10", "python3.11", "python3.12")
    monkeypatch.setattr(machine.shutil, "which", lambda name: name in have)
    monkeypatch.setattr(machine, "IS_WINDOWS", False)
    with pytest.raises(environment.NotReady, match=r"run: python3\.12 -m grpo") as told:
        environment.check_python((3, 9))
    assert "Install" not in str(told.value)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere, 3.12")
def test_on_linux_the_python_that_debian_12_has_is_named():
    assert machine.python(machine.COMMON) == "python3.11"


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 14)])
def test_a_tested_python_is_not(version):
    environment.check_python(version)


@pytest.mark.parametrize(
    ("system", "processor", "build", "words"),
    [
        ("darwin", "x86_64", "macosx-11.0-universal2", "no build for Intel Macs"),
        ("win32", "ARM64", "win-arm64", "no build for Windows on ARM"),
    ],
)
def test_a_computer_without_pytorch_is_told_before_anything_is_made(
    system, processor, build, words, checkout, machine, monkeypatch
):
    names = environment.machine
    assert names.system_problem() == ""
    monkeypatch.setattr(names.sys, "platform", system)
    monkeypatch.setattr(names.platform, "machine", lambda: processor)
    monkeypatch.setattr(names.sysconfig, "get_platform", lambda: build)
    with pytest.raises(environment.NotReady, match=words):
        environment.ensure(checkout, ())
    assert machine.commands == []


def test_a_new_python_is_refused_before_anything_is_made(
    checkout, machine, monkeypatch
):
    environment.ensure(checkout, ())
    machine.commands.clear()
    monkeypatch.setattr(environment, "NEWEST_PYTHON", (3, 10))
    monkeypatch.setattr(environment, "OLDEST_PYTHON", (3, 10))
    environment.ensure(checkout, ())  # .venv has a Python of its own
    with pytest.raises(environment.NotReady, match="needs Python"):
        environment.ensure(checkout, ("test",))
    assert machine.commands == []


def test_windows_has_another_name_for_python(monkeypatch, capsys):
    monkeypatch.setattr(machine, "IS_WINDOWS", False)
    assert (machine.python(), machine.python("3.14")) == ("python3", "python3.14")
    monkeypatch.setattr(machine, "IS_WINDOWS", True)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    assert (machine.python(), machine.python("3.14")) == ("py", "py -3.14")
    with monkeypatch.context() as conda:  # its environments are unknown to `py`
        conda.setenv("CONDA_PREFIX", "C:\\envs\\grpo")
        assert (machine.python(), machine.python("3.14")) == ("python", "py -3.14")
    offered = re.escape(f"example: py -{machine.COMMON} -m grpo")
    with pytest.raises(environment.NotReady, match=offered):
        environment.check_python((3, 9))
    cure = pip_run.explain("ERROR: ResolutionImpossible", Path("log"), "3.11 to 3.14")
    assert f"py -{machine.COMMON} -m grpo_course lab" in cure
    command_line.main([])
    assert "py -m grpo_course COMMAND" in capsys.readouterr().out


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


def test_what_is_installed_is_told_before_and_what_comes_next_after(
    checkout, machine, capsys
):
    environment.ensure(checkout, (), "dance")
    lines = capsys.readouterr().out.splitlines()
    (told,) = [line for line in lines if line.startswith("Installing into")]
    assert str(checkout / ".venv") in told and told.endswith("(2.0 GB are free)")
    assert "Downloading" not in "".join(lines), "the network may not answer"
    assert lines[-1] == "Installed in .venv; going on to dance"
    environment.ensure(checkout, (), "dance")
    assert capsys.readouterr().out == ""


def test_a_small_disk_is_told_before_anything_is_made(checkout, machine, monkeypatch):
    small = DISK(9e9, 0, 1.9e9)
    monkeypatch.setattr(stamp.machine.shutil, "disk_usage", lambda path: small)
    with pytest.raises(environment.NotReady, match=r"Only 1\.9 GB (?s:.*)Free up"):
        environment.ensure(checkout, ())
    assert machine.commands == []
    torch = "lib/python3.11/site-packages/torch-2.13.1.dist-info"
    (checkout / ".venv" / torch).mkdir(parents=True)
    (checkout / ".venv" / stamp.UNFINISHED).unlink(missing_ok=True)
    environment.ensure(checkout, ())  # little is missing


def test_an_install_that_is_stopped_says_what_is_kept(checkout, machine, monkeypatch):
    def stop(command, log):
        raise KeyboardInterrupt

    monkeypatch.setattr(pip_run, "run", stop)
    with pytest.raises(environment.NotReady, match="same command to resume"):
        environment.ensure(checkout, ())
    assert not stamp.is_whole(checkout / ".venv", ())


def test_help_installs_nothing(checkout, machine, monkeypatch, capsys):
    monkeypatch.setattr(command_line, "ROOT", checkout)
    assert command_line.main(["lab", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "open the course in JupyterLab" in shown
    assert shown.endswith(f"its options: {environment.machine.call('lab')}\n")
    assert command_line.main(["test", "tests", "-h"]) == 0
    assert capsys.readouterr().out.endswith("-m grpo_course test\n")
    assert machine.commands == []


def test_help_starts_in_an_environment_that_is_whole_up_to_date_or_not(
    checkout, machine, monkeypatch, capsys
):
    python = environment.ensure(checkout, ())
    (checkout / "pyproject.toml").write_text("changed\n")
    machine.commands.clear()
    monkeypatch.setattr(command_line, "ROOT", checkout)
    starts = []
    monkeypatch.setattr(environment, "restart", lambda *call: starts.append(call) or 0)
    assert command_line.main(["lab", "--help"]) == 0
    assert starts == [(python, ["lab", "--help"])]
    assert command_line.main(["test", "--help"]) == 0  # not with these extras
    assert len(starts) == 1 and machine.commands == []


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_requirement_installs_again(checkout, machine, name):
    environment.ensure(checkout, ())
    (checkout / name).write_text("changed\n")
    machine.commands.clear()
    environment.ensure(checkout, ())
    assert kinds(machine) == ["--version", "install"]


def test_a_failure_of_pip_is_told_and_the_half_made_venv_is_remade(checkout, machine):
    machine.fails.add("install")
    log = checkout / ".venv" / environment.LOG
    with pytest.raises(environment.NotReady, match=r"(?s)it rains.*Run the") as told:
        environment.ensure(checkout, ())
    assert str(log) in str(told.value)
    assert not environment.is_stamped(checkout / ".venv", checkout, ())
    machine.fails.clear()
    machine.commands.clear()
    environment.ensure(checkout, ())
    assert kinds(machine) == ["venv", "install"]
    assert "--clear" in machine.commands[0]


def test_a_venv_without_pip_is_remade(checkout, machine):
    environment.ensure(checkout, ())
    (checkout / ".venv" / stamp.STAMP).write_text("{ broken")
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
    said = r"(?s)apt install python3\.\d+-venv.*Without sudo: conda"
    with pytest.raises(environment.NotReady, match=said):
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


@pytest.fixture
def by_hand(checkout, machine, monkeypatch):
    """`.venv` made as the README says under "Other ways to install", and activated."""
    monkeypatch.setattr(installed, "from_checkout", lambda root: root == checkout)
    monkeypatch.setattr(installed, "missing_packages", lambda extras: [*extras])
    monkeypatch.setattr(sys, "prefix", str(checkout / ".venv"))
    environment.venv_python(checkout / ".venv").parent.mkdir(parents=True)
    environment.venv_python(checkout / ".venv").touch()
    return checkout


def test_a_venv_made_by_hand_that_has_everything_is_left_alone(by_hand, machine):
    assert environment.ensure(by_hand, ()) == Path(sys.executable)
    assert machine.commands == [] and not stamp.is_begun(by_hand / ".venv")


def test_what_one_made_by_hand_lacks_is_added_to_it(by_hand, machine, capsys):
    assert environment.ensure(by_hand, ("test",)).parents[1] == by_hand / ".venv"
    assert kinds(machine) == ["--version", "install"]
    assert "using .venv instead" not in capsys.readouterr().out
    (by_hand / "constraints.txt").write_text("changed\n")
    environment.ensure(by_hand, ())
    assert kinds(machine)[2:] == ["--version", "install"], "now it follows the course"


def test_one_whose_installation_was_stopped_is_not_taken_for_whole(by_hand, machine):
    (by_hand / ".venv" / stamp.UNFINISHED).touch()
    environment.ensure(by_hand, ())
    assert kinds(machine) == ["venv", "install"]


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS]
)
def test_a_full_disk_or_a_closed_folder_is_told_without_a_traceback(
    monkeypatch, capsys, number
):
    def refuse(*given):
        raise OSError(number, "no", "work/00.ipynb")

    monkeypatch.setattr(environment, "ensure", lambda root, *_: Path(sys.executable))
    monkeypatch.setattr(lab, "main", refuse)
    assert command_line.main(["lab"]) == 1
    told = capsys.readouterr().err
    assert "'work/00.ipynb'" in told and "Free up some space" in told


def test_another_error_of_the_system_keeps_its_traceback(monkeypatch):
    def lose(*given):
        raise FileNotFoundError(errno.ENOENT, "no", "notebooks")

    monkeypatch.setattr(environment, "ensure", lose)
    with pytest.raises(FileNotFoundError):
        command_line.main(["lab"])


def test_a_restart_that_leads_nowhere_stops(monkeypatch):
    python = Path("/nowhere/.venv/bin/python")
    monkeypatch.setenv(environment.RESTARTED, str(python))
    with pytest.raises(environment.NotReady, match=r"Delete the folder \.venv"):
        environment.restart(python, ["test"])


@pytest.mark.parametrize("editable", [True, False])
def test_an_editable_install_of_this_checkout_is_told(tmp_path, monkeypatch, editable):
    checkout = tmp_path / "a checkout"
    origin = {"url": checkout.as_uri(), "dir_info": {"editable": editable}}
    install(tmp_path, monkeypatch, {"direct_url.json": json.dumps(origin)})
    assert installed.from_checkout(checkout) == editable
    assert not installed.from_checkout(tmp_path / "another")


def test_packages_that_are_missing_are_named(tmp_path, monkeypatch):
    needs = ["pytest", "no-such-package", 'none-such; extra == "slides"']
    metadata = "".join(f"Requires-Dist: {line}\n" for line in needs)
    install(tmp_path, monkeypatch, {"METADATA": metadata})
    assert installed.missing_packages(()) == ["no-such-package"]
    assert installed.missing_packages(("slides",)) == ["no-such-package", "none-such"]


def install(folder, monkeypatch, files):
    """An environment in which pip has left these files beside the course."""
    site = folder / "site-packages" / "grpo_course-0.0.dist-info"
    site.mkdir(parents=True)
    head = f"Metadata-Version: 2.1\nName: {installed.COURSE}\nVersion: 0.0\n"
    for name, content in {"METADATA": "", **files}.items():
        text = head + content if name == "METADATA" else content
        (site / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(site.parent))


@pytest.mark.parametrize(
    "line, extras, name",
    [
        ("torch==2.13.*", (), "torch"),
        ('ruff; extra == "test"', ("test",), "ruff"),
        ('ruff>=1; extra == "test"', (), ""),
        ("no-such-package-here", (), "no-such-package-here"),
    ],
)
def test_wanted_names(line, extras, name):
    assert installed.name_if_wanted(line, extras) == name


@pytest.mark.parametrize("wheel", ["torch-2.13.0+cpu-cp311.whl", "torch-2.13.0.whl"])
def test_no_alarm_where_pip_is_led_to_a_cpu_build(tmp_path, monkeypatch, capsys, wheel):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(pip_options.shutil, "which", lambda name: None)
    monkeypatch.setattr(pip_options, "answers", lambda url, _: url == pip_options.PYPI)
    monkeypatch.setenv("PIP_FIND_LINKS", f"https://example.org {tmp_path}")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    (tmp_path / wheel).touch()
    takes = pip_options.torch_options(Path(sys.executable))[1]
    is_cpu = "+cpu" in wheel
    assert takes == (pip_options.SMALL if is_cpu else pip_options.LARGE)
    assert ("CUDA" in capsys.readouterr().out) != is_cpu


def test_cpu_index_only_on_linux_without_gpu(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(pip_options, "has_cpu_wheel", lambda python: False)
    monkeypatch.setattr(pip_options.shutil, "which", lambda name: None)
    monkeypatch.setattr(pip_options, "answers", lambda url, _: True)
    options = ["--extra-index-url", pip_options.CPU_INDEX]
    python = Path(sys.executable)
    assert pip_options.torch_options(python) == (options, pip_options.SMALL)
    capsys.readouterr()
    for reached, words, takes in (
        ([], "Are you online?", pip_options.OFFLINE),
        ([pip_options.PYPI], "several", pip_options.LARGE),
    ):
        monkeypatch.setattr(
            pip_options, "answers", lambda url, _, to=reached: url in to
        )
        assert pip_options.torch_options(python) == ([], takes)
        assert words in capsys.readouterr().out
    monkeypatch.setattr(pip_options.shutil, "which", lambda name: "/usr/bin/" + name)
    assert pip_options.torch_options(python) == ([], pip_options.LARGE)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert pip_options.torch_options(python) == ([], pip_options.SMALL)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("place", ["lib/python3.11", "Lib"])
def test_the_word_on_torch_comes_only_when_torch_is_about_to_be_installed(
    checkout, machine, monkeypatch, capsys, place
):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(pip_options.shutil, "which", lambda name: f"/usr/bin/{name}")
    packages = checkout / ".venv" / place / "site-packages"
    environment.ensure(checkout, ())
    assert "CUDA build" in capsys.readouterr().out
    (packages / "torch-2.13.1+cpu.dist-info").mkdir(parents=True)
    environment.ensure(checkout, ("test",))
    assert "CUDA" not in capsys.readouterr().out
    (checkout / "constraints.txt").write_text("torch==2.14.*\n")
    environment.ensure(checkout, ("test",))
    assert "CUDA build" in capsys.readouterr().out


def test_an_address_that_does_not_exist_does_not_answer():
    assert not pip_options.answers("file:///no/such/file", 5)
    assert pip_options.answers(Path(__file__).as_uri(), 5)


def test_unknown_command_lists_the_known(capsys):
    assert command_line.main(["tset"]) == 2
    told = capsys.readouterr().err
    assert "test " in told and told.endswith("'tset'. Did you mean test?\n")
    assert command_line.main([]) == 0
    assert "lab" in capsys.readouterr().out


def test_every_command_stands_under_one_heading_and_lab_first():
    grouped = [name for names in command_line.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(command_line.COMMANDS)
    headings = [line for line in command_line.usage().splitlines() if line.istitle()]
    assert headings == [*command_line.GROUPS] and grouped[0] == "lab"


@pytest.mark.parametrize(
    ("version", "bar"), [("23.2.1", "off"), ("24.0", "off"), ("24.1", "raw")]
)
@pytest.mark.parametrize("place", ["lib/python3.11", "Lib"])
def test_a_pip_that_can_tells_numbers(tmp_path, version, bar, place):
    (tmp_path / place / "site-packages" / f"pip-{version}.dist-info").mkdir(
        parents=True
    )
    assert pip_options.progress_bar(tmp_path) == bar


@pytest.mark.parametrize(("bar", "calls"), [("off", 2), ("raw", 1)])
def test_a_new_environment_gets_a_pip_that_shows_how_far_it_is(
    tmp_path, machine, monkeypatch, bar, calls
):
    monkeypatch.setattr(pip_options, "progress_bar", lambda venv: bar)
    machine.fails.add("install")  # without a network all goes on
    environment.make_venv(tmp_path / ".venv")
    assert len(machine.commands) == calls
    assert ("--upgrade" in machine.commands[-1]) == (bar == "off")


def test_bench_without_benchmarks_helps_and_names_unknown_ones(tmp_path, capsys):
    assert bench.main([], tmp_path) == 0
    assert "bench_NAME.py" in capsys.readouterr().err
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "bench_one.py").write_text("raise SystemExit(3)\n")
    assert bench.main(["two"], tmp_path) == 2
    assert "one" in capsys.readouterr().err
    assert bench.main(["one"], tmp_path) == 1
