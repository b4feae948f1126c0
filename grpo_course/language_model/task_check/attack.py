"""What policies that know nothing earn: try them before a trained one finds them."""

from collections import Counter
from collections.abc import Sequence

import torch
from pandas import DataFrame
from torch import Tensor

from grpo_course.language_model.environment import require_numbers
from grpo_course.language_model.template import extract_answer, in_template
from grpo_course.language_model.text_task import Problem, TextTask

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
