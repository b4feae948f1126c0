"""What 13_beyond_grpo claims."""

from functools import cache, partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from claims.nb04 import clipped_alone
from claims.runner import Claim, Setting
from grpo_course.formulas import LOSS_MODES, compute_deltas, compute_loss
from grpo_course.lessons.exercises.nb13 import sequence_loss
from grpo_course.off_policy import StaleSampler
from grpo_course.sampling import Sampler
from grpo_course.sequences import (
    TinyLM,
    all_sort_prompts,
    make_policy,
    place_reward,
    token_share,
    train_sort,
)


@cache  # one run of plain GRPO is compared with every variant
def sorting(setting: Setting, lag: int = 0, **change) -> Tensor:
    """The reward after 20 epochs, with a writer that is `lag` epochs old. -> [seed]"""
    knobs: dict[str, Any] = {"num_steps_per_epoch": 4} | change
    if lag:
        knobs["wrap"] = lambda policy: StaleSampler(policy, lag)
    num_epochs, rate = round(20 * setting.length), 0.01 * setting.rate
    policy, _ = train_sort(place_reward, setting.seeds, num_epochs, rate, **knobs)
    return place_reward(policy.sample(all_sort_prompts(), 4)).mean((-2, -1))


@patch.dict(LOSS_MODES, no_minimum=clipped_alone)
def no_minimum(setting: Setting) -> Tensor:
    """With the clipped product alone. -> [seed]"""
    return sorting(setting, loss_mode="no_minimum")


def per_token(new, old, deltas) -> Tensor:
    """The clip of each token by itself, as a loss. -> scalar"""
    return compute_loss(new, deltas, "clipped", old).mean()


def weighted(new, old, deltas) -> Tensor:
    """CISPO."""
    return compute_loss(new, deltas, "cispo", old, epsilon_high=0.2).mean()


def inside(new, old, deltas) -> Tensor:
    """A token outside the range has no push, whichever way it would go."""
    ratio = (new - old).exp()
    return -(ratio * deltas[..., None]).where((ratio - 1).abs() < 0.2, 0.0).mean()


def shares_of_ones(setting: Setting, loss_fn, vocabulary=10, length=24) -> Tensor:
    """The reward of each rollout, of 12 as told. -> [rollout seed]"""
    model = TinyLM(vocabulary, seeds=setting.seeds)
    policy = make_policy(model, Sampler(length), setting.seeds)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01 * setting.rate)
    curve = []
    for _ in range(round(12 * setting.length)):
        rollout = policy.sample(torch.zeros(8, 2, dtype=torch.long), 8)
        rewards = token_share(rollout.responses, None, 1)  # [seed batch trial]
        deltas = compute_deltas(rewards, "normalized_rewards")
        with torch.no_grad():
            old = policy.log_probs(rollout)
        for _ in range(4):
            loss = loss_fn(policy.log_probs(rollout), old, deltas)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        curve.append(rewards.mean((1, 2)))
    return torch.stack(curve)


def share_of_ones(setting: Setting, loss_fn) -> Tensor:
    """The reward of the last rollout. -> [seed]"""
    return shares_of_ones(setting, loss_fn)[-1]


def rare_token(setting: Setting, loss_fn) -> Tensor:
    """The share of one token of a hundred, as a mean of the rollouts. -> [seed]"""
    return shares_of_ones(setting, loss_fn, vocabulary=100, length=1).mean(0)


NO_PROMPTS = {"other prompts": "the epochs draw from all 216 of them"}
Variant = partial(Claim, not_tried=NO_PROMPTS)
Once = partial(Claim, not_tried={"other prompts": "there is one prompt"})
# fmt: off
CLAIMS = (
    Variant("13.dr_grpo",
        "On sorting, deltas without the spread stay within 0.06 of GRPO's.",
        (partial(sorting, deltas_mode="centered_rewards"), sorting), within=0.06),
    Variant("13.cispo", "On sorting, CISPO falls behind GRPO.",
        (sorting, partial(sorting, loss_mode="cispo"))),
    Variant("13.no_clip", "On sorting, a run without a clip falls behind GRPO.",
        (sorting, partial(sorting, loss_mode="unclipped"))),
    Variant("13.both", "On sorting, to let go of all outside falls behind GRPO.",
        (sorting, no_minimum)),
    Variant("13.stale", "A clip around an old writer slows learning.",
        (partial(sorting, lag=4),
         partial(sorting, lag=4, old_log_probs_from="sampler"))),
    Once("13.gspo",
        "At 24 tokens, a clip for each response leads a clip for each token.",
        (partial(share_of_ones, loss_fn=sequence_loss),
         partial(share_of_ones, loss_fn=per_token))),
    Once("13.imbalance",
        "A clip for each token learns more if it lets go of all that is outside it.",
        (partial(share_of_ones, loss_fn=inside),
         partial(share_of_ones, loss_fn=per_token))),
    Once("13.rare", "A rare token rises faster under CISPO than under the clip.",
        (partial(rare_token, loss_fn=weighted),
         partial(rare_token, loss_fn=per_token))),
)
# fmt: on
