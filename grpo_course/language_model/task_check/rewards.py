"""What is wrong with the grading of a task."""

import random
from collections import Counter
from collections.abc import Callable
from inspect import signature

from grpo_course.language_model.task_check.attack import answer_in, earn
from grpo_course.language_model.task_check.look import Look

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
