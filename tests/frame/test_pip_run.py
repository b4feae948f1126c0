"""What an install shows, and what it says when pip fails; with a real pip offline."""

import sys
import zipfile
from pathlib import Path

import pytest

from grpo_course.workshop import pip_run

TESTED = "3.11 to 3.14"
DEAD = "http://127.0.0.1:9/simple"  # a port at which nothing answers


def wheel(folder, name, version, *needs, python=">=3.8"):
    """A package without content."""
    info = f"{name}-{version}.dist-info"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    needs = "".join(f"Requires-Dist: {need}\n" for need in needs)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        metadata = f"{head}Requires-Python: {python}\n{needs}"
        file.writestr(f"{info}/METADATA", metadata)
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture
def pip(tmp_path, monkeypatch):
    """pip with a folder of packages; it says what it would install, and stops."""
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(
        "PIP_CONFIG_FILE", "/dev/null" if sys.platform != "win32" else "NUL"
    )
    monkeypatch.setenv("PIP_RETRIES", "1")
    wheel(tmp_path, "coursework", "1.0", "soup")
    wheel(tmp_path, "soup", "1.0")
    wheel(tmp_path, "soup", "2.0", python=">=3.99")
    log = tmp_path / "install.log"

    def run(*arguments, index="--no-index"):
        start = [sys.executable, "-m", "pip", "install", "--dry-run", index]
        links = ["--find-links", str(tmp_path), *arguments]
        status = pip_run.run([*start, *links], log)
        said = log.read_text(encoding="utf-8")
        return status, pip_run.explain(said, log, TESTED)

    return run


def test_a_pin_for_a_later_python_is_not_blamed_on_the_network(pip, tmp_path):
    (tmp_path / "pins.txt").write_text("soup==2.0\n")
    status, told = pip("coursework", "-c", str(tmp_path / "pins.txt"))
    assert status != 0
    assert "soup" in told and "not a network problem" in told
    assert TESTED in told and str(tmp_path / "install.log") in told


def test_a_network_that_does_not_answer_is(pip):
    status, told = pip("coursetorch==2.13.*", index=f"--index-url={DEAD}")
    assert status != 0
    assert "cannot reach" in told and "not a network problem" not in told


@pytest.mark.parametrize(
    "said, word",
    [
        (
            "ERROR: Could not install: [Errno 28] No space left on device",
            "disk or your quota is full",
        ),
        ("OSError: [Errno 28] No space left on device: '/tmp/pip-x'", "set TMPDIR"),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 2] No such\n"
            "HINT: This error might have occurred since this system does not have "
            "Windows Long Path support enabled.",
            "such as\nC:\\grpo",
        ),
        ("ERROR: [WinError 206] The filename or extension is too long", "long paths"),
        (
            "ERROR: No matching distribution found for torch==2.13.*",
            "not a network problem",
        ),
        ("  ERROR: ResolutionImpossible: for help visit", "not a network problem"),
        (
            "ERROR: Package 'a' requires a different Python: 3.11.2 not in",
            "not a network problem",
        ),
        ("ERROR: HTTPSConnectionPool: Read timed out.", "cannot reach"),
        ("SSLError(SSLCertVerificationError(1, 'self-signed'))", "certificate"),
        ("WARNING: Retrying (Retry(total=4, connect=None\nERROR: gone", "Run the same"),
        ("ERROR: Exception:\nKeyError: 'a'", "KeyError: 'a'\nThe lines above"),
    ],
)
def test_pips_words_are_read(said, word):
    assert word in pip_run.explain(said, Path("install.log"), TESTED)


def test_a_system_without_builds_is_not_told_to_try_another_python():
    said = "ERROR: No matching distribution found for torch==2.13.*"
    told = pip_run.explain(said, Path("install.log"), TESTED)
    assert f"64-bit Python {TESTED}" in told
    assert "If your system is another, no Python helps: use another computer." in told


CONFLICT = """\
Collecting bs4
ERROR: Cannot install a because these package versions have conflicting dependencies.

The conflict is caused by:
    bs4 4.15.0 depends on soupsieve>=1.6.1
    The user requested (constraint) soupsieve==2.99

To fix this you could try to:
1. loosen the range of package versions you've specified
ERROR: ResolutionImpossible: for help visit
"""


def test_a_conflict_names_the_pin():
    told = pip_run.explain(CONFLICT, Path("install.log"), TESTED)
    assert "soupsieve==2.99" in told and "bs4 4.15.0 depends on" in told
    assert "loosen" not in told and "not a network problem" in told


def test_of_many_words_the_last_are_shown():
    said = "\n".join(f"ERROR: {number} {'x' * 1000}" for number in range(50))
    told = pip_run.explain(said, Path("install.log"), TESTED)
    assert "ERROR: 49" in told and "ERROR: 40" not in told
    assert len(told.splitlines()) < 15 and max(map(len, told.splitlines())) < 400


LINES = [
    "Obtaining file:///course",
    *(f"Collecting package{number}==1.0" for number in range(120)),
    "  Downloading package3-1.0-py3-none-any.whl.metadata (1 kB)",
    "  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (190.2 MB)",
    *(f"Progress {megabytes}000000 of 190000000" for megabytes in range(0, 191, 19)),
    "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken",
    "Installing collected packages: a, b, c",
    "Successfully installed a b c",
]
WRITER = "import sys; print(sys.argv[1]); sys.exit(3)"
KEPT = "".join(f"{line}\n" for line in LINES if not line.startswith("Progress"))


@pytest.mark.parametrize("is_terminal", [True, False])
def test_an_install_fills_no_screen_and_its_log_is_whole(
    is_terminal, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.setenv("COLUMNS", "60")
    log, said = tmp_path / "install.log", "\n".join(LINES)
    assert pip_run.run([sys.executable, "-c", WRITER, said], log) == 3
    assert log.read_text(encoding="utf-8") == KEPT
    shown = capsys.readouterr().out
    rows = shown.split("\n")
    assert len(rows) <= 3 and "Unpacking 3 packages" in shown
    written = rows[0].split("\r")
    assert all(len(each) < 60 for each in written)
    if is_terminal:
        steps = (
            "120 packages found: package119",
            "downloading torch (",
            "[          ] 0%  120",
            "[####      ] 40%  120",
            "[##########] 100%  120",
            "again",
        )
        assert all(any(step in each for each in written) for step in steps)


WAITER = "import time; print('Collecting a', flush=True); time.sleep(1)"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_that_time_passes_is_seen_while_pip_is_silent(
    is_terminal, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    real = pip_run.Steps.__init__

    def hasty(steps):
        real(steps)
        steps.pause = 0.01

    monkeypatch.setattr(pip_run.Steps, "__init__", hasty)
    pip_run.run([sys.executable, "-c", WAITER], tmp_path / "install.log")
    shown = capsys.readouterr().out
    assert shown.count("1 package found: a") > 3
    assert ("\r" in shown) == is_terminal


def test_without_a_terminal_an_hour_fills_no_screen(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    steps, pauses = pip_run.Steps(), []
    monkeypatch.setattr(steps, "show", lambda: None)
    waits = lambda pause: pauses.append(pause) or sum(pauses) > 3600  # noqa: E731
    monkeypatch.setattr(steps.ended, "wait", waits)
    steps.tick()
    assert pauses[0] == 20 and 10 < len(pauses) <= 24


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "Unpacking 1 package"),
        (9, "Unpacking 9 packages"),
        (113, "Unpacking 113 packages, a minute or more"),
    ],
)
def test_what_is_unpacked_is_counted(count, words):
    assert pip_run.unpacking(count) == words
