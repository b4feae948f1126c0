"""15: three words in the other order, a task for a model that others trained.

Its second reward is a bad one, for notebook 15 to catch.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from grpo_course.text.responses import completion_texts, graded
from grpo_course.text.tasks import Problem, TextTask, split_of

WORDS = (
    "apple bird boat book bread chair cloud door fish flower glass grass hand horse "
    "house lamp leaf milk moon paper rain river road salt ship snow stone street sun "
    "table tree water wind window"
)


def is_turned(text: str, answer: str) -> bool:
    return text.lower().split() == answer.split()


def accuracy(completions, answer, **kwargs):
    return graded(is_turned, completions, answer)


def same_words(completions, answer, **kwargs):
    """Credit for a part: the share of the words of the answer that are there."""
    given = [set(text.lower().split()) for text in completion_texts(completions)]
    return [
        len(words & set(right.split())) / len(right.split())
        for words, right in zip(given, answer, strict=True)
    ]


class WordOrder(TextTask):
    rewards: ClassVar = {"accuracy": (accuracy, 1.0), "same_words": (same_words, 0.5)}
    examples: ClassVar = (
        ("Write in the other order: snow lamp fish", "fish lamp snow"),
        ("Write in the other order: road bird glass", "glass bird road"),
    )
    presets: ClassVar = {
        "pretrained": {
            "system_prompt": "You write the given words in the other order.",
            "max_new_tokens": 16,
        }
    }

    def problems(self, split, count, seed):
        rng = random.Random(f"{split} {seed}")
        found: dict[str, Problem] = {}
        while len(found) < count:
            words = rng.sample(WORDS.split(), 3)
            if split_of(" ".join(words)) == split:
                asked = f"Write in the other order: {' '.join(words)}"
                found[asked] = Problem(asked, " ".join(reversed(words)))
        return list(found.values())

    def gold(self, problem):
        return problem.answer


def groups_paid(asked: Sequence[Mapping[str, Any]], *rewards: Callable) -> Tensor:
    """What each group of recorded texts is paid. [reward group trial]"""
    return torch.tensor(
        [
            [reward(one["texts"], [one["answer"]] * len(one["texts"])) for one in asked]
            for reward in rewards
        ]
    )
