"""`python3 -m grpo_course progress [--export FILE]`: what is done, of all notebooks.

It reads the file in the learner's workspace, or the one beside the course's own
notebooks for who works in these, wherever the command is called from. `--export` writes
a row for each exercise and each guess, for an instructor who collects a class. The name
of the file is the learner's.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from nbformat import NotebookNode

from grpo_course import install
from grpo_course.classroom import record
from grpo_course.classroom.check import STATES
from grpo_course.workshop import (
    exercise_cells,
    form,
    lab,
    minutes,
    notebooks,
    prediction_cells,
)

COLUMNS = ("notebook", "kind", "item", "state", "guess", "answer")


def main(arguments: list[str], root: Path) -> int:
    """Print the table; write the file where one is named."""
    parser = argparse.ArgumentParser(prog=install.call("progress"))
    told = "write a row for each item to FILE, named after the learner: ada.csv"
    parser.add_argument("--export", type=Path, metavar="FILE", help=told)
    options = parser.parse_args(arguments)
    own = root / "notebooks"
    books = {path.stem: form.read(path) for path in notebooks.choose(own, [])}
    rows = items(books, record.read(root / lab.FOLDER) or record.read(own))
    print("\n".join(table(books, rows)))
    if options.export:
        rows.insert(0, "learner", options.export.stem)
        rows.to_csv(options.export, index=False)
        print(f"{len(rows)} rows are in {options.export}.")
    return 0


def items(books: dict[str, NotebookNode], kept: dict) -> pd.DataFrame:
    """A row for each exercise and each guess of the notebooks."""
    rows = [
        (name, *row)
        for name, book in books.items()
        for row in [*exercises(book, kept), *guesses(book, kept)]
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def exercises(book: NotebookNode, kept: dict) -> Iterator[tuple]:
    """Kind, item and state of each exercise."""
    states = kept.get("exercises", {})
    for key, _ in exercise_cells.stated(book.cells):
        yield "exercise", key, STATES.get(states.get(key), STATES[" "]), "", ""


def guesses(book: NotebookNode, kept: dict) -> Iterator[tuple]:
    """Kind, item, state, guess and answer of each prediction."""
    for question in prediction_cells.questions(book.cells):
        found = kept.get("guesses", {}).get(question, {})
        guess, answer = found.get("guess", ""), found.get("answer", "")
        seen = "right" if guess == answer else "wrong"
        state = (
            "no guess yet" if guess == "" else "not seen yet" if answer == "" else seen
        )
        yield "guess", question, state, guess, answer


def table(books: dict[str, NotebookNode], rows: pd.DataFrame) -> list[str]:
    """A line for each notebook: its minutes, and what is right of what there is."""
    lines = [f"{'notebook':<20} minutes  exercises  guesses"]
    stated = {name: minutes.of(book) for name, book in books.items()}
    parts = [(name, rows[rows.notebook == name]) for name in books]
    length = {name: mine.total if mine else 0 for name, mine in stated.items()}
    length["together"] = sum(length.values())
    for name, part in [*parts, ("together", rows)]:
        done = (count(part[part.kind == kind]) for kind in ("exercise", "guess"))
        lines.append(f"{name:<20} {length[name]:7}  {'  '.join(done)}")
    return [*lines, "", "Right of all that there are; minutes to go through it all."]


def count(part: pd.DataFrame) -> str:
    """How many are right of how many there are."""
    return f"{(part.state == 'right').sum():3} of {len(part):<3}"
