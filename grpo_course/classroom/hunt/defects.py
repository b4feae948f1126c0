"""All defects, by number. The numbers are shuffled: they say nothing about a stage."""

import random

from grpo_course.classroom.hunt.defect import Defect
from grpo_course.classroom.hunt.defects_of_losses import LOSSES
from grpo_course.classroom.hunt.defects_of_rewards import REWARDS
from grpo_course.classroom.hunt.defects_of_tokens import TOKENS
from grpo_course.classroom.hunt.defects_of_updates import UPDATES

SHUFFLED = [*TOKENS, *REWARDS, *LOSSES, *UPDATES]
random.Random(2024).shuffle(SHUFFLED)
DEFECTS: dict[int, Defect] = dict(enumerate(SHUFFLED, start=1))
CAUSES = sorted(defect.cause for defect in SHUFFLED)
# (the one that hides, the one that is hidden): with the first, the second changes
# nothing; once the first is repaired, it shows.
HIDING = (
    ("end token left in the graded text", "reward looks at another prompt's answer"),
    ("end token left in the graded text", "groups that mix prompts"),
    ("old scores taken from the current policy", "old scores in low precision"),
    ("old scores taken from the current policy", "clip blind to the sign of delta"),
    ("KL computed and not used", "reference is the policy itself"),
)


def number_of(cause: str) -> int:
    """The number of the trainer with this cause."""
    for number, defect in DEFECTS.items():
        if defect.cause == cause:
            return number
    raise ValueError(f"cause={cause!r} is none of the causes: choose one of {CAUSES}.")
