"""Bring a notebook into the one form in which it is stored."""

import re

from nbformat import NotebookNode

from grpo_course.workshop.cells import digest

KERNELSPEC = {
    "display_name": "Python 3 (ipykernel)",
    "language": "python",
    "name": "python3",
}
# No Python version: it would differ between machines.
LANGUAGE_INFO = {
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "pygments_lexer": "ipython3",
}
FIXED = {
    "kernelspec": KERNELSPEC,
    "language_info": LANGUAGE_INFO,
}
NOTEBOOK_METADATA = ("rise", "title")
CELL_METADATA = ("claims", "jupyter", "slideshow", "tags")
MILLISECONDS = re.compile(r"[\d.]+(?= ms\b)")


def give_ids(notebook: dict, name: str) -> None:
    """Keep each cell's id; where one is missing or taken, make it from the place."""
    notebook["nbformat_minor"] = max(5, notebook.get("nbformat_minor", 5))
    taken = set()
    for position, cell in enumerate(notebook["cells"]):
        identity, attempt = cell.get("id"), 0
        while not identity or identity in taken:
            identity = digest(f"{name}:{position}:{attempt}", 8)
            attempt += 1
        cell["id"] = identity
        taken.add(identity)


def tidy(notebook: NotebookNode) -> None:
    """Drop what varies between two executions; fix what is left."""
    hide_times(notebook)
    keep_only(notebook.metadata, NOTEBOOK_METADATA)
    notebook.metadata.update(FIXED)
    for cell in notebook.cells:
        keep_only(cell.metadata, CELL_METADATA)


def hide_times(notebook: NotebookNode) -> None:
    """Print `? ms` for a time, in the same width: each machine has its own."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "text" in output:
                output["text"] = MILLISECONDS.sub(
                    lambda found: "?".rjust(len(found.group())), output["text"]
                )


def keep_only(metadata: dict, keys: tuple[str, ...]) -> None:
    """Delete the other keys, and those that hold nothing."""
    for key in list(metadata):
        if key not in keys or not metadata[key]:
            del metadata[key]
