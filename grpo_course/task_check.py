"""What policies that know nothing earn: try them before a trained one finds them."""

import ast
import inspect
import random
import sys
import textwrap
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from inspect import signature
from pathlib import Path
from textwrap import wrap
from typing import Any

import torch
from datasets import Dataset
from pandas import DataFrame
from torch import Tensor

from grpo_course.lm import make_tokenizer
from grpo_course.tasks import (
    Problem,
    TextTask,
    conversation_text,
    extract_answer,
    in_template,
    require_numbers,
)
from grpo_course.training import GRPOConfig

# --- language_model.task_check.attack


LISTED = 20  # answers that a policy names at once, the right one among them


def attack(task: TextTask, count: int = 64, seed: int = 0) -> DataFrame:
    """What the right response and some cheap policies earn, a row each.

    Each reward has a column, the mean over `count` problems of "train"; "total" is
    their weighted sum, which is what GRPO is paid.
    """
    problems = list(task.problems("train", count, seed))
    tried = {"the right response": [task.gold(problem) for problem in problems]}
    rows = {
        policy: {name: each.mean().item() for name, each in earned.items()}
        | {"total": total(task, earned).mean().item()}
        for policy, texts in (tried | cheap_policies(task, problems)).items()
        for earned in [earn(task, texts, problems)]
    }
    return DataFrame.from_dict(rows, orient="index")


def cheap_policies(task: TextTask, problems: Sequence[Problem]) -> dict[str, list[str]]:
    """A policy's name -> its response to each problem. None of them knows a thing."""
    golds = [task.gold(problem) for problem in problems]
    answers = [answer_in(gold) for gold in golds]
    common = Counter(answers).most_common(1)[0][0]
    others = answers[1:] + answers[:1]
    numbers = " ".join(map(str, range(100)))
    lists = [
        " ".join([*(answers * LISTED)[place + 1 : place + 1 + LISTED], answer])
        for place, answer in enumerate(answers)
    ]
    tagged = extract_answer(golds[0]) is not None

    def say(texts: Sequence[str]) -> list[str]:
        return [in_template("?", text) if tagged else text for text in texts]

    return {
        "nothing": [""] * len(problems),
        "the question again": say([problem.question for problem in problems]),
        "the commonest answer": say([common] * len(problems)),
        "another problem's answer": say(others),
        f"that one, {LISTED} times": [text * LISTED for text in say(others)],
        "the numbers from 0 to 99": say([numbers] * len(problems)),
        f"{LISTED} answers and the right one": say(lists),
    }


def answer_in(gold: str) -> str:
    """What a right response answers: what its tags hold, or all of it."""
    return extract_answer(gold) or gold


def earn(
    task: TextTask, texts: Sequence[str], problems: Sequence[Problem]
) -> dict[str, Tensor]:
    """What each reward pays for a response to each problem. name -> [problem]

    Raises ValueError where a reward is not a finite number for each.
    """
    answers, earned = [problem.answer for problem in problems], {}
    for name, (function, _) in task.rewards.items():
        values = function(completions=list(texts), answer=answers)
        require_numbers(name, values, len(texts))
        earned[name] = torch.tensor(values, dtype=torch.float64)
    return earned


def total(task: TextTask, earned: dict[str, Tensor]) -> Tensor:
    """The weighted sum of the rewards. [problem]"""
    return sum(
        (weight * earned[name] for name, (_, weight) in task.rewards.items()),
        torch.tensor(0.0),
    )


# --- language_model.task_check.look


LOOKED_AT = 64  # problems that rewards are tried on


class Look:
    """What a task asks, and what is right. Rewards are tried on `some` problems."""

    def __init__(self, task: TextTask, config: GRPOConfig | None = None):
        self.task = task
        presets = task.presets or {"laptop": GRPOConfig()}
        self.config = config or next(iter(presets.values()))

    def ask(self, split: str) -> list[Problem]:
        """The problems of a split, as a run asks for them."""
        config = self.config
        count = config.num_problems if split == "train" else config.eval_problems
        return list(self.task.problems(split, count, config.seed))

    @cached_property
    def problems(self) -> list[Problem]:
        """All to train on."""
        return self.ask("train")

    @cached_property
    def some(self) -> list[Problem]:
        """The first of them."""
        return self.problems[:LOOKED_AT]

    @cached_property
    def golds(self) -> list[str]:
        """The right response to each of those."""
        return [self.task.gold(problem) for problem in self.some]

    @cached_property
    def cheap(self) -> dict[str, list[str]]:
        """What policies that know nothing say to them."""
        return cheap_policies(self.task, self.some)

    def paid(self, texts: Sequence[str]) -> list[float]:
        """What GRPO is paid for a response to each."""
        return total(self.task, earn(self.task, texts, self.some)).tolist()

    def right(self, texts: Sequence[str]) -> list[float]:
        """The first reward of a response to each: whether it is right."""
        return next(iter(earn(self.task, texts, self.some).values())).tolist()


