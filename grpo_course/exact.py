"""Ground truth for the sort world: every response enumerated, nothing sampled."""

from collections.abc import Callable

import torch
from einops import einsum, rearrange
from torch import Tensor

from grpo_course.checks import (
    require_axes,
    require_same_shape,
    require_sizes,
    require_vocabulary,
)
from grpo_course.formulas import compute_deltas
from grpo_course.sort import (
    SortModel,
    compute_log_probs,
    compute_reward,
    sort_exact_reward,
)

# --- sorting.exact


MAX_RESPONSES = 1_000_000  # more than this does not fit a laptop's patience


def require_enumerable(vocab_size: int, length: int) -> None:
    """Check that the list of all responses has some, and fits the memory."""
    require_sizes(vocab_size=vocab_size, length=length)
    if vocab_size**length > MAX_RESPONSES:
        raise ValueError(
            f"vocab_size={vocab_size} and length={length} make {vocab_size**length:,} "
            f"responses; at most {MAX_RESPONSES:,} are enumerated. Choose smaller ones."
        )


def all_responses(vocab_size: int, length: int) -> Tensor:
    """Every response there is, in counting order. -> int [all pos]"""
    require_enumerable(vocab_size, length)
    return torch.cartesian_prod(*[torch.arange(vocab_size)] * length).reshape(
        -1, length
    )


def all_rewards(prompts: Tensor, vocab_size: int, reward_fn: Callable) -> Tensor:
    """The reward of every response to every prompt. int [batch pos] -> [batch all]"""
    require_axes("prompts", prompts, "batch pos")
    responses = all_responses(vocab_size, prompts.shape[-1])
    require_vocabulary("prompts", prompts, vocab_size)
    responses = responses.expand(prompts.shape[0], *responses.shape)
    return compute_reward(prompts, responses, reward_fn)


def best_paid_mistakes(
    prompts: Tensor, vocab_size: int, reward_fn: Callable
) -> tuple[Tensor, Tensor]:
    """The wrong response that earns most. int [batch pos] -> [batch pos], [batch]

    The second is what each earns. Of several that earn the same, the first counts.
    """
    rewards = all_rewards(prompts, vocab_size, reward_fn)
    right = all_rewards(prompts, vocab_size, sort_exact_reward) > 0
    earned, index = rewards.masked_fill(right, -torch.inf).max(dim=-1)
    return all_responses(vocab_size, prompts.shape[-1])[index], earned


def all_log_probs(model: SortModel, prompts: Tensor) -> Tensor:
    """Log-probability of every whole response. int [batch pos] -> [... batch all]"""
    log_probs = model(prompts)
    responses = all_responses(model.vocab_size, prompts.shape[-1])
    responses = responses.expand(prompts.shape[0], *responses.shape)
    if log_probs.ndim == 4:  # one copy of the list for each seed
        responses = responses.expand(log_probs.shape[0], *responses.shape)
    return compute_log_probs(prompts, responses, model).sum(dim=-1)


def exact_expected_reward(
    model: SortModel, prompts: Tensor, reward_fn: Callable
) -> Tensor:
    """Probability-weighted reward of all responses. int [batch pos] -> [... batch]"""
    rewards = all_rewards(prompts, model.vocab_size, reward_fn)
    return (all_log_probs(model, prompts).exp() * rewards).sum(dim=-1)


def exact_values(
    model: SortModel, prompt: Tensor, response: Tensor, reward_fn: Callable
) -> Tensor:
    """What is to be expected before each token of a response, then its reward.

    int [pos] twice -> [... pos+1]: the mean reward of all responses that begin alike.
    """
    probs = all_log_probs(model, prompt[None]).exp()[..., 0, :]
    rewards = all_rewards(prompt[None], model.vocab_size, reward_fn)[0]
    every = all_responses(model.vocab_size, len(prompt))
    values = []
    for t in range(len(prompt) + 1):
        alike = (every[:, :t] == response[:t]).all(dim=-1)
        chances = probs[..., alike]
        values.append((chances * rewards[alike]).sum(-1) / chances.sum(-1))
    return torch.stack(values, dim=-1)


