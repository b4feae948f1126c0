"""What a presenter reads on each slide: a section's note goes on until the next one."""

import re
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

from grpo_course.workshop import speaker
from grpo_course.workshop.deck.slide import Slide, type_of

OPENS = re.compile(r"\*Presenting:|\*\*Say first\.")  # said once, as the section begins
SECTION = 2  # the level of its title; a part's has 1


def noted(slides: Sequence[Slide]) -> Sequence[Slide]:
    """The slides, each with a note if its section has one.

    The first slide of a section has the whole note. Those that have none of their own
    repeat what to ask, to expect and to show, which is looked up in the middle of it;
    so do those of a section without a note, of the section before.
    """
    title = again = ""
    for section in sections(slides):
        if with_notes := [slide for slide in section if notes_of(slide)]:
            note = notes_of(with_notes[0])[0]
            with_notes[0].cells.remove(note)
            section[0].cells.append(note)
            title, again = section[0].title, goes_on(note.source)
        elif section[0].level < SECTION:  # a part
            again = ""
        for slide in section if again else []:
            if not notes_of(slide):
                slide.cells.append(speaker.note(f"*{title}, continued.*", again))
    return slides


def sections(slides: Sequence[Slide]) -> Iterator[list[Slide]]:
    """The slides from one title of a section, or of a part, to the next."""
    begins = [k for k, slide in enumerate(slides) if slide.level <= SECTION]
    for begin, end in zip(begins, [*begins[1:], len(slides)], strict=True):
        yield list(slides[begin:end])


def notes_of(slide: Slide) -> list[NotebookNode]:
    """What the presenter alone sees of a slide."""
    return [cell for cell in slide.cells if type_of(cell) == "notes"]


def goes_on(note: str) -> str:
    """What a section's note says beside how to begin."""
    return "\n\n".join(p for p in note.split("\n\n") if not OPENS.match(p))
