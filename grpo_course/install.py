"""Where the course runs: in the Python that has its packages, or in `.venv`.

Standard library only, and readable by an old Python: this runs before anything is
installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent  # a checkout, or where pip put the course
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 14)  # for which the pins have builds
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
STAMP = "grpo_course.json"  # in `.venv`, written last
RESTARTED = "GRPO_COURSE_RESTARTED"
EXTRA = re.compile(r"extra == .([\w-]+)")  # in the metadata of what is installed
# Settings of a user's pip that would put the packages elsewhere, or nowhere.
ELSEWHERE = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON", "PIP_DRY_RUN")

OTHER_PYTHON = """\
The course needs Python 3.11 to 3.14; this is {} ({}).
Install one of these, from your system or from https://www.python.org/downloads/, and
start with it, for example: {}"""
NO_ROOM = """\
The disk of {} has less than 2 GB free. The packages take that much, and several more
with PyTorch's CUDA build. Free some, or move the course to another disk."""
NO_VENV = """
{} could not be made; the reason is above. Debian and Ubuntu have what is missing in a
package of its own: sudo apt install python3-venv. Then run the same command again.
Without sudo: conda (INSTALL.md, Other ways)."""
PIP_FAILED = """
pip could not install the packages; its last lines say why. Without a connection, come
back with one and run the same command again: finished downloads are kept. If a version
is not found, your computer or Python may be one that PyTorch 2.13 has no build for: it
needs 64-bit Linux or Windows or a Mac with Apple's processor, and Python 3.11-3.14."""
PIP_ELSEWHERE = """
pip says that all is installed, but {} has no torch. A setting of yours puts packages
elsewhere (target, prefix, root). `{} -m pip config list` shows it. Take it out, and run
the same command again."""
NO_INDEX = f"""\
Note: {CPU_INDEX} does not answer. Unless pip knows
another place with PyTorch's CPU build, it takes the CUDA build, several gigabytes; then
press Ctrl-C, and try again later."""
LEADS_NOWHERE = """\
{} does not start in its own environment. Delete the folder .venv and run the same
command again."""


class NotReady(Exception):
    """The packages cannot be had; the message says why, and the cure."""


def python_for(root: Path, extras: tuple[str, ...], install: bool = True) -> Path:
    """The Python that has the course with `extras`; installs if it must and may.

    That is the running one where it has all packages, whatever put them there, and
    `.venv` in the checkout otherwise.
    """
    if not (root / "pyproject.toml").exists():  # pip has installed the course
        return Path(sys.executable)
    venv = root / ".venv"
    ours = is_running(venv_python(venv)) and kept(venv)  # which follows the pins
    if not ours and has_all(root, extras):
        return Path(sys.executable)
    files = (root / "pyproject.toml", root / "constraints.txt")
    content = b"\0".join([str(root).encode(), *(path.read_bytes() for path in files)])
    all_extras = {*extras, *kept(venv).get("extras", [])}  # what is there stays
    wanted = {
        "files": hashlib.sha256(content).hexdigest(),
        "extras": sorted(all_extras),
    }
    if install and kept(venv) != wanted:
        check_python(sys.version_info[:2])
        make(venv, root, wanted)
    return venv_python(venv)


def check_python(version: tuple) -> None:
    """Refuse a Python for which the tested packages have no build."""
    if not OLDEST_PYTHON <= version <= NEWEST_PYTHON:
        newest = ".".join(map(str, NEWEST_PYTHON))
        start = call("lab", f"py -{newest}" if os.name == "nt" else f"python{newest}")
        this = sys.version.split()[0]
        raise NotReady(OTHER_PYTHON.format(this, sys.executable, start))


def is_running(python: Path) -> bool:
    """Whether this process runs in the environment of `python`."""
    # By folder, not by file: bin/python is a link to the system's Python.
    same_folder = python.parent.parent.resolve() == Path(sys.prefix).resolve()
    return same_folder or python == Path(sys.executable)


