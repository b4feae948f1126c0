"""Hostile texts for the grader and hostile files for the loader, each in a child.

    python texts.py FOLDER SEED TEXTS

Each text is a line of JSON: what it was, and what was wrong. A child that takes more
than two seconds of the processor is ended by the system, whatever it is doing.
"""

import json
import random
import resource
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from forked import fork, wait

from grpo_course import gsm8k as grading
from grpo_course.gsm8k import (
    correctness_reward,
    length_reward,
    lenient_reward,
    load_gsm8k,
)
from grpo_course.tasks import format_reward, in_template

SECONDS, MEGABYTE = 2, 1_000_000
LONGEST_ERROR = 1000  # characters: an error does not recite the megabyte
RIGHT, WRONG = "72", "73"
# What a long text may consist of, and what a short one is mixed from.
PIECES = (
    *("<answer>", "</answer>", "<answer>72</answer>", "<think>", "</think>"),
    *("</think><answer>", "<", "72", "7", "0", "1,", "72,", ".7", "7.", "72 ", "1/"),
    *("-", "- 72", "=", "72=", "$", "(", "72 or ", "72 and 73 or ", "73", "e9", "%"),
    *(" ", "\n", "\t\u00a0", "\0", "½", "٣", "\uff17", "\u2212", "\u202e", "\ud800"),
    *("minus ", "seventy-two ", "million ", "72!", "^", "\\frac{", "}", "🙂", "a"),
)
ROW = {"question": "How many?", "answer": "70+2=<<70+2=72>>72\n#### 72"}


def grade(text: str) -> None:
    """All that is asked about a completion. Raises where an answer is impossible."""
    chat = [[{"role": "assistant", "content": text}]]
    for reward in (correctness_reward, lenient_reward):
        right, wrong = (reward([text], [gold])[0] for gold in (RIGHT, WRONG))
        assert {right, wrong} <= {0.0, 1.0}, "a reward that is neither 0 nor 1"
        assert not (right and wrong), f"{reward.__name__}: two right answers"
        assert reward(chat, [RIGHT]) == [right], "a chat is graded otherwise"
    assert 0 <= format_reward([text])[0] <= 1 and -1 <= length_reward([text])[0] <= 0
    grading.read_number(text), grading.last_number(text)


def grade_behind(flood: str) -> None:
    """What was thought before, of any length, changes no answer that follows it."""
    text = f"{flood}</think><answer>{RIGHT}</answer>"
    grade(text)
    assert correctness_reward([text], [RIGHT]) == [1.0], "a right answer was refused"


def load(file: Path) -> None:
    """Rows, or an error that names the place in a few words. Raises other errors."""
    try:
        assert load_gsm8k("train", file)
    except (ValueError, FileNotFoundError) as error:
        told = str(error)
        assert file.name in told or "Row " in told, f"no place is named: {told[:200]}"
        assert len(told) <= LONGEST_ERROR, f"an error of {len(told)} characters"


def floods() -> Iterator[tuple[str, Callable[[], None]]]:
    """Each piece a megabyte long: alone, in the place of an answer, before one."""
    for piece in PIECES:
        flood = piece * (MEGABYTE // len(piece))
        yield f"{piece!r} alone", lambda flood=flood: grade(flood)
        filled = in_template("1", flood)
        yield f"{piece!r} as the answer", lambda text=filled: grade(text)
        yield f"{piece!r} before", lambda flood=flood: grade_behind(flood)


def broken_files() -> Iterator[tuple[str, bytes]]:
    """What the file of a data set may be, though it should not."""
    good = json.dumps(ROW).encode() + b"\n"
    deep, long = 100_000, "7" * MEGABYTE
    yield "nothing", b""
    yield "zeros", bytes(MEGABYTE)
    yield "deep lists", b"[" * deep
    yield "deep objects", good + b'{"a":' * deep + b"1" + b"}" * deep
    yield "a number of 5,000 digits", b'{"question": ' + b"9" * 5000 + b"}"
    yield "no number", b'{"question": NaN, "answer": -Infinity}'
    for name, text in (
        ("digits", long),
        ("marks", "####" * (MEGABYTE // 4)),
        ("signs", "-" * MEGABYTE),
        ("spaces", " " * MEGABYTE + "72"),
        ("half a character", "\ud800"),
    ):
        yield f"a final answer of {name}", row(answer=f"#### {text}")
        yield f"a question of {name}", row(question=text)
    yield "an unknown column", row(**{long: 1})
    yield "many columns", row(**{str(i): i for i in range(100_000)})
    yield "a line that is cut off", good * 3 + good[:-20]
    yield "ends of lines of Windows", good.replace(b"\n", b"\r\n") * 3
    yield "other ends of lines", good.replace(b"\n", "\u2028".encode()) * 3
    yield "two bytes a character", good.decode().encode("utf-16")
    yield "zeros between", b"\0".join([good] * 3)
    yield "many blank lines", b"\n" * MEGABYTE + good


def row(**changes: object) -> bytes:
    """A line of the file with other columns."""
    return json.dumps(ROW | changes).encode() + b"\n"


def files(folder: Path, rng: random.Random) -> Iterator[tuple[str, Callable]]:
    """Broken files, then random bytes and random damage to a good one."""
    good = row() * 20
    damaged = [bytearray(good) for _ in range(40)]
    for data in damaged:
        for _ in range(rng.randint(1, 30)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    noise = [("noise", rng.randbytes(rng.randint(1, 10_000))) for _ in range(20)]
    named = [*broken_files(), *noise, *(("damage", bytes(data)) for data in damaged)]
    for number, (name, data) in enumerate(named):
        file = folder / f"rows{number}.jsonl"
        file.write_bytes(data)
        yield f"a file: {name}", lambda file=file: load(file)


def mixtures(rng: random.Random) -> Iterator[tuple[str, Callable]]:
    """Short texts of random pieces, with and without the tags around."""
    while True:
        text = "".join(rng.choices(PIECES, k=rng.randint(1, 40)))
        text = in_template("1", text) if rng.random() < 0.5 else text
        yield repr(text), lambda text=text: grade(text)


def survives(work: Callable[[], object]) -> bool:
    """Whether a child comes to its end in time and without an error."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        work()

    return wait(fork(limited)) == 0


def main() -> None:
    folder, rng = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
    every = [floods(), files(folder, rng), mixtures(rng)]
    trials = (each for kind in every for each in kind)
    for name, work in islice(trials, int(sys.argv[3])):
        wrong = [] if survives(work) else ["see the error above, or out of time"]
        print(json.dumps({"tried": [name], "wrong": wrong}), flush=True)


if __name__ == "__main__":
    main()
