"""Each setting reaches what it sets: change one, and what it should change changes.

A row says which other settings are needed, what to look at, and what must be true of it
without and with the change. A field without a row fails the test.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest
import torch

from grpo_course.formulas import compute_deltas
from grpo_course.loop import TrainConfig, Trainer
from grpo_course.ppo import PPO, Critic, PPOConfig
from grpo_course.sampling import Sampler
from grpo_course.sequences import SequencePolicy, TinyLM
from tests.engine import EngineSampler

PROMPTS = torch.tensor([[1, 2], [3, 4], [2, 2], [4, 1], [3, 3]])
EOS = 0
QUICK = {
    "num_epochs": 2,
    "num_steps_per_epoch": 3,
    "num_responses": 4,
    "deltas_mode": "centered_rewards",
}


class Noting(SequencePolicy):
    """Notes how many prompts are asked, and the rows of each forward pass."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.asked, self.rows, self.frozen_rows = [], [], []

    def sample(self, prompts, num_responses):
        self.asked.append(len(prompts))
        return super().sample(prompts, num_responses)

    def log_probs(self, rollout):
        rows = self.rows if torch.is_grad_enabled() else self.frozen_rows
        rows.append(rollout.responses.shape[-3])
        return super().log_probs(rollout)


def count_ones(rollout):
    return (rollout.responses == 1).float().sum(-1)


def tied_at_first(rollout):
    """Tied in the first three groups. -> [batch trial]"""
    rewards = count_ones(rollout) + torch.arange(4) / 10
    rewards[:3] = 0.3
    return rewards


def make_trainer(
    knobs, reward_fn=count_ones, engine=False, config=TrainConfig, kinds=(Trainer, PPO)
):
    """The loop on the tiny language model, before any step; responses end by chance."""
    model = TinyLM(5, hidden_size=8)
    sampler = Sampler(6, eos=EOS, pad=EOS)
    policy = Noting(model, sampler, torch.Generator().manual_seed(0))
    weights, kind, more = list(model.parameters()), kinds[0], {}
    if config is PPOConfig:
        kind, more["critic"] = kinds[1], Critic(5, 4, 2, 6)
        more["entropy"] = lambda rollout: -policy.log_probs(rollout).mean((-2, -1))
        weights += more["critic"].parameters()
    actor = policy
    if engine:  # what samples is not what scores
        actor = EngineSampler(policy, replace(sampler, temperature=0.5))
    settings = config(**(QUICK | knobs))
    optimizer = torch.optim.SGD(weights, lr=1.0)
    return kind(actor, PROMPTS, reward_fn, optimizer, settings, **more)


# What to look at


def steps(trainer):
    return len(trainer.train().records)


def curve(name):
    return lambda trainer: trainer.train().curve(name)


def at_start(name):
    return lambda trainer: trainer.train().epochs(name)


def batch(trainer):
    return trainer.collect(PROMPTS)


def deltas(trainer):
    return batch(trainer).deltas


def after_training(name):
    def look(trainer):
        trainer.train()
        return getattr(trainer, name)

    return look


def rows(trainer):
    trainer.train()
    return trainer.policy.rows


def way(trainer):
    """How far the weights went."""
    before = [w.detach().clone() for w in trainer.policy.model.parameters()]
    trainer.train()
    pairs = zip(before, trainer.policy.model.parameters(), strict=True)
    return sum((a - b).square().sum() for a, b in pairs).sqrt().item()


def differs(before, after):
    return not torch.equal(before, after)


def more(before, after):
    return after.sum() > before.sum()


@dataclass
class Row:
    """What a changed value must do, with which other settings."""

    value: Any
    look: Callable
    is_right: Callable[[Any, Any], bool]
    knobs: dict = field(default_factory=dict)
    world: dict = field(default_factory=dict)


