"""The one loop on the tiny language model: two tasks, a few settings each."""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.gradient import LEARNING_RATE
from grpo_course.algorithm.history import History
from grpo_course.algorithm.rollout import Policy, Rollout
from grpo_course.algorithm.sampler import Sampler
from grpo_course.algorithm.seeds import require_seeds
from grpo_course.algorithm.train import train
from grpo_course.algorithm.validation import (
    require_at_least,
    require_axes,
    require_inside,
)
from grpo_course.sequences.model import TinyLM
from grpo_course.sequences.sampling import SequencePolicy
from grpo_course.sequences.tasks import (
    ASK,
    LENGTH,
    all_sort_prompts,
    place_reward,
    share_reward,
)

Watch = Callable[[History], None]
NEVER = 10**9  # epochs until the reference is copied again
SHARE_TOKEN, SHARE_VOCAB, SHARE_LENGTH = 1, 10, 20
SHARE_PROMPTS = torch.zeros(4, 5, dtype=torch.long)  # four times the same five tokens


def make_policy(
    model: TinyLM, sampler: Sampler, seeds: Sequence[int]
) -> SequencePolicy:
    """A policy with random numbers of its own for each seed."""
    require_seeds(() if seeds is None else seeds)
    generators = [Generator().manual_seed(1000 + seed) for seed in seeds]
    return SequencePolicy(model, sampler, generators)


def train_share(
    seeds: Sequence[int] = (0,),
    num_epochs: int = 15,
    learning_rate: float = 1e-3,
    watch: Watch | None = None,
    sampler: Sampler = Sampler(SHARE_LENGTH),  # noqa: B008, it is frozen
    observe: Callable[[SequencePolicy], dict] | None = None,
    **knobs,
) -> tuple[SequencePolicy, History]:
    """Train for a large share of one token among 20; curves are [step seed].

    Four prompts, four responses each; two passes over each rollout in minibatches of
    four; a reference, if beta is not 0, that is never copied again. A sampler with an
    EOS lets responses end. `observe` is that of `Trainer`; further knobs are those of
    TrainConfig.
    """
    settings = {
        "num_epochs": num_epochs,
        "num_steps_per_epoch": 2,
        "num_responses": 4,
        "minibatch_size": 4,
        "max_gradient_norm": 1.0,
        "compute_ref_model_period": NEVER,
    }
    require_inside("learning_rate", learning_rate, LEARNING_RATE)
    model = TinyLM(SHARE_VOCAB, hidden_size=64, seeds=seeds)
    policy = make_policy(model, sampler, seeds)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    config = TrainConfig(**(settings | knobs))
    reward = share_reward(SHARE_TOKEN)
    parts = (policy, SHARE_PROMPTS, reward, optimizer, config)
    history = train(*parts, observe, watch)
    return policy, history


def train_sort(
    reward_fn: Callable[[Rollout], Tensor] = place_reward,
    seeds: Sequence[int] = (0,),
    num_epochs: int = 300,
    learning_rate: float = 3e-3,
    num_prompts: int = 16,
    watch: Watch | None = None,
    wrap: Callable[[SequencePolicy], Policy] | None = None,
    sampler: Sampler = Sampler(LENGTH),  # noqa: B008, it is frozen
    **knobs,
) -> tuple[SequencePolicy, History]:
    """Train to write three numbers in order; curves are [step seed].

    Each epoch asks `num_prompts` of the 216, eight responses each, eight steps.
    The seeds get the same prompts. `wrap` puts something between the policy and the
    loop, such as a StaleSampler. Further knobs are those of TrainConfig.
    """
    settings = {"num_epochs": num_epochs, "num_steps_per_epoch": 8, "num_responses": 8}
    require_inside("learning_rate", learning_rate, LEARNING_RATE)
    model = TinyLM(ASK + 1, hidden_size=32, seeds=seeds)
    policy = make_policy(model, sampler, seeds)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    config = TrainConfig(**(settings | knobs))
    prompts = draw_prompts(all_sort_prompts(), num_prompts, seed=0)
    actor = wrap(policy) if wrap else policy
    history = train(actor, prompts, reward_fn, optimizer, config, watch=watch)
    return policy, history


def draw_prompts(prompts: Tensor, count: int, seed: int) -> Callable[[int], Tensor]:
    """For the loop: `count` different prompts for each epoch. [all pos] -> [count pos]

    Raises ValueError if there are not that many.
    """
    require_axes("prompts", prompts, "all pos")
    require_at_least("count", count, 1)
    if not 1 <= count <= len(prompts):
        raise ValueError(
            f"count={count}, but there are {len(prompts)} prompts to draw from. "
            f"Choose 1 to {len(prompts)}."
        )

    def drawn(epoch: int) -> Tensor:
        generator = Generator().manual_seed(1_000_003 * seed + epoch)
        return prompts[torch.randperm(len(prompts), generator=generator)[:count]]

    return drawn
