"""Notes for who presents: each is of a section, and none reaches a learner."""

import json
import re
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from grpo_course.workshop import form, plans, present, speaker
from grpo_course.workshop import presenter_notes as notes
from grpo_course.workshop.cells import heading, sections, tags

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
FILES = sorted(path.stem for path in notes.FOLDER.glob("*.md"))
DECIMAL = re.compile(r"\d+\.\d+")
# A sentence of minutes and nothing else.
MINUTES = re.compile(r"\*\*Time\.\*\* (\w+ ){1,4}minutes?( and a half| told)?(\.|$)")


@cache
def told(name):
    """The sections of a notebook, by heading."""
    _, *parts = sections(form.read(FOLDER / f"{name}.ipynb").cells)
    return {heading(part): part for part in parts}


def asks_something(section):
    exercises = any("exercise" in tags(cell) for cell in section)
    return exercises or any(map(speaker.predictions_in, section))


def is_looked_up(section):
    """A table to come back to: nobody reads it aloud."""
    return all("reference" in tags(cell) for cell in section)


NOTES = [
    pytest.param(name, title, text, id=f"{name} {title}")
    for name in FILES
    for title, text in notes.read(name).items()
]


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_of_its_notebook_and_in_its_order(name):
    text = (notes.FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert text.splitlines()[0] == f"# {name}"
    there, noted = list(told(name)), notes.read(name)
    assert list(noted) == [title for title in there if title in noted]
    assert text.count("\n## ") == len(noted), "a heading comes two times"


@pytest.mark.parametrize("name", FILES)
def test_every_section_that_is_told_has_a_note(name):
    missing = told(name).keys() - notes.read(name).keys()
    assert not [title for title in missing if not is_looked_up(told(name)[title])]


@pytest.mark.parametrize(("name", "title", "text"), NOTES)
def test_a_note_says_what_to_say_and_where_time_goes(name, title, text):
    used = notes.beginnings(text)
    assert used == [word for word in notes.WORDS if word in used], "another order"
    assert {"Say first", "Time"} <= set(used)
    assert not MINUTES.search(text), "the line above a note says how many minutes"
    paragraphs = [paragraph for paragraph in text.split("\n\n") if paragraph.strip()]
    assert len(paragraphs) == len(used), "a paragraph begins without a bold word"


@pytest.mark.parametrize(("name", "title", "text"), NOTES)
def test_a_question_has_its_wrong_answers(name, title, text):
    if asks_something(told(name)[title]):
        assert {"Ask", "Expect"} <= set(notes.beginnings(text))


@pytest.mark.parametrize("name", FILES)
def test_a_number_in_a_note_stands_in_the_notebook(name):
    """Decimals, as they are printed or written there: 0.84, and not 0.8 for 0.842."""
    book = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    there = set(DECIMAL.findall(words_of(book)))
    for title, text in notes.read(name).items():
        assert not set(DECIMAL.findall(text)) - there, title


def words_of(book):
    """What stands in the cells of a notebook and in their outputs, pictures apart."""
    found = []
    for cell in book["cells"]:
        found += cell["source"]
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            found += output.get("text", []) + data.get("text/plain", [])
            found += data.get("text/markdown", [])
    return "".join(found)


def test_no_learner_meets_a_note():
    noted = set(chain.from_iterable(notes.read(name).values() for name in FILES))
    lines = {line for note in noted for line in note.splitlines() if line}
    for path in FOLDER.glob("*.ipynb"):
        for cell in form.read(path).cells:
            assert cell.metadata["slideshow"]["slide_type"] != "notes"
            assert not lines & set(cell.source.splitlines())


@pytest.mark.parametrize("name", FILES)
def test_the_copies_that_are_presented_hold_them(name, tmp_path):
    path = FOLDER / f"{name}.ipynb"
    cells = form.read(present.copy(path, tmp_path)).cells
    made = [c.source for c in cells if c.metadata["slideshow"]["slide_type"] == "notes"]
    begin = [note for note in made if note.startswith("*Presenting: ")]
    _, *parts = sections(form.read(path).cells)
    for part, note in zip(parts, begin, strict=True):
        _, *words = note.split("\n\n", 1)
        assert "".join(words) == notes.read(name).get(heading(part), "")
    further = [note.split("\n\n", 1)[1] for note in made if note not in begin]
    assert all(any(words in note for note in begin) for words in further)


NOTE = "# 01_x\n\n## A\n\n**Say first.** Begin.\n\n**Time.** Short.\n"


def test_without_words_a_note_is_its_line_of_minutes(make, tmp_path):
    (tmp_path / "01_x.md").write_text(NOTE, encoding="utf-8")
    text = make.text("# T\n\n**Minutes:** 10.")
    for found in (notes.read("01_x", tmp_path), notes.read("02_y", tmp_path)):
        book = make.notebook(text, make.text("## A"), make.text("## B"))
        made = speaker.notes(plans.Part("01_x"), book, found, 0)
        one, other = (made[id(cell)].source for cell in book.cells[1:])
        assert other.startswith("*Presenting: ") and "\n" not in other
        after = one.partition("\n\n")[2]
        assert after == ("**Say first.** Begin.\n\n**Time.** Short." if found else "")


def test_a_copy_is_made_anew_when_its_notes_change(tmp_path, monkeypatch):
    monkeypatch.setattr(notes, "read", lambda name: {"Watch it learn": "**Ask.** Now?"})
    path = present.copy(FOLDER / "00_welcome.ipynb", tmp_path)
    assert "**Ask.** Now?" in path.read_text(encoding="utf-8")
    monkeypatch.setattr(notes, "read", lambda name: {"Watch it learn": "**Ask.** Why?"})
    present.copy(FOLDER / "00_welcome.ipynb", tmp_path)
    assert "**Ask.** Why?" in path.read_text(encoding="utf-8")