# --- language_model.task_check.data


def count_fault(look: Look) -> str:
    """What is no problem, or too few or too many of them."""
    problems, most = look.problems, look.config.num_problems
    least = look.config.warm_start_batch_size if look.config.model is None else 1
    if not all(isinstance(problem, Problem) for problem in problems):
        return "problems must return Problem(question, answer) objects."
    if most is not None and len(problems) > most:
        return f"problems returns {len(problems)} where count={most} is the most."
    if len(problems) >= least:
        return ""
    return (
        f"problems returns {len(problems)} for split 'train', and a step of the warm "
        f"start takes {least}. Make more, or lower warm_start_batch_size."
    )


def answer_fault(look: Look) -> str:
    """One question with two right answers."""
    answers: dict[str, Any] = {}
    for problem in look.problems:
        if answers.setdefault(problem.question, problem.answer) != problem.answer:
            return (
                f"Two problems ask {problem.question!r}, and their answers are "
                f"{answers[problem.question]!r} and {problem.answer!r}. Say in the "
                "question what tells them apart."
            )
    return ""


def repeat_fault(look: Look) -> str:
    """Equal arguments, other problems."""
    if look.ask("train") == look.problems:
        return ""
    return (
        "Equal arguments give other problems each time. Draw them from a generator of "
        'their own, random.Random(f"{split} {seed}"): a resumed run asks for its '
        "problems again."
    )


def split_fault(look: Look) -> str:
    """What is measured on has been trained on.

    No split may ask a question of "train"; the first, which is reported, none that
    counts as the same problem.
    """
    first, *others = look.task.splits
    for split in (first, *(split for split in others if split != "train")):
        name = "group" if split == first else "question"
        trained, asked = (
            {getattr(problem, name) for problem in problems}
            for problems in (look.problems, look.ask(split))
        )
        if shared := trained & asked:
            return (
                f"{len(shared)} of the {len(asked)} problems of split {split!r} are "
                f"in 'train' too, such as {min(shared)!r}: memory would pass for "
                "learning. Keep a problem only where split_of(its text) == split."
            )
    return ""


def leak_fault(look: Look) -> str:
    """The right answer stands in the question, more often than another's does."""
    answers = [answer_in(gold).strip() for gold in look.golds]
    asked = [problem.question for problem in look.some]

    def share(said: list[str]) -> float:
        return sum(map(str.__contains__, asked, said)) / len(asked)

    if share(answers) - share(answers[1:] + answers[:1]) < 0.5:
        return ""
    return (
        f"The right answer stands in the question, in {share(answers):.0%} of the "
        f"problems, such as {asked[0]!r}. Copying is all there is to learn."
    )


def table_fault(look: Look) -> str:
    """Answers that come out of a table other than they went in."""
    return changed_answer([problem.answer for problem in look.some])


def changed_answer(answers: list[Any]) -> str:
    """Words on the first answer that a table gives back otherwise; "" if none."""
    try:
        back = list(Dataset.from_dict({"answer": answers})["answer"])
    except Exception:
        back = []
    for given, returned in zip(answers, back or [None] * len(answers), strict=True):
        if given != returned:
            return (
                f"The answer {given!r} comes back from the table that TRL reads as "
                f"{returned!r}. Make all answers texts, numbers, or dicts with the "
                "same keys; json.dumps makes a text of anything."
            )
    return ""


# --- language_model.task_check.length


SPARED = 0.1  # of the problems, whose right response may be cut off


