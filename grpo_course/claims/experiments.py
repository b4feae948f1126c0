"""Runs that the claims of several notebooks are made of."""

import torch
from torch import Tensor

from grpo_course.claims.claim import Setting
from grpo_course.sorting.policy_gradient import SORT_PROMPTS, run_policy_gradient

PROMPT_SETS = (SORT_PROMPTS, torch.tensor([[4, 1, 0], [2, 4, 3], [0, 3, 1]]))


def sort_after(
    setting: Setting,
    measure: str = "sorted_probability",
    num_epochs: int = 100,
    learning_rate: float = 1e-3,
    **knobs,
) -> Tensor:
    """What a sort policy has reached after training. -> [seed]"""
    run = run_policy_gradient(
        num_epochs=max(1, round(num_epochs * setting.length)),
        learning_rate=learning_rate * setting.rate,
        prompts=PROMPT_SETS[setting.prompts],
        seeds=setting.seeds,
        **knobs,
    )
    return run.final(measure)
