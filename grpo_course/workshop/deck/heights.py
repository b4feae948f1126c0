"""About how high cells stand on a stage.

A stage is 853 x 480 CSS pixels, which a projector of 1280 x 720 shows at 150 %: 12 px
here are 18 there. `deck.css` has the same sizes. These are estimates; a picture takes
what they leave.
"""

import base64
import html
import math
import re
import struct

from nbformat import NotebookNode

from grpo_course.workshop.form import WIDGET_VIEW

WIDTH, HEIGHT = 825, 446
HEADINGS = {1: 92, 2: 40, 3: 40, 4: 56, 5: 28, 6: 31}  # 4 and 6 are questions
ANSWER = 26  # more, where the answer stands below the question
TITLE_COLUMNS = 78
COLUMNS, LINE, GAP = 99, 25, 8
BESIDE, BESIDE_COLUMNS = 265, 32
SMALLEST = 0.66  # of a picture's own size: its type of 12 pt is then 12 px high
LARGEST = 1.4
FILLS = 1.12  # a text beside a picture is worth a picture that is so much smaller
FRAME = 20  # around pictures
STEP = 10  # heights of pictures are a multiple
LOWEST = 80  # of a picture, where nothing else helps
PLAYER, KNOB = 66, 26  # question and sentence of a film, and a row of knobs
CODE = ((12, 19), (40, 16))  # (most lines, height of a line)
PRINTED, LISTED, ROW, TIGHT_ROW = 17, 16, 31, 19
PRINT_COLUMNS, PRINT_BESIDE = 100, 66
MOST_ROWS = 7  # of a table on a slide
WITH_PICTURE, ALONE, TIGHT = 12, 17, 7  # most lines of code on a slide
SPARSE = HEIGHT // 2
LARGER, LARGE_COLUMNS = 39 / LINE, 61  # of a slide with little text alone
ROOMIER = 1.65  # by how much a slide grows in larger type, at most
# Print alone on a slide: columns, height of a row, its name in the style sheet.
PRINTS = ((61, 29, "print-large"), (79, 23, "print-wide"), (88, 20, "print-snug"))
ASKED_COLUMNS, ASKED_LINE, CARD = 70, 30, 54  # of a guess: its question, a card
ACROSS = {4: 9, 3: 13, 2: 23}  # cards in a row: the most letters of one
ROOMY_COLUMNS, ROOMY_LINE = 78, 30  # of text in larger type
ASKED = re.compile(r'(<figure class="moving">)<p>([^<]*)</p>')
DOCSTRING = re.compile(r'("""[^"\n]+)\n(?:[^"]|"(?!""))*"""')  # its first line stays


