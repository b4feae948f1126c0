"""The pictures outside the notebooks: each is the stored plot of one tagged cell."""

import base64
import io
from collections.abc import Iterator

from nbformat import NotebookNode
from PIL import Image

from grpo_course.classroom.moving import frames_of
from grpo_course.workshop.cells import tags
from grpo_course.workshop.form import code_cells

PLOT, FILM = "picture-", "film-"
MILLISECONDS, LAST = 500, 3000  # how long a frame stands, and the last one
REPEATS = 2  # then it rests on the last frame


def taken_from(notebook: NotebookNode) -> list[tuple[str, bytes]]:
    """File name and content for each cell tagged `picture-NAME` or `film-NAME`."""
    return [
        found
        for _, cell in code_cells(notebook)
        for tag in tags(cell)
        for output in cell.outputs
        for found in taken(tag, output.get("data", {}))
    ]


def taken(tag: str, data: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """The picture or the film that a tag asks for, where an output has one."""
    if tag.startswith(PLOT) and "image/png" in data:
        content = base64.b64decode(data["image/png"])
        yield f"{tag.removeprefix(PLOT)}.png", content
    if tag.startswith(FILM) and "text/html" in data:
        yield f"{tag.removeprefix(FILM)}.gif", animated(data["text/html"])


def animated(html: str) -> bytes:
    """A stored film as a GIF, which plays where no script runs."""
    kind = Image.Quantize.FASTOCTREE
    first, *others = [frame.quantize(128, kind) for frame in frames_of(html)]
    times = [MILLISECONDS] * len(others) + [LAST]
    file = io.BytesIO()
    options = {"append_images": others, "duration": times, "loop": REPEATS}
    first.save(file, "GIF", save_all=True, optimize=True, **options)
    return file.getvalue()