TIED, ENGINE = {"reward_fn": tied_at_first}, {"engine": True}
KL = {"kl_penalty": 0.1}
TRAIN = {
    "num_epochs": Row(3, steps, lambda b, a: (b, a) == (6, 9)),
    "num_steps_per_epoch": Row(4, steps, lambda b, a: (b, a) == (6, 8)),
    "num_responses": Row(
        6, lambda t: batch(t).rewards.shape[-1], lambda b, a: (b, a) == (4, 6)
    ),
    "deltas_mode": Row(
        "leave_one_out",
        batch,
        lambda b, a: torch.equal(a.deltas, compute_deltas(b.rewards, "leave_one_out")),
    ),
    "loss_mode": Row(
        "cispo",
        curve("gradient_fraction"),
        lambda b, a: b.min() < 1 and (a == 1).all(),
        {"deltas_mode": "rewards", "num_responses": 16, "num_epochs": 1},
        {"reward_fn": lambda rollout: 1 + count_ones(rollout)},
    ),
    "epsilon": Row(0.001, curve("clip_fraction_low"), more),
    "epsilon_high": Row(0.001, curve("clip_fraction_high"), more),
    "ratio_level": Row("sequence", curve("ratio_max"), lambda b, a: a[1] < b[1]),
    "dual_clip": Row(
        1.002,
        curve("clip_fraction_high"),
        more,
        {"loss_mode": "dual_clipped", "epsilon_high": 0.001},
    ),
    "aggregation": Row(
        "token_mean",
        curve("loss"),  # the zero loss, and the one that is a covariance
        lambda b, a: b[0].abs() < 1e-6 and a[0].abs() > 1e-3,
    ),
    "max_length": Row(
        12,
        curve("gradient_norm"),
        lambda b, a: torch.isclose(a[0], b[0] / 2),  # 6 are the pos axis
        {"aggregation": "constant"},
    ),
    "kl_penalty": Row(0.1, after_training("ref_policy"), lambda b, a: a and not b),
    "kl_estimator": Row(
        "k1", curve("kl"), lambda b, a: b.min() >= 0 and a.min() < 0, KL
    ),
    "kl_place": Row(
        "reward",
        lambda t: (t.train().curve("loss"), t.history.curve("policy_loss")),
        lambda b, a: differs(*b) and not differs(*a),
        KL,
    ),
    "kl_target": Row(
        1e-6, after_training("beta"), lambda b, a: b == 0.1 < a < 0.105, KL
    ),
    "kl_gain": Row(
        1.0,
        after_training("beta"),
        lambda b, a: b < 0.105 < a < 0.145,
        KL | {"kl_target": 1e-6},
    ),
    "compute_ref_model_period": Row(
        1, at_start("kl"), lambda b, a: b[1] > 1e-4 > a[1].abs(), KL
    ),
    "ref_mixture": Row(
        0.5,
        at_start("kl"),
        lambda b, a: b[1].abs() < 1e-6 < a[1],
        KL | {"compute_ref_model_period": 1},
    ),
    "num_resamples": Row(
        1,
        lambda t: (batch(t), t.policy.asked)[1],
        lambda b, a: (b, a) == ([5], [5, 3]),
        {},
        TIED,
    ),
    "mask_truncated": Row(
        True, lambda t: batch(t).rollout.mask.sum(), lambda b, a: a < b
    ),
    "sampler_cap": Row(
        2.0, lambda t: deltas(t).ndim, lambda b, a: (b, a) == (2, 3), {}, ENGINE
    ),
    "minibatch_size": Row(10, steps, lambda b, a: (b, a) == (6, 12)),
    "minibatch_seed": Row(
        1, curve("policy_loss"), differs, {"minibatch_size": 10, "num_epochs": 1}
    ),
    "max_gradient_norm": Row(
        1e-3,
        way,
        lambda b, a: b > 0.01 and a < 6 * 1.001e-3,  # six steps
    ),
    "stop_kl": Row(1e-9, steps, lambda b, a: (b, a) == (6, 4)),
    "old_log_probs_from": Row(
        "sampler", at_start("ratio_max"), lambda b, a: differs(b[0], a[0]), {}, ENGINE
    ),
    "micro_batch_size": Row(2, rows, lambda b, a: b == [5] * 6 and a == [2, 2, 1] * 6),
    "skip_tied_groups": Row(
        True, rows, lambda b, a: b == [5] * 6 and a == [2] * 6, {}, TIED
    ),
}
PPO_TOO = {"config": PPOConfig}
PLAIN = {"whiten_deltas": False}
ACTOR_CRITIC = {
    "gamma": Row(0.5, deltas, differs, PLAIN, PPO_TOO),
    "lam": Row(0.5, deltas, differs, PLAIN, PPO_TOO),
    "whiten_deltas": Row(
        False,
        lambda t: (kept := batch(t)).deltas[kept.rollout.mask],
        lambda b, a: b.mean().abs() < 1e-5 < 0.1 < a.mean(),
        {},
        PPO_TOO,
    ),
    "value_weight": Row(
        0.7,
        lambda t: (
            (t.train().curve("loss") - t.history.curve("policy_loss"))
            / t.history.curve("value_loss")
        ),
        lambda b, a: (
            torch.allclose(b[:1], torch.tensor(0.5))
            and torch.allclose(a[:1], torch.tensor(0.7))
        ),
        {},
        PPO_TOO,
    ),
    "value_clip": Row(1e-4, curve("value_loss"), differs, {}, PPO_TOO),
    "entropy_bonus": Row(
        0.3,
        lambda t: t.train().records[0],
        lambda b, a: (
            "entropy_now" in a
            and torch.isclose(b["loss"] - a["loss"], 0.3 * a["entropy_now"])
        ),
        {},
        PPO_TOO,
    ),
}


def names(config):
    return {field.name for field in fields(config)}


def test_every_field_of_the_loop_has_a_row():
    assert TRAIN.keys() == names(TrainConfig)
    assert ACTOR_CRITIC.keys() == names(PPOConfig) - names(TrainConfig)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAIN | ACTOR_CRITIC)
def test_a_setting_reaches_what_it_sets(name):
    row = (TRAIN | ACTOR_CRITIC)[name]
    before = row.look(make_trainer(row.knobs, **row.world))
    changed = make_trainer(row.knobs | {name: row.value}, **row.world)
    assert row.is_right(before, row.look(changed))
    assert not row.is_right(before, before)  # a row can fail
