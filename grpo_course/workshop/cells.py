"""What every module here asks of a cell."""

import hashlib

from nbformat import NotebookNode

# Cells that `save` writes: they do not count among a notebook's own.
SPEAKER, COLAB = "speaker", "colab"
GENERATED = {SPEAKER, COLAB}


def tags(cell: NotebookNode) -> list[str]:
    """A cell's tags."""
    return cell.metadata.get("tags", [])


def is_generated(cell: NotebookNode) -> bool:
    """Whether `save` wrote the cell."""
    return bool(GENERATED & set(tags(cell)))


def digest(text: str, length: int) -> str:
    """A short name that depends on `text` alone."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]
