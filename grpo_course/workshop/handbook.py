"""`python3 -m grpo_course handbook`: what an instructor keeps beside the notebooks.

The pages are made from the stored notebooks, the checks and the presenter's notes, so
they cannot disagree with them. They give answers away: `handbook/` is not in git.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from nbformat import NotebookNode

from grpo_course.classroom.check.rules import RULES
from grpo_course.classroom.exercises import EXERCISES
from grpo_course.files import write_atomically
from grpo_course.workshop import (
    clock,
    exercise_cells,
    form,
    machine,
    notebooks,
    paper,
    plans,
    prediction_cells,
    presenter_notes,
    run_sheet,
    site,
    syllabus,
)
from grpo_course.workshop.answers import answers
from grpo_course.workshop.cells import heading, sections, tags

FOLDER = "handbook"
ABOUT = """Write what an instructor keeps beside the slides into the folder handbook/:
answers, polls, mistakes to expect, solutions, a handout, and a syllabus for each plan.
Read or print the .html; the .md is the same text. It is made anew from the notebooks
each time, and it gives answers away."""
HINTS = ("Hint", exercise_cells.FOUND)  # all other folds are solutions
NAMED = re.compile(r"^\*\*(.+?)\*\* · ", re.MULTILINE)
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
PICKS = "To a wrong pick the check answers what rules it out."
EXPECT = re.compile(r"^\*\*Expect\.\*\* (.+(?:\n- .+)*)$", re.MULTILINE)
# To print: as pages of HTML too.
PAPER = ("handout", "syllabus", "answers", "run-sheet")
LINK = re.compile(r"\]\((?=\d\d_\w+\.ipynb)")  # to a notebook beside the text
IMPORT = "```python\nfrom grpo_course import poll\n```"
Books = dict[str, NotebookNode]


def main(arguments: list[str], root: Path) -> int:
    """Write all pages into the folder `handbook`, and say where they are."""
    stated = plans.read(root)
    command = argparse.ArgumentParser(prog=machine.call("handbook"), description=ABOUT)
    words = "answers, polls, mistakes and solutions of this plan's sections only"
    command.add_argument("--plan", choices=stated, help=words)
    words = "when a plan begins, such as 9:00: its pages then tell times of the clock"
    command.add_argument("--start", type=clock.minute, help=words)
    asked = command.parse_args(arguments)
    books = {p.stem: form.read(p) for p in notebooks.choose(root / "notebooks", [])}
    (root / FOLDER).mkdir(exist_ok=True)
    made = pages(books, stated, asked.plan, asked.start)
    made |= {
        f"{Path(name).stem}.html": paper.page(text, name.partition("-")[0])
        for name, text in made.items()
        if name.startswith(PAPER)
    }
    for name, text in made.items():
        write_atomically(root / FOLDER / name, text)
        print(f"{FOLDER}/{name}")
    formulas = site.mathjax().read_text(encoding="utf-8")  # what sets them in HTML
    write_atomically(root / FOLDER / "mathjax.js", formulas)
    return 0


def pages(
    books: Books,
    stated: dict[str, plans.Plan],
    plan: str | None = None,
    begin: int | None = None,
) -> dict[str, str]:
    """The text of every page, by the name of its file; of all sections or a plan's.

    Plans begin at a minute of the day, if one is given.
    """
    told = plans.cut(stated[plan], books) if plan else books
    found = {
        "answers.md": page("Answers to the predictions", answers, told, note=expected),
        "polls.md": page("A poll for each prediction", polls, told, IMPORT),
        "mistakes.md": page("Mistakes to expect, by exercise", mistakes, told)
        + shared_mistakes(),
        "solutions.md": page("Solutions", solutions, told),
        "handout.md": syllabus.handout(books, told),
    }
    for name, each in stated.items():
        found[f"syllabus-{name}.md"] = syllabus.of(each, books, begin)
        found[f"run-sheet-{name}.md"] = run_sheet.of(each, books, begin)
        if voted := list(run_sheet.voted(each, books)):
            title = f"# The votes of GRPO in {each.title}"
            asked = [cells[0] for _, cells in voted]
            found[f"polls-{name}.md"] = "\n\n".join([title, IMPORT, *polls(asked)])
            found[f"answers-{name}.md"] = vote_answers(title, voted)
    return found


def vote_answers(title: str, voted: list[tuple[int, list[NotebookNode]]]) -> str:
    """The votes of a talk, each with its slide, its answer and why."""
    told = [f"## Slide {number}\n\n{next(answers(cells))}" for number, cells in voted]
    return LINK.sub("](../notebooks/", "\n\n".join([title, *told]) + "\n")


def page(
    title: str,
    lines_of: Callable,
    books: Books,
    *first: str,
    note: Callable[[str, str], list[str]] = lambda name, title: [],
) -> str:
    """A page with a part for each notebook, and in it one for each section.

    `note` adds to a section what is known by its notebook and its heading.
    """
    lines = [f"# {title}", *first]
    for name, book in books.items():
        found = [(part, list(lines_of(part))) for part in sections(book.cells)]
        lines += [f"## {name}"] if any(told for _, told in found) else []
        for part, told in found:
            ends = note(name, heading(part)) if told else []
            lines += [f"### {heading(part)}", *told, *ends] if told else []
    return LINK.sub("](../notebooks/", "\n\n".join(lines) + "\n")


def expected(name: str, title: str) -> list[str]:
    """What a presenter's note says of the wrong answers to expect in a section."""
    note = presenter_notes.read(name).get(title, "")
    told = [text.replace("\n", "\n> ") for text in EXPECT.findall(note)]
    return [f"> **Wrong answers, and why.** {text}" for text in told]


