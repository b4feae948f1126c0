"""Any two settings that change rewards, deltas, KL or beta work together.

In each epoch of each pair, what the loop made is made once more from the columns of the
batch, the settings and the beta of that epoch.
"""

import copy
from dataclasses import replace
from itertools import combinations

import pytest
import torch

from grpo_course.formulas import (
    KL_ESTIMATORS,
    aggregate,
    as_bool_mask,
    compute_deltas,
    deltas_per_token,
)
from grpo_course.loop import TrainConfig, Trainer, weights
from grpo_course.off_policy import with_overlong_penalty
from grpo_course.ppo import (
    PPO,
    PPOConfig,
    generalized_advantages,
    reward_per_token,
    whiten_tokens,
)
from tests.test_settings_reach import make_trainer

EPOCHS = 3
BASE = {
    "num_epochs": EPOCHS,
    "num_steps_per_epoch": 2,
    "num_responses": 4,
    "kl_penalty": 0.1,
    "compute_ref_model_period": 2,
    "deltas_mode": "centered_rewards",
}
FEATURES = {
    "no KL": {"kl_penalty": 0.0},
    "KL in the reward": {"kl_place": "reward"},
    "corrected KL": {"kl_estimator": "corrected_k3"},
    "target": {"kl_target": 1e-3, "kl_gain": 1.0},
    "mixed reference": {"compute_ref_model_period": 1, "ref_mixture": 0.5},
    "spread of the group": {"deltas_mode": "normalized_rewards"},
    "token mean": {"aggregation": "token_mean"},
    "asked again": {"num_resamples": 2},
    "truncated masked": {"mask_truncated": True},
    "price on length": {},
    "another engine": {"sampler_cap": 2.0},
    "the sampler's pi_old": {"old_log_probs_from": "sampler"},
    "minibatches": {"minibatch_size": 5},
    "parts": {"micro_batch_size": 2, "skip_tied_groups": True},
    "early stop": {"stop_kl": 1e-6},
    "PPO": {},
}
REFUSED = {  # pairs that contradict each other
    ("no KL", "target"): "the target moves the penalty",
    ("another engine", "the sampler's pi_old"): "sampler_cap=2.0 compares pi_old",
    ("parts", "PPO"): "split the policy's loss only",
}


def has_a_one(rollout):
    """Coarse, so that groups tie."""
    return (rollout.responses == 1).any(-1).float()


class Checked:
    """Looks at everything that the loop makes of the settings."""

    def renew_reference(self):
        before = copy.deepcopy(self.ref_policy)
        super().renew_reference()
        config = self.config
        if not config.kl_penalty:
            assert self.ref_policy is None
            return
        now, expected = weights(self.ref_policy), weights(self.policy)
        if before is not None and self.epoch % config.compute_ref_model_period:
            expected = weights(before)
        elif before is not None:
            share = config.ref_mixture
            pairs = zip(weights(before), weights(self.policy), strict=True)
            expected = [(1 - share) * old + share * new for old, new in pairs]
        for weight, other in zip(now, expected, strict=True):
            torch.testing.assert_close(weight, other)

    def collect(self, prompts):
        batch = super().collect(prompts)
        config, rollout = self.config, batch.rollout
        judged = rollout
        if config.mask_truncated:
            judged = replace(rollout, mask=rollout.written)
        assert torch.equal(batch.rewards, self.reward_fn(judged))
        torch.testing.assert_close(batch.deltas, self.expected_deltas(batch))
        assert batch.rewards.unique().numel() > 1
        self.batch = batch
        return batch

    def price(self, batch):
        """What each token pays for the KL in the reward: [batch trial pos]."""
        mask = as_bool_mask(batch.rollout.mask, batch.old_log_probs)
        if self.config.kl_place == "loss" or not self.config.kl_penalty:
            return torch.zeros_like(batch.old_log_probs)
        gap = batch.old_log_probs - batch.ref_log_probs
        return self.beta * torch.where(mask, gap, 0.0)

    def expected_deltas(self, batch):
        config, rollout = self.config, batch.rollout
        if isinstance(self, PPO):
            mask = rollout.mask
            rewards = reward_per_token(batch.rewards, rollout.responses, mask)
            knobs = (config.gamma, config.lam, mask)
            values = self.critic(rollout).detach()
            rewards = rewards - self.price(batch)
            gae = generalized_advantages(rewards, values, *knobs)
            deltas = whiten_tokens(gae, mask)
        else:
            left = batch.rewards - self.price(batch).sum(-1)
            deltas = compute_deltas(left, config.deltas_mode)
        if config.sampler_cap is None:
            return deltas
        gap = batch.old_log_probs - rollout.sampled_log_probs
        gap = torch.where(rollout.mask, gap, 0.0)
        weight = gap.exp().clamp(max=config.sampler_cap)
        return deltas_per_token(deltas, weight) * weight

    def improve(self, batch, step=0):
        record, config = super().improve(batch, step), self.config
        if not config.kl_penalty:
            assert "kl" not in record
            return record
        assert record["beta"] == self.beta
        if not isinstance(self, PPO):  # whose loss holds more
            priced = record["policy_loss"]
            if config.kl_place == "loss":
                kl = record["kl"].nan_to_num(0.0)  # a minibatch without any token
                priced = priced + self.beta * kl
            torch.testing.assert_close(record["loss"], priced)
        if step == 0 and config.old_log_probs_from == "policy":
            estimate = KL_ESTIMATORS[config.kl_estimator](
                batch.old_log_probs,
                batch.ref_log_probs,
                old_log_probs=batch.old_log_probs,
            )
            kl = aggregate(estimate, batch.rollout.mask, config.aggregation)
            torch.testing.assert_close(record["kl"], kl, atol=1e-6, rtol=1e-4)
        return record

    def end_epoch(self):
        before, config = self.beta, self.config
        steps = [r for r in self.history.records if r["epoch"] == self.epoch]
        if config.stop_kl is not None:
            over = [bool(r["old_kl"] > config.stop_kl) for r in steps]
            assert not any(over[:-1])
        super().end_epoch()
        factor = 1.0
        if config.kl_target is not None:
            error = (steps[-1]["kl"] / config.kl_target - 1).clamp(-0.2, 0.2)
            factor = 1 + config.kl_gain * error.item()
            assert abs(factor - 1) > 0.01  # so that a forgotten beta shows
        assert self.beta == pytest.approx(before * factor)


class CheckedTrainer(Checked, Trainer):
    pass


class CheckedPPO(Checked, PPO):
    pass


def make_checked(names):
    torch.manual_seed(0)
    knobs = BASE.copy()
    for name in names:
        knobs |= FEATURES[name]
    reward_fn = has_a_one
    if "price on length" in names:
        reward_fn = with_overlong_penalty(has_a_one, 6, 5)
    engine = not {"another engine", "the sampler's pi_old"}.isdisjoint(names)
    config = PPOConfig if "PPO" in names else TrainConfig
    kinds = CheckedTrainer, CheckedPPO
    return make_trainer(knobs, reward_fn, engine, config, kinds)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [*combinations(FEATURES, 2)], ids=" and ".join)
def test_two_settings_work_together(pair):
    if pair in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[pair]):
            make_checked(pair).train()
        return
    trainer = make_checked(pair)
    trainer.train()
    assert trainer.epoch == EPOCHS
