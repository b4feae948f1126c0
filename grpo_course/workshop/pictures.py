"""The pictures outside the notebooks: each is the stored plot of one tagged cell."""

import base64

from nbformat import NotebookNode

from grpo_course.workshop.cells import tags
from grpo_course.workshop.form import code_cells

PREFIX = "picture-"


def taken_from(notebook: NotebookNode) -> list[tuple[str, bytes]]:
    """File name and PNG of each cell tagged `picture-NAME`."""
    return [
        (f"{tag.removeprefix(PREFIX)}.png", base64.b64decode(output.data["image/png"]))
        for _, cell in code_cells(notebook)
        for tag in tags(cell)
        if tag.startswith(PREFIX)
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
