"""Files that are whole or not there, and files of JSON lines. Standard library only."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write beside, then move: an interruption leaves the old file or the new one."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{os.getpid()}-{path.name}.tmp")
    try:
        beside.write_bytes(data)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def json_lines(records: list[dict]) -> str:
    """One record a line."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def append_json_line(path: Path, record: dict) -> None:
    """One more line, to be seen by readers at once."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json_lines([record]))


def read_json_lines(
    path: Path, parse: Callable[[Any], Any], cure: str
) -> Iterator[Any]:
    """What `parse` makes of each line.

    Raises ValueError for a line that is no JSON or that `parse` refuses; it names the
    file, the line and the cure.
    """
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            yield parse(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path}, line {number} is not what was written "
                f"({type(error).__name__}: {error}). {cure}"
            ) from None
