"""GSM8K: the real data set, from the hub or from files (Cobbe et al. 2021)."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from grpo_course.algorithm.validation import unknown_name
from grpo_course.gsm8k.grading import read_number
from grpo_course.gsm8k.problems import WordProblem

HUB_NAME = "openai/gsm8k"
SPLITS = ("train", "test")
# What a run sees; the first is the one to report. Its "train" lacks "validation".
RUN_SPLITS = ("test", "validation", "train")
VALIDATION, VALIDATION_SHARE = 256, 10  # rows; at most one row in so many
MARK = "####"
FOLDER_VARIABLE = "GSM8K_DIR"


def load_gsm8k(split: str, path: str | Path | None = None) -> list[WordProblem]:
    """GSM8K's "train" (7,473 rows) or "test" (1,319): question, solution, answer.

    `path` is a JSONL file, or a folder with SPLIT.jsonl, in the data set's own format:
    a line {"question": ..., "answer": "... #### 72"} for each row. Without `path` the
    folder that GSM8K_DIR names is taken, and without that the hub, through
    `datasets`, which keeps a copy for later use without a network.

    ValueError for a file or a row that cannot be used, and it says where;
    FileNotFoundError or ConnectionError where there is no data.
    """
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    path = path or os.environ.get(FOLDER_VARIABLE)
    rows = _from_file(split, Path(path)) if path else _from_hub(split)
    problems = [parse_row(row, number) for number, row in rows]
    if not problems:
        raise ValueError(f"{path or HUB_NAME}: the split {split!r} holds no row.")
    return problems


def load_run_split(split: str, path: str | Path | None = None) -> list[WordProblem]:
    """One of RUN_SPLITS: "validation" is the end of GSM8K's own "train".

    It takes the last 256 rows, a tenth at most, and the run's "train" the others. So
    settings can be chosen without a look at "test". `path` and errors as in
    `load_gsm8k`.
    """
    if split not in RUN_SPLITS:
        raise unknown_name("split", split, RUN_SPLITS)
    if split == "test":
        return load_gsm8k(split, path)
    rows = load_gsm8k("train", path)
    first = len(rows) - min(VALIDATION, len(rows) // VALIDATION_SHARE)
    return rows[:first] if split == "train" else rows[first:]


def parse_row(row: dict, number: int) -> WordProblem:
    """One row of the data set, or a ValueError.

    `number`, for errors, is its line in the file, or its place on the hub, from 1.
    """
    given = row if isinstance(row, dict) else {"the row itself": row}
    question, answer = given.get("question"), given.get("answer")
    if not (isinstance(question, str) and isinstance(answer, str)):
        types = {name: type(value).__name__ for name, value in given.items()}
        raise ValueError(
            f'Row {number} needs the texts "question" and "answer", but has these '
            f"types: {types}. Correct the row, or delete it."
        )
    _, mark, final = answer.rpartition(MARK)
    if not mark or read_number(final) is None:
        raise ValueError(
            f"Row {number} has no final answer: its worked solution must end with "
            f"{MARK} and a number. It ends with {answer[-40:]!r}."
        )
    return WordProblem(question, answer=final.strip(), solution=answer)


def _from_file(split: str, path: Path) -> Iterator[tuple[int, dict]]:
    """The rows of a file with their line numbers; blank lines are passed over."""
    file = path / f"{split}.jsonl" if path.is_dir() else path
    if not file.is_file():
        there = sorted(p.name for p in path.glob("*")) if path.is_dir() else []
        holds = f" The folder holds: {', '.join(there[:8])}." if there else ""
        raise FileNotFoundError(f"There is no {file}.{holds} {ways_to_the_data(split)}")
    try:
        # "-sig": editors on Windows put a mark before the first character.
        with file.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, _parse_json(line, number, file)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file} is not text in UTF-8 ({error.reason}). If it is compressed, "
            "unpack it first; otherwise save it as UTF-8 in an editor."
        ) from error


def _parse_json(line: str, number: int, file: Path) -> dict:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}, line {number} is not JSON: {error}.") from error


def _from_hub(split: str) -> Iterable[tuple[int, dict]]:
    """The rows from the hub, or from the copy that `datasets` kept, with numbers."""
    import datasets  # slow to import, and not needed for files

    try:
        rows = datasets.load_dataset(HUB_NAME, "main", split=split)
    except (OSError, ValueError, RuntimeError) as error:
        # Offline it is a ConnectionError, or a ValueError about a missing copy.
        raise ConnectionError(
            f"GSM8K could not be loaded from the hub ({type(error).__name__}: "
            f"{str(error)[:200]}). {ways_to_the_data(split)}"
        ) from error
    return enumerate(rows, start=1)


def ways_to_the_data(split: str) -> str:
    """How to get the data, with and without a network on this machine."""
    return (
        "There are two ways to the data. With a network: leave out path and "
        f'{FOLDER_VARIABLE}; datasets.load_dataset("{HUB_NAME}", "main") loads it once '
        "and keeps a copy. Without: copy the data set's "
        f"{split}.jsonl (github.com/openai/grade-school-math) into a folder, and pass "
        f"path=FOLDER or set {FOLDER_VARIABLE}=FOLDER."
    )
