"""Put cells on slides: a title on each, a picture beside what to see in it."""

import math
import re

from nbformat import NotebookNode, v4

from grpo_course.workshop import exercise_cells, prediction_cells
from grpo_course.workshop.cells import tags
from grpo_course.workshop.deck import fold
from grpo_course.workshop.deck.apart import taken_apart
from grpo_course.workshop.deck.heights import (
    HEADINGS,
    HEIGHT,
    SMALLEST,
    SPARSE,
    cut,
    smaller_blocks,
    text_height,
)
from grpo_course.workshop.deck.noted import noted
from grpo_course.workshop.deck.shown import Shown, Way, blocks_of, parted, question
from grpo_course.workshop.deck.slide import Slide, finished, is_seen, unfolded

FOUND = f"**{exercise_cells.FOUND}.**"  # not beside what is to be tried
AT_THE_DESK = ("Guess first: pick a choice", "Now ask your own")  # not for a room
# A paragraph that says first what it is about: "**Step 2: a policy.** A model ...".
LEAD = re.compile(r"\*\*([^*]{3,40})\.\*\* (?=[A-Z$])")


class Stage:
    """Slides one after the other."""

    def __init__(self) -> None:
        self.slides: list[Slide] = []
        self.title = self.lead = ""  # of the section, and of its last paragraphs
        self.guess: tuple[str, list[str]] = ("", [])  # until it comes out

    @property
    def now(self) -> Slide:
        """The slide that fills."""
        return self.slides[-1]

    @property
    def title_now(self) -> str:
        """The title of a further slide: the section, and what it has come to."""
        return " · ".join(filter(None, [self.title, self.lead]))

    def begin(self, title: str, level: int) -> None:
        """A slide with a title of its own."""
        self.slides.append(Slide(title, level))
        self.title, self.lead = title, ""

    def go_on(self) -> None:
        """A further slide of the section, unless this one is empty."""
        if not self.now.empty:
            self.slides.append(Slide(self.title_now, 5))

    def tell(self, blocks: list[str], leads: bool = False) -> None:
        """Paragraphs, on as many slides as they need.

        What leads to a guess or to code begins a slide, unless there is room for both.
        """
        if not blocks:
            return
        blocks = [piece for block in blocks for piece in smaller_blocks(block)]
        whole = sum(map(text_height, blocks))
        if (leads and self.now.used > SPARSE) or whole > self.now.room:
            self.go_on()
        share = whole / math.ceil(whole / (self.now.room or HEIGHT) or 1)
        told = 0
        for block in blocks:
            height = text_height(block)
            full = height > self.now.room or told + height / 2 > share
            if full or block.startswith(FOUND):
                self.go_on()
                told = 0
            if lead := LEAD.match(block):
                block = self.about(lead, block)
            self.now.cells.append(v4.new_markdown_cell(block))
            self.now.used += height
            told += height

    def about(self, lead: re.Match, block: str) -> str:
        """What a paragraph begins with names the slides from here on."""
        self.lead = lead[1]
        if not self.now.empty or self.now.level < 5:
            return block
        self.now.title = self.title_now
        return block[lead.end() :]

    def ask(self, cell: NotebookNode) -> None:
        """A guess: the question and its choices, large; the cell runs unseen."""
        text, height = question(cell)
        if height > self.now.room:
            self.go_on_with_the_last(HEIGHT - HEADINGS[5] - height)
        self.now.cells += [v4.new_markdown_cell(text), fold.skipped(cell.source)]
        self.now.used += height
        self.now.closed = True
        self.guess = prediction_cells.single(cell)

    def go_on_with_the_last(self, room: int) -> None:
        """A further slide, with the paragraph that leads to it where there is room."""
        last = self.now.take_last(room)
        self.go_on()
        if last:
            self.now.cells.append(last)
            self.now.used += text_height(last.source)

    def answer(self, cell: NotebookNode) -> None:
        """Name the slide on which a guess comes out by the question and the answer."""
        came, others = fold.take_answer(cell.outputs)
        asked, offered = self.guess
        if not came or not asked:
            return
        if self.now.closed:
            self.go_on()
        if self.now.level == 5:
            letter = prediction_cells.letter_of(came, offered)
            self.now.rename(f"{asked} **{letter}{came}**")
            self.guess, cell.outputs = ("", []), others

    def run(self, cell: NotebookNode, see: str) -> None:
        """Code with what it shows and what to see in it."""
        self.answer(cell)
        shown = Shown(cell, see)
        if not shown.anything:
            self.now.cells.append(fold.skipped(cell.source))
            return self.tell([see] if see else [], leads=True)
        way, fits = self.way_of(shown)
        small = fits > 0 and shown.scale(way, fits) < SMALLEST
        if small and (parts := taken_apart(cell)):
            for each in parts[:-1]:
                self.run(each, "")
            return self.run(parts[-1], see)
        if shown.knobs and self.now.level == 5:  # its question says more than a place
            self.now.rename(shown.take_question() or self.now.title)
            fits = max(fits, shown.picture(way, self.now.room, 0))
        over = shown.whole(way, fits) - self.now.room
        if over > 0:
            cell.outputs = cut(cell.outputs, shown.printed(way) - over)
        self.now.cells += shown.cells(way, fits)
        self.now.used += shown.whole(way, fits)
        self.now.closed = bool(shown.pictures)
        self.now.pictured |= self.now.closed

    def way_of(self, shown: Shown) -> tuple[Way, int]:
        """How a cell is shown here or on a new slide, and how high its pictures are."""
        for way in shown.ways():
            if way.last:
                self.go_on()
            fits = shown.picture(way, self.now.room, SMALLEST)
            if not fits and not self.now.empty:
                fits = shown.picture(way, HEIGHT - HEADINGS[5], SMALLEST)
                if fits:
                    self.go_on()
            if fits or way.last:
                break
        return way, fits


def arrange(cells: list[NotebookNode]) -> list[NotebookNode]:
    """The cells on slides, each slide with a title, and no solution among them."""
    stage = Stage()
    pending: list[str] = []
    # A solution is not seen either, but ends what is said of its exercise.
    told = [c for c in cells if is_seen(c) or exercise_cells.SOLUTION in tags(c)]
    following = dict(zip(map(id, told), [*told[1:], None], strict=True))
    for cell in cells:
        after = following.get(id(cell))
        if not is_seen(cell):
            if exercise_cells.SOLUTION not in tags(cell):
                stage.now.cells.append(cell)
        elif cell.cell_type == "markdown":
            leads = after is not None and after.cell_type == "code"
            stage_text(stage, pending or blocks_of(unfolded(cell)), leads)
            pending = []
        elif prediction_cells.asks(cell):
            stage.ask(cell)
        else:
            see, pending = parted(after)
            stage.run(cell, see)
    return [cell for slide in noted(stage.slides) for cell in finished(slide)]


def stage_text(stage: Stage, blocks: list[str], leads: bool) -> None:
    """A text cell: a heading begins a slide."""
    told: list[str] = []
    for block in blocks:
        if not block or block.startswith(AT_THE_DESK):
            continue
        heading = re.match(r"(#+) (.*)", block)
        if heading:
            stage.tell(told)
            told = []
            stage.begin(heading[2], min(len(heading[1]), 3))
        else:
            told.append(block)
    stage.tell(told, leads)
