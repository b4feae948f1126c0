"""Files that are whole or not there, and texts as people's editors write them.

Standard library only.
"""

import json
import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Mapping
from pathlib import Path

# What a text raises that is not the JSON that was meant; RecursionError: too deep.
PARSING = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write beside, then move: an interruption leaves the old file or the new one.

    Where a program that has the file open does not let it be moved over, as on Windows
    and some shares, it is written in its place.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{os.getpid()}-{path.name}.tmp")
    try:
        beside.write_bytes(data)
        try:
            os.replace(beside, path)
        except PermissionError:
            path.write_bytes(data)
    finally:
        beside.unlink(missing_ok=True)


def read_text(path: Path) -> str:
    """A text in UTF-8, or in UTF-16 with its mark, as Windows' PowerShell writes it.

    A mark at the start and NULs at the end, which a crash may leave, are no part of it.
    Raises ValueError for another encoding.
    """
    data = path.read_bytes()
    wide = data.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig").rstrip("\0")
        if "\0" in text:  # UTF-16 without its mark, or UTF-32
            raise ValueError("it holds NULs")
        return text
    except ValueError as error:
        raise ValueError(
            f"{path} is not in UTF-8 ({error}). Save it again with the encoding UTF-8."
        ) from None


def json_lines(records: Iterable[Mapping]) -> str:
    """One record a line. Raises ValueError for NaN and infinity, which JSON lacks."""

    def line(record: Mapping) -> str:
        return json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"

    return "".join(map(line, records))
