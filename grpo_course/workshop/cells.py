"""What every module here asks of a cell."""

import hashlib

from nbformat import NotebookNode

CHANGE_IT = "change-it"  # an experiment whose knobs the learner turns
COLAB = "colab"  # installs the course where it is not; `save` writes it
HOLDS = "holds"  # expects what the text tells, behind a cell that answers a guess
REMOVED = "remove-cell"  # what leaves a cell off the website


def tags(cell: NotebookNode) -> list[str]:
    """A cell's tags."""
    return cell.metadata.get("tags", [])


def is_behind(cell: NotebookNode) -> bool:
    """Whether a cell stands behind the scenes: folded, on no slide, in no minutes."""
    return not {COLAB, HOLDS}.isdisjoint(tags(cell))


def put_behind(cell: NotebookNode) -> None:
    """Fold a cell in JupyterLab; leave it off the slides and the website."""
    cell.metadata.setdefault("jupyter", {})["source_hidden"] = True
    cell.metadata["slideshow"] = {"slide_type": "skip"}
    if REMOVED not in tags(cell):
        cell.metadata["tags"] = [*tags(cell), REMOVED]


def digest(text: str, length: int) -> str:
    """A short name that depends on `text` alone."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]