def length_fault(look: Look) -> str:
    """A right response that is cut off before its end. A given model is let off."""
    config, gold = look.config, look.task.gold
    if config.model is not None:
        return ""
    texts = [
        conversation_text(p.question, gold(p), config.system_prompt)
        for p in look.problems
    ]
    tokenizer = make_tokenizer(texts, config.vocab_size)
    rows = tokenizer(look.golds, add_special_tokens=False)["input_ids"]
    lengths = [len(row) + 1 for row in rows]  # the end is a token, too
    cut = sum(length > config.max_new_tokens for length in lengths) / len(lengths)
    if cut <= SPARED:
        return ""
    return (
        f"The right response has up to {max(lengths)} tokens, and max_new_tokens="
        f"{config.max_new_tokens} cuts {cut:.0%} of them off: they can never be "
        "rewarded. Raise it in the preset, or let gold say less."
    )


# --- language_model.task_check.rewards


GUESSES = 8  # responses in a group


TIED = 0.5  # of the groups of a guesser, at most


FOOLED = 0.75  # of what the right response earns: what no cheap policy may


def call_fault(look: Look) -> str:
    """A reward that cannot be called by name, with columns that it does not use."""
    for name, (function, _) in look.task.rewards.items():
        try:
            signature(function).bind(completions=[], answer=[], prompts=[])
        except TypeError as error:
            return (
                f"rewards[{name!r}]: {error}. TRL calls it by name, with every column "
                "of its table: keep (completions, answer, **kwargs)."
            )
    return ""


def number_fault(look: Look) -> str:
    """A reward that is not one finite number for each completion, always the same."""
    for texts in ([*look.golds], *look.cheap.values()):
        try:
            first, again = (earn(look.task, texts, look.some) for _ in range(2))
        except ValueError as error:
            return str(error)
        for name in first:
            if first[name].tolist() != again[name].tolist():
                return (
                    f"rewards[{name!r}] pays the same completions differently the "
                    "second time. Let it depend on the text and the answer alone."
                )
    return ""


def chat_fault(look: Look) -> str:
    """A reward that cannot read a completion in the form in which TRL passes it."""
    chats = [[{"role": "assistant", "content": gold}] for gold in look.golds]
    answers = [problem.answer for problem in look.some]
    plain = earn(look.task, look.golds, look.some)
    for name, (function, _) in look.task.rewards.items():
        try:
            same = list(function(completions=chats, answer=answers))
        except Exception:
            same = []
        if same != plain[name].tolist():
            return (
                f"rewards[{name!r}] cannot read a chat, a list of messages, and TRL "
                "passes one. completion_texts(completions) makes texts of both kinds."
            )
    return ""


def equal_fault(look: Look) -> str:
    """Every response earns the same."""
    paid = {value for texts in look.cheap.values() for value in look.paid(texts)}
    paid |= set(look.paid(look.golds))
    if len(paid) > 1 or paid == {0.0}:
        return ""
    return (
        f"Every response earns {paid.pop():g}, the right one and nonsense alike: all "
        "groups are tied, and nothing can be learned."
    )


def gold_fault(look: Look) -> str:
    """A right response that is not found right."""
    for problem, gold, right in zip(
        look.some, look.golds, look.right(look.golds), strict=True
    ):
        if right != 1:
            return (
                f"The first reward gives the gold response {right:g}, not 1: {gold!r} "
                f"for the answer {problem.answer!r}. Does gold write what the reward "
                "reads?"
            )
    return ""


def share_fault(look: Look) -> str:
    """A first reward that is something between right and wrong."""
    near = [
        gold.replace(answer_in(gold), answer_in(gold)[:-1] + "?") for gold in look.golds
    ]
    for texts in (near, *look.cheap.values()):
        for text, right in zip(texts, look.right(texts), strict=True):
            if right not in (0, 1):
                return (
                    f"The first reward says whether a response is right, 1 or 0, and "
                    f"gives {right:g} to {text[:60]!r}. Put credit for a part of the "
                    "answer under a second name, with a weight of its own."
                )
    return ""