def exact_sorted_probability(model: SortModel, prompts: Tensor) -> Tensor:
    """Probability of answering the sorted prompt. int [batch pos] -> [... batch]"""
    log_probs = model(prompts).log_softmax(dim=-1)  # [... batch pos vocab]
    truth = prompts.sort(dim=-1).values[..., None].expand(*log_probs.shape[:-1], 1)
    return log_probs.gather(dim=-1, index=truth).squeeze(-1).sum(dim=-1).exp()


def exact_entropy(model: SortModel, prompts: Tensor) -> Tensor:
    """Entropy in nats, mean over positions. int [batch pos] -> [... batch]"""
    log_probs = model(prompts).log_softmax(dim=-1)
    return -(log_probs.exp() * log_probs).sum(dim=-1).mean(dim=-1)


def response_scores(logits: Tensor) -> Tensor:
    """Gradient of every response's log-probability by the logits.

    [pos vocab] -> [all pos vocab]; for a softmax it is one-hot minus probability.
    """
    require_axes("logits", logits, "pos vocab")
    pos, vocab = logits.shape
    chosen = torch.nn.functional.one_hot(all_responses(vocab, pos), vocab)
    return chosen - logits.softmax(dim=-1)


def response_probs(logits: Tensor) -> Tensor:
    """Probability of every response to one prompt. [pos vocab] -> [all]"""
    require_axes("logits", logits, "pos vocab")
    pos, vocab = logits.shape
    log_probs = logits.log_softmax(dim=-1)
    responses = all_responses(vocab, pos)
    return log_probs[torch.arange(pos), responses].sum(dim=-1).exp()


def exact_policy_gradient(logits: Tensor, rewards: Tensor) -> Tensor:
    """Gradient of the expected reward. [pos vocab], [all] -> [pos vocab]"""
    probs = response_probs(logits)
    require_same_shape("rewards", rewards, "all responses", probs)
    weights = probs * rewards
    return einsum(weights, response_scores(logits), "all, all pos vocab -> pos vocab")


def exact_gradient_variance(logits: Tensor, rewards: Tensor, baseline: float) -> Tensor:
    """Total variance of the one-response estimator (R - baseline) * score. -> []

    Summed over all logits. Any baseline gives the same mean; it changes the variance.
    """
    probs = response_probs(logits)
    require_same_shape("rewards", rewards, "all responses", probs)
    estimates = (rewards - baseline)[:, None, None] * response_scores(logits)
    second_moment = (probs * estimates.square().sum(dim=(1, 2))).sum()
    return second_moment - exact_policy_gradient(logits, rewards).square().sum()


def sampled_group_gradients(
    logits: Tensor,
    rewards: Tensor,
    mode: str,
    num_responses: int,
    num_groups: int,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Gradient estimates of many groups, each the mean of delta * score over its group.

    [pos vocab], [all] -> [group pos vocab]
    """
    require_sizes(num_responses=num_responses, num_groups=num_groups)
    probs, count = response_probs(logits), num_groups * num_responses
    require_same_shape("rewards", rewards, "all responses", probs)
    drawn = torch.multinomial(probs, count, replacement=True, generator=generator)
    drawn = rearrange(drawn, "(group trial) -> group trial", trial=num_responses)
    deltas = compute_deltas(rewards.to(logits)[drawn], mode)
    scores = response_scores(logits)[drawn]  # [group trial pos vocab]
    pattern = "group trial, group trial pos vocab -> group pos vocab"
    return einsum(deltas, scores, pattern) / num_responses


def exact_pair_gradients(logits: Tensor, rewards: Tensor, mode: str) -> tuple:
    """Every group of two, with its probability: -> [pair], [pair pos vocab]"""
    require_axes("logits", logits, "pos vocab")
    require_enumerable(logits.shape[1], 2 * logits.shape[0])
    probs, scores = response_probs(logits), response_scores(logits)
    require_same_shape("rewards", rewards, "all responses", probs)
    pairs = torch.cartesian_prod(torch.arange(len(probs)), torch.arange(len(probs)))
    deltas = compute_deltas(rewards.to(logits)[pairs], mode)
    pattern = "pair trial, pair trial pos vocab -> pair pos vocab"
    return probs[pairs].prod(dim=-1), einsum(deltas, scores[pairs], pattern) / 2
