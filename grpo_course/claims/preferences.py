"""A reward learned from pairs, and a policy that climbs it, as in notebook 08."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from grpo_course.loop import History, TrainConfig, train
from grpo_course.ppo import RewardModel, bradley_terry_loss, fit_reward_model
from grpo_course.sort import (
    SORT_PROMPTS,
    SortPolicy,
    all_log_probs,
    all_responses,
    all_rewards,
    make_policy,
    rollout_reward,
    sort_distance_reward,
)

EVERY = all_responses(vocab_size=5, length=3)  # [all pos]


def true_rewards(prompts: Tensor = SORT_PROMPTS) -> Tensor:
    """What every response is worth. int [batch pos] -> [batch all]"""
    return all_rewards(prompts, 5, sort_distance_reward)


def draw_pairs(
    num_pairs: int,
    seeds: Sequence[int] = range(16),
    prompts: Tensor = SORT_PROMPTS,
    draw: int = 0,
) -> Tensor:
    """Pairs of random responses, the chosen one first: int [seed batch pair 2].

    The numbers count `EVERY`. The better response wins with Bradley and Terry's
    probability. Another `draw` gives new pairs.
    """
    generator = torch.Generator().manual_seed(1000 * seeds[0] + draw)
    batch = torch.arange(len(prompts))
    shape = (len(seeds), len(prompts), num_pairs, 2)
    index = torch.randint(len(EVERY), shape, generator=generator)
    worth = true_rewards(prompts)[batch[:, None, None], index]
    wins = (worth[..., 0] - worth[..., 1]).sigmoid()
    lost = torch.rand(wins.shape, generator=generator) > wins
    return torch.where(lost[..., None], index.flip(-1), index)


def learn_reward(
    pairs: Tensor,
    seeds: Sequence[int] = range(16),
    prompts: Tensor = SORT_PROMPTS,
    num_steps: int = 200,
) -> tuple[RewardModel, Tensor]:
    """A reward model for each seed, fitted to its pairs, and the loss of each step."""
    model, (chosen, rejected) = RewardModel(5, 16, 3, 3, seeds), EVERY[pairs].unbind(-2)
    return model, fit_reward_model(model, prompts, chosen, rejected, num_steps)


@torch.no_grad()
def scores_of(model: RewardModel, prompts: Tensor = SORT_PROMPTS) -> Tensor:
    """What a model says of every response, in spreads from its mean: [seed batch all].

    A learned reward has no zero and no unit of its own.
    """
    num_seeds = len(model.readout)
    scores = model(prompts, EVERY.expand(num_seeds, len(prompts), *EVERY.shape))
    return (scores - scores.mean(-1, True)) / scores.std(-1, keepdim=True)


def share_right(scores: Tensor, pairs: Tensor) -> Tensor:
    """The share of pairs whose chosen one scores higher; a tie is half. [seed]"""
    both = scores.gather(-1, pairs.flatten(-2)).unflatten(-1, (-1, 2))
    wins = (both[..., 0] - both[..., 1]).sign()
    return (wins + 1).div(2).mean(dim=(-2, -1))


def warm_start(
    seeds: Sequence[int] = range(16),
    prompts: Tensor = SORT_PROMPTS,
    num_epochs: int = 10,
) -> SortPolicy:
    """A policy for each seed, after some epochs on the true reward."""
    policy = make_policy(prompts, seeds, init_scale=0.1)
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=1e-3)
    config = TrainConfig(num_epochs=num_epochs)
    train(policy, prompts, rollout_reward(sort_distance_reward), optimizer, config)
    return policy


def climb(
    model: RewardModel,
    policy: SortPolicy,
    prompts: Tensor = SORT_PROMPTS,
    beta: float = 0.0,
    num_epochs: int = 60,
    learning_rate: float = 1e-3,
) -> History:
    """GRPO on a learned reward. Before each epoch and at the end, exact, [seed]:

    `model` and `true`, the expected rewards, and `exact_kl` to the start in nats. In
    the loss it is k2, whose gradient is that of the exact KL, on average.
    """
    watch = watch_both(scores_of(model, prompts), policy, prompts)
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=learning_rate)
    config = TrainConfig(
        num_epochs=num_epochs,
        kl_penalty=beta,
        kl_estimator="k2",
        compute_ref_model_period=num_epochs + 1,
    )
    reward = model.as_reward()
    history = train(policy, prompts, reward, optimizer, config, watch)
    history.records.append({"epoch": num_epochs} | watch(policy))
    return history


def watch_both(
    scores: Tensor, start: SortPolicy, prompts: Tensor
) -> Callable[[SortPolicy], dict]:
    """What is noted in each epoch, all by enumeration: [seed] each."""
    ref = all_log_probs(start.model, prompts).detach()
    true = true_rewards(prompts)

    @torch.no_grad()
    def observe(policy: SortPolicy) -> dict:
        log_probs = all_log_probs(policy.model, prompts)  # [seed batch all]
        seen = {"model": scores, "true": true, "exact_kl": log_probs - ref}
        return {k: (log_probs.exp() * v).sum(-1).mean(-1) for k, v in seen.items()}

    return observe


def dpo(
    pairs: Tensor,
    policy: SortPolicy,
    prompts: Tensor = SORT_PROMPTS,
    beta: float = 0.1,
    num_steps: int = 200,
    learning_rate: float = 1e-3,
) -> Tensor:
    """Direct preference optimization: the loss of each step, [step seed].

    Bradley and Terry's loss, with beta log(pi / pi_ref) of a whole response as its
    reward; pi_ref is the policy at the start. Rafailov et al. 2023, arXiv 2305.18290.
    """
    ref = all_log_probs(policy.model, prompts).detach()  # [seed batch all]
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=learning_rate)
    losses = []
    for _ in range(num_steps):
        rewards = beta * (all_log_probs(policy.model, prompts) - ref)
        both = rewards.gather(-1, pairs.flatten(-2)).unflatten(-1, (-1, 2))
        loss = bradley_terry_loss(*both.flatten(1, 2).unbind(-1))
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)
