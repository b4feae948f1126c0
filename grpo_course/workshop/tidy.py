"""Bring a notebook into the one form in which it is stored."""

import re

from nbformat import NotebookNode

from grpo_course.workshop import slides
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
    "rise": slides.settings(),
}
NOTEBOOK_METADATA = ("title", "widgets")
CELL_METADATA = ("jupyter", "slideshow", "tags")
MILLISECONDS = re.compile(r"[\d.]+(?= ms\b)")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"


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


def tidy(notebook: NotebookNode, name: str) -> None:
    """Drop what varies between two executions; fix what is left."""
    rename_widgets(notebook, name)
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


def rename_widgets(notebook: NotebookNode, name: str) -> None:
    """Give widgets names that depend on the notebook alone; a kernel's are random."""
    widgets = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {})
    state = widgets.get("state", {})
    if not state:
        notebook.metadata.pop("widgets", None)
        return
    fixed = [digest(f"{name}:widget:{i}", 32) for i in range(len(state))]
    if set(fixed) == set(state):
        return  # read from a saved file, which has them in another order
    names = dict(zip(state, fixed, strict=True))
    widgets["state"] = {names[old]: replaced(state[old], names) for old in state}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            view = output.get("data", {}).get(WIDGET_VIEW)
            if view:
                view["model_id"] = names.get(view["model_id"], view["model_id"])


def replaced(value: object, names: dict[str, str]) -> object:
    """A copy of a widget's state in which it refers to others by their new names."""
    if isinstance(value, dict):
        return {key: replaced(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, names) for item in value]
    if isinstance(value, str) and value.startswith("IPY_MODEL_"):
        old = value.removeprefix("IPY_MODEL_")
        return f"IPY_MODEL_{names.get(old, old)}"
    return value
