"""What 06_training_loop claims."""

from torch import Tensor

from claims.runner import PROMPT_SETS, Claim, Setting, mean_of, repeated
from grpo_course.lessons.exercises.nb06 import colleagues, learning_curve


def by_hand(name: str):
    """A loop with a wrong line, by its letter, or the right one."""

    def arm(setting: Setting) -> Tensor:
        rate, length = 0.001 * setting.rate, round(50 * setting.length)
        curve = learning_curve(
            colleagues()[name],
            setting.seeds,
            rate,
            PROMPT_SETS[setting.prompts],
            length,
        )
        return curve[-1]

    return repeated(arm, 4)


# fmt: off
CLAIMS = (
    Claim("06.curve", "Four loops with a wrong line learn as much as a right one.",
        (mean_of([by_hand(letter) for letter in "BCDG"]), by_hand("right")),
        within=0.1),
)
# fmt: on
