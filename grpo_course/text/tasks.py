"""A text task: what is asked, what is right, what is paid, and all of it in tokens.

From top to bottom: the form of a response and the texts of completions; problems,
rewards and the class of a task; finding a task by its name; prompts and responses as
tokens; the environment, which is what the loop asks and is paid by.

Left out: tasks (gsm8k.py, countdown.py, reverse.py), the models that answer (lm.py),
and the check of a task (task_check.py): it needs the tokenizer and the settings of a
run, which are made of what stands here. Nothing here loads transformers.
"""

import csv
import hashlib
import json
import random
import re
import sys
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import date
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from io import StringIO
from math import inf
from numbers import Real
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar
from unicodedata import normalize
from zlib import crc32

import torch
from torch import Tensor

from grpo_course.checks import choices, require_at_least, require_known, settings
from grpo_course.files import read_text
from grpo_course.loop import History, Rollout, tied_groups
from grpo_course.sampling import (
    pad_rows,
    prompt_mask,
    response_mask,
    unpad_rows,
    up_to_last,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# The form of a response: thinking, then the answer.
THINK, CLOSE_THINK = "<think>", "</think>"
ANSWER, CLOSE_ANSWER = "<answer>", "</answer>"
TAGS = (THINK, CLOSE_THINK, ANSWER, CLOSE_ANSWER)

# The form of ChatML. `add_generation_prompt` opens the assistant's turn.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

Completion = str | list[dict]  # a text, or a chat: messages with role and content
# What stands before a question: a system prompt, or the messages of worked examples.
Opening = str | Sequence[dict] | None


def in_template(thinking: str, answer: str) -> str:
    """A response in the full form."""
    return f"{THINK}{thinking}{CLOSE_THINK}{ANSWER}{answer}{CLOSE_ANSWER}"


def extract_answer(completion: str) -> str | None:
    """The text between the last <answer> and its </answer>; None if there is none.

    Whatever stands before the last </think> is thinking, and no answer.
    """
    said = completion.rpartition(CLOSE_THINK)[2]
    before, _, _ = said.rpartition(CLOSE_ANSWER)
    _, opened, inside = before.rpartition(ANSWER)
    return inside.partition(CLOSE_ANSWER)[0].strip() if opened else None


def chat_messages(question: str, opening: Opening = None) -> list[dict]:
    """The conversation so far, as a chat template wants it; a text is a system's."""
    if isinstance(opening, str):
        opening = [{"role": "system", "content": opening}] if opening else []
    return [*(opening or ()), {"role": "user", "content": question}]


def conversation_text(question: str, response: str, opening: Opening = None) -> str:
    """A whole conversation as a tiny tokenizer should learn it: words, roles and tags.

    A tokenizer that never saw the roles spends a token on each of their letters.
    """
    messages = chat_messages(question, opening)
    messages += [{"role": "assistant", "content": response}]
    return "".join(f"{m['role']}\n{m['content']}\n" for m in messages)


def completion_texts(completions: Sequence[Completion]) -> list[str]:
    """The texts of plain or chat completions; of a content in parts, those with text.

    Raises TypeError for one text in the place of a list, and for what is neither a text
    nor a list of messages.
    """
    if isinstance(completions, str):
        raise TypeError(
            f"completions={completions[:40]!r} is one text. Pass a list of them: "
            "[completion]."
        )

    def text_of(said: Any) -> str:
        if isinstance(said, list | tuple):  # messages, or {"type": "text", "text": ...}
            parts = (each.get("content") or each.get("text") for each in said)
            return "".join(map(text_of, parts))
        return str(said or "")

    for completion in completions:
        if not isinstance(completion, str) and not (
            isinstance(completion, list | tuple)
            and all(isinstance(message, dict) for message in completion)
        ):
            raise TypeError(
                f"A completion is a {type(completion).__name__}. Pass a string, or a "
                'list of messages like {"role": "assistant", "content": "..."}.'
            )
    return [text_of(completion) for completion in completions]


def graded(
    rule: Callable[[str, Any], bool],
    completions: Sequence[Completion],
    answer: Sequence[Any],
) -> list[float]:
    """1.0 where `rule` holds of a completion's text and its own right answer, else 0.0.

    Raises ValueError where there is not one answer for each completion.
    """
    texts = completion_texts(completions)
    if isinstance(answer, str | Mapping) or len(texts) != len(answer):
        raise ValueError(
            f"answer must be a list with one right answer for each of the {len(texts)} "
            "completions. Repeat an answer for its whole group."
        )
    return [float(rule(t, right)) for t, right in zip(texts, answer, strict=True)]


def format_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """0.2 for each of the four tags that stands exactly once, 0.2 for good order.

    Good order: the four tags once each, as in the template, with something inside
    both pairs and nothing but white space outside them.
    """
    rewards = []
    for text in completion_texts(completions):
        pieces = re.split(f"({'|'.join(TAGS)})", text)
        tags = pieces[1::2]
        points = sum(tags.count(tag) == 1 for tag in TAGS)
        if tags == [*TAGS]:
            before, thinking, between, given, after = map(str.strip, pieces[::2])
            points += bool(thinking and given) and not (before or between or after)
        rewards.append(points / 5)
    return rewards


# A task: problems, rewards, and what a run should know of them.

Reward = Callable[..., Sequence[float]]  # called as TRL does: see TextTask
SHOWN = 120  # characters of a completion that an error shows
LARGEST = torch.finfo(torch.float32).max  # of the rewards; no NaN is at most that


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
    are texts here and chats under TRL: `completion_texts` makes texts of both. TRL
    leaves out a field that its table cannot hold as it is.
    """

    # name: (function, weight). The first says whether a response is right: it is the
    # accuracy. A weight of 0 measures only. Where texts differ that mean the same, 72
    # and 72.0, its attribute `meaning` is a function from an answer's text to what it
    # says, None for nothing: a vote counts that, and so does a problem asked twice. The
    # text is what stands between the answer's tags, or the whole response in a task
    # whose gold responses have none.
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
    """Which split a text belongs to, in every process: "train" for eight in ten.

    A task that asks a problem only in the split of its text, or of the part of it that
    makes it another problem, has splits that share none.
    """
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
    Raises ValueError for a row that lacks one of the two, with its place, and for a
    file without a row of the split.
    """
    path, problems, found = Path(path), [], Counter[str]()
    text = read_text(path)
    try:
        for number, row in numbered_rows(path, text):
            row = {str(k).strip().lower(): v for k, v in row.items()}
            if not any(row.values()):
                continue
            question, answer = row.get("question"), row.get("answer")
            given = {"question": question, "answer": answer}
            empty = [k for k, v in given.items() if v is None or not str(v).strip()]
            if empty:
                lacks = " and no ".join(empty)
                raise ValueError(f"row {number} has no {lacks}; it has {sorted(row)}")
            if not isinstance(question, str):
                told = repr(question)[:SHOWN]
                raise ValueError(f"the question of row {number} is no text: {told}")
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


def numbered_rows(path: Path, text: str) -> Iterator[tuple[int, dict]]:
    """The rows of a CSV, of JSON lines or of a JSON list with their places, from 1.

    A text that begins with a brace or a bracket is JSON, whatever the file is called.
    Only ends of lines end one: other marks that Python's splitlines knows may stand in
    a text.
    Raises ValueError, csv.Error or AttributeError for what is neither.
    """
    lines = re.split("\r\n|\n|\r", text)
    is_json = path.suffix.lower() in (".json", ".jsonl", ".ndjson")
    if is_json or text.lstrip().startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            if isinstance(whole := json.loads(text), list):
                lines = list(map(json.dumps, whole))
        for number, line in enumerate(lines, start=1):
            line = line.removeprefix("\ufeff").strip()  # of files that were joined
            try:
                row = json.loads(line) if line else {}
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number} is not JSON ({error})") from None
            if not isinstance(row, dict):
                raise ValueError(f"line {number} holds no object in braces")
            yield number, row
        return
    first, divider = 1, max(",;\t|", key=lines[0].count)
    if told := re.fullmatch(r"\W?sep=(.)\W*", lines[0], re.IGNORECASE):  # Excel's
        first, divider = 2, told[1]
        text = text[len(lines[0]) :].lstrip("\r\n")
    how: Any = {"delimiter": divider, "skipinitialspace": True}
    table = [*csv.reader(StringIO(text, newline=""), **how)]
    head, *rows = table or [[]]
    for number, row in enumerate(rows, start=first + 1):
        if row == head or any("\ufeff" in each for each in row):
            raise ValueError(
                f"row {number} is where another file was joined to this one: its names "
                "of columns, or a byte order mark (U+FEFF), stand there. Take them out"
            )
        if any(row[len(head) :]):
            raise ValueError(
                f"row {number} has {len(row)} columns, and the first line names "
                f"{len(head)}. Put a text that holds {divider!r} in double quotes"
            )
        yield number, dict(zip(head, row, strict=False))


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
    """What each reward pays for one completion to each problem, not weighed.

    Raises ValueError for a reward that does not return a finite number for each.
    """
    given: dict[str, Any] = columns(problems)
    given["prompts"] = [chat_messages(p.question, opening) for p in problems]
    earned = {}
    for name, (function, _) in rewards.items():
        earned[name] = function(**given, completions=list(completions))
        require_numbers(name, earned[name], len(completions), completions)
    return earned


