"""What every module here asks of a cell."""

import hashlib

from nbformat import NotebookNode

CHANGE_IT = "change-it"  # an experiment whose knobs the learner turns
COLAB = "colab"  # a cell that `save` writes: it does not count among a notebook's own


def tags(cell: NotebookNode) -> list[str]:
    """A cell's tags."""
    return cell.metadata.get("tags", [])


def is_generated(cell: NotebookNode) -> bool:
    """Whether `save` wrote the cell."""
    return COLAB in tags(cell)


def digest(text: str, length: int) -> str:
    """A short name that depends on `text` alone."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]
