"""The claims of 03_deltas."""

from functools import partial

import torch
from torch import Tensor

from claims.claim import Claim, Setting
from claims.experiments import PROMPT_SETS, loss_of, mean_of, one_step
from grpo_course.sort import run_policy_gradient, sort_distance_reward

NOISE = "Noise costs most when steps are large: then pairs learn least, and modes "
NOISE += "without a baseline fall behind."
SMALL = "With smaller steps pairs catch up or win, and a baseline's lead shrinks."
NOTHING = "Without a baseline, a reward that says nothing collapses the policy, and an "
NOTHING += "offset ruins learning."
UNEVEN = "Dividing by the spread helps when prompts pay unevenly, and gives rare "
UNEVEN += "outcomes more weight."
LOUDER = {tuple(p): 10.0**i for s in PROMPT_SETS for i, p in enumerate(s.tolist())}
RATES = {
    name: "the claim is about this rate"
    for name in ("a third of the rate", "three times the rate", "each at its best rate")
}


def with_offset(prompt: list[int], response: list[int]) -> float:
    return sort_distance_reward(prompt, response) + 10


def uneven(prompt: list[int], response: list[int]) -> float:
    return LOUDER[tuple(prompt)] * sort_distance_reward(prompt, response)


def entropy(setting: Setting, epoch: int) -> Tensor:
    """At an epoch of training on raw rewards that are all 1. -> [seed]"""
    run = run_policy_gradient(
        num_epochs=round(100 * setting.length),
        num_steps_per_epoch=1,
        learning_rate=0.01 * setting.rate,
        prompts=PROMPT_SETS[setting.prompts],
        seeds=setting.seeds,
        reward_fn=lambda prompt, response: 1.0,
        deltas_mode="rewards",
        loss_mode="naive",
        init_scale=0.1,
    )
    return run.curve("entropy")[epoch]


unevenly = partial(one_step, reward_fn=uneven, num_epochs=200)
by_sgd = partial(unevenly, optimizer=torch.optim.SGD, learning_rate=0.03)
by_adam = partial(unevenly, learning_rate=0.003)
raw = partial(one_step, deltas_mode="rewards")
centered = partial(one_step, deltas_mode="centered_rewards")


def of_size(size: int, samples: int = 1000, **knobs) -> partial:
    """So many responses to each prompt, in groups of one size."""
    arm = partial(one_step, deltas_mode="normalized_rewards", **knobs)
    return partial(arm, num_responses=size, num_epochs=samples // size)


def lead(rate: float) -> partial:
    """By how much centered rewards are ahead of raw ones."""
    ahead, behind = (partial(arm, learning_rate=rate) for arm in (centered, raw))
    return partial(loss_of, ahead, behind)


def these(*modes: str) -> partial:
    return partial(mean_of, [partial(one_step, deltas_mode=mode) for mode in modes])


CLAIMS = (
    Claim(
        "03.collapse",
        NOTHING,
        partial(entropy, epoch=0),
        partial(entropy, epoch=-1),
        leave_out={"each at its best rate": "there is nothing to be best at"},
    ),
    Claim("03.offset", NOTHING, raw, partial(raw, reward_fn=with_offset)),
    Claim(
        "03.offset_centered",
        "Centered rewards end in the same place with it and without it,",
        centered,
        partial(centered, reward_fn=with_offset),
        within=0.05,
    ),
    Claim(
        "03.uneven",
        UNEVEN,
        partial(by_adam, deltas_mode="normalized_rewards"),
        partial(by_adam, deltas_mode="centered_rewards"),
        told=Setting(seeds=range(32)),
    ),
    Claim(
        "03.uneven_sgd",
        "dividing by the group's spread wins with both,",
        partial(by_sgd, deltas_mode="normalized_rewards"),
        partial(by_sgd, deltas_mode="centered_rewards"),
        told=Setting(seeds=range(32)),
    ),
    Claim(
        "03.uneven_batch",
        "The batch's spread does not help:",
        partial(by_adam, deltas_mode="normalized_rewards"),
        partial(by_adam, deltas_mode="batch_normalized_rewards"),
        told=Setting(seeds=range(32)),
    ),
    Claim("03.pairs", NOISE, of_size(32), of_size(2), told=Setting(range(32))),
    Claim(
        "03.pairs_small",
        SMALL,
        of_size(32, learning_rate=0.003),
        of_size(2, learning_rate=0.003),
        within=0.15,
        told=Setting(range(32)),
        leave_out=RATES | {"half as long": "that is 03.pairs_reversed"},
    ),
    Claim(
        "03.pairs_reversed",
        "With these settings the claim is reversed:",
        of_size(2, samples=500, learning_rate=0.003),
        of_size(32, samples=500, learning_rate=0.003),
        told=Setting(range(32)),
        leave_out=RATES | {"twice as long": "that is 03.pairs_small"},
    ),
    Claim("03.baseline", NOISE, centered, raw, told=Setting(range(32))),
    Claim(
        "03.family",
        "`rewards`, `max` and `softmax` have no baseline, and are behind.",
        these("centered_rewards", "centered_max_rewards", "centered_softmax_rewards"),
        these("rewards", "max_rewards", "softmax_rewards"),
    ),
    Claim(
        "03.lead",
        SMALL,
        lead(0.01),
        lead(0.003),
        told=Setting(range(32)),
        leave_out=RATES,
    ),
)
