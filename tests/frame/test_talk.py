"""A talk: its slides show cells of the notebooks, and say little that is read."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from grpo_course.workshop import (
    form,
    plans,
    prediction_cells,
    run_sheet,
    syllabus,
    talk,
)
from grpo_course.workshop.deck import build, spoken
from grpo_course.workshop.deck.slide import type_of

ROOT = Path(__file__).resolve().parents[2]
BOOKS = {p.stem: form.read(p) for p in sorted((ROOT / "notebooks").glob("*.ipynb"))}
PLANS = {name: plan for name, plan in plans.read(ROOT).items() if plan.parts[0].talk}
PARTS = [
    pytest.param(part.talk, id=f"{name} {part.notebook}")
    for name, plan in PLANS.items()
    for part in plan.parts
]
LOOP = syllabus.loop(BOOKS["00_welcome"])
DECIMAL = re.compile(r"\d+\.\d+")
WIDE = 62  # letters of a title that fit a line


def words(slide):
    """What a room reads on a slide beside code, print and pictures."""
    told = [b for b in slide.blocks if not talk.CELL.fullmatch(b) and "$$" not in b]
    return [b for b in told if not b.startswith(("loop:", "```"))]


def printed(book):
    """What stands in the cells of a notebook and in their outputs."""
    found = [cell.source for cell in book.cells]
    for cell in book.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            alts = json.dumps(output.get("metadata", {}), ensure_ascii=False)
            found += [output.get("text", ""), data.get("text/plain", ""), alts]
    return "".join(found)


@pytest.mark.parametrize("part", PARTS)
def test_each_slide_has_a_title_that_fits_and_words_to_say(part):
    assert part.title and part.slides[0].title == f"# {part.title}"
    for slide in part.slides:
        assert len(slide.title.lstrip("# ")) <= WIDE
        assert slide.note.strip(), slide.title


@pytest.mark.parametrize("part", PARTS)
def test_a_number_stands_in_the_notebook(part):
    there = set(DECIMAL.findall(printed(BOOKS[part.notebook])))
    for slide in part.slides:
        said = "\n".join([*words(slide), slide.note])
        assert not set(DECIMAL.findall(said)) - there, slide.title


@pytest.mark.parametrize("part", PARTS)
def test_what_to_leave_out_is_there_and_saves_what_is_said(part):
    late = part.slides[0].note.partition("Late in this part? ")[2]
    assert late
    saved, taken = 0.0, False
    for slide in part.slides:
        if slide.title:
            taken = f"“{slide.title.lstrip('# ')}”" in late
        saved += slide.minutes * taken
    assert all(f"## {title}" in titles(part) for title in re.findall("“(.+?)”", late))
    stated = re.search(r"\(saves (\d+½?) min\)", late)
    assert not stated or float(stated[1].replace("½", ".5")) == saved


def titles(part):
    return [slide.title for slide in part.slides]


@pytest.mark.parametrize("part", PARTS)
def test_what_is_guessed_comes_out_on_the_next_slide(part):
    code = [c for c in BOOKS[part.notebook].cells if c.cell_type == "code"]
    for slide, after in pairwise(part.slides):
        cells = [cell for cell in code if slide.shows(cell)]
        asked = {name for cell in cells for name in prediction_cells.asked(cell)}
        shown = "".join(cell.source for cell in code if after.shows(cell))
        assert all(f"{name}.reveal(" in shown for name in asked)
        assert bool(asked) == (not after.title), slide.title


@pytest.mark.parametrize("part", PARTS)
def test_a_line_of_the_loop_is_one(part):
    for slide in part.slides:
        for block in slide.blocks:
            if line := spoken.LOOP.fullmatch(block):
                marked = spoken.marked(block, LOOP)
                assert marked.count("\n") == LOOP.count("\n")
                assert ("<b>" in marked) == bool(line[1])


@pytest.mark.parametrize("name", PLANS)
def test_a_slide_of_the_talk_is_one_of_the_deck(name):
    """What does not fit would go on on a further slide, with a title of its own."""
    told = [slide for part in PLANS[name].parts for slide in part.talk.slides]
    made = [c for c in build.deck(name, ROOT).cells if c.cell_type == "markdown"]
    kinds = [type_of(cell) for cell in made]
    assert kinds.count("slide") + kinds.count("subslide") == len(told) + 2
    assert kinds.count("notes") == len(told) + 2  # and those of beginning and end
    votes = "".join(cell.source for cell in made).count('<div class="guess ')
    assert votes == sum(not slide.title for slide in told) >= 7


@pytest.mark.parametrize("name", PLANS)
def test_minutes_are_whole_for_a_part_and_leave_some_for_questions(name):
    plan = PLANS[name]
    lengths = [part.talk.minutes for part in plan.parts]
    assert all(length == round(length) for length in lengths)
    assert 0.85 * plan.minutes < sum(lengths) <= plan.minutes - 4


@pytest.mark.parametrize("name", PLANS)
def test_its_run_sheet_has_every_note_and_vote(name):
    text = run_sheet.of(PLANS[name], BOOKS)
    told = [slide for part in PLANS[name].parts for slide in part.talk.slides]
    assert all(slide.note in text for slide in told)
    assert text.count("\n> **Vote.** ") == sum(not slide.title for slide in told)
    assert text.count("*Answer: ") == text.count("\n> **Vote.** ")
    numbers = [*map(int, re.findall(r"\*Slide (\d+),", text))]
    assert numbers == [*range(2, len(told) + 2)]
    assert text.count("Late") >= len(PLANS[name].parts)
    first = re.search(r"Be at ([^.]*)\.", text)[1].split(", ")
    assert len(first) == len(PLANS[name].parts) and first[0] == "slide 2 at 0:00"
    times = re.findall(r"from (\d):(\d\d)(½?)\.", text)
    begun = [int(h) * 60 + int(m) + 0.5 * bool(half) for h, m, half in times]
    assert begun == sorted({*begun}) and len(begun) == len(told)


SLIDE = """# A

