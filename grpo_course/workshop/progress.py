"""`python3 -m grpo_course progress [--export FILE]`: what is done, of all notebooks.

It reads the file in the learner's workspace, or the one beside the course's own
notebooks for who works in these, wherever the command is called from. `--export` writes
a row for each exercise and each guess, for an instructor who collects a class. The name
of the file is the learner's.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

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

COLUMNS = ("learner", "notebook", "kind", "item", "state", "guess", "answer")


def main(arguments: list[str], root: Path) -> int:
    """Print the table; write the file where one is named."""
    parser = argparse.ArgumentParser(prog=install.call("progress"))
    told = "write a row for each item to FILE, named after the learner: ada.csv"
    parser.add_argument("--export", type=Path, metavar="FILE", help=told)
    options = parser.parse_args(arguments)
    own = root / "notebooks"
    books = {path.stem: form.read(path) for path in notebooks.choose(own, [])}
    kept = record.read(root / lab.FOLDER) or record.read(own)
    rows = {
        name: [*exercises(book, kept), *guesses(book, kept)]
        for name, book in books.items()
    }
    print("\n".join(table(books, rows)))
    if options.export:
        who = options.export.stem
        each = [(who, name, *row) for name, found in rows.items() for row in found]
        with options.export.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([COLUMNS, *each])
        print(f"{len(each)} rows are in {options.export}.")
    return 0


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
        state = "right" if guess == answer else "wrong"
        if "" in (guess, answer):
            state = "no guess yet" if guess == "" else "not seen yet"
        yield "guess", question, state, guess, answer


def table(books: dict[str, NotebookNode], rows: dict[str, list[tuple]]) -> list[str]:
    """A line for each notebook: its minutes, and what is right of what there is."""
    lines = [f"{'notebook':<20} minutes  exercises  guesses"]
    stated = {name: minutes.of(book) for name, book in books.items()}
    length = {name: mine.total if mine else 0 for name, mine in stated.items()}
    length["together"] = sum(length.values())
    together = [row for found in rows.values() for row in found]
    for name, found in [*rows.items(), ("together", together)]:
        done = []
        for kind in ("exercise", "guess"):
            states = [row[2] for row in found if row[0] == kind]
            done.append(f"{states.count('right'):3} of {len(states):<3}")
        lines.append(f"{name:<20} {length[name]:7}  {'  '.join(done)}")
    return [*lines, "", "Right of all that there are; minutes to go through it all."]
