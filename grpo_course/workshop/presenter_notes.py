"""What a presenter says, asks and shows: the files of `notes/`, one for a notebook.

A file has a `##` for each section of its notebook that is told, and under it
paragraphs that begin with a bold word. They stand apart from the notebooks because they
give predictions away.
"""

import re
from pathlib import Path

FOLDER = Path(__file__).with_name("notes")
WORDS = ("Say first", "Ask", "Expect", "Show", "Time")  # in this order
BEGINNING = re.compile(r"^\*\*([^*]+)\.\*\* ", re.MULTILINE)


def read(name: str, folder: Path = FOLDER) -> dict[str, str]:
    """The notes of a notebook by heading; none where it has no file."""
    path = folder / f"{name}.md"
    if not path.exists():
        return {}
    _, *parts = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    pairs = [part.partition("\n") for part in parts]
    return {heading.strip(): text.strip() for heading, _, text in pairs}


def beginnings(note: str) -> list[str]:
    """The bold words with which the paragraphs of a note begin."""
    return BEGINNING.findall(note)