def polls(part: list[NotebookNode]) -> Iterator[str]:
    """A line of code for each question of a section."""
    lines = []
    for cell in filter(prediction_cells.asks, part):
        choices = prediction_cells.choices(cell)
        for name, question in prediction_cells.asked(cell).items():
            words = ", ".join(map(quoted, [question, *choices[name]]))
            lines.append(f"poll({words})")
    if lines:
        yield "\n".join(["```python", *lines, "```"])


def quoted(words: str) -> str:
    """Words as a piece of code."""
    return json.dumps(words, ensure_ascii=False)


def mistakes(part: list[NotebookNode]) -> Iterator[str]:
    """What the checks of a section's exercises can say, each with its insight."""
    known = {exercise.key: exercise for exercise in EXERCISES}
    for key, _ in exercise_cells.stated(part):
        exercise = known[key]
        hints = [*exercise.words.values(), *(m.hint for m in exercise.mistakes)]
        hints += [case.hint for case in exercise.cases if case.hint]
        hints = [PICKS] if exercise.choice else hints
        lines = [f"**Exercise {key}**, `{exercise.name}`. {exercise.insight}", ""]
        yield "\n".join([*lines, *(f"- {hint}" for hint in dict.fromkeys(hints))])


def shared_mistakes() -> str:
    """What every check can say."""
    any_call = {"REDUCE": "sum or mean", "ALONG": ""}
    words = dict.fromkeys(each.words.format(**any_call) for each in RULES)
    lines = ["", "## In any exercise", "", *(f"- {each}" for each in words if each)]
    return "\n".join(lines) + "\n"


def solutions(part: list[NotebookNode]) -> Iterator[str]:
    """Each task of a section with what solves it; hints stay in the notebook."""
    task = ""
    for cell in part:
        for found in NAMED.findall(cell.source):
            task = found
        if not exercise_cells.ANSWERS & set(tags(cell)):
            continue
        for summary, body in exercise_cells.FOLDED.findall(cell.source):
            if summary not in HINTS:
                yield f"**{task}.** {summary}.\n\n{body}"
