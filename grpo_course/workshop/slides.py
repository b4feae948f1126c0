"""The place of each cell among the slides, and the words for who presents them.

Live slides are jupyterlab-rise: a `slide` goes right, a `subslide` down, a `fragment`
joins the slide it is on, `notes` are seen in the speaker's window (key T) alone.
"""

import math
import re
from pathlib import Path

from nbformat import NotebookNode

from grpo_course.workshop.cells import tags

CSS = Path(__file__).with_name("slides.css")
STAGE_HEIGHT = 420  # of 480: what the estimates below leave free is their error
# (fewest lines of code, height of a line, height that a picture should find)
PICTURE_SIZES = ((19, 12, 155), (14, 13, 180), (9, 15, 195), (6, 16, 255), (0, 18, 280))
# (fewest lines of code, height of a line, height of a printed line), no picture
PRINT_SIZES = ((19, 13, 13), (14, 14, 14), (10, 16, 14), (0, 18, 17))
TEXT_COLUMNS, TEXT_LINE, HEADING_LINE, PARAGRAPH_GAP = 88, 23, 45, 8
CODE_BOX = 14
FILM = 'class="moving"'
CHOSEN = ("slide", "skip", "notes", "-")  # an author's; save keeps them


def settings() -> dict:
    """The notebook's `rise` metadata; the header carries the style sheet."""
    lines = CSS.read_text(encoding="utf-8").split("*/\n", 1)[1]
    style = re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", lines, flags=re.DOTALL))
    return {
        "center": False,
        "controls": False,  # its arrows lie over the text; the space bar does it
        "header": f"<style>{style.strip()}</style>",
        "margin": 0.02,
        "scroll": True,  # whatever does not fit can still be reached
        "transition": "none",
    }


def place(notebook: NotebookNode) -> None:
    """Give each cell its slide type: code joins the slide before it where it fits."""
    used = 0
    for cell in notebook.cells:
        slide = cell.metadata.setdefault("slideshow", {})
        height = code_height(cell) if cell.cell_type == "code" else text_height(cell)
        if slide.get("slide_type") not in CHOSEN:
            joins = cell.cell_type == "code" and used + height <= STAGE_HEIGHT
            slide["slide_type"] = first_type(cell) or (
                "fragment" if joins else "subslide"
            )
        kind = slide["slide_type"]
        if kind in ("slide", "subslide"):
            used = height
        elif kind in ("fragment", "-"):
            used += height


def first_type(cell: NotebookNode) -> str:
    """A cell's type where its text decides; empty where its height does."""
    if "solution" in tags(cell):
        return "skip"
    is_section = cell.source.startswith(("# ", "## "))
    return "slide" if cell.cell_type == "markdown" and is_section else ""


def text_height(cell: NotebookNode) -> int:
    """About how high a text stands on the stage, in CSS pixels."""
    text = re.sub(r"\]\([^)]*\)|<!--.*?-->", "", cell.source)
    height = 0
    for block in re.split(r"\n\s*\n", text):
        if block.startswith("#"):
            height += HEADING_LINE
            continue
        rows = sum(math.ceil(len(x) / TEXT_COLUMNS) for x in block.splitlines())
        height += rows * TEXT_LINE * (2 if "$$" in block else 1) + PARAGRAPH_GAP
    return height


def code_height(cell: NotebookNode) -> int:
    """About how high a code cell stands with all of its outputs, in CSS pixels."""
    if any(
        FILM in "".join(o.get("data", {}).get("text/html", "")) for o in cell.outputs
    ):
        return STAGE_HEIGHT  # a film or a slider has a slide of its own
    lines = cell.source.count("\n") + 1
    pictures = sum("image/png" in output.get("data", {}) for output in cell.outputs)
    printed = sum(map(printed_lines, cell.outputs))
    if not pictures:
        line, print_line = next(s[1:] for s in PRINT_SIZES if lines >= s[0])
        return CODE_BOX + lines * line + printed * print_line + 8
    line, picture = next(s[1:] for s in PICTURE_SIZES if lines >= s[0])
    return CODE_BOX + lines * line + printed * 14 + pictures * (picture + 10)


def printed_lines(output: NotebookNode) -> int:
    """The lines of text that an output shows."""
    data = output.get("data", {})
    if "image/png" in data:
        return 0
    text = output.get("text") or data.get("text/markdown") or data.get("text/plain")
    return (text or "").rstrip("\n").count("\n") + 1
