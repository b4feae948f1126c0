"""Checkpoints that are there whole or not at all.

A checkpoint is a folder named after its epoch. It is written under another name,
forced to the disk, and renamed, which a file system does in one step. A list of
digests inside it tells later whether it is still what was written.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from grpo_course.files import PARSING

DIGESTS, STATE = "digests.json", "training.pt"
HALF = re.compile(r"\.\d{6,}\.(writing|old)")  # of what a killed run leaves behind


class CheckpointError(Exception):
    """A checkpoint could not be written or read; the text says what is left."""


def checkpoint_path(folder: Path, epoch: int) -> Path:
    """Where the checkpoint after so many epochs is."""
    return folder / f"{epoch:06d}"


def saved_epochs(folder: Path) -> list[int]:
    """The epochs that have a checkpoint, in order; other things are passed by."""
    return sorted(int(path.name) for path in folder.glob("*") if is_checkpoint(path))


def is_checkpoint(path: Path) -> bool:
    """Whether this is a checkpoint of a run, whole or damaged."""
    number = path.name
    named = number.isascii() and number.isdigit() and number == f"{int(number):06d}"
    return named and any((path / name).exists() for name in (DIGESTS, STATE))


def write_checkpoint(folder: Path, epoch: int, fill: Callable[[Path], None]) -> Path:
    """Let `fill` write files into a new folder, and put it in place in one step.

    If that fails, what was written is removed, older checkpoints are not touched,
    and CheckpointError says why.
    """
    target = checkpoint_path(folder, epoch)
    unfinished = folder / f".{target.name}.writing"
    for half in folder.glob(".*"):
        if HALF.fullmatch(half.name):
            shutil.rmtree(half, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        fill(unfinished)
        seal(unfinished)
        put_in_place(unfinished, target)
    except Exception as error:  # torch and safetensors raise errors of their own
        shutil.rmtree(unfinished, ignore_errors=True)
        left = saved_epochs(folder)
        kept = f"The last good one, of epoch {left[-1]}, is kept." if left else ""
        raise CheckpointError(
            f"The checkpoint of epoch {epoch} could not be written to {folder} "
            f"({type(error).__name__}: {error}). {kept} If the disk is full, make "
            "room; then go on with --resume."
        ) from error
    return target


def seal(unfinished: Path) -> None:
    """Write the list of digests, and force all to the disk, with one mode."""
    found = {path.name: digest(path) for path in unfinished.iterdir()}
    listed = unfinished / DIGESTS
    listed.write_text(json.dumps(found, indent=2))
    for path in unfinished.iterdir():
        path.chmod(listed.stat().st_mode)  # safetensors' are for the owner alone
        force_to_disk(path)
    force_to_disk(unfinished)


def put_in_place(unfinished: Path, target: Path) -> None:
    """Give a finished folder its name. What has that name already makes way."""
    old = target.with_name(f".{target.name}.old")
    if target.exists():
        os.rename(target, old)
    os.rename(unfinished, target)
    force_to_disk(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def force_to_disk(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open a folder
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damage(path: Path) -> str | None:
    """What is wrong with a checkpoint; None if it is what was written."""
    try:
        listed = json.loads((path / DIGESTS).read_text())
        if STATE not in listed:
            return f"{DIGESTS} does not list {STATE}"
        for name, expected in listed.items():
            if digest(path / name) != expected:
                return f"{name} is not what was written"
    except (OSError, *PARSING) as error:
        return f"{DIGESTS} or what it lists cannot be read: {error}"
    return None


def require_whole(folder: Path, epoch: int, what: str) -> None:
    """Check a checkpoint that no other one can stand in for."""
    problem = damage(checkpoint_path(folder, epoch))
    if problem:
        raise CheckpointError(
            f"The checkpoint of epoch {epoch} in {folder} holds {what} and is damaged "
            f"({problem}). Put it back, or start again with another --out."
        )


def newest_good(folder: Path, tell: Callable[[str], None] = print) -> int | None:
    """The epoch of the newest checkpoint that is whole; None if there is none at all.

    Damaged ones are told about and passed over; they stay where they are. Raises
    CheckpointError if all are damaged.
    """
    epochs = saved_epochs(folder)
    for epoch in reversed(epochs):
        problem = damage(checkpoint_path(folder, epoch))
        if problem is None:
            return epoch
        tell(f"The checkpoint of epoch {epoch} is damaged ({problem}): passed over.")
    if epochs:
        raise CheckpointError(
            f"Every checkpoint in {folder} is damaged. Start again with another --out."
        )
    return None


def remove_old(
    folder: Path, current: int, keep: int, needs: Callable[[int], set[int]]
) -> None:
    """Remove what is older than the `keep` newest up to `current`.

    The first stays, and `needs` says which others one that is kept cannot do without.
    """
    there = [epoch for epoch in saved_epochs(folder) if epoch <= current]
    kept = there[-keep:]
    for epoch in set(there) - set().union({0}, kept, *map(needs, kept)):
        shutil.rmtree(checkpoint_path(folder, epoch), ignore_errors=True)
