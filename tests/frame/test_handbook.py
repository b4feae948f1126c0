"""The handbook says what the notebooks and the checks say, all of it, and no more."""

import argparse
import re
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from grpo_course.workshop import (
    clock,
    exercise_cells,
    form,
    handbook,
    minutes,
    paper,
    plans,
    prediction_cells,
    presenter_notes,
    run_sheet,
    speaker,
    syllabus,
)
from grpo_course.workshop.answers import voted
from grpo_course.workshop.cells import heading, title_of
from grpo_course.workshop.deck import build
from grpo_course.workshop.deck.slide import on_stage, type_of

ROOT = Path(__file__).resolve().parents[2]
BOOKS = {
    path.stem: form.read(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
}
PLANS = plans.read(ROOT)
COURSE = handbook.kit(BOOKS)
KITS = {name: handbook.kit(BOOKS, plan) for name, plan in PLANS.items()}
TALKS = [name for name, plan in PLANS.items() if plan.parts[0].talk]
CLASSES = [name for name in PLANS if name not in TALKS]
QUESTIONS = [q for b in BOOKS.values() for q in prediction_cells.questions(b.cells)]


def entries(page, begin):
    """The parts of a page that begin with such a line."""
    return re.split(rf"(?m)^(?={begin})", COURSE[page])[1:]


def test_every_prediction_has_its_answer_and_a_reason():
    found = entries("answers", r"\*\*.*\*\* \(.*\)$")
    assert [entry.split("**")[1] for entry in found] == QUESTIONS
    for entry in found:
        asked, answer, reason, *_ = [*entry.split("\n\n"), ""]
        assert answer.startswith("*Came out: "), asked
        assert len(reason.split()) > 3, asked


def test_what_came_out_is_among_the_choices():
    for entry in entries("answers", r"\*\*.*\*\* \(.*\)$"):
        offered = entry.split("\n")[0].split("** (", 1)[1][:-1].split("; ")
        letter, answer = re.search(
            r"Came out: ([A-Z]\. )(?:.*nearest to )?(.*?)\.\*", entry
        ).groups()
        assert f"{letter}{answer}" in offered, entry


def test_solutions_hold_no_hint_of_the_notebooks():
    assert "Hint" not in COURSE["solutions"]
    assert "<details>" not in "".join(COURSE.values())


@pytest.mark.parametrize("name", PLANS)
def test_a_syllabus_adds_up(name):
    text, plan = KITS[name]["syllabus"], PLANS[name]
    *rows, last = [x for x in text.splitlines() if re.match(r"\| \d+ to", x)]
    assert len(rows) == len(plan.parts)
    lengths = [minutes.length(part, BOOKS[part.notebook]) for part in plan.parts]
    assert f" to {sum(lengths)} |" in rows[-1]
    assert f"\n\n{syllabus.ABOUT}\n\n" in text
    assert last.startswith(f"| {sum(lengths)} to {plan.minutes} | *what you can do now")
    assert {row.count("|") for row in (*rows, last)} == {5 - (name == "hour")}
    for part, row in zip(plan.parts, rows, strict=True):
        given = plans.exercises(part, BOOKS[part.notebook].cells)
        assert row.endswith(f"| {', '.join(given) or 'none'} |") or name == "hour"
        told = part.talk.title if part.talk else title_of(BOOKS[part.notebook])
        assert f" {told} |" in row
    rests = [0, *map(int, re.findall(r"^\| (\d+) \|", text, re.MULTILINE))]
    stretches = [b - a for a, b in pairwise([*rests, sum(lengths)])]
    assert max(stretches) <= syllabus.WITHOUT, stretches
    assert text.count("**day") == plan.days - 1
    assert text.count("*lunch*") == (plan.days if plan.days > 1 else 0)
    whole = sum(map(plans.is_whole, plan.parts))
    outcomes = re.findall(r"^- .+\.$", text, re.MULTILINE)
    assert len(outcomes) == whole + len(plan.outcomes) > 3


def test_a_syllabus_tells_times_of_the_day_from_a_start():
    plan = PLANS["two-day"]
    text = syllabus.of(plan, BOOKS, begin=clock.minute("9:30"))
    rows = [
        row.strip("| ").split(" | ") for row in text.splitlines() if row[0:3] > "| "
    ]
    timed = [row for row in rows if re.match(r"\d+:\d\d", row[0])]
    begun = [[*map(clock.minute, re.findall(r"\d+:\d\d", row[0]))] for row in timed]
    assert text.count("| 9:30 to") == plan.days
    for (row, now), (_, after) in pairwise(zip(timed, begun, strict=True)):
        rest = clock.PAUSES.get(row[1], 0) if len(now) == 1 else 0
        assert after[0] == (570 if "day" in row[1] else now[-1] + rest)
    for wrong in ("9", "24:00", "9:60"):
        with pytest.raises(argparse.ArgumentTypeError, match="such as 9:00"):
            clock.minute(wrong)


@pytest.mark.parametrize("name", CLASSES)
def test_a_run_sheet_has_every_note_and_vote_of_its_plan(name):
    text, told = KITS[name]["run-sheet"], plans.cut(PLANS[name], BOOKS)
    asked = [
        q for book in told.values() for q in prediction_cells.questions(book.cells)
    ]
    line = r"^> \*\*Vote, slide (\d+)\.\*\* (.*) \(.*\) \*Answer: [A-F]\. .*\*$"
    votes = re.findall(line, text, re.M)
    assert [question for _, question in votes] == asked
    slides = slides_of(name)
    assert all(f"**{on_stage(q)}**" in slides[int(number) - 1] for number, q in votes)
    rows = re.findall(r"^\| \d+:\d\d \| \d+ \| (.*?) \| (.*) \|$", text, re.M)
    glance = [each for _, told in rows for each in re.findall(r"(\d+): [A-F]\.", told)]
    assert glance == [number for number, _ in votes]
    parts = [(part, BOOKS[part.notebook]) for part in PLANS[name].parts]
    sections = [cells for each in parts for cells, _ in speaker.timetable(*each)]
    named = re.findall(r"^### (.*?)(?: \(slide \d+\))?$", text, re.M)
    assert named == [*map(heading, sections)]
    assert [row.partition(", exercise ")[0] for row, _ in rows] == named
    notes = [presenter_notes.read(part.notebook) for part, _ in parts]
    said = [note.split("\n\n")[0] for mine in notes for note in mine.values()]
    known = [first for first in said if first in text]
    assert text.count("**Say first.**") == len(known) > 0.9 * len(sections)
    for part, book in parts:
        stated = {number for number, _ in exercise_cells.stated(book.cells)}
        left_out = stated - plans.exercises(part, book.cells).keys()
        assert not left_out & set(re.findall(r"xercise (\d+\.\d+)", text))


@cache
def deck_of(name):
    """The cells of a plan's deck."""
    return build.deck(name, ROOT).cells


def slides_of(name):
    """What is written on each slide of a deck."""
    slides = []
    for cell in deck_of(name):
        if type_of(cell) in ("slide", "subslide"):
            slides.append("")
        if slides and type_of(cell) == "-":
            slides[-1] += cell.source
    return slides


@pytest.mark.parametrize("name", TALKS)
def test_the_votes_of_a_talk_have_a_page_of_answers(name):
    page = KITS[name]["answers"]
    told = re.findall(r"^## Slide (\d+)\n\n\*\*(.*?)\*\* \(A\. ", page, re.M)
    assert len(told) > 6 and page.count("*Came out: ") == len(told)
    slides = slides_of(name)
    assert all(f"**{on_stage(q)}**" in slides[int(number) - 1] for number, q in told)


@pytest.mark.parametrize("name", CLASSES)
def test_the_deck_and_the_run_sheet_tell_the_same_minutes(name):
    """An exercise has its own whole; the rest is shared by what is told."""
    timed = r"\*Presenting: (\d+) min, from [\d:]+\.\*"
    notes = [c.source for c in deck_of(name) if type_of(c) == "notes"]
    told = [found[0] for note in notes if (found := re.match(timed, note))]
    sheet = [each[0] for each in re.finditer(timed, KITS[name]["run-sheet"])]
    assert [each for each in told if each in sheet] == sheet
    for part in PLANS[name].parts:
        book = BOOKS[part.notebook]
        own = plans.exercises(part, book.cells)
        rows = [
            (minutes.telling(cells), length - sum(speaker.own(cells, own).values()))
            for cells, length in speaker.timetable(part, book)
        ]
        scale = sum(left for _, left in rows) / sum(told for told, _ in rows)
        assert all(left >= 0 and abs(told * scale - left) <= 1 for told, left in rows)


@pytest.mark.parametrize("name", CLASSES)
def test_a_run_sheet_of_a_class_has_its_breaks_and_slides(name):
    text = KITS[name]["run-sheet"]
    rests = re.findall(r"^\| \d+ \| \*+(.+?)\*+ ", KITS[name]["syllabus"], re.M)
    named = re.findall(r"^\*\*(\w[\w ]+)[^*\n]*\.\*\* Go on at", text, re.M)
    assert [each.lower() for each in named] == rests != []
    made = deck_of(name)
    kinds = [c for c in made if type_of(c) in ("slide", "subslide")]
    places = [*map(int, re.findall(r"slide (\d+) at", text))]
    assert len(places) == len(PLANS[name].parts)
    assert all(
        kinds[k - 1].source.startswith(f"# {n}. ") for n, k in enumerate(places, 1)
    )
    told = re.findall(r"^### (.+) \(slide (\d+)\)$", text, re.M)
    assert len(told) == len(re.findall("^### ", text, re.M)) > 30
    for words, number in told:
        assert kinds[int(number) - 1].source.startswith(f"## {on_stage(words)}")


def test_a_run_sheet_tells_times_of_the_day_from_a_start():
    text = run_sheet.of(PLANS["half-day"], BOOKS, begin=clock.minute("9:00"))
    due = [clock.minute(x) for x in re.findall(r"slide \d+ at (\d+:\d\d)", text)]
    lengths = [minutes.length(p, BOOKS[p.notebook]) for p in PLANS["half-day"].parts]
    rests = [15 * (f"minutes.** Go on at {clock.hours(each)}," in text) for each in due]
    ends = [a + b for a, b in zip(due, lengths, strict=False)]
    assert due[0] == 540 and sum(rests) == 30
    assert f" {sum(lengths)} of 210 minutes are filled; " in text
    assert all(b == a + r for a, b, r in zip(ends, due[1:], rests[1:], strict=False))


def test_a_note_is_silent_on_exercises_without_time(make):
    stated = "**Exercise 1.1** · 5 minutes\n\n**Exercise 1.2** · 4 minutes"
    words = (
        '**Ask.** "Why?" Then exercise 1.1.\n\n**Expect.** In exercise 1.2 a mean.\n\n'
        "**Time.** Two minutes told. The exercise is short."
    )
    cells = [make.text(stated)]
    assert speaker.without_exercises(words, cells, {"1.1": 5, "1.2": 4}) == words
    left = '**Ask.** "Why?"\n\n**Time.** Two minutes told.'
    assert speaker.without_exercises(words, cells, {}) == left
    listed = "**Expect.** By vote:\n- *One.* Why. Exercise 1.2 too.\n- *Two.*"
    kept = speaker.without_exercises(listed, cells, {"1.1": 5})
    assert kept == listed.replace(" Exercise 1.2 too.", "")
    half = speaker.without_exercises(words, cells, {"1.1": 5})
    assert half == words.replace("**Expect.** In exercise 1.2 a mean.\n\n", "")


def test_a_syllabus_counts_the_sections_and_is_all_or_fewer():
    """So that a schedule fits a page; the run sheet names them with their minutes."""
    rows = KITS["two-day"]["syllabus"].splitlines()
    for part in PLANS["two-day"].parts:
        title = title_of(BOOKS[part.notebook])
        row = next(x for x in rows if f" | {part.notebook[:2]} {title} |" in x)
        count = len(speaker.timetable(part, BOOKS[part.notebook]))
        assert row.split(" | ")[2] == ("all" if plans.is_whole(part) else str(count))
    assert " | all | 1.1, 1.2, 1.3 |" in KITS["two-day"]["syllabus"]


def test_the_handout_has_every_symbol_and_two_sheets():
    cells = BOOKS["00_welcome"].cells
    sheet = next(c.source for c in cells if c.source.startswith("## The symbol sheet"))
    rows = [line for line in sheet.splitlines() if line.startswith("|")]
    assert set(rows) <= set(COURSE["handout"].splitlines())
    for formula in (r"k_3 = \underbrace", r"\text{mean}(R)}{\text{spread}(R)}"):
        assert formula in COURSE["handout"]
    assert COURSE["handout"].count("$\n") == len(syllabus.FORMULAS)
    assert "for each epoch:" in COURSE["handout"]
    assert 50 < len(COURSE["handout"].splitlines()) < 90  # lines of two pages
    first, second = COURSE["handout"].split("\n# ")
    # What votes ask stands on the sheet that is handed out at the end.
    assert "loss of zero" not in first and "$R_i" not in first and "$R_i" in second
    assert "for each epoch:" in first and "Loss zero: fine or broken?" in second


@pytest.mark.parametrize("name", PLANS)
def test_a_kit_holds_what_its_plan_tells_alone(name):
    kit, told = KITS[name], plans.cut(PLANS[name], BOOKS)
    cells = [cell for book in told.values() for cell in book.cells]
    asked = prediction_cells.questions(cells)
    if name in TALKS:
        votes = [cells[0] for _, cells in voted(PLANS[name], BOOKS)]
        asked = prediction_cells.questions(votes)
    assert 0 < len(asked) < len(QUESTIONS)
    assert [q for q in QUESTIONS if f"**{q}** (" in kit["answers"]] == asked


@pytest.mark.parametrize("name", PLANS)
def test_a_handout_has_no_row_that_its_plan_never_comes_to(name):
    """Not of a notebook that is left out, and none that the plan names."""
    plan, course = PLANS[name], COURSE["handout"].splitlines()
    numbers = {part.notebook[:2] for part in plan.parts} | {"00"}

    def is_left_out(row):
        of = re.search(r"\((\d\d)\): \$|^\|.* (\d\d) \|$", row)
        number = (of[1] or of[2]) if of else "00"
        early = number < "08" and row[:1] == "|"
        return not early and number not in numbers

    begins = tuple(plan.left_off)
    assert all(any(row.startswith(each) for row in course) for each in begins)
    gone = [row for row in course if is_left_out(row) or row.startswith(begins)]
    assert KITS[name]["handout"].splitlines() == [r for r in course if r not in gone]


def test_a_question_of_a_room_names_notebooks_that_have_its_numbers():
    _, *answers = re.split(r"(?m)^(?=\*\*.+\?\*\* )", COURSE["questions"])
    assert len(answers) > 9
    for answer in answers:
        numbers = re.search(r"\((\d\d(?:, \d\d)*)\)\n", answer)[1].split(", ")
        there = "".join(printed(book) for n, book in BOOKS.items() if n[:2] in numbers)
        assert {*re.findall(r"\d+\.\d+", answer)} <= {*re.findall(r"\d+\.\d+", there)}


def printed(book):
    """What stands in the cells of a notebook and in their outputs."""
    return "".join(f"{cell.source} {cell.get('outputs', '')}" for cell in book.cells)


@pytest.mark.parametrize("name", PLANS)
def test_a_kit_has_its_exercises_alone(name):
    kit = KITS[name]
    parts = [(part, BOOKS[part.notebook].cells) for part in PLANS[name].parts]
    given = [number for part in parts for number in plans.exercises(*part)]
    if name == "hour":
        assert given == [] and not {"mistakes", "solutions"} & kit.keys()
        return
    assert re.findall(r"(?m)^\*\*Exercise ([\d.]+)\*\*", kit["mistakes"]) == given
    assert re.findall(r"(?m)^\*\*Exercise ([\d.]+)\.\*\*", kit["solutions"]) == given


@pytest.mark.parametrize("kit", [*KITS.values(), COURSE])
def test_the_first_page_of_a_kit_names_all_others(kit):
    linked = re.findall(r"\]\((.+)\.html\)", kit["index"])
    assert {*linked, "index"} == {*kit} and len(linked) == len(kit) - 1


def test_links_to_notebooks_lead_out_of_the_folder():
    links = re.findall(r"\]\(([^)]*\.ipynb)", "".join(COURSE.values()))
    assert links and all(link.startswith("../../notebooks/") for link in links)


TEXT = """**What to see.** This is why.

Does it hold elsewhere?

Now take another.

## Another part

Not this."""


def test_a_reason_ends_before_what_leads_on(make):
    asking = 'a = predict("A?", "x", "y")\nb = predict("B?", 1, 2)'
    offered = "A?\n  ( ) x   ( ) y\nB?\n  ( ) 1\n  ( ) 2\n"
    showing, told = "b.reveal(1.4)\na.reveal('x')", "7\nCame out: 1.\nCame out: x.\n"
    cells = [
        make.code(asking, "predict", printed=offered),
        make.code(showing, printed=told),
        make.text(TEXT),
    ]
    assert list(handbook.answers(cells)) == [
        "**A?** (A. x; B. y)\n\n*Came out: A. x.*\n\n**What to see.** This is why.",
        "**B?** (A. 1; B. 2)\n\n*Came out: A. 1.*\n\n**What to see.** This is why.",
    ]
    *_, without = handbook.answers(cells[:2])
    assert without.endswith("```\n7\nCame out: 1.\nCame out: x.\n```")


def test_each_section_tells_what_its_wrong_answers_show():
    """So a question whose notebook only prints the result has its reason, too."""
    found = re.split(r"(?m)^###? (?=.)", COURSE["answers"])[1:]
    told = [part for part in found if "*Came out: " in part]
    lacking = [
        part.split("\n")[0] for part in told if "**Wrong answers, and" not in part
    ]
    assert len(told) > 100 and lacking == []
    lists = r"(?m)Wrong answers, and why\.\*\*.*:$(?!\n> - )"
    cut_off = re.findall(lists, COURSE["answers"])
    assert COURSE["answers"].count("> - ") > 30 and cut_off == []


def test_what_is_printed_is_a_page_of_its_own():
    text = "# GRPO & more\n\n- $a < b$\n\n| x |\n|---|\n| $y$ |\n"
    made = paper.page(text, "handout")
    assert "<title>GRPO &amp; more</title>" in made and "$a &lt; b$" in made
    assert "<td>$y$</td>" in made and "http" not in made.split("<body class=")[1]


def test_the_command_writes_the_pages_where_git_does_not_look(tmp_path, monkeypatch):
    (tmp_path / "mathjax.js").write_text("// sets formulas", encoding="utf-8")
    monkeypatch.setattr(handbook.site, "mathjax", lambda: tmp_path / "mathjax.js")
    (tmp_path / "notebooks").mkdir()
    book = (ROOT / "notebooks" / "00_welcome.ipynb").read_bytes()
    (tmp_path / "notebooks" / "00_welcome.ipynb").write_bytes(book)
    assert handbook.main([], tmp_path) == 0
    folder = tmp_path / "handbook" / "course"
    made = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert made.keys() == {f"{page}.html" for page in COURSE} | {"mathjax.js"}
    assert "Exercise 0.1" in made["solutions.html"]
    assert "Exercise 1.1" not in made["mistakes.html"]
    ignored = ["git", "check-ignore", "-q", "handbook/course/answers.html"]
    assert subprocess.run(ignored, cwd=ROOT, check=False).returncode == 0


def test_every_exercise_of_the_notebooks_is_there():
    stated = [key for b in BOOKS.values() for key, _ in exercise_cells.stated(b.cells)]
    told = re.findall(r"(?m)^\*\*Exercise (\d+\.\d+)\*\*", COURSE["mistakes"])
    assert told == stated
