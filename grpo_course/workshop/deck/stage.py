"""Put cells on slides: a title on each, a picture beside what to see in it."""

import math
import re

from nbformat import NotebookNode, v4

from grpo_course.workshop import exercise_cells, prediction_cells
from grpo_course.workshop.deck import fold
from grpo_course.workshop.deck.apart import taken_apart
from grpo_course.workshop.deck.guess import question
from grpo_course.workshop.deck.heights import (
    HEADINGS,
    HEIGHT,
    SMALLEST,
    SPARSE,
    cut,
    knobs,
    smaller_blocks,
    text_height,
)
from grpo_course.workshop.deck.shown import Shown, Way
from grpo_course.workshop.deck.slide import Slide

FOUND = f"**{exercise_cells.FOUND}.**"  # not beside what is to be tried
# A paragraph that says first what it is about: "**Step 2: a policy.** A model ...".
LEAD = re.compile(r"\*\*([^*]{3,40})\.\*\* (?=[A-Z$])")


class Stage:
    """Slides one after the other."""

    def __init__(self) -> None:
        self.slides: list[Slide] = []
        self.title = self.lead = ""  # of the section, and of its last paragraphs
        self.guess: tuple[str, list[str]] = ("", [])  # until it comes out
        self.came_out = ""  # the question and its answer, while a cell is in parts

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

    def next(self) -> Slide:
        """The slide to go on with: this one while it is empty, or a further one."""
        if self.now.empty:
            return self.now
        further = Slide(self.title_now, 5)
        if self.came_out:
            further.rename(self.came_out)
        return further

    def go_on(self) -> None:
        """Go on with the next slide."""
        if not self.now.empty:
            self.slides.append(self.next())

    def tell(self, blocks: list[str], leads: bool = False) -> None:
        """Paragraphs, on as many slides as they need.

        What leads to a guess or to code begins a slide, unless there is room for both.
        """
        if not blocks:
            return
        blocks = [piece for block in blocks for piece in smaller_blocks(block)]
        whole = sum(map(text_height, blocks))
        if not leads and self.now.pictured and whole <= HEIGHT - self.now.used:
            self.now.closed = False  # last words find room below a picture
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

    def answer(self, cell: NotebookNode) -> str:
        """Name the slide on which a guess comes out by the question and the answer.

        That is returned, and nothing where no guess comes out.
        """
        came, others = fold.take_answer(cell.outputs)
        asked, offered = self.guess
        if not came or not asked:
            return ""
        if self.now.closed or self.now.has_code:
            self.go_on()
        if self.now.level == 5:
            answer = prediction_cells.with_letter(came, offered)
            self.now.rename(f"{asked} **{answer}**")
            self.guess, cell.outputs = ("", []), others
            return self.now.title
        return ""

    def run(self, cell: NotebookNode, see: str) -> None:
        """Code with what it shows and what to see in it."""
        came_out = self.answer(cell)
        shown = Shown(cell, see)
        if not shown.anything:
            self.now.cells.append(fold.skipped(cell.source))
            return self.tell([see] if see else [], leads=True)
        way, fits, begins = self.way_of(shown)
        if is_small(shown, way, fits) and (parts := taken_apart(cell)):
            return self.run_parts(parts, see, came_out)
        if is_small(shown, way, fits) and self.now.empty and self.now.shorten():
            way, fits, begins = self.way_of(shown)
        if begins:
            self.go_on()
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

    def run_parts(self, parts: list[NotebookNode], see: str, came_out: str) -> None:
        """A slide for each part of a cell, named by what came out, if a guess did."""
        for part in parts:
            # A film has a question of its own.
            self.came_out = "" if any(map(knobs, part.outputs)) else came_out
            self.run(part, see if part is parts[-1] else "")
        self.came_out = ""

    def way_of(self, shown: Shown) -> tuple[Way, int, bool]:
        """How a cell is shown, how high its pictures are, and if a slide begins."""
        further = self.next()
        for way in shown.ways():
            for slide in [further] if way.last else [self.now, further]:
                fits = shown.picture(way, slide.room, SMALLEST)
                if fits and not is_small(shown, way, fits):
                    return way, fits, slide is further
        if self.came_out and is_small(shown, way, fits):
            self.came_out = ""  # the picture needs the room of this title
            return self.way_of(shown)
        return way, fits, True


def is_small(shown: Shown, way: Way, fits: int) -> bool:
    """Whether a picture so high would be too small to read."""
    return fits > 0 and shown.scale(way, fits) < SMALLEST
