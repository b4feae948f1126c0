"""A text task: what is asked, what is right, and what is paid.

From top to bottom: problems, and the class of a task; its rewards; finding a task by
its name, or in a file of one's own.

Left out: tasks (gsm8k.py, countdown.py, reverse.py), texts as tokens (prompts.py), and
the check of a task (task_check.py). Nothing here loads transformers.
"""

import csv
import json
import random
import re
import sys
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from io import StringIO
from numbers import Real
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, Generic, TypeVar
from zlib import crc32

import torch
from pydantic import Field, TypeAdapter, ValidationError

from grpo_course.checks import choices, require_known, settings
from grpo_course.files import read_text
from grpo_course.text.responses import SHOWN, Completion, Opening, Reward, chat_messages

LARGEST = torch.finfo(torch.float32).max  # of the rewards; no NaN is at most that
Weight = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]
REWARDS = TypeAdapter(
    Annotated[dict[str, tuple[Callable[..., Any], Weight]], Field(min_length=1)]
)


@dataclass(frozen=True)
class Problem:
    """One thing to ask, and what is needed to judge an answer to it."""

    question: str
    answer: Any  # what the rewards compare with, of any type
    solution: str = ""  # worked, for a demonstration

    @property
    def group(self) -> str:
        """Who knows one of a group knows all: intervals draw them together."""
        return self.question


Asked = TypeVar("Asked", bound=Problem)


