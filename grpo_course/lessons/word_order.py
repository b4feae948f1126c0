"""15: three words in the other order, a task for a model that others trained."""

from random import Random
from typing import ClassVar

from grpo_course.text.responses import graded
from grpo_course.text.tasks import Problem, TextTask, settings, split_of

EVERY_WORD = (
    "apple bird boat book bread chair cloud door fish flower glass grass hand horse "
    "house lamp leaf milk moon paper rain river road salt ship snow stone street sun "
    "table tree water wind window"
)
WORDS = EVERY_WORD.split()


def is_turned(text: str, answer: str) -> bool:
    return text.lower().split() == answer.split()


def accuracy(completions, answer, **kwargs):
    return graded(is_turned, completions, answer)


@settings()
class WordOrder(TextTask):
    rewards: ClassVar = {"accuracy": (accuracy, 1.0)}
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

    # Equal arguments give equal problems, and no split has a question of another.
    def problems(self, split, count, seed):
        rng = Random(f"{split} {seed}")
        found: dict[str, Problem] = {}
        while len(found) < count:
            words = rng.sample(WORDS, 3)
            if split_of(" ".join(words)) == split:
                asked = f"Write in the other order: {' '.join(words)}"
                found[asked] = Problem(asked, " ".join(reversed(words)))
        return list(found.values())

    # A response that earns every reward.
    def gold(self, problem):
        return problem.answer
