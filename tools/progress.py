"""`python3 -m grpo_course progress`: what is done, of all notebooks or by a class.

It reads the file in the learner's workspace, or the one beside the course's own
notebooks for who works in these. `--export ada.csv` writes a row for each exercise and
each guess, for an instructor who collects a class; the file is named after the learner.
`--merge ada.csv bo.csv` prints a line for each, and what most of them have not solved.
"""

import argparse
import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from nbformat import NotebookNode

from grpo_course import install
from grpo_course.classroom import record
from grpo_course.classroom.check import STATES
from tools.lab import FOLDER
from tools.notebook import exercises, questions, read
from tools.run import choose
from tools.save import minutes

COLUMNS = ("learner", "notebook", "kind", "item", "state", "guess", "answer")
MISSED = 5  # items that a class is told of


def main(arguments: list[str], root: Path) -> int:
    """Print the table; write the file where one is named."""
    parser = argparse.ArgumentParser(prog=install.call("progress"))
    parser.add_argument(
        "--export", type=Path, metavar="FILE", help="write a row for each"
    )
    parser.add_argument(
        "--merge", type=Path, nargs="+", metavar="FILE", help="what a class has done"
    )
    options = parser.parse_args(arguments)
    if options.merge:
        return merge(options.merge, parser)
    own = root / "notebooks"
    kept = record.read(root / FOLDER) or record.read(own)
    print(f"{'notebook':<20} minutes  exercises  guesses")
    together: list[tuple] = []
    length = 0
    for path in choose(own, []):
        book = read(path)
        found = [(path.stem, *row) for row in items(book, kept)]
        print(line(path.stem, sum(minutes(book)), found))
        together, length = together + found, length + sum(minutes(book))
    print(line("together", length, together))
    print("\nRight of all that there are; minutes to go through it all.")
    if options.export:
        rows = [(options.export.stem, *row) for row in together]
        with options.export.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([COLUMNS, *rows])
        print(f"{len(rows)} rows are in {options.export}.")
    return 0


def merge(paths: Sequence[Path], parser: argparse.ArgumentParser) -> int:
    """A line for each learner whose file is given, and what most have not solved."""
    told = [f"{'learner':<20} exercises  guesses made"]
    missed: Counter[str] = Counter()
    for path in sorted(paths):
        try:
            with path.open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
        except OSError as error:
            parser.error(f"--merge: {path} cannot be read ({error.strerror}).")
        if not rows or tuple(rows[0]) != COLUMNS:
            command = install.call("progress --export ada.csv")
            parser.error(f"--merge: {path} is no file that `{command}` wrote.")
        exercises = [row for row in rows if row["kind"] == "exercise"]
        guesses = [row["guess"] != "" for row in rows if row["kind"] == "guess"]
        left = [row["item"] for row in exercises if row["state"] != "right"]
        solved = f"{len(exercises) - len(left):3} of {len(exercises):<3}"
        made = f"{sum(guesses):3} of {len(guesses)}"
        told.append(f"{rows[0]['learner']:<20} {solved}  {made}")
        missed.update(left)
    print(*told, "\nNot solved, by most first:", sep="\n")
    for item, count in missed.most_common(MISSED):
        print(f"{item:<20} {count:3} of {len(paths)}")
    return 0


def items(book: NotebookNode, kept: dict) -> Iterator[tuple]:
    """Kind, item, state, guess and answer of each exercise and each prediction."""
    done = kept.get("exercises", {})
    for key, _ in exercises(book.cells):
        yield "exercise", key, STATES.get(done.get(key), STATES[" "]), "", ""
    for question in questions(book.cells):
        found = kept.get("guesses", {}).get(question, {})
        guess, answer = found.get("guess", ""), found.get("answer", "")
        state = "right" if guess == answer else "wrong"
        if "" in (guess, answer):
            state = "no guess yet" if guess == "" else "not seen yet"
        yield "guess", question, state, guess, answer


def line(name: str, length: int, rows: list[tuple]) -> str:
    """A notebook's minutes, and what is right of what there is."""
    counts = []
    for kind in ("exercise", "guess"):
        states = [row[3] for row in rows if row[1] == kind]
        counts.append(f"{states.count('right'):3} of {len(states):<3}")
    return f"{name:<20} {length:7}  {'  '.join(counts)}"