@settings()
class TextTask(ABC, Generic[Asked]):
    """Problems of one kind, rewards, and what a run should know of them.

    A subclass is decorated with `settings()` too; its fields are the task's own
    settings, on the command line too.

    A reward is called by name, by this course's loop and by TRL alike: with
    `completions`, with `prompts` (the conversations that were asked, lists of
    messages), and with every field of the problems as a column: `answer`, `question`,
    `solution`, and what a subclass of Problem adds. Each is a list with one entry for
    each completion; a list of as many floats comes back. A reward takes those that it
    needs and leaves the rest: def accuracy(completions, answer, **kwargs). Completions
    are texts here and chats under TRL: `completion_texts` makes texts of both.
    """

    # name: (function, weight). The first says whether a response is right: it is the
    # accuracy. A weight of 0 measures only. Where texts differ that mean the same, 72
    # and 72.0, its attribute `meaning` is a function from a response to what it
    # answers, None for nothing.
    rewards: ClassVar[Mapping[str, tuple[Reward, float]]]
    # of the rewards, those that an evaluation reports; none: all of them
    measures: ClassVar[Sequence[str]] = ()
    # questions and answers that stand before every question, worked out: what a model
    # that knows the language and not the form needs to see
    examples: ClassVar[Sequence[tuple[str, str]]] = ()
    # settings of whole runs, each by any name, where they differ from those of
    # GRPOConfig; the first is taken unless another is named
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits there are beside "train"; the first is the one to report."""
        return ("test", "validation")

    @abstractmethod
    def problems(self, split: str, count: int | None, seed: int) -> Sequence[Asked]:
        """At most `count` problems of one split, all with None, if that is a number.

        Equal arguments give equal problems, in every process.
        """

    @abstractmethod
    def gold(self, problem: Asked) -> str:
        """A response that earns every reward."""

    def opening(self, system_prompt: str | None) -> Opening:
        """What stands before each question: a system prompt, and the examples."""
        if not self.examples:
            return system_prompt
        before = chat_messages("", system_prompt)[:-1]
        for asked, answered in self.examples:
            before.append({"role": "user", "content": asked})
            before.append({"role": "assistant", "content": answered})
        return before

    def reply(self, said: str) -> str | None:
        """What a tool answers to a turn of the policy's; None where it calls none.

        The answer is read as a message of the user's, and the policy goes on. What the
        tool says trains nothing. The rewards get the whole text, the tool's words too.
        """
        return None

    @property
    def has_tool(self) -> bool:
        """Whether something answers to what the policy writes."""
        return type(self).reply is not TextTask.reply

    def demonstration(self, problem: Asked, rng: random.Random) -> str:
        """What a model from nothing imitates before GRPO; it need not be perfect."""
        return self.gold(problem)


def split_of(text: str) -> str:
    """Which split a text belongs to, in every process: "train" for eight in ten."""
    return ("test", "validation", *["train"] * 8)[crc32(text.encode()) % 10]


def read_problems(
    path: str | Path, split: str, count: int | None = None
) -> list[Problem]:
    """The first `count` problems of one split from a CSV, JSONL or JSON file.

    It has the columns `question` and `answer`, and may have `solution` and `split`;
    without the last, `split_of` the question decides. Answers of a CSV are texts; a
    comma, a semicolon, a tab or a bar divides its columns. In a task's file beside the
    data:
    read_problems(Path(__file__).with_name("data.csv"), split, count).
    """
    path, problems, found = Path(path), [], Counter[str]()
    text = read_text(path)
    try:
        for number, row in numbered_rows(text):
            row = {str(k).strip().lower(): v for k, v in row.items()}
            if not any(row.values()):
                continue
            lacks = [k for k in ("question", "answer") if row.get(k) in (None, "")]
            if lacks:
                words = " and no ".join(lacks)
                raise ValueError(f"row {number} has no {words}; it has {sorted(row)}")
            question, answer = row["question"], row["answer"]
            own = str(row.get("split") or "").strip().lower() or split_of(question)
            found[own] += 1
            if own == split:
                solution = str(row.get("solution") or "")
                problems.append(Problem(question, answer, solution))
    except (ValueError, AttributeError, csv.Error) as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Each row needs a question and an answer, "
            "under these names: the first line of a CSV, or the keys of each JSON line."
        ) from None
    if not problems:
        there = ", ".join(f"{name!r} {each}" for name, each in sorted(found.items()))
        raise ValueError(
            f"{path} has no problem for the split {split!r}. Its rows by split: "
            f"{there or 'none'}. Add some, or name another in the column `split`."
        )
    return problems[:count]


def numbered_rows(text: str) -> Iterator[tuple[int, Any]]:
    """The rows of a CSV, of JSON lines or of a JSON list with their places, from 1.

    A text that begins with a brace or a bracket is JSON. Raises ValueError or csv.Error
    for what is neither.
    """
    if text.lstrip().startswith("["):
        yield from enumerate(json.loads(text), start=1)
    elif text.lstrip().startswith("{"):
        # Other marks that Python's splitlines knows may stand in a text.
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except ValueError as error:
                    raise ValueError(f"line {number} is not JSON ({error})") from None
    else:
        divider = max(",;\t|", key=text.partition("\n")[0].count)
        lines = StringIO(text, newline="")
        rows = csv.DictReader(lines, delimiter=divider, skipinitialspace=True)
        for number, row in enumerate(rows, start=2):
            if None in row:
                raise ValueError(
                    f"row {number} has more columns than the first line names. Put a "
                    f"text that holds {divider!r} in double quotes"
                )
            yield number, row


def require_count(count: int | None) -> int:
    """A number of problems, for a task that could make them for ever."""
    if count is None:
        raise ValueError(
            "num_problems=None asks for all problems, but this task makes as many as "
            "are wanted. Say how many: --num-problems 4096 (num_problems=4096)."
        )
    return count


def columns(problems: Sequence[Problem]) -> dict[str, list]:
    """The fields of the problems, a list under each name, as rewards get them.

    A tuple becomes a list, as in the table that TRL reads; `answer` stays as it is.
    """

    def plain(name: str, value: Any) -> Any:
        return [*value] if isinstance(value, tuple) and name != "answer" else value

    return {
        field.name: [plain(field.name, getattr(p, field.name)) for p in problems]
        for field in fields(problems[0])
        if all(hasattr(problem, field.name) for problem in problems)
    }


def pay(
    rewards: Mapping[str, tuple[Reward, float]],
    problems: Sequence[Problem],
    completions: Sequence[Completion],
    opening: Opening = None,
) -> dict[str, Sequence[float]]:
    """What each reward pays for one completion to each problem, not weighed."""
    arguments: dict[str, Any] = columns(problems)
    arguments["prompts"] = [chat_messages(p.question, opening) for p in problems]
    earned = {}
    for name, (function, _) in rewards.items():
        earned[name] = function(**arguments, completions=list(completions))
        require_numbers(name, earned[name], len(completions), completions)
    return earned


def require_numbers(
    name: str, values: Any, count: int, completions: Sequence[Completion] = ()
) -> None:
    """Check what a reward function returned; an error shows the completion it is of."""
    found, place = "", 0
    if not isinstance(values, list | tuple):
        found = f"a {type(values).__name__}"
    elif len(values) != count:
        found, place = f"{len(values)} values", min(len(values), count - 1)
    else:
        fine = [
            isinstance(v, Real) and abs(v) <= LARGEST  # type: ignore[operator]
            for v in values
        ]
        if not all(fine):
            place = fine.index(False)
            found = repr(values[place])[:SHOWN]
    if found:
        text = str(completions[place]) if completions else ""
        cut = "..." if len(text) > SHOWN else ""
        shown = f" Completion {place}: {text[:SHOWN] + cut!r}." if completions else ""
        raise ValueError(
            f"rewards[{name!r}] returned {found} for {count} completions. Return a "
            "list of floats, a finite one for each; 0.0 where there is nothing to "
            f"reward.{shown}"
        )


def require_rewards(
    rewards: Any, measures: Sequence[str], problems: Sequence[Problem] = ()
) -> None:
    """Check a task's rewards, a function and a weight under each name, and measures.

    With problems, also that the functions can be called with their columns.
    """
    try:
        REWARDS.validate_python(rewards)
    except ValidationError:
        raise ValueError(
            f"rewards={rewards!r}, but it must hold a function and its weight under "
            'each name, at least 0: {"accuracy": (my_reward, 1.0)}.'
        ) from None
    for measure in measures:
        require_known("measures", measure, rewards)
    arguments = columns(problems) if problems else {}
    for name, (function, _) in rewards.items() if problems else ():
        try:
            signature(function).bind(completions=[], prompts=[], **arguments)
        except TypeError as error:
            raise ValueError(
                f"rewards[{name!r}]: {error}. It is called by name, as TRL does, with "
                f"completions, prompts, {', '.join(arguments)}: take those that you "
                "need, as in (completions, answer, **kwargs)."
            ) from None


def texts_voted_on(rewards: Mapping[str, tuple[Reward, float]]) -> str:
    """What a vote that counts texts misses, with the cure; "" where it does not."""
    name, (judge, _) = next(iter(rewards.items()))
    if hasattr(judge, "meaning"):
        return ""
    own = getattr(judge, "__name__", name)
    return (
        f"rewards[{name!r}] has no `meaning`, so the vote of the majority counts texts:"
        " two right answers in other words are two. Give it a function from a response "
        "to what it answers, None for nothing. Where that is a number: "
        f"{own}.meaning = grpo_course.text.grader.last_number"
    )


# Finding a task: one of these, or one of your own in a file or a module.
TASKS = {
    "gsm8k": "grpo_course.text.gsm8k:GSM8K",
    "countdown": "grpo_course.text.countdown:Countdown",
    "reverse": "grpo_course.text.reverse:Reverse",
    "smollm2": "grpo_course.text.smollm2:ShortAnswers",
    "calculator": "grpo_course.text.smollm2:Calculator",
    "qwen": "grpo_course.text.qwen:Rows",
}
PLACE = re.compile(r"(?:(?P<file>.+\.py)|(?P<module>\w+(?:\.\w+)*)):(?P<name>\w+)")
_files: dict[Path, tuple[int, ModuleType]] = {}  # when saved, and what was loaded


def find_task(name: str) -> type[TextTask]:
    """The class of a task: one of TASKS, or one of your own, in a file or a module."""
    place = PLACE.fullmatch(TASKS.get(name, name) if isinstance(name, str) else "")
    if not place:
        raise ValueError(
            f"task={name!r} {choices(TASKS, name)} Or name a class of your own by its "
            "file, my_task.py:MyTask, or by its module, my_task:MyTask."
        )
    file, found, wanted = place["file"], place["module"], place["name"]
    try:
        module = load_file(Path(file).resolve()) if file else import_module(found)
    except ImportError as problem:
        raise ValueError(
            f"{found!r} cannot be loaded: {problem}. Run from the folder of "
            f"{found.replace('.', '/')}.py, or give the path of the file: "
            "path/to/my_task.py:MyTask."
        ) from problem
    task: Any = getattr(module, wanted, None)
    if not (isinstance(task, type) and issubclass(task, TextTask)):
        raise ValueError(
            f"task={name!r}: {wanted} must be a subclass of TextTask in "
            f"{module.__file__}."
        )
    if task.__abstractmethods__:
        lacks = ", ".join(sorted(task.__abstractmethods__))
        raise ValueError(f"task={name!r} lacks {lacks}: define what TextTask asks for.")
    if "__pydantic_fields__" not in vars(task):
        raise ValueError(f"task={name!r} must be decorated with @settings().")
    require_rewards(getattr(task, "rewards", None), task.measures)
    return task


def load_file(path: Path) -> ModuleType:
    """The module in a file, loaded anew after each change of the file.

    Its folder goes on sys.path, so that it can import what lies beside it.
    """
    if not path.is_file():
        raise ValueError(f"There is no file {path}. Is the path that of a task's file?")
    saved = path.stat().st_mtime_ns
    if path in _files and _files[path][0] == saved:
        return _files[path][1]
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = spec_from_file_location(str(path), path)
    assert spec and spec.loader  # a name that ends with .py has both
    module = sys.modules[str(path)] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__)]
        line = getattr(error, "lineno", lines[-1])
        raise ValueError(
            f"{path} cannot be loaded, line {line}: {type(error).__name__}: {error}."
        ) from error
    _files[path] = saved, module
    return module


def own_source(name: str) -> bytes:
    """The file that a task of one's own is in, as it is; b"" for one of TASKS."""
    if name in TASKS:
        return b""
    return Path(str(sys.modules[find_task(name).__module__].__file__)).read_bytes()
