"""What a person would get wrong is refused: the argument, what was given, the cure."""

import math

import pytest
import torch

from grpo_course.loop import TrainConfig, train
from grpo_course.ppo import (
    PPO,
    Critic,
    PPOConfig,
    RewardModel,
    ValueHead,
    bradley_terry_loss,
    fit_reward_model,
    kl_per_token,
    td_errors,
    value_loss,
    whiten,
)
from grpo_course.sort import (
    SORT_PROMPTS,
    make_policy,
    rollout_reward,
    sort_distance_reward,
)

TOKENS = torch.zeros(3, 2, 3, dtype=torch.long)
VALUES = torch.zeros(1, 2, 3)
LOG_PROBS = VALUES - 1
PAIR = (SORT_PROMPTS, TOKENS, TOKENS)


def run(critic, config=PPOConfig):
    policy = make_policy(SORT_PROMPTS, (0,))
    settings = config(num_epochs=1, num_steps_per_epoch=1, num_responses=2)
    optimizer = torch.optim.SGD(policy.model.parameters(), lr=0.1)
    parts = (policy, SORT_PROMPTS, rollout_reward(sort_distance_reward), optimizer)
    return train(*parts, settings, kind=PPO, critic=critic)


CALLS = {
    "no width": (lambda: Critic(5, 0, 3, 3), "dim=0.*at least 1"),
    "no prompt": (lambda: Critic(5, 4, 0, 3), "prompt_length=0.*at least 1"),
    "no response": (lambda: RewardModel(5, 4, 3, 0), "response_length=0.*at least 1"),
    "no vocabulary": (lambda: RewardModel(0, 4, 3, 3), "vocab_size=0.*at least 1"),
    "half a width": (lambda: ValueHead(len, 1.5, 3), "dim=1.5.*a whole number"),
    "no tokens": (lambda: ValueHead(len, 4, 0), "response_length=0.*at least 1"),
    "no features": (lambda: ValueHead(None, 4, 3), "features=None is not a function"),
    "a negative seed": (lambda: Critic(5, 4, 3, 3, (-1,)), r"seeds\[0\]=-1.*at least"),
    "returns in a list": (lambda: value_loss(VALUES, [0.0]), "returns is a list"),
    "a clip of NaN": (
        lambda: value_loss(VALUES, VALUES, VALUES, math.nan),
        "clip=nan.*above 0, or None",
    ),
    "a clip of text": (
        lambda: value_loss(VALUES, VALUES, VALUES, "0.2"),
        "clip='0.2'.*not a number",
    ),
    "a discount of text": (
        lambda: td_errors(VALUES, VALUES, "1"),
        "gamma='1'.*not a number",
    ),
    "a KL of logits": (
        lambda: kl_per_token(VALUES, VALUES + 2, LOG_PROBS, 0.1),
        "log_probs.*never above 0. Apply log_softmax",
    ),
    "a KL of probabilities": (
        lambda: kl_per_token(VALUES, LOG_PROBS, LOG_PROBS.exp(), 0.1),
        "ref_log_probs.*never above 0",
    ),
    "a negative beta": (
        lambda: kl_per_token(VALUES, LOG_PROBS, LOG_PROBS, -0.1),
        "coefficient=-0.1.*0 or more",
    ),
    "a list of values": (lambda: whiten([[[1.0]]]), "values is a list, not a tensor"),
    "half a pair": (
        lambda: bradley_terry_loss(torch.zeros(2), [0.0, 0.0]),
        "rejected is a list, not a tensor",
    ),
    "half a step": (
        lambda: fit_reward_model(RewardModel(5, 4, 3, 3), *PAIR, num_steps=1.5),
        "num_steps=1.5.*a whole number",
    ),
    "no learning rate": (
        lambda: fit_reward_model(RewardModel(5, 4, 3, 3), *PAIR, learning_rate=-1.0),
        "learning_rate=-1.0.*at least 0",
    ),
    "no critic": (lambda: run(None), "critic=None is not a function. Pass one that"),
    "a critic without pos": (
        lambda: run(lambda rollout: torch.zeros(1, 3, 2)),
        r"values have shape \[1, 3, 2\]: each token needs one of both",
    ),
    "settings of GRPO": (
        lambda: run(Critic(5, 4, 3, 3, (0,)), TrainConfig),
        "config is a TrainConfig. Pass a PPOConfig",
    ),
}


@pytest.mark.parametrize(("call", "says"), CALLS.values(), ids=CALLS)
def test_a_call_is_refused(call, says):
    with pytest.raises((TypeError, ValueError), match=says):
        call()


def test_large_values_in_half_precision_do_not_overflow():
    values = torch.tensor([[[300.0, -300.0, 0.0]]]).half()
    loss = value_loss(values, torch.zeros_like(values))
    assert loss.item() == pytest.approx(30000)  # 90000 is beyond half precision
    assert whiten(100 * values).isfinite().all()
