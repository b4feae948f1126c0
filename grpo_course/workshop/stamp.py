"""Whether `.venv` is whole, and whether it is up to date. Standard library only."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from grpo_course.workshop import machine

STAMP = "grpo_course_stamp.json"  # written last: its presence means a whole install
UNFINISHED = "grpo_course_unfinished"  # there while an install is under way


def venv_python(venv: Path) -> Path:
    """The path of a virtual environment's Python."""
    return venv / ("Scripts/python.exe" if machine.IS_WINDOWS else "bin/python")


def fingerprint(venv: Path, root: Path) -> str:
    """A hash of all that an install depends on; the extras are kept beside it."""
    files = [root / "pyproject.toml", root / "constraints.txt", venv / "pyvenv.cfg"]
    parts = [path.read_bytes() if path.exists() else b"" for path in files]
    return hashlib.sha256(b"\0".join([str(root).encode(), *parts])).hexdigest()


def read_stamp(venv: Path) -> dict:
    """The stamp of the last whole install, or an empty one."""
    try:
        stamp = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def is_begun(venv: Path) -> bool:
    """Whether the course has installed into this environment, to the end or not."""
    return bool(read_stamp(venv)) or (venv / UNFINISHED).exists()


def is_whole(venv: Path, extras: tuple[str, ...]) -> bool:
    """Whether an install of the course with `extras` has ended, up to date or not."""
    stamp = read_stamp(venv)
    return (
        venv_python(venv).exists()
        and not (venv / UNFINISHED).exists()
        and "fingerprint" in stamp
        and set(extras) <= set(stamp.get("extras", []))
    )


def is_stamped(venv: Path, root: Path, extras: tuple[str, ...]) -> bool:
    """Whether `.venv` is whole and up to date, `extras` included."""
    same = read_stamp(venv).get("fingerprint") == fingerprint(venv, root)
    return same and is_whole(venv, extras)


def write_stamp(venv: Path, root: Path, extras: list[str]) -> None:
    """Say that the install has ended."""
    stamp = {"fingerprint": fingerprint(venv, root), "extras": extras}
    (venv / STAMP).write_text(json.dumps(stamp), encoding="utf-8")
    (venv / UNFINISHED).unlink()
