"""The slide type of each cell of a stored notebook, and what jupyterlab-rise is told.

An author's choice stays; elsewhere the type follows from the kind of the cell.
"""

from nbformat import NotebookNode

from grpo_course.workshop.cells import tags


def settings() -> dict:
    """The notebook's `rise` metadata."""
    return {
        "center": False,
        "controls": False,  # its arrows lie over the text; the space bar does it
        "margin": 0.02,
        "scroll": True,  # whatever does not fit can still be reached
        "transition": "none",
    }


def place(notebook: NotebookNode) -> None:
    """Give each cell that has no slide type one; those that are there stay."""
    notebook.metadata.setdefault("rise", settings())
    for cell in notebook.cells:
        slide = cell.metadata.setdefault("slideshow", {})
        slide["slide_type"] = slide.get("slide_type") or type_for(cell)


def type_for(cell: NotebookNode) -> str:
    """A section goes right, a text below it down, code joins the text above it."""
    if "solution" in tags(cell):
        return "skip"
    if cell.cell_type == "code":
        return "fragment"
    return "slide" if cell.source.startswith(("# ", "## ")) else "subslide"
