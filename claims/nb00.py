"""What 00_welcome claims."""

from torch import Tensor

from claims.runner import NO_RATE, PLAIN, PROMPT_SETS, Claim, Setting, sort_after
from grpo_course.sort import all_responses


def unseen(setting: Setting) -> Tensor:
    """How often the other 122 prompts are sorted. -> [seed]"""
    every, trained = all_responses(5, 3), PROMPT_SETS[setting.prompts]
    others = every[~(every[:, None] == trained).all(dim=-1).any(dim=-1)]
    return sort_after(setting, "held_out_probability", held_out=others, **PLAIN)


# fmt: off
CLAIMS = (
    Claim("00.learns", "GRPO learns to sort three prompts, more often than not.",
        (PLAIN, 0.5), not_tried=NO_RATE),
    Claim("00.unseen", "It hardly ever sorts a prompt that it was not trained on.",
        (0.1, unseen), not_tried=NO_RATE),
)
# fmt: on
