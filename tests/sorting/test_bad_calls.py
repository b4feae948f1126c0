"""What a person would get wrong is refused: the argument, what was given, the cure."""

import functools
import math

import pytest
import torch

from grpo_course.exact import (
    all_responses,
    all_rewards,
    exact_gradient_variance,
    exact_pair_gradients,
    exact_policy_gradient,
    response_probs,
    sampled_group_gradients,
)
from grpo_course.sort import (
    SortModel,
    cache_key,
    compute_reward,
    generate_responses,
    make_policy,
    run_policy_gradient,
    sort_distance_reward,
)

PROMPTS = torch.tensor([[1, 0, 2], [3, 2, 4]])
LOGITS, REWARDS = torch.zeros(2, 3), torch.zeros(9)


def model(**sizes):
    given = {"vocab_size": 5, "embedding_dim": 10, "prompt_length": 3}
    return SortModel(**(given | {"response_length": 3} | sizes))


def quick(**knobs):
    return run_policy_gradient(1, 1, **knobs)


CALLS = {
    "no width": (lambda: model(embedding_dim=0), "embedding_dim=0.*at least 1"),
    "half a width": (lambda: model(embedding_dim=1.5), "embedding_dim=1.5.*a whole n"),
    "a width of text": (lambda: model(embedding_dim="10"), "embedding_dim='10'.*whole"),
    "no prompt": (lambda: model(prompt_length=0), "prompt_length=0.*at least 1"),
    "no response": (lambda: model(response_length=0), "response_length=0.*at least 1"),
    "True for a size": (lambda: model(vocab_size=True), "vocab_size=True is a bool"),
    "a scale of NaN": (
        lambda: model(init_scale=math.nan),
        "init_scale=nan.*at least 0",
    ),
    "a negative seed": (lambda: model(seeds=(0, -1)), r"seeds\[1\]=-1.*at least 0"),
    "half a seed": (lambda: model(seeds=(0.5,)), r"seeds\[0\]=0.5.*whole number"),
    "a seed": (lambda: model(seeds=3), r"seeds=3.*one at least: seeds=\(0,\)"),
    "seeds as text": (lambda: model(seeds="01"), "seeds='01'.*list one at least"),
    "no seeds": (lambda: make_policy(PROMPTS, ()), r"seeds=\(\).*list one at least"),
    "seeds of None": (lambda: quick(seeds=None), r"seeds=\(\).*list one at least"),
    "prompts of booleans": (lambda: model()(PROMPTS > 1), "prompts holds.*torch.bool"),
    "half a response": (
        lambda: generate_responses(PROMPTS, model(), 1.5),
        "num_responses=1.5.*a whole number, at least 1",
    ),
    "a generator too many": (
        lambda: generate_responses(PROMPTS, model(), 2, [torch.Generator()]),
        "generator=.*without a seed axis.*Pass a torch.Generator",
    ),
    "no vocabulary": (lambda: all_responses(0, 3), "vocab_size=0.*at least 1"),
    "no length": (lambda: all_responses(3, 0), "length=0.*at least 1"),
    "a vocabulary too small": (
        lambda: all_rewards(PROMPTS, 2, sort_distance_reward),
        "prompts holds values from 0 to 4.*larger vocab_size",
    ),
    "prompts in a list": (
        lambda: all_rewards(PROMPTS.tolist(), 5, sort_distance_reward),
        "prompts is a list, not a tensor",
    ),
    "logits of one place": (lambda: response_probs(LOGITS[0]), "logits has shape .3"),
    "rewards of another list": (
        lambda: exact_policy_gradient(LOGITS, REWARDS[:5]),
        "rewards has shape .5.*all responses has shape .9",
    ),
    "a longer list": (
        lambda: sampled_group_gradients(LOGITS, torch.zeros(12), "rewards", 2, 3),
        "rewards has shape .12.*all responses has shape .9",
    ),
    "no groups": (
        lambda: sampled_group_gradients(LOGITS, REWARDS, "rewards", 2, 0),
        "num_groups=0.*at least 1",
    ),
    "pairs of another list": (
        lambda: exact_pair_gradients(LOGITS, REWARDS[:5], "rewards"),
        "rewards has shape .5",
    ),
    "a variance of a list": (
        lambda: exact_gradient_variance(LOGITS, REWARDS.tolist(), 0.0),
        "rewards is a list, not a tensor",
    ),
    "a reward by name": (
        lambda: compute_reward(PROMPTS, PROMPTS[:, None], "distance"),
        "reward_fn='distance' is not a function. Pass one that maps two lists",
    ),
    "a reward of None": (
        lambda: compute_reward(PROMPTS, PROMPTS[:, None], lambda p, r: None),
        "reward_fn returned NoneType.*`return` missing",
    ),
    "a reward of text": (
        lambda: quick(reward_fn=lambda prompt, response: "good"),
        "reward_fn returned str, but a reward is one number",
    ),
    "an unknown knob": (
        lambda: quick(epsilom=0.1),
        "no 'epsilom'. Did you mean 'epsilon'",
    ),
    "a learning rate of text": (
        lambda: quick(learning_rate="1e-3"),
        "learning_rate='1e-3'.*not a number",
    ),
    "an infinite learning rate": (
        lambda: quick(learning_rate=math.inf),
        "learning_rate=inf.*at least 0 and below inf",
    ),
    "an optimizer that is made": (
        lambda: quick(optimizer=torch.optim.SGD(model().parameters())),
        "optimizer=.*is not a function. Pass one that makes one",
    ),
    "a function without a name": (
        lambda: cache_key({"optimizer": functools.partial(torch.optim.Adam)}),
        "cannot tell functools.partial.*be a function",
    ),
}


@pytest.mark.parametrize(("call", "says"), CALLS.values(), ids=CALLS)
def test_a_call_is_refused(call, says):
    with pytest.raises((TypeError, ValueError), match=f"(?s){says}"):
        call()