def blind_fault(look: Look) -> str:
    """Groups that tie though one of two responses answers another problem."""
    rng, golds, rows = random.Random(0), look.golds, []
    for _ in range(GUESSES):
        guesses = [rng.choice((gold, rng.choice(golds))) for gold in golds]
        rows.append(look.paid(guesses))
    tied = sum(len(set(group)) == 1 for group in zip(*rows, strict=True)) / len(golds)
    if tied <= TIED:
        return ""
    answer, often = Counter(map(answer_in, golds)).most_common(1)[0]
    if often > TIED * len(golds):
        return (
            f"{often} of {len(golds)} problems have the right answer {answer!r}, so "
            f"{tied:.0%} of the groups of a guesser are tied. Mix the answers."
        )
    return (
        f"{tied:.0%} of the groups are tied though every second response answers "
        "another problem: the reward pays for the form and does not compare with the "
        "answer."
    )


def fooled_fault(look: Look) -> str:
    """A policy that knows nothing earns nearly as much as the right response."""
    due = sum(look.paid(look.golds))
    for policy, texts in look.cheap.items():
        if (paid := sum(look.paid(texts))) >= FOOLED * due:
            return (
                f"{policy.capitalize()} earns {paid / due:.0%} of what the right "
                f"response does: {texts[0][:60]!r}. Training finds it first. Grade "
                "one answer, and all of it."
            )
    return ""


def demonstration_fault(look: Look) -> str:
    """A warm start from which GRPO finds nothing to reward."""
    rng = random.Random(0)
    shown = [look.task.demonstration(problem, rng) for problem in look.some]
    if any(look.right(shown)):
        return ""
    return (
        f"None of {len(shown)} demonstrations is right, such as {shown[0]!r}. The warm "
        "start imitates them, and GRPO then finds nothing to reward: show a right one "
        "now and then."
    )


REWARD_CHECKS: tuple[Callable[[Look], str], ...] = (
    call_fault,
    number_fault,
    chat_fault,
    equal_fault,
    gold_fault,
    share_fault,
    blind_fault,
    fooled_fault,
    demonstration_fault,
)


# --- language_model.task_check.source


RUNS = (
    "runs what the model writes, and a model may write anything. Read the text with "
    "int, json.loads or ast.literal_eval, or walk it as grpo_course/countdown.py does."
)


FORBIDDEN = {
    "eval": RUNS,
    "exec": RUNS,
    "hash": "of a text is another number in each process, so a resumed run would ask "
    "other problems. Take split_of(text), or zlib.crc32(text.encode()).",
}


def source_fault(look: Look) -> str:
    """A forbidden name in the file of the task or of one of its rewards."""
    functions = [function for function, _ in look.task.rewards.values()]
    for source in dict.fromkeys(map(source_of, (type(look.task), *functions))):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name) and node.id in FORBIDDEN:
                return f"Line {node.lineno} uses {node.id}. It {FORBIDDEN[node.id]}"
    return ""


def source_of(owner: Any) -> str:
    """The text of the file of a class or function; in a notebook, of itself alone."""
    file = getattr(sys.modules.get(owner.__module__), "__file__", None)
    try:
        if file:
            return Path(file).read_text("utf-8")
        return textwrap.dedent(inspect.getsource(owner))
    except (OSError, TypeError):
        return ""


# --- language_model.task_check


WIDTH = 79


CHECKS = (
    source_fault,
    count_fault,
    answer_fault,
    repeat_fault,
    split_fault,
    leak_fault,
    *REWARD_CHECKS,
    length_fault,
    table_fault,
)


__all__ = ["attack", "check_task", "find_fault"]


def check_task(task: TextTask, config: GRPOConfig | None = None) -> bool:
    """Print the first mistake, or that there is none and what cheap policies earn.

    -> whether none was found. `config` as in `find_fault`.
    """
    if words := find_fault(task, config):
        print("\n".join(wrap(f"[x] {words}", WIDTH, subsequent_indent="    ")))
        return False
    print(f"[v] {len(CHECKS)} checks found nothing wrong. What earns how much:")
    print(attack(task).to_string(float_format="{:.2f}".format))
    return True


def find_fault(task: TextTask, config: GRPOConfig | None = None) -> str:
    """The first mistake in a task, in words with its cure; "" where none is found.

    `config` says how many problems a run takes and how long a response may be; None:
    the first of the task's presets.
    """
    look = Look(task, config)
    for check in CHECKS:
        try:
            words = check(look)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            kind = type(error).__name__
            return f"{where.name} (line {where.lineno}) ends in {kind}: {error}"
        if words:
            return words
    return ""
