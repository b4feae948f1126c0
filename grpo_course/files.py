"""Files that are whole or not there, and files of JSON lines. Standard library only."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

# What a text raises that is not the JSON that was meant; RecursionError: too deep.
PARSING = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


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


def json_lines(records: Iterable[Mapping]) -> str:
    """One record a line. Raises ValueError for NaN and infinity, which JSON lacks."""

    def line(record: Mapping) -> str:
        return json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"

    return "".join(map(line, records))


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
        except PARSING as error:
            raise ValueError(
                f"{path}, line {number} is not what was written "
                f"({type(error).__name__}: {error}). {cure}"
            ) from None