`01_x`

> 1 min. Say it.

## B

{block}

> 2.5 min. Say more.
>
> And more.
"""


@pytest.fixture
def told(tmp_path):
    def read(block):
        (tmp_path / "x.md").write_text(SLIDE.format(block=block), encoding="utf-8")
        return talk.read("x", tmp_path)[0]

    return read


def test_a_talk_is_read_from_its_file(told, tmp_path):
    part = told("Words.\n\npicture: draw(")
    assert (part.notebook, part.title, part.minutes) == ("01_x", "A", 3.5)
    assert part.slides[1].blocks == ["Words.", "picture: draw("]
    assert part.slides[1].note == "Say more.\n\nAnd more."
    assert talk.read("none", tmp_path) == []


def test_a_talk_takes_a_slide_of_the_hour_with_its_answer(tmp_path):
    vote = "Guess.\n\n> 1 min. Ask it.\n\n---\n\nSo."
    hour = SLIDE.format(block=vote).replace("## B", "## Taken")
    (tmp_path / "hour.md").write_text(hour, encoding="utf-8")
    path = tmp_path / "x.md"
    path.write_text(SLIDE.partition("## B")[0] + "hour: Taken\n", encoding="utf-8")
    (part,) = talk.read("x", tmp_path)
    assert [slide.title for slide in part.slides] == ["# A", "## Taken", ""]
    assert [slide.note for slide in part.slides][1:] == [
        "Ask it.",
        "Say more.\n\nAnd more.",
    ]
    path.write_text(path.read_text(encoding="utf-8").replace("Taken", "B"))
    with pytest.raises(SystemExit, match=r"takes 'B' from the hour, which has no such"):
        talk.read("x", tmp_path)


@pytest.mark.parametrize("name", PLANS)
def test_an_exercise_is_a_slide_with_its_number_and_time_and_no_solution(name):
    made = build.deck(name, ROOT).cells
    tasks = [k for k, c in enumerate(made) if c.source.startswith(spoken.TASK)]
    given = [
        (number, each)
        for part in PLANS[name].parts
        for number, each in plans.exercises(part, BOOKS[part.notebook].cells).items()
    ]
    told = [re.search(r"Exercise (.+?)\*\* · (\d+) min", made[k].source) for k in tasks]
    assert [(found[1], int(found[2])) for found in told] == given
    for k in tasks:
        stub = next(c for c in made[k:] if c.cell_type == "code")
        assert "raise" in stub.source or "..." in stub.source
        assert stub.outputs == [] and type_of(stub) != "skip"


@pytest.mark.parametrize("name", PLANS)
def test_the_foot_of_a_slide_names_its_part(name):
    told = (c.source for c in build.deck(name, ROOT).cells if c.cell_type == "markdown")
    titles = [text for text in told if text.startswith("#")]
    part = ""
    for title in titles:
        if title.startswith("# "):
            part = re.search(r"\d+\. [^<]*", title)
            assert 'class="part"' not in title
        else:
            assert f'<span class="part">{part[0].strip()}</span>' in title


def test_a_slide_without_a_note_is_refused(tmp_path):
    (tmp_path / "x.md").write_text("# A\n\n`01_x`\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"'# A' of x\.md ends without a note"):
        talk.read("x", tmp_path)


@pytest.mark.parametrize("words", ["sunk", "draw", "a = 1\n\ncell: b = a"])
def test_words_of_no_cell_or_of_several_are_refused(told, make, words):
    book = make.notebook(*map(make.code, ("b = 2", "draw(1)\nb = a", "draw(2)\na = 1")))
    with pytest.raises(SystemExit, match=r"shows the cell of 01_x that has"):
        spoken.cells(told(f"cell: {words}"), book, 0, 1, LOOP)


def test_a_cell_brings_what_it_needs_and_nothing_else(told, make):
    book = make.notebook(*map(make.code, ("a = 1", "c = 3", "print(a)", "print(c)")))
    made = spoken.cells(told("cell: print(a)"), book, 0, 1, LOOP)
    code = [c for c in made if c.cell_type == "code"]
    assert [cell.source for cell in code] == ["a = 1", "print(a)"]
    assert [type_of(cell) == "skip" for cell in code] == [True, False]
    notes = [c.source for c in made if type_of(c) == "notes"]
    assert notes[1].startswith("*Presenting: 2.5 min, from 0:01.*\n\nSay more.")


def test_a_deck_that_is_built_again_is_the_same():
    """Another one would be offered to the presenter as a new version."""
    build_it = (
        "from pathlib import Path; from grpo_course.workshop.deck import build; "
        "print(build.deck('hour', Path.cwd()))"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", build_it],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in "01"
    ]
    first, second = (each.communicate()[0] for each in running)
    assert len(first) > 10**5 and first == second
