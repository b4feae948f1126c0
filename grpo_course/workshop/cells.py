"""What every module here asks of a cell."""

import hashlib
import re

from nbformat import NotebookNode

CHANGE_IT = "change-it"  # an experiment whose knobs the learner turns
RESULT = "result"  # a slide shows what it prints and draws, and not its code
ASIDE = "aside"  # told with its whole notebook, and not with single sections
COLAB = "colab"  # installs the course where it is not; `save` writes it
HOLDS = "holds"  # expects what the text tells, behind a cell that answers a guess
REMOVED = "remove-cell"  # what leaves a cell off the website
FORMULA = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)


def tags(cell: NotebookNode) -> list[str]:
    """A cell's tags."""
    return cell.metadata.get("tags", [])


def sections(cells: list[NotebookNode]) -> list[list[NotebookNode]]:
    """What comes before the first `##`, then each section."""
    parts: list[list[NotebookNode]] = [[]]
    for cell in cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            parts.append([])
        parts[-1].append(cell)
    return parts


def heading(section: list[NotebookNode]) -> str:
    """The heading of a section; that of the notebook's beginning is its title."""
    return heading_of(section[0].source) if section else ""


def title_of(notebook: NotebookNode) -> str:
    """A notebook's title, without its number."""
    return heading(notebook.cells).lstrip("0123456789. ")


def heading_of(text: str) -> str:
    """The words of the heading with which a text begins."""
    return text.partition("\n")[0].lstrip("# ")


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
