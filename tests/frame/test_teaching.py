"""The decks of `teaching`: stored as notebooks are, told from notes, exported whole."""

import re
from pathlib import Path

import pytest

from grpo_course.workshop import exercise_cells, form
from tools import slides

ROOT = Path(__file__).resolve().parents[2]
DECKS = sorted((ROOT / "teaching").glob("*.ipynb"))
EXERCISE = re.compile(
    r"\*\*Exercise ([\d.]+)\*\*.*Open `(\w+)`[^`]*```python\n(def \w+)"
)
FETCHES = re.compile(
    r"""(?:<(?:script|link|img)[^>]*(?:src|href)=|@import )["']?http"""
)
SLIDE_TYPES = {"slide", "subslide", "fragment", "skip", "notes", "-"}
TIMED = re.compile(r"\*([\d.]+) min, from (\d+:\d\d½?)\.\*")


def kind(cell):
    return cell.metadata.slideshow["slide_type"]


def clock(minutes):
    return f"{int(minutes) // 60}:{int(minutes) % 60:02d}{'½' * (minutes % 1 > 0)}"


@pytest.mark.parametrize("path", DECKS, ids=lambda path: path.stem)
def test_a_deck_is_stored_as_every_notebook(path):
    deck = form.read(path)
    assert not form.stored(deck) and {*map(kind, deck.cells)} <= SLIDE_TYPES


@pytest.mark.parametrize("path", DECKS, ids=lambda path: path.stem)
def test_the_package_has_what_a_deck_imports(path):
    """Seen in a second; what else a change breaks, the comparison of outputs tells."""
    first = next(c for c in form.read(path).cells if c.cell_type == "code")
    exec(first.source.partition("setup(")[0], {})


@pytest.mark.parametrize("path", DECKS, ids=lambda path: path.stem)
def test_each_slide_has_one_note_and_each_note_its_minutes(path):
    deck = form.read(path)
    found, minutes = [*map(kind, deck.cells)], 0.0
    assert found.count("notes") == sum(k in ("slide", "subslide") for k in found)
    notes = [cell.source for cell in deck.cells if kind(cell) == "notes"]
    for note in notes[1:-1]:  # but before the first part and after the last
        length, begin = TIMED.match(note).groups()
        assert begin == clock(minutes), note[:40]
        minutes += float(length)
    assert minutes < {"hour": 60, "half_day": 210}[path.stem]


def test_an_exercise_of_the_half_day_is_in_the_notebook_it_names():
    deck = form.read(ROOT / "teaching" / "half_day.ipynb")
    text = "\n".join(cell.source for cell in deck.cells)
    assert len(EXERCISE.findall(text)) == 7
    for number, name, function in EXERCISE.findall(text):
        book = form.read(ROOT / "notebooks" / f"{name}.ipynb")
        triples = exercise_cells.triples(book.cells)
        stubs = [stub.source for task, stub, _ in triples if number in task.source]
        assert function in "".join(stubs), f"{number} of {name} is another"


@pytest.mark.parametrize("path", DECKS, ids=lambda path: path.stem)
def test_a_deck_becomes_one_page_that_needs_no_network(path):
    deck = form.read(path)
    page = slides.exported(deck, path, ROOT)
    assert not FETCHES.search(page)
    notes = [*map(kind, deck.cells)].count("notes")
    assert page.count('<aside class="notes">') == notes
    assert "Reveal.initialize" in page and "learn_one(" not in page
