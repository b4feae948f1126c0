"""Policy gradient on the sort task, with the knobs the course turns."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.gradient import LEARNING_RATE
from grpo_course.algorithm.history import History
from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.seeds import require_seeds
from grpo_course.algorithm.train import train
from grpo_course.algorithm.validation import (
    require_axes,
    require_callable,
    require_inside,
)
from grpo_course.sorting.cache import cache_key, cached
from grpo_course.sorting.exact import (
    exact_entropy,
    exact_expected_reward,
    exact_sorted_probability,
)
from grpo_course.sorting.model import SortModel, compute_log_probs, generate_responses
from grpo_course.sorting.rewards import compute_reward, sort_inclusion_ordering_reward

SORT_PROMPTS = torch.tensor(
    [[1, 0, 2], [3, 2, 4], [1, 2, 3]]
)  # the course's running example


class SortPolicy:
    """A sort model and its random numbers, as the loop wants them."""

    def __init__(self, model: SortModel, generator: Generator | Sequence[Generator]):
        self.model, self.generator = model, generator

    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        """int [batch pos] -> a rollout with responses [... batch trial pos]"""
        responses = generate_responses(
            prompts, self.model, num_responses, self.generator
        )
        return Rollout(prompts, responses)

    def log_probs(self, rollout: Rollout) -> Tensor:
        """-> [... batch trial pos]"""
        return compute_log_probs(rollout.prompts, rollout.responses, self.model)


def make_policy(
    prompts: Tensor, seeds: Sequence[int], init_scale: float = 1.0
) -> SortPolicy:
    """A fresh policy for each seed, side by side; equal seeds give equal policies."""
    require_axes("prompts", prompts, "batch pos")
    length = prompts.shape[-1]
    model = SortModel(int(prompts.max()) + 1, 10, length, length, init_scale, seeds)
    return SortPolicy(model, [Generator().manual_seed(1000 + seed) for seed in seeds])


def watch_exactly(
    prompts: Tensor, reward_fn: Callable, held_out: Tensor | None = None
) -> Callable[[SortPolicy], dict]:
    """What to note each epoch, all exact.

    expected_reward, sorted_probability and entropy are [seed], and so is
    held_out_probability, that of sorting the prompts held out; answer, the most likely
    response to each prompt, is [seed batch pos], and so is held_out_answer.
    """
    if held_out is not None:
        require_axes("held_out", held_out, "batch pos")

    @torch.no_grad()
    def observe(policy: SortPolicy) -> dict:
        model = policy.model
        seen = {
            "expected_reward": exact_expected_reward(model, prompts, reward_fn).mean(
                -1
            ),
            "sorted_probability": exact_sorted_probability(model, prompts).mean(-1),
            "entropy": exact_entropy(model, prompts).mean(-1),
            "answer": model(prompts).argmax(-1),
        }
        if held_out is None:
            return seen
        unseen = exact_sorted_probability(model, held_out).mean(-1)
        answers = model(held_out).argmax(-1)
        return seen | {"held_out_probability": unseen, "held_out_answer": answers}

    return observe


def run_policy_gradient(
    num_epochs: int = 100,
    num_steps_per_epoch: int = 10,
    compute_ref_model_period: int = 10,
    num_responses: int = 10,
    deltas_mode: str = "rewards",
    loss_mode: str = "naive",
    kl_penalty: float = 0.0,
    reward_fn: Callable = sort_inclusion_ordering_reward,
    use_cache: bool = False,
    *,
    prompts: Tensor = SORT_PROMPTS,
    held_out: Tensor | None = None,
    seeds: Sequence[int] = (5,),
    init_scale: float = 1.0,
    learning_rate: float = 1e-3,
    optimizer: Callable = torch.optim.Adam,
    watch: Callable[[History], None] | None = None,
    cache_folder: str | Path = "runs",
    **knobs,
) -> History:
    """Train one sort model for each seed; the history's curves are [step seed].

    With held_out, prompts [batch pos] that are not trained on, it also notes each
    epoch how often those are sorted, held_out_probability, and held_out_answer.

    Further knobs are those of TrainConfig (epsilon, kl_estimator, ...). The last
    record holds the exact measures of the trained models. With use_cache, a run of
    the same settings is read from cache_folder; else it is written there, the log
    as JSON lines and the curves as a figure.
    """
    config = TrainConfig(
        num_epochs=num_epochs,
        num_steps_per_epoch=num_steps_per_epoch,
        compute_ref_model_period=compute_ref_model_period,
        num_responses=num_responses,
        deltas_mode=deltas_mode,
        loss_mode=loss_mode,
        kl_penalty=kl_penalty,
        **knobs,
    )
    require_seeds(() if seeds is None else seeds)
    settings: dict[str, Any] = {
        "config": config,
        "reward_fn": reward_fn,
        "prompts": prompts,
        "held_out": held_out,
        "seeds": tuple(seeds),
        "init_scale": init_scale,
        "learning_rate": learning_rate,
        "optimizer": optimizer,
    }
    if not use_cache:
        return run_sort(**settings, watch=watch)
    name = f"policy_gradient_{deltas_mode}_{loss_mode}_{cache_key(settings)}.jsonl"
    return cached(lambda: run_sort(**settings, watch=watch), Path(cache_folder) / name)


def run_sort(
    config: TrainConfig,
    reward_fn: Callable,
    prompts: Tensor,
    held_out: Tensor | None,
    seeds: Sequence[int],
    init_scale: float,
    learning_rate: float,
    optimizer: Callable,
    watch: Callable[[History], None] | None,
) -> History:
    """The run itself: policy, optimizer, loop, and a last look at what was learned."""
    require_inside("learning_rate", learning_rate, LEARNING_RATE)
    require_callable("optimizer", optimizer, "makes one, such as torch.optim.Adam")
    policy = make_policy(prompts, seeds, init_scale)
    observe = watch_exactly(prompts, reward_fn, held_out)
    stepper = optimizer(policy.model.parameters(), lr=learning_rate)
    reward_of = rollout_reward(reward_fn)
    history = train(policy, prompts, reward_of, stepper, config, observe, watch)
    history.records.append({"epoch": config.num_epochs} | observe(policy))
    return history


def rollout_reward(reward_fn: Callable) -> Callable[[Rollout], Tensor]:
    """The reward of the sort task as the loop wants it: rollout -> [batch trial]."""
    return lambda rollout: compute_reward(rollout.prompts, rollout.responses, reward_fn)
