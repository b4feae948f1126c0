"""A talk: slides in words of their own, around cells of the notebooks.

A plan that has a file in `talks/` is told from it. In the file, `#` begins a part, with
its notebook below, `##` a slide, and `---` the slide on which a guess comes out.

- `cell: words` is the cell of the notebook that has these words in its code. The slide
  has what it shows: with `code: words` its code as well, with `picture: words` or
  `print: words` only that, with `exercise: words` its code alone, for the room to fill.
- `loop: words` is the loop of notebook 00, with the line that has these words marked.
- A quotation is what the presenter says. It ends each slide, and begins with minutes.
- `hour: title` is the slide of the hour that has this title, with the guess that comes
  out after it, told as it is there.
"""

import re
from pathlib import Path
from typing import NamedTuple

from nbformat import NotebookNode

FOLDER = Path(__file__).with_name("talks")
HOUR = "hour"
BEGINS = re.compile(r"^(?=#{1,2} |---$|hour: )", re.MULTILINE)
CELL = re.compile(r"(cell|code|picture|print|exercise): (.+)")
NOTE = re.compile(r"> ([\d.]+) min\.\s+(.*)", re.DOTALL)


class Slide(NamedTuple):
    """A slide: its blocks stand below each other."""

    title: str  # with its #; empty where a guess comes out
    blocks: list[str]
    minutes: float
    note: str

    @property
    def named(self) -> list[re.Match]:
        """What is shown of which cells, in order: the kind, and words of their code."""
        return [found for block in self.blocks if (found := CELL.fullmatch(block))]

    def shows(self, cell: NotebookNode, kind: str = "") -> bool:
        """Whether it shows a cell of its notebook, in this way if one is given."""
        code = cell.source if cell.cell_type == "code" else ""
        return any(f[2] in code and kind in ("", f[1]) for f in self.named)


class Part(NamedTuple):
    """What is told of one notebook."""

    notebook: str
    title: str
    slides: list[Slide]

    @property
    def minutes(self) -> float:
        """How long it takes."""
        return sum(slide.minutes for slide in self.slides)

    @property
    def practises(self) -> bool:
        """Whether a slide gives the room an exercise."""
        return any(kind[1] == "exercise" for s in self.slides for kind in s.named)

    def shows(self, cell: NotebookNode, kind: str = "") -> bool:
        """Whether a slide shows a cell of the notebook."""
        return any(slide.shows(cell, kind) for slide in self.slides)


def read(name: str, folder: Path = FOLDER) -> list[Part]:
    """The parts of a plan's talk; none where it has no file."""
    path = folder / f"{name}.md"
    parts: list[Part] = []
    if not path.exists():
        return []
    hour = read(HOUR, folder) if name != HOUR else []
    for text in BEGINS.split(path.read_text(encoding="utf-8"))[1:]:
        if text.startswith(f"{HOUR}: "):
            parts[-1].slides.extend(taken(text.partition(": ")[2].strip(), hour))
            continue
        slide = slide_of(text, path)
        if slide.title.startswith("# "):
            notebook = slide.blocks.pop(0).strip("`")
            parts.append(Part(notebook, slide.title[2:], []))
        parts[-1].slides.append(slide)
    return parts


def taken(title: str, hour: list[Part]) -> list[Slide]:
    """A slide of the hour, and the one on which its guess comes out, if it asks."""
    for part in hour:
        titles = [slide.title for slide in part.slides]
        if f"## {title}" in titles:
            place = titles.index(f"## {title}")
            ends = 2 if titles[place + 1 : place + 2] == [""] else 1
            return part.slides[place : place + ends]
    raise SystemExit(f"A talk takes {title!r} from the hour, which has no such slide.")


def slide_of(text: str, path: Path) -> Slide:
    """One slide, and what is said at it."""
    title, _, body = text.partition("\n")
    blocks = re.split(r"\n{2,}", body.strip())
    said = NOTE.fullmatch(blocks.pop())
    if said is None:
        raise SystemExit(
            f"The slide {title!r} of {path.name} ends without a note. Say there how "
            "long it takes and what to say, such as: > 1.5 min. Ask who has seen one."
        )
    note = re.sub(r"^> ?", "", said[2], flags=re.MULTILINE)
    return Slide(title.strip("-"), blocks, float(said[1]), note)