def require_numbers(
    name: str, values: Any, count: int, completions: Sequence[Completion] = ()
) -> None:
    """Check what a reward function returned; an error shows the completion it is of."""
    said, place = "", 0
    if not isinstance(values, list | tuple):
        said = f"a {type(values).__name__}"
    elif len(values) != count:
        said, place = f"{len(values)} values", min(len(values), count - 1)
    else:
        fine = [
            isinstance(v, Real) and abs(v) <= LARGEST  # type: ignore[operator]
            for v in values
        ]
        if not all(fine):
            place = fine.index(False)
            said = repr(values[place])[:SHOWN]
    if said:
        told = str(completions[place]) if completions else ""
        cut = "..." if len(told) > SHOWN else ""
        shown = f" Completion {place}: {told[:SHOWN] + cut!r}." if completions else ""
        raise ValueError(
            f"rewards[{name!r}] returned {said} for {count} completions. Return a list "
            "of floats, a finite one for each; 0.0 where there is nothing to reward."
            f"{shown}"
        )


def require_rewards(
    rewards: Any, measures: Sequence[str], problems: Sequence[Problem] = ()
) -> None:
    """Check a task's rewards, a function and a weight under each name, and measures.

    With problems, also that the functions can be called with their columns.
    """
    try:
        fine = bool(rewards) and all(
            callable(function) and isinstance(weight, int | float) and 0 <= weight < inf
            for function, weight in rewards.values()
        )
    except (AttributeError, TypeError, ValueError):  # no dict, or no pairs in it
        fine = False
    if not fine:
        raise ValueError(
            f"rewards={rewards!r}, but it must hold a function and its weight under "
            'each name, at least 0: {"accuracy": (my_reward, 1.0)}.'
        )
    for measure in measures:
        require_known("measures", measure, rewards)
    given = columns(problems) if problems else {}
    for name, (function, _) in rewards.items() if problems else ():
        try:
            signature(function).bind(completions=[], prompts=[], **given)
        except TypeError as error:
            raise ValueError(
                f"rewards[{name!r}]: {error}. It is called by name, as TRL does, with "
                f"completions, prompts, {', '.join(given)}: take those that you need, "
                "as in (completions, answer, **kwargs)."
            ) from None


