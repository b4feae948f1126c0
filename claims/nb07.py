"""The claims of 07_zero_loss."""

from functools import partial
from typing import Any

from torch import Tensor

from claims.claim import BEST, Claim, Setting
from claims.experiments import PROMPT_SETS, sort_after
from grpo_course.sort import (
    run_policy_gradient,
    sort_distance_reward,
    sort_exact_reward,
)

healthy = partial(
    sort_after,
    measure="expected_reward",
    num_epochs=150,
    num_steps_per_epoch=1,
    learning_rate=3e-3,
    deltas_mode="normalized_rewards",
    loss_mode="clipped",
)


def share_reward(prompt: list[int], response: list[int]) -> float:
    """The distance reward, at most 1."""
    return sort_distance_reward(prompt, response) / 3


def seen(
    setting: Setting,
    name: str,
    part: slice,
    num_epochs: int = 150,
    learning_rate: float = 3e-3,
    **knobs: Any,
) -> Tensor:
    """The mean of one column of the log over some of its epochs. -> [seed]"""
    settings = START | ONE_STEP | knobs
    run = run_policy_gradient(
        max(10, round(num_epochs * setting.length)),
        learning_rate=learning_rate * setting.rate,
        prompts=PROMPT_SETS[setting.prompts],
        seeds=setting.seeds,
        **settings,
    )
    steps = settings["num_steps_per_epoch"]
    rows = run.curve(name).unflatten(0, (-1, steps))  # [epoch step seed]
    return rows[part, -1].mean(dim=0)


START: dict[str, Any] = {"reward_fn": share_reward, "init_scale": 0.1}
ONE_STEP: dict[str, Any] = {
    "num_steps_per_epoch": 1,
    "deltas_mode": "normalized_rewards",
    "loss_mode": "clipped",
}
FIRST, LAST = slice(0, 10), slice(-10, None)
AT_TEN = slice(9, 10)
tied: dict[str, Any] = {"init_scale": 1.0, "reward_fn": sort_exact_reward}
with_kl: dict[str, Any] = {
    "num_epochs": 100,
    "kl_penalty": 0.05,
    "compute_ref_model_period": 10_000,
}
many: dict[str, Any] = {
    "num_epochs": 100,
    "num_steps_per_epoch": 8,
    "learning_rate": 1e-3,
}
pays: dict[str, Any] = {
    "kl_penalty": 0.01,
    "kl_estimator": "k2",
    "compute_ref_model_period": 10_000,
}
NO_BEST = {BEST: "no arm is to be made large"}


def nothing(setting: Setting) -> float:
    """The bound zero."""
    return 0.0


CLAIMS = (
    Claim(
        "07.learns",
        "The policy learns, and the loss does not measure it.",
        healthy,
        partial(healthy, learning_rate=0.0),
        leave_out={BEST: "the other arm does not train"},
    ),
    Claim(
        "07.beta_kl",
        "the loss **rises** while the reward rises",
        partial(seen, name="loss", part=LAST, **with_kl),
        partial(seen, name="loss", part=slice(0, 3), **with_kl),
        leave_out=NO_BEST,
    ),
    Claim(
        "07.later_steps",
        "the curve starts at zero and goes below it",
        nothing,
        partial(
            seen, name="policy_loss", part=slice(None), **(many | {"num_epochs": 50})
        ),
        leave_out=NO_BEST,
    ),
    Claim(
        "07.ties",
        "ties near 1 from the start",
        partial(seen, name="tied_groups", part=FIRST, **tied),
        partial(seen, name="tied_groups", part=FIRST),
        leave_out=NO_BEST,
    ),
    Claim(
        "07.entropy",
        "entropy gone within ten epochs",
        partial(seen, name="sampled_entropy", part=AT_TEN),
        partial(seen, name="sampled_entropy", part=AT_TEN, learning_rate=0.09),
        leave_out=NO_BEST,
    ),
    Claim(
        "07.pays",
        "It ends **highest** for the healthy run, which alone pays for KL.",
        partial(seen, name="loss", part=LAST, **many, **pays),
        partial(seen, name="loss", part=LAST, **(many | {"learning_rate": 0.03})),
        leave_out=NO_BEST,
    ),
    Claim(
        "07.rate",
        "The panels say that a learning rate 30 times as large learns less.",
        healthy,
        partial(healthy, learning_rate=0.09),
    ),
)
