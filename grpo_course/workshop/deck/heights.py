"""About how high cells stand on a stage.

A stage is 853 x 480 CSS pixels, which a projector of 1280 x 720 shows at 150 %: 12 px
here are 18 there. `deck.css` has the same sizes. These are estimates; a picture takes
what they leave.
"""

import base64
import math
import re
import struct

from nbformat import NotebookNode

from grpo_course.workshop.tidy import WIDGET_VIEW

WIDTH, HEIGHT = 825, 446
HEADINGS = {1: 92, 2: 40, 3: 40, 5: 24}
COLUMNS, LINE, GAP = 92, 25, 8
BESIDE, BESIDE_COLUMNS = 265, 31
SMALLEST = 0.7  # of a picture's own size: its type is then 12 px high
LARGEST = 1.15
STEP = 10  # heights of pictures are a multiple
PLAYER = 100  # question, knobs and sentence of a film
# (most lines, height of a line): of code, of printed text, of a listing
SIZES = ((12, 19), (40, 16))
PRINTED = ((12, 18), (40, 15))
MOST_PRINTED = 25
WITH_PICTURE, ALONE = 12, 17  # most lines of code on a slide
SPARSE = HEIGHT // 2


def text_height(block: str, columns: int = COLUMNS) -> int:
    """About how high a paragraph, a list, a table or a fence stands."""
    text = re.sub(r"\]\([^)]*\)|<!--.*?-->|[*`$]", "", block)
    rows = text.splitlines()
    if not rows:
        return 0
    if rows[0].startswith("|"):
        return len(rows) * (27 if len(rows) < 12 else 19) + GAP
    if rows[0].startswith("```"):
        return (len(rows) - 2) * 18 + GAP
    if rows[0].startswith("!["):
        return 260
    lines = sum(math.ceil(len(row) / columns) for row in rows)
    formula = 25 if "$$" in block else 0
    return lines * LINE + formula + GAP


def of_size(sizes: tuple[tuple[int, int], ...], lines: int) -> int:
    """The height of a line, by how many there are."""
    return next((high for most, high in sizes if lines <= most), sizes[-1][1])


def short(output: NotebookNode) -> NotebookNode | None:
    """An output as a room can read it; none where only a widget could show it."""
    data = output.get("data", {})
    if WIDGET_VIEW in data and "image/png" not in data:
        return None
    for holder, key in ((output, "text"), (data, "text/markdown")):
        rows = holder.get(key, "").rstrip("\n").split("\n")
        if len(rows) > MOST_PRINTED:
            left = len(rows) - MOST_PRINTED + 1
            end = ["```"] if rows[0].startswith("```") else []
            rows = [*rows[: MOST_PRINTED - 1], f"... {left} lines more", *end]
            holder[key] = "\n".join(rows)
    return output


def output_lines(output: NotebookNode) -> int:
    """The lines of text that an output shows."""
    data = output.get("data", {})
    if picture_size(output):
        return 0
    text = output.get("text") or data.get("text/markdown") or data.get("text/plain")
    return (text or "").rstrip("\n").count("\n") + 1


def picture_size(output: NotebookNode) -> tuple[int, int] | None:
    """Width and height of a picture in pixels."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        found = re.findall(r'\b(?:width|height)="([\d.]+)pt"', data["image/svg+xml"])
        wide, high = (float(each) * 4 / 3 for each in found[:2])
        return round(wide), round(high)
    if "image/png" in data:
        head = base64.b64decode(data["image/png"][:64])
        return struct.unpack(">II", head[16:24])
    return None