def texts_voted_on(
    rewards: Mapping[str, tuple[Reward, float]], answer: Any, tagged: bool
) -> str:
    """What a vote of the majority misses where it counts texts, with the cure; or "".

    `answer` is one of the right ones: which function reads such answers.
    """
    name, (judge, _) = next(iter(rewards.items()))
    if hasattr(judge, "meaning"):
        return ""
    own = getattr(judge, "__name__", name)
    reader = "read_number" if tagged else "last_number"
    cure = f"from grpo_course.text.gsm8k import {reader}\n    {own}.meaning = {reader}"
    if not re.fullmatch(r"[-+$ ]*[0-9][0-9.,]*\W*", str(answer)):
        cure = (
            "def said(text): return text.strip().lower() or None  # what it answers\n"
            f"    {own}.meaning = said"
        )
    return (
        f"rewards[{name!r}] has no `meaning`, so the vote of the majority counts texts:"
        " two right answers in other words are two. Say what a response answers, None "
        f"for nothing, in two lines:\n    {cure}"
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
    """The class of a task: one of TASKS, or one of your own, in a file or a module.

    Raises ValueError for what cannot be found or is no task, and says why.
    """
    place = PLACE.fullmatch(TASKS.get(name, name) if isinstance(name, str) else "")
    if not place:
        raise ValueError(
            f"task={name!r} {choices(TASKS)} Or name a class of your own by its file, "
            "my_task.py:MyTask, or by its module, my_task:MyTask."
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
        there = ", ".join(
            name
            for name, each in vars(module).items()
            if isinstance(each, type)
            and issubclass(each, TextTask)
            and each is not TextTask
        )
        raise ValueError(
            f"task={name!r}: {wanted} must be a subclass of TextTask in "
            f"{module.__file__}. The tasks in it are: {there or 'none'}."
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
    Raises ValueError for a file that is not there or that breaks, with the line.
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
        where = f", line {line}" if line else ". Is it saved in UTF-8?"
        raise ValueError(
            f"{path} cannot be loaded{where}: {type(error).__name__}: {error}."
        ) from error
    _files[path] = saved, module
    return module


def own_source(name: str) -> bytes:
    """The file that a task of one's own is in, as it is; b"" for one of TASKS."""
    if name in TASKS:
        return b""
    return Path(str(sys.modules[find_task(name).__module__].__file__)).read_bytes()


# Texts as tokens, and back.


# For a base model that knows no roles: the messages, one below the other.
PLAIN_TEMPLATE = "{% for m in messages %}{{ m['content'] }}\n\n{% endfor %}"
# How tokens become the text that was written, to the letter.
AS_WRITTEN = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
DAY = date(2024, 7, 26)  # that of Llama's template where nobody tells it one


def first_tokens(tokenizer: "PreTrainedTokenizerBase") -> list[int]:
    """What a tokenizer puts before every text by itself: a BOS, or nothing."""
    own = tokenizer("a")["input_ids"]
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    starts = (i for i in range(len(own)) if own[i : i + len(bare)] == bare)
    return own[: next(starts, 0)]


def plain_template(tokenizer: "PreTrainedTokenizerBase") -> str:
    """`PLAIN_TEMPLATE` behind what the tokenizer begins each text with.

    No other template gets that: those that want it write it themselves.
    """
    first = tokenizer.convert_ids_to_tokens(first_tokens(tokenizer))
    return "".join(first) + PLAIN_TEMPLATE


def rendered(
    tokenizer: "PreTrainedTokenizerBase", messages: list[dict], **how: Any
) -> str:
    """A conversation as the chat template writes it, or the plain one for want of it.

    Whatever day it is, a template that tells the date tells DAY: the prompts of a run
    that is resumed tomorrow are those of today.
    """
    from transformers.utils.chat_template_utils import _compile_jinja_template

    if tokenizer.chat_template:
        template = tokenizer.get_chat_template()
    else:
        template = plain_template(tokenizer)
    # The clock that every spelling of the date reads. The compiled template gets it,
    # because of what is passed to a template transformers makes plain data.
    _compile_jinja_template(template).globals["strftime_now"] = DAY.strftime
    how |= {"tokenize": False, "chat_template": template}
    return str(tokenizer.apply_chat_template(messages, **how))


def prompt_text(
    tokenizer: "PreTrainedTokenizerBase", question: str, opening: Opening
) -> str:
    """The one text that the model reads: the conversation, and whose turn it is.

    A template that refuses the role "system", or leaves out what it says, gets that
    before the question; one that wants the parts of a message gets one part.
    Raises ValueError for a template with which the model would not read the question.
    """
    whole = chat_messages(question, opening)
    said = [message["content"] for message in whole]
    parts = [m | {"content": [{"type": "text", "text": m["content"]}]} for m in whole]
    ways = [whole, parts]
    if whole[0]["role"] == "system":
        second = whole[1] | {"content": f"{said[0]}\n\n{said[1]}"}
        ways.insert(1, [second, *whole[2:]])
    why = "it leaves the question out"
    for messages in ways:
        try:
            text = rendered(tokenizer, messages, add_generation_prompt=True)
        except Exception as error:  # a template raises what it likes
            why = f"{type(error).__name__}: {error}"
            continue
        if all(each.strip() in text for each in said):
            return text
    raise ValueError(
        f"The chat template of {tokenizer.name_or_path or 'the tokenizer'} cannot ask "
        f"{question[:40]!r} ({why}). Give the tokenizer another chat_template and save "
        "it, or choose another model."
    )


def opened_tags(tokenizer: "PreTrainedTokenizerBase") -> str:
    """The tags in which a prompt ends, "<think>\\n" say; "" for most templates."""
    run = re.compile(rf"((?:{'|'.join(TAGS)})\s*)+$")
    found = run.search(prompt_text(tokenizer, "?", None))
    return found[0] if found else ""


def behind(begun: str, response: str) -> str:
    """A response with the tags that its prompt opened, unless it opens them itself."""
    tag = begun[: begun.find(">") + 1]
    return response if response.lstrip().startswith(tag) else begun + response


def turn_end(tokenizer: "PreTrainedTokenizerBase") -> int:
    """The token that the chat template writes behind an answer; EOS where it has none.

    In Gemma, Phi, and base models with the form of ChatML, it is not EOS.
    """
    said = "An answer."
    asked = [*chat_messages("?"), {"role": "assistant", "content": said}]
    try:
        behind = rendered(tokenizer, asked).rpartition(said)
    except Exception:  # a template that does not take answers
        behind = "", "", ""
    names = {*tokenizer.get_added_vocab(), *tokenizer.all_special_tokens} - {*TAGS}
    after = behind[2].lstrip() if behind[1] else ""
    ends = [name for name in names if after.startswith(name)]
    end = max(ends, key=len, default=tokenizer.eos_token)
    token = tokenizer.convert_tokens_to_ids(end)
    assert isinstance(token, int)  # of one text, not of several
    return token


def encode_prompts(
    tokenizer: "PreTrainedTokenizerBase",
    questions: Sequence[str],
    opening: Opening = None,
) -> Tensor:
    """The prompts of some questions, padded on the left. -> int [batch pos]

    The template has written every special token already, so the tokenizer adds none.
    Behind a BOS, the plain template's text is read as the tokenizer reads any text.
    """
    texts = [prompt_text(tokenizer, q, opening) for q in questions]
    plain, first = plain_template(tokenizer), []
    if tokenizer.chat_template in (None, "", plain):
        first, bos = first_tokens(tokenizer), plain.removesuffix(PLAIN_TEMPLATE)
        texts = [text.removeprefix(bos) for text in texts]
    rows = tokenizer(texts, add_special_tokens=False)["input_ids"]
    return pad_rows([[*first, *row] for row in rows], tokenizer.pad_token_id)


def as_rollout(
    tokenizer: "PreTrainedTokenizerBase",
    questions: Sequence[str],
    responses: Sequence[str],
    opening: Opening = None,
) -> Rollout:
    """Questions with one given response each, as if a policy had sampled them.

    Each response ends as the template ends a turn, [batch 1 pos], padded on the right.
    What the prompt has opened already is not written again.
    """
    prompts = encode_prompts(tokenizer, questions, opening)
    begun, end = opened_tags(tokenizer), turn_end(tokenizer)
    said = [r.removeprefix(begun).removeprefix(begun.strip()) for r in responses]
    rows = tokenizer(said, add_special_tokens=False)["input_ids"]
    rows = [[*row, end] for row in rows]
    tokens = pad_rows(rows, tokenizer.pad_token_id, side="right")[:, None]
    mask = response_mask(tokens, end)
    return Rollout(prompts, tokens, mask, finished=mask.any(dim=-1))


def reply_tokens(
    tokenizer: "PreTrainedTokenizerBase", task: TextTask, turn: list[int]
) -> list[int]:
    """What stands behind a turn of the policy's, up to its next turn; none, if none.

    The tool's answer as the template writes a message of the user's.
    """
    reply = task.reply(str(tokenizer.decode(turn[:-1], **AS_WRITTEN)))
    if reply is None:
        return []
    end = str(tokenizer.convert_ids_to_tokens(turn_end(tokenizer)))
    said = "An answer."
    asked = [*chat_messages("?"), {"role": "assistant", "content": said}]
    asked += chat_messages(reply)
    whole = rendered(tokenizer, asked, add_generation_prompt=True)
    behind = whole.partition(said)[2]
    if behind.lstrip().startswith(end):  # which the policy has written
        behind = behind.lstrip().removeprefix(end)
    return list(tokenizer(behind, add_special_tokens=False)["input_ids"])


def decode_responses(
    tokenizer: "PreTrainedTokenizerBase", rollout: Rollout
) -> list[list[str]]:
    """The texts of the responses, without what stands after their end.

    One list for each prompt. Padding, ends and what the template writes are left out;
    other tokens stay, special or not: a tag may be one. A response to a prompt that
    ends in an opened tag begins with that tag, unless it writes it once more.
    """
    begun, end = opened_tags(tokenizer), turn_end(tokenizer)
    written = tokenizer(prompt_text(tokenizer, "?", None), add_special_tokens=False)
    added = tokenizer.added_tokens_decoder
    marks = {t for t in written["input_ids"] if t in added and added[t].special}
    marks |= {tokenizer.pad_token_id, tokenizer.eos_token_id, end}
    marks -= {tokenizer.convert_tokens_to_ids(tag) for tag in TAGS}
    trial, tokens = rollout.responses.shape[-2], rollout.responses
    mask = torch.ones_like(tokens).bool() if rollout.mask is None else rollout.mask
    # Up to the last that counts: what a tool has said in between is read, too.
    mask = up_to_last(mask)
    if rollout.finished is not None:  # the last is an end, which only the model knows
        last = mask.long().sum(dim=-1, keepdim=True) - 1
        at = torch.arange(tokens.shape[-1], device=tokens.device)
        mask = mask & ~((at == last) & rollout.finished[..., None])
    pairs = zip(tokens.flatten(0, 1), mask.flatten(0, 1), strict=True)
    rows = [[t for t in row[kept].tolist() if t not in marks] for row, kept in pairs]
    texts = tokenizer.batch_decode(rows, **AS_WRITTEN)
    texts = [behind(begun, text) for text in texts]
    return [texts[i : i + trial] for i in range(0, len(texts), trial)]


def fingerprint(problems: Sequence[Problem]) -> str:
    """How many problems there are, and a digest of all in their order.

    An answer that JSON does not know is told by its type.
    """

    def as_text(told: Any) -> str:
        return json.dumps(told, sort_keys=True, default=lambda x: type(x).__name__)

    told = []
    for problem in problems:
        answer: Any = problem.answer
        try:
            as_text(answer)
        except (TypeError, ValueError):  # keys that are no texts, a thing in itself
            answer = type(answer).__name__
        told.append([problem.question, problem.solution, answer])
    text = as_text(told)
    return f"{len(problems)} ({hashlib.sha256(text.encode()).hexdigest()[:12]})"


Tokens = tuple[int, ...]


class Environment:
    """The problems of a task in the words of one tokenizer.

    `prompts` and `reward` are what the loop calls. `rewards` maps a name to a function
    and its weight, `measures` are those that an evaluation reports; both as in
    `TextTask`. `tagged` says whether an answer stands between tags; None: wherever a
    response has some. Called as the loop's `watch`, `note` adds the mean of each reward
    over the latest rollout to the history, as further columns, and the shares of the
    groups that are tied because all of their responses are right, or all wrong.
    Raises ValueError if there is no problem, for one prompt with two answers, and for a
    reward that cannot be called as TRL calls it.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        tokenizer: "PreTrainedTokenizerBase",
        rewards: Mapping[str, tuple[Reward, float]],
        num_prompts: int = 16,
        seed: int = 0,
        *,
        opening: Opening = None,
        measures: Sequence[str] = (),
        tagged: bool | None = None,
    ) -> None:
        self.problems, self.tokenizer = list(problems), tokenizer
        if not self.problems:
            raise ValueError(
                "problems is empty: there is nothing to ask. Check the data set, and "
                "what was filtered out of it."
            )
        require_rewards(rewards, measures, self.problems)
        require_at_least("num_prompts", num_prompts, 1)
        self.rewards, self.num_prompts, self.seed = rewards, num_prompts, seed
        self.opening, self.measures = opening, tuple(measures or rewards)
        judge, _ = next(iter(rewards.values()))
        self.tagged = tagged
        self.meaning: Callable[[str], Hashable] = getattr(judge, "meaning", str)
        questions = [problem.question for problem in self.problems]
        self.tokens = encode_prompts(tokenizer, questions, opening)
        self.asked: dict[Tokens, Problem] = {}
        for problem, key in zip(self.problems, self.keys(self.tokens), strict=True):
            other = self.asked.setdefault(key, problem)
            one, two = other.answer, problem.answer
            meant = self.meaning(str(one)), self.meaning(str(two))
            if one != two and (meant[0] != meant[1] or meant[0] is None):
                raise ValueError(
                    f"Two problems ask {problem.question[:60]!r}, and their answers "
                    f"are {one!r} and {two!r}. Leave one of them out."
                )
        self.latest: dict[str, float] = {}
        self.seen: tuple[Rollout, dict[str, Tensor]] | None = None

    def prompts(self, epoch: int) -> Tensor:
        """What to ask in an epoch, padded on the left. -> int [batch pos]"""
        return self.ask(self.chosen(epoch))

    def chosen(self, epoch: int) -> list[int]:
        """Which problems an epoch asks: each once in a new order, then all again."""
        total = len(self.problems)
        places = range(epoch * self.num_prompts, (epoch + 1) * self.num_prompts)
        orders = {
            turn: random.Random(f"{self.seed} {turn}").sample(range(total), total)
            for turn in {place // total for place in places}
        }
        return [orders[place // total][place % total] for place in places]

    def ask(self, chosen: Sequence[int]) -> Tensor:
        """The prompts of some problems, by their places in the list.

        -> int [batch pos], padded on the left, no wider than the longest of them
        """
        tokens = self.tokens[list(chosen)]
        used = prompt_mask(tokens, self.tokenizer.pad_token_id).any(dim=0)
        return tokens[:, used]

    def reward(self, rollout: Rollout) -> Tensor:
        """What each response earns, which is also noted. -> [batch trial]"""
        graded = self.grade(rollout)
        self.seen = rollout, graded
        total, right = self.weighed(graded), next(iter(graded.values()))
        # Groups that teach nothing. Ties of the rest are right in part, or the rewards
        # say by how much.
        tied = tied_groups(total)
        noted = graded | {
            "tied_right": (tied & (right == 1).all(dim=-1)).float(),
            "tied_wrong": (tied & (right == 0).all(dim=-1)).float(),
        }
        self.latest = {name: column.mean().item() for name, column in noted.items()}
        return total

    def note(self, history: History) -> None:
        """Add the means over the latest rollout to the first record of its epoch."""
        first = next(r for r in history.records[::-1] if r["step"] == 0)
        first.update({k: torch.tensor(v) for k, v in self.latest.items()})

    def weighed(self, graded: dict[str, Tensor]) -> Tensor:
        """The rewards of each response, weighed and added. -> [batch trial]"""
        parts = (self.rewards[name][1] * each for name, each in graded.items())
        return sum(parts, torch.tensor(0.0))

    def grade(self, rollout: Rollout) -> dict[str, Tensor]:
        """Each reward of each response by its name, [batch trial], not weighed.

        Raises ValueError for a prompt that is none of the problems', and for a reward
        function that does not return a number for each response.
        """
        groups = decode_responses(self.tokenizer, rollout)
        device, trial = rollout.responses.device, rollout.responses.shape[-2]
        texts = [text for group in groups for text in group]
        problems = [p for p in self.problems_of(rollout.prompts) for _ in range(trial)]
        earned = pay(self.rewards, problems, texts, self.opening)
        return {
            name: torch.tensor(values, dtype=torch.float32).to(device).view(-1, trial)
            for name, values in earned.items()
        }

    def problems_of(self, prompts: Tensor) -> list[Problem]:
        """The problem that each prompt asks, int [batch pos]."""
        keys = self.keys(prompts)
        unknown = [i for i, key in enumerate(keys) if key not in self.asked]
        if unknown:
            raise ValueError(
                f"prompts[{unknown[0]}] is none of these {len(self.problems)} "
                "problems, so its answer is not known. Take prompts from "
                "environment.prompts(epoch) or environment.ask(places)."
            )
        return [self.asked[key] for key in keys]

    def keys(self, prompts: Tensor) -> list[Tokens]:
        """Prompts as one finds their problems by: the tokens without the padding."""
        rows = unpad_rows(prompts.cpu(), self.tokenizer.pad_token_id)
        return [tuple(row) for row in rows]


def what_is_lost(
    environment: Environment,
    golds: Sequence[str],
    ends: Sequence[int],
    vocab_size: int,
    max_new_tokens: int,
) -> Iterator[str]:
    """What of the gold responses does not come back, each loss in one line.

    `golds` answer the first problems. They go through template and tokenizer as if a
    policy wrote them, to the first of `ends`, and back to every reward. `vocab_size`
    is the number of embeddings of the model.
    """
    tokenizer, opening = environment.tokenizer, environment.opening
    name_of = tokenizer.convert_ids_to_tokens
    problems = environment.problems[: len(golds)]
    rollout = as_rollout(tokenizer, [p.question for p in problems], golds, opening)
    lengths = response_mask(rollout.responses, turn_end(tokenizer)).sum(dim=-1)
    parts = rollout.prompts.flatten(), rollout.responses.flatten()
    largest = max(tokenizer.pad_token_id, *(int(part.max()) for part in parts))
    if largest >= vocab_size:
        yield (
            f"{name_of(largest)!r} is token {largest}, and the model has no more than "
            f"{vocab_size} embeddings: model.resize_token_embeddings(len(tokenizer))"
        )
    read = tokenizer.batch_decode(rollout.prompts, **AS_WRITTEN)
    back = [text for (text,) in decode_responses(tokenizer, rollout)]
    due = pay(environment.rewards, problems, list(golds), opening)
    paid = pay(environment.rewards, problems, back, opening)

    def holds(*texts: str) -> bool:  # whatever the spaces, and how letters are made up
        text, said = ("".join(normalize("NFKC", each).split()) for each in texts)
        return said in text

    for i, (problem, gold) in enumerate(zip(problems, golds, strict=True)):
        if not holds(read[i], problem.question):
            yield f"the question {problem.question!r} is read as {read[i]!r}"
        if early := {*tokenizer(gold, add_special_tokens=False)["input_ids"]} & {*ends}:
            yield f"{gold!r} holds {name_of(min(early))!r}, which ends a response"
        for name in due:
            if paid[name][i] < due[name][i]:
                yield (
                    f"{gold!r} comes back as {back[i]!r}, for which rewards[{name!r}] "
                    f"pays {paid[name][i]:g} and not {due[name][i]:g}"
                )
        if not holds(back[i], gold):
            yield f"{gold!r} comes back as {back[i]!r}"
        if (length := int(lengths[i])) > max_new_tokens:
            yield (
                f"{gold!r} has {length} tokens with its end, and max_new_tokens="
                f"{max_new_tokens} cuts it off"
            )


def sample_rows(environment: Environment, count: int) -> list[dict[str, Any]]:
    """What the first `count` prompts of the latest rollout were answered.

    A row for each response: each of its rewards, `reward`, which is their weighed sum,
    question, right answer and completion.
    """
    if environment.seen is None:
        return []
    rollout, graded = environment.seen
    rewards = {name: column.tolist() for name, column in graded.items()}
    rewards["reward"] = environment.weighed(graded).tolist()
    texts = decode_responses(environment.tokenizer, rollout)
    rows = []
    for i, problem in enumerate(environment.problems_of(rollout.prompts)[:count]):
        asked = {"question": problem.question, "answer": str(problem.answer)}
        for j, text in enumerate(texts[i]):
            earned = {name: column[i][j] for name, column in rewards.items()}
            rows.append(earned | asked | {"completion": text})
    return rows
