"""What 17_judges_and_teachers claims."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from claims.runner import BEST, PROMPT_SETS, Claim, Setting
from grpo_course.lessons.judges import judge_errors, sorts_after
from grpo_course.lessons.preferences import (
    climb,
    draw_pairs,
    learn_reward,
    scores_of,
    true_rewards,
    warm_start,
)
from grpo_course.sort import (
    all_log_probs,
    exact_expected_reward,
    sort_distance_reward,
)


def climbing(setting: Setting) -> dict[str, Any]:
    """How a climb is varied."""
    epochs = round(60 * setting.length)
    return {"num_epochs": epochs, "learning_rate": 0.001 * setting.rate}


def true_reward(
    setting: Setting,
    num_pairs: int = 40,
    beta: float = 0.0,
    warm_epochs: int = 10,
    fit_steps: int = 200,
    corrected: float | None = None,
) -> Tensor:
    """What a policy is worth after it climbed a learned reward. -> [seed]

    With `corrected`, responses that are overrated and that the start writes with this
    probability or more are marked below the right one.
    """
    seeds, prompts = setting.seeds, PROMPT_SETS[setting.prompts]
    pairs = draw_pairs(num_pairs, seeds, prompts)
    model, _ = learn_reward(pairs, seeds, prompts, fit_steps)
    marks, policy = scores_of(model, prompts), warm_start(seeds, prompts, warm_epochs)
    if corrected is not None:
        best = true_rewards(prompts).argmax(-1, keepdim=True)  # [batch 1]
        of_right = marks.gather(-1, best.expand(len(marks), -1, -1))
        written = all_log_probs(policy.model, prompts).exp().detach() >= corrected
        marks = torch.where(written & (marks > of_right), of_right - 0.1, marks)
    return climb(marks, policy, prompts, beta, **climbing(setting)).final("true")


def the_start(setting: Setting) -> Tensor:
    """What a policy is worth before it climbs. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    policy = warm_start(setting.seeds, prompts)
    worth = exact_expected_reward(policy.model, prompts, sort_distance_reward)
    return worth.mean(-1).detach()


def by_panel(setting: Setting, num_judges: int, correlation: float = 0.0) -> Tensor:
    """P(sorted) after climbing the mean mark of such judges. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    errors = judge_errors(num_judges, correlation, setting.seeds, prompts).mean(0)
    marks = true_rewards(prompts) + errors
    return sorts_after(marks, setting.seeds, prompts, **climbing(setting))


poor_start = partial(true_reward, num_pairs=640, fit_steps=30, warm_epochs=3)
FromStart = partial(Claim, not_tried={BEST: "one arm is the start, and has no rate"})
# fmt: off
CLAIMS = (
    FromStart("17.judge", "Climbing a reward learned from few pairs costs true reward.",
        (the_start, true_reward)),
    Claim("17.written",
        "Correcting only the mistakes that the start writes saves true reward.",
        (partial(true_reward, corrected=0.001), true_reward)),
    Claim("17.pairs", "A reward learned from more pairs leaves more true reward.",
        (partial(true_reward, num_pairs=160), partial(true_reward, num_pairs=10))),
    FromStart("17.low_beta", "A small β, 0.1, does not prevent the cost of climbing.",
        (the_start, partial(true_reward, beta=0.1))),
    Claim("17.beta", "β = 1 keeps more true reward than none.",
        (partial(true_reward, beta=1.0), true_reward)),
    Claim("17.price",
        "Where the learned reward is good and the start poor, β = 1 gives up gain.",
        (poor_start, partial(poor_start, beta=1.0))),
    Claim("17.panel", "Sixteen judges that err independently teach more than one.",
        (partial(by_panel, num_judges=16), partial(by_panel, num_judges=1))),
    Claim("17.alike", "Sixteen judges that err alike teach less than independent ones.",
        (partial(by_panel, num_judges=16),
         partial(by_panel, num_judges=16, correlation=0.5))),
)
# fmt: on
