"""What a person would get wrong is refused: the argument, what was given, the cure."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from grpo_course.formulas import (
    DELTA_MODES,
    aggregate,
    compute_deltas,
    compute_loss,
    kl_reward,
    kl_values,
    sampler_weights,
)
from grpo_course.loop import (
    Batch,
    Rollout,
    TrainConfig,
    adapted_beta,
    correct_deltas,
    drop_truncated,
    train,
)
from grpo_course.off_policy import StaleSampler
from grpo_course.sampling import draw, pad_rows, response_mask

PROMPTS = torch.arange(2)[:, None]
TOKENS = torch.zeros(2, 3, 4, dtype=torch.long)
LOG_PROBS = torch.full((2, 3, 4), -1.0)
DELTAS = torch.tensor([[1.0, 0.0, -1.0]] * 2)
PROBS, LOGITS = LOG_PROBS.exp(), 2 * torch.ones(2, 3, 4)
ROLLOUT = Rollout(PROMPTS, TOKENS, sampled_log_probs=LOG_PROBS)
BATCH = Batch(ROLLOUT, DELTAS, DELTAS, LOG_PROBS)
L, D = LOG_PROBS, DELTAS
NOT_LOG = "floats that are never above 0. Apply log_softmax"
FORMULAS = {
    "probabilities": (lambda: compute_loss(PROBS, D, "naive"), f"0.3679.*{NOT_LOG}"),
    "logits": (lambda: compute_loss(LOGITS, D, "clipped", L), f"log_probs.*{NOT_LOG}"),
    "old probabilities": (
        lambda: compute_loss(L, D, "clipped", PROBS),
        f"old_log_probs.*{NOT_LOG}",
    ),
    "a KL of logits": (lambda: kl_values(L, LOGITS), f"ref_log_probs.*{NOT_LOG}"),
    "a paid KL of logits": (lambda: kl_reward(D, LOGITS, L, 0.1), NOT_LOG),
    "a beta of NaN": (lambda: kl_reward(D, L, L, math.nan), "coefficient=nan.*0 or"),
    "a list": (lambda: kl_values([-1.0], L), "log_probs is a list, not a tensor"),
    "half a token": (lambda: aggregate(L, max_length=1.5), "max_length=1.5.*a whole"),
    "a mask of two axes": (
        lambda: sampler_weights(L, L, 2.0, torch.ones(3, 4)),
        "mask has shape",
    ),
    "deltas of one prompt": (
        lambda: correct_deltas(D[0], ROLLOUT, L, 2.0),
        "deltas has shape .3.*batch trial",
    ),
    "a negative beta": (lambda: adapted_beta(-1.0, 0.1, 0.1), "beta=-1.0.*0 or more"),
    "finished of another shape": (
        lambda: drop_truncated(replace(ROLLOUT, finished=D[:1] > 0)),
        "finished has shape .1, 3",
    ),
    "half a lag": (lambda: StaleSampler(Bandit(), 0.5), "lag=0.5.*a whole number"),
    "tokens in a list": (lambda: response_mask([[1]], 2), "tokens is a list.*tensor"),
    "one row": (lambda: pad_rows([1, 2], 0), r"rows=\[1, 2\].*list of lists.*\[\[1, 2"),
    "a seed for a generator": (lambda: draw(L[0], 3), "generator=3.*torch.Generator"),
}


class Bandit:
    """One logit for each prompt and arm; a mistake may be planted in either method."""

    def __init__(self, sample=lambda r: r, log_probs=lambda x: x, sampler=None):
        self.logits = torch.zeros(2, 4, requires_grad=True)
        self.sampled, self.scored, self.sampler = sample, log_probs, sampler

    def sample(self, prompts, num_responses):
        probs, generator = torch.ones(2, 4) / 4, torch.Generator().manual_seed(0)
        drawn = torch.multinomial(probs, num_responses, True, generator=generator)
        return self.sampled(Rollout(prompts, drawn[..., None]))

    def log_probs(self, rollout):
        table = self.logits.log_softmax(-1)
        return self.scored(table.gather(-1, rollout.responses[..., 0])[..., None])


def arm(rollout):
    return rollout.responses[..., 0].float()


def frozen():
    bandit = Bandit()
    bandit.logits.requires_grad_(False)
    return bandit


def run(policy=None, reward_fn=arm, optimizer=None):
    policy = policy or Bandit()
    config = TrainConfig(num_epochs=1, num_steps_per_epoch=2, num_responses=4)
    if optimizer is None:
        optimizer = torch.optim.SGD([policy.logits], lr=0.5)
    return train(policy, PROMPTS, reward_fn, optimizer, config)


class Nothing(nn.Linear):
    logits = torch.zeros(1)


OTHER = torch.optim.SGD(nn.Linear(2, 2).parameters())
NO_WEIGHTS = torch.optim.SGD([{"params": []}])
RUNS = {
    "a model": ({"policy": Nothing(1, 1)}, "policy is a Nothing without sample"),
    "rewards in a list": (
        {"reward_fn": lambda r: arm(r).tolist()},
        "in epoch 0, reward_fn returned a list.*Return one number for each response",
    ),
    "no rewards": ({"reward_fn": lambda r: None}, "returned a NoneType.*`return` miss"),
    "one reward": ({"reward_fn": lambda r: arm(r).mean()}, r"shape \[\].*\[2, 4\]"),
    "rewards that are NaN": (
        {"reward_fn": lambda r: arm(r) * math.nan},
        r"in epoch 0, rewards\[0, 0\] is nan",
    ),
    "another model's optimizer": ({"optimizer": OTHER}, "reaches none.*another model"),
    "a frozen model": ({"policy": frozen()}, "no gradient in epoch 0, step 0.*frozen"),
    "detached scores": (
        {"policy": Bandit(log_probs=torch.Tensor.detach)},
        "no gradient.*detached.*outside of torch.no_grad",
    ),
    "no rollout": (
        {"policy": Bandit(sample=lambda r: None)},
        "policy.sample returned a NoneType, not a Rollout.*`return` missing",
    ),
    "responses without pos": (
        {"policy": Bandit(sample=lambda r: replace(r, responses=r.responses[..., 0]))},
        "responses has shape .2, 4.*batch trial pos",
    ),
    "no scores": ({"policy": Bandit(log_probs=lambda x: None)}, "returned is a NoneT"),
    "a score a response": (
        {"policy": Bandit(log_probs=lambda x: x[..., 0])},
        r"policy.log_probs returned shape \[2, 4\].*one number a token",
    ),
    "scores that are probabilities": (
        {"policy": Bandit(log_probs=torch.exp)},
        f"log_probs.*{NOT_LOG}",
    ),
}


@pytest.mark.parametrize(("call", "says"), FORMULAS.values(), ids=FORMULAS)
def test_a_formula_refuses(call, says):
    with pytest.raises((TypeError, ValueError), match=says):
        call()


@pytest.mark.parametrize(("parts", "says"), RUNS.values(), ids=RUNS)
def test_a_run_refuses(parts, says):
    with pytest.raises((TypeError, ValueError), match=says):
        run(**parts)


@pytest.mark.parametrize(
    "reward_fn",
    [lambda r: arm(r).long(), lambda r: arm(r).half(), lambda r: arm(r) + NEEDS_GRAD],
    ids=["whole numbers", "half precision", "with a graph"],
)
def test_rewards_that_are_numbers_are_taken(reward_fn):
    given, plain = run(reward_fn=reward_fn), run()
    assert torch.equal(given.curve("loss"), plain.curve("loss"))


NEEDS_GRAD = torch.zeros(1, requires_grad=True)


def test_rewards_may_be_true_or_false():
    history = run(reward_fn=lambda rollout: rollout.responses[..., 0] == 1)
    assert history.curve("mean_reward").dtype == torch.float32
    assert 0 < history.final("mean_reward") < 1


def test_an_observer_may_return_nothing():
    seen = []
    policy, config = Bandit(), TrainConfig(num_epochs=2, num_steps_per_epoch=1)
    optimizer = torch.optim.SGD([policy.logits])
    train(policy, PROMPTS, arm, optimizer, config, observe=seen.append)
    assert seen == [policy] * 2


# Half precision: 65504 is the largest number, so a sum soon is infinite.

LARGE = torch.tensor([[60000.0, 50000.0, 40000.0, 0.0]])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mode", DELTA_MODES)
def test_large_rewards_in_half_precision_give_the_deltas_of_float32(mode, dtype):
    rewards = LARGE.to(dtype)
    deltas = compute_deltas(rewards, mode)
    assert deltas.dtype == torch.float32 and deltas.isfinite().all()
    assert torch.equal(deltas, compute_deltas(rewards.float(), mode))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["sequence_mean", "token_mean", "constant"])
def test_a_mean_of_large_losses_in_half_precision_is_finite(name, dtype):
    losses = LARGE[None].to(dtype).requires_grad_()
    mean = aggregate(losses, aggregation=name)
    mean.backward()
    assert mean.dtype == torch.float32
    assert mean.item() == losses.detach().float().mean().item()
    assert (losses.grad == 0.25).all()