def text_height(block: str, columns: int = COLUMNS) -> int:
    """About how high a paragraph, a list, a table or a fence stands."""
    text = re.sub(r"\]\([^)]*\)|<!--.*?-->|[*`$]", "", block)
    text = re.sub(r"\\text\{(\w+)\}", r"\1", text)
    text = re.sub(r"\\[a-zA-Z]+|[{}]", ".", text)  # of a formula, about what is seen
    rows = text.splitlines()
    if not rows:
        return 0
    if rows[0].startswith("|"):
        return (
            sum(ROW + 19 * (len(row) // (columns - 27)) for row in rows) - ROW + 2 * GAP
        )
    if rows[0].startswith("```"):
        return (len(rows) - 2) * 18 + GAP
    if rows[0].startswith("!["):
        return 260
    lines = sum(math.ceil(len(row) / columns) for row in rows)
    formula = 75 if "underbrace" in block else 50 if "$$" in block else 0
    return lines * LINE + formula + GAP


def smaller_blocks(block: str) -> list[str]:
    """A table in pieces that fit a slide, each with its head."""
    head, rows = block.split("\n")[:2], block.split("\n")[2:]
    if not block.startswith("|") or len(rows) <= MOST_ROWS:
        return [block]
    each = math.ceil(len(rows) / math.ceil(len(rows) / MOST_ROWS))
    pieces = [rows[k : k + each] for k in range(0, len(rows), each)]
    return ["\n".join([*head, *piece]) for piece in pieces]


def code_height(lines: int) -> int:
    """About how high lines of code stand."""
    high = next((high for most, high in CODE if lines <= most), CODE[-1][1])
    return lines * high + 12 if lines else 0


def output_height(output: NotebookNode, columns: int = PRINT_COLUMNS) -> int:
    """About how high the text of an output stands; nothing for a picture."""
    data = output.get("data", {})
    if picture_size(output):
        return 0
    if "text/markdown" in data:
        return data["text/markdown"].count("\n") * LISTED + 14
    if "text/html" in data:
        wraps = 2 if columns < PRINT_COLUMNS else 1  # beside a text, cells break
        return data["text/html"].count("<tr") * TIGHT_ROW * wraps + GAP
    rows = shown_text(output).rstrip("\n").split("\n")
    return sum(math.ceil(len(row) / columns) or 1 for row in rows) * PRINTED + GAP


def shown_text(output: NotebookNode) -> str:
    """What an output prints; of an error, what it says."""
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    return output.get("text") or output.get("data", {}).get("text/plain", "")


def without_widgets(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs that a page can show, of listings the first line of what they do."""
    kept = []
    for output in outputs:
        data = output.get("data", {})
        if WIDGET_VIEW in data and "image/png" not in data:
            continue
        if "text/markdown" in data:
            data["text/markdown"] = DOCSTRING.sub(r'\1"""', data["text/markdown"])
        kept.append(output)
    return kept


def cut(outputs: list[NotebookNode], room: int) -> list[NotebookNode]:
    """Outputs as far as their text fits a room; a last line says what is missing."""
    kept: list[NotebookNode] = []
    for output in outputs:
        high = output_height(output)
        shortened = high > max(room, 0)  # no picture: those take no room here
        if not shortened or shorten(output, room):
            kept.append(output)
        room = 0 if shortened else room - high
    return kept


def shorten(output: NotebookNode, room: int) -> bool:
    """Cut the text of an output to a room; whether that leaves enough to show."""
    data = output.get("data", {})
    listed = "text/markdown" in data
    holder, key = (data, "text/markdown") if listed else (output, "text")
    rows = holder.get(key, "").rstrip("\n").split("\n")
    fits = max(room - 40, 0) // (LISTED if listed else PRINTED)
    end = [f"... {len(rows) - fits} lines more", *(["```"] if listed else [])]
    holder[key] = "\n".join([*rows[:fits], *end])
    return fits > 3


def knobs(output: NotebookNode) -> int:
    """How many knobs a film (one) or a slider shows; none of any other output."""
    shown = "".join(output.get("data", {}).get("text/html", ""))
    return shown.count('"name": ') if 'class="moving"' in shown else 0


def asks(output: NotebookNode) -> bool:
    """Whether a question stands above a film or a slider."""
    return bool(ASKED.search("".join(output.get("data", {}).get("text/html", ""))))


def take_question(output: NotebookNode) -> str:
    """The question above a film or a slider, which is taken out; empty for none."""
    data = output.get("data", {})
    shown = "".join(data.get("text/html", ""))
    asked = ASKED.search(shown)
    if asked is None:
        return ""
    data["text/html"] = ASKED.sub(asked[1], shown, count=1)
    return html.unescape(asked[2])


def picture_size(output: NotebookNode) -> tuple[int, int] | None:
    """Width and height of a picture in pixels of the page."""
    data = output.get("data", {})
    stated = output.get("metadata", {}).get("image/png", {})
    if "width" in stated:  # it is stored in finer pixels
        return stated["width"], stated["height"]
    if "image/svg+xml" in data:
        found = re.findall(r'\b(?:width|height)="([\d.]+)pt"', data["image/svg+xml"])
        wide, high = (float(each) * 4 / 3 for each in found[:2])
        return round(wide), round(high)
    if "image/png" in data:
        head = base64.b64decode(data["image/png"][:64])
        return struct.unpack(">II", head[16:24])
    return None
