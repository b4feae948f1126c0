"""What 07_zero_loss claims."""

from functools import partial
from typing import Any

from torch import Tensor

from claims.runner import BEST, PLAIN, Claim, Setting, sort_run
from grpo_course.sort import sort_distance_reward

healthy = PLAIN | {
    "measure": "expected_reward",
    "num_epochs": 150,
    "num_steps_per_epoch": 1,
    "learning_rate": 3e-3,
}


def share_reward(prompt: list[int], response: list[int]) -> float:
    """The distance reward, at most 1."""
    return sort_distance_reward(prompt, response) / 3


def seen(name: str, part: slice, step: int, /, **changes):
    """The mean of one column of the log at one inner step, over some of its epochs."""
    knobs: dict[str, Any] = {k: v for k, v in healthy.items() if k != "measure"}
    knobs |= {"reward_fn": share_reward} | changes

    def arm(setting: Setting) -> Tensor:
        column = sort_run(setting, **knobs).curve(name)
        rows = column.unflatten(0, (-1, knobs["num_steps_per_epoch"]))
        return rows[part, step].mean(dim=0)  # of [epoch step seed]

    return arm


LAST = slice(-10, None)
with_kl = {"num_epochs": 100, "num_steps_per_epoch": 2, "kl_penalty": 0.05}
with_kl |= {"compute_ref_model_period": 10_000}
many = {"num_epochs": 100, "num_steps_per_epoch": 8, "learning_rate": 1e-3}


Logged = partial(Claim, not_tried={BEST: "no arm is to be made large"})
# fmt: off
CLAIMS = (
    Claim("07.learns", "The policy learns, whatever its loss says.",
        (healthy, healthy | {"learning_rate": 0.0}),
        not_tried={BEST: "the other arm does not train"}),
    Logged("07.beta_kl",
        "With a KL penalty, the loss at the first step rises while the policy learns.",
        (seen("loss", LAST, 0, **with_kl), seen("loss", slice(0, 3), 0, **with_kl))),
    Logged("07.later_steps",
        "With several steps on each rollout, the loss of the last is below zero.",
        (0.0, seen("policy_loss", slice(None), -1, **many | {"num_epochs": 50}))),
)
# fmt: on