def venv_python(venv: Path) -> Path:
    """The path of a virtual environment's Python."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def has_all(root: Path, extras: tuple[str, ...]) -> bool:
    """Whether the running Python has the packages that pyproject.toml names."""
    if sys.version_info < OLDEST_PYTHON:
        return False
    return not any(lacking(requirements(root, extra)) for extra in ("", *extras))


def requirements(root: Path, extra: str = "") -> list[str]:
    """What an extra of the course needs, or the course itself, in pip's words."""
    if (root / "pyproject.toml").exists():
        import tomllib

        text = (root / "pyproject.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text)["project"]
        more = project["optional-dependencies"]
        return more[extra] if extra else project["dependencies"]
    try:
        lines = metadata.requires("grpo-course") or []
    except metadata.PackageNotFoundError:  # not installed, only found
        return []
    parts = [line.partition(";") for line in lines]
    marked = [(needs.strip(), EXTRA.search(mark)) for needs, _, mark in parts]
    return [needs for needs, of in marked if (of[1] if of else "") == extra]


def lacking(needed: list[str]) -> list[str]:
    """Those requirements of which this Python has no version at all."""
    names = {line: re.match(r"[\w.-]+", line) for line in needed}
    return [
        line
        for line, name in names.items()
        if name and not any(metadata.distributions(name=name[0]))
    ]


def pip_install(*packages: str) -> str:
    """The command that installs packages into this Python, to be pasted anywhere."""
    pins = ROOT / "constraints.txt"
    tested = ["-c", str(pins)] if pins.exists() else []
    return quoted(sys.executable, "-m", "pip", "install", *tested, *packages)


def kept(venv: Path) -> dict:
    """The stamp of the last whole install, or an empty one."""
    try:
        found = json.loads((venv / STAMP).read_text(encoding="utf-8"))
        return found if venv_python(venv).exists() else {}
    except (OSError, ValueError):
        return {}


def make(venv: Path, root: Path, wanted: dict) -> None:
    """Make `.venv`, or add to it what it lacks; one without pip is made anew."""
    python = str(venv_python(venv))
    has_pip = [python, "-m", "pip", "--version"]
    if not os.path.exists(python) or subprocess.call(
        has_pip, stdout=subprocess.DEVNULL
    ):
        if shutil.disk_usage(root).free < 2 * 10**9:
            raise NotReady(NO_ROOM.format(root))
        print(f"Making {venv}", flush=True)
        # Not the environment's own Python: it would be deleted while it runs.
        base = getattr(sys, "_base_executable", None) or sys.executable
        if subprocess.call([base, "-m", "venv", "--clear", str(venv)]):
            raise NotReady(NO_VENV.format(venv))
    is_first = not kept(venv)  # or the last install ended half-way
    (venv / STAMP).unlink(missing_ok=True)
    extras = f"[{','.join(wanted['extras'])}]" if wanted["extras"] else ""
    command = [python, "-m", "pip", "install", *torch_index()]
    command += ["-c", str(root / "constraints.txt"), "-e", f"{root}{extras}"]
    if is_first:
        command += ["--no-compile"]
    print(f"Installing into {venv}: a few minutes, about 2 GB", flush=True)
    own = {k: v for k, v in os.environ.items() if k.upper() not in ELSEWHERE}
    if subprocess.call(command, env={**own, "PIP_USER": "0"}):
        raise NotReady(PIP_FAILED)
    places = (venv / "Lib", *venv.glob("lib/python*"))
    if not any((place / "site-packages" / "torch").exists() for place in places):
        raise NotReady(PIP_ELSEWHERE.format(venv, python))
    if is_first:  # pip would compile on one core, which is half of its time
        subprocess.call([python, "-m", "compileall", "-qq", "-j", "0", str(venv)])
    (venv / STAMP).write_text(json.dumps(wanted), encoding="utf-8")


def torch_index() -> list[str]:
    """pip's option for the CPU build of torch: on Linux without an NVIDIA GPU."""
    if not sys.platform.startswith("linux") or shutil.which("nvidia-smi"):
        return []  # there, PyPI's torch is the right one
    if answers(CPU_INDEX, seconds=5):
        return ["--extra-index-url", CPU_INDEX]
    print(NO_INDEX, flush=True)
    return []


def answers(url: str, seconds: float) -> bool:
    """Whether a web address answers in time, name look-up included."""
    # In a process, because urlopen's own timeout does not cover the name look-up.
    ask = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])"
    command = [sys.executable, "-c", ask, url]
    try:
        return not subprocess.call(command, stderr=subprocess.DEVNULL, timeout=seconds)
    except subprocess.TimeoutExpired:
        return False


def restart(python: Path, arguments: list[str]) -> int:
    """Run the same command again, in another Python."""
    if os.environ.get(RESTARTED) == str(python):
        raise NotReady(LEADS_NOWHERE.format(python))
    os.environ[RESTARTED] = str(python)
    command = [str(python), "-m", "grpo_course", *arguments]
    if os.name == "nt":  # there, execv would return to the prompt at once
        return wait_for(subprocess.Popen(command))
    sys.stdout.flush()  # execv drops what is still buffered
    os.execv(command[0], command)
    return 1  # never reached


def wait_for(process: subprocess.Popen) -> int:
    """The exit status of a process that Ctrl-C reaches too, and that ends by itself."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def call(command: str, python: str = "") -> str:
    """What to type for a command of the course."""
    # On Windows the launcher `py` knows an activated .venv, and none of conda.
    windows = "python" if "CONDA_PREFIX" in os.environ else "py"
    started = python or (windows if os.name == "nt" else "python3")
    # In a checkout, any Python finds the right one; what pip installed has only one.
    found = Path(shutil.which(started) or "")
    if not python and not (ROOT / "pyproject.toml").exists():
        is_ours = found.parent == Path(sys.executable).parent
        started = started if is_ours else quoted(sys.executable)
    return f"{started} -m grpo_course {command}"


def quoted(*words: object) -> str:
    """Words as a person can paste them into a shell: names may have spaces."""
    join = subprocess.list2cmdline if os.name == "nt" else shlex.join
    return join([str(word) for word in words])
