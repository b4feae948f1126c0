"""`python3 -m grpo_course handbook`: what an instructor keeps beside the slides.

A folder for each plan, and one for the whole course. The pages are made from the stored
notebooks, the checks, the talks and the presenter's notes, so they cannot disagree with
them. They give answers away: `handbook/` is not in git.
"""

import argparse
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from nbformat import NotebookNode

from grpo_course.files import write_atomically
from grpo_course.workshop import (
    clock,
    exercise_pages,
    form,
    machine,
    notebooks,
    paper,
    plans,
    run_sheet,
    site,
    syllabus,
)
from grpo_course.workshop.answers import answers, expected, voted
from grpo_course.workshop.cells import heading, sections

FOLDER, COURSE = "handbook", "course"
ABOUT = """Write what an instructor keeps beside the slides: for each plan a folder in
handbook/, and one for the whole course. Open its index.html, which says what each page
is for and when it is needed. All is made anew from the notebooks each time, and it
gives answers away."""
QUESTIONS = Path(__file__).with_name("questions.md")
LINK = re.compile(r"\]\((?=\d\d_\w+\.ipynb)")  # to a notebook beside the text
UP = "](../../notebooks/"
# A page, what it is, and when it is needed.
USES = {
    "syllabus": (
        "the announcement: what one can do afterwards, what to bring, when",
        "send it a week before, with the address of the course",
    ),
    "run-sheet": (
        "yours: the plan at a glance, then slide by slide what to say and ask",
        "print it, and rehearse once with a clock",
    ),
    "handout": (
        "two sheets: the loop and its symbols; formulas, and when zero is fine",
        "print both; the first for the beginning, and the second, which has the "
        "answers to some votes, for the end",
    ),
    "questions": (
        "what rooms ask, with answers and where each stands",
        "read it the evening before",
    ),
    "mistakes": (
        "what the check of each exercise can say",
        "while the room writes: which slip is it, and what is behind it",
    ),
    "answers": ("each vote, what came out, and why", "when somebody asks why"),
    "solutions": ("what solves each exercise", "while the room writes, and afterwards"),
}
HEAD = "| page | what it is | when you need it |\n|---|---|---|"
Books = dict[str, NotebookNode]


def main(arguments: list[str], root: Path) -> int:
    """Write the folders into `handbook`, and say where each begins."""
    stated = plans.read(root)
    command = argparse.ArgumentParser(prog=machine.call("handbook"), description=ABOUT)
    words = "the folder of this plan alone"
    command.add_argument("--plan", choices=stated, help=words)
    words = "when a plan begins, such as 9:00: its pages then tell times of the clock"
    command.add_argument("--start", type=clock.minute, help=words)
    asked = command.parse_args(arguments)
    books = {p.stem: form.read(p) for p in notebooks.choose(root / "notebooks", [])}
    formulas = site.mathjax().read_text(encoding="utf-8")  # what sets them in HTML
    for name in [asked.plan] if asked.plan else [*stated, COURSE]:
        folder = root / FOLDER / name
        folder.mkdir(parents=True, exist_ok=True)
        for kind, text in kit(books, stated.get(name), asked.start).items():
            write_atomically(folder / f"{kind}.html", paper.page(text, kind))
        write_atomically(folder / "mathjax.js", formulas)
        print(f"{FOLDER}/{name}/index.html")
    return 0


def kit(
    books: Books, plan: plans.Plan | None = None, begin: int | None = None
) -> dict[str, str]:
    """The text of every page of a plan, or of the whole course, by its name.

    A plan begins at a minute of the day, if one is given.
    """
    told = plans.cut(plan, books) if plan else books
    found = {
        "handout": syllabus.handout(books, told, plan.left_off if plan else ()),
        "questions": QUESTIONS.read_text(encoding="utf-8"),
    }
    if plan:
        found["syllabus"] = syllabus.of(plan, books, begin)
        found["run-sheet"] = run_sheet.of(plan, books, begin)
    if plan and plan.parts[0].talk:
        found["answers"] = answers_by_slide(plan, books)
    else:
        found["answers"] = page(
            "Answers to the predictions", answers, told, note=expected
        )
    found |= of_exercises(plan.parts if plan else map(plans.Part, books), books, told)
    return {"index": index(plan.title if plan else "", found), **found}


def of_exercises(
    parts: Iterable[plans.Part], books: Books, told: Books
) -> dict[str, str]:
    """The pages of the exercises that have time; none where none has."""
    given = {key for p in parts for key in plans.exercises(p, books[p.notebook].cells)}
    if not given:
        return {}
    mistakes = partial(exercise_pages.mistakes, given=given)
    solutions = partial(exercise_pages.solutions, given=given)
    return {
        "mistakes": page("Mistakes to expect, by exercise", mistakes, told),
        "solutions": page("Solutions", solutions, told),
    }


def index(title: str, found: dict[str, str]) -> str:
    """What lies in a folder, in the order in which it is needed."""
    named = f"GRPO in {title}" if title else "the whole course"
    rows = [
        f"| [{kind}]({kind}.html) | {' | '.join(USES[kind])} |"
        for kind in USES
        if kind in found
    ]
    return "\n".join([f"# The kit of {named}", "", HEAD, *rows, ""])


def answers_by_slide(plan: plans.Plan, books: Books) -> str:
    """The votes of a talk, each with the slide on which it is taken."""
    votes = voted(plan, books)
    told = [f"## Slide {number}\n\n{next(answers(cells))}" for number, cells in votes]
    return LINK.sub(UP, "\n\n".join(["# Answers to the votes", *told]) + "\n")


def page(
    title: str,
    lines_of: Callable,
    books: Books,
    note: Callable[[str, str], list[str]] = lambda name, title: [],
) -> str:
    """A page with a part for each notebook, and in it one for each section.

    `note` adds to a section what is known by its notebook and its heading.
    """
    lines = [f"# {title}"]
    for name, book in books.items():
        found = [(part, list(lines_of(part))) for part in sections(book.cells)]
        lines += [f"## {name}"] if any(told for _, told in found) else []
        for part, told in found:
            ends = note(name, heading(part)) if told else []
            lines += [f"### {heading(part)}", *told, *ends] if told else []
    return LINK.sub(UP, "\n\n".join(lines) + "\n")
