"""World 1: sort three numbers. Rewards, model, the exact truth, and a run.

A prompt is a few numbers, a response as many: small enough to list all responses there
are. So whatever a run estimates from samples, this file also computes exactly, by
enumeration: the expected reward, the gradient, its variance.

How a response's reward becomes a step of the weights is not told here: that is
`formulas` (deltas, losses) and `loop`, which knows no world.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from numbers import Real

import torch
import torch.nn.functional as F
from einops import einsum, rearrange, repeat
from torch import Generator, Tensor, nn

from grpo_course.checks import require_axes, require_finite, require_vocabulary
from grpo_course.formulas import compute_deltas
from grpo_course.loop import History, Rollout, TrainConfig, train
from grpo_course.sampling import (
    make_draw,
    one_generator,
    one_generator_each,
    require_seeds,
)

SORT_PROMPTS = torch.tensor(  # the course's running example
    [[1, 0, 2], [3, 2, 4], [1, 2, 3]]
)
MAX_RESPONSES = 1_000_000  # enumerating more would take too long on a laptop


# Rewards: on two lists to read, on tensors to train.


def require_same_length(prompt: Sequence[int], response: Sequence[int]) -> None:
    """Check that a response answers every position of its prompt."""
    if len(prompt) != len(response):
        raise ValueError(
            f"response has {len(response)} numbers, but prompt has {len(prompt)}. "
            "In the sort task both have the same length."
        )


def count_ordered_pairs(response: Sequence[int]) -> int:
    """How many neighbours stand in ascending order, ties included."""
    return sum(1 for x, y in pairwise(response) if x <= y)


def sort_distance_reward(prompt: list[int], response: list[int]) -> float:
    """One point for each position that holds the right number of the sorted prompt."""
    require_same_length(prompt, response)
    pairs = zip(response, sorted(prompt), strict=True)
    return float(sum(1 for x, y in pairs if x == y))


def sort_inclusion_ordering_reward(prompt: list[int], response: list[int]) -> float:
    """One point for each prompt number in the response, one for each ordered pair."""
    require_same_length(prompt, response)
    inclusion = sum(1 for x in prompt if x in response)
    return float(inclusion + count_ordered_pairs(response))


def sort_multiset_reward(prompt: list[int], response: list[int]) -> float:
    """Inclusion and ordering; a number of the response covers one of the prompt."""
    require_same_length(prompt, response)
    # int, because tensors of the same number are different keys
    shared = Counter(map(int, prompt)) & Counter(map(int, response))
    return float(shared.total() + count_ordered_pairs(response))


def sort_exact_reward(prompt: list[int], response: list[int]) -> float:
    """One if the response is the sorted prompt, else zero: no partial credit."""
    require_same_length(prompt, response)
    return float(list(response) == sorted(prompt))


# The twins: the same numbers for all responses at once.
# int [batch pos], [... batch trial pos] -> float [... batch trial]


def batch_ordered_pairs(responses: Tensor) -> Tensor:
    return (responses[..., 1:] >= responses[..., :-1]).sum(dim=-1)


def batch_distance_reward(prompts: Tensor, responses: Tensor) -> Tensor:
    truth = prompts.sort(dim=-1).values[:, None, :]
    return (responses == truth).sum(dim=-1).float()


def batch_inclusion_ordering_reward(prompts: Tensor, responses: Tensor) -> Tensor:
    found = (prompts[:, None, :, None] == responses[..., None, :]).any(dim=-1)
    return (found.sum(dim=-1) + batch_ordered_pairs(responses)).float()


def batch_multiset_reward(prompts: Tensor, responses: Tensor) -> Tensor:
    vocab_size = int(torch.maximum(prompts.max(), responses.max())) + 1
    wanted = F.one_hot(prompts, vocab_size).sum(dim=-2)[:, None, :]
    offered = F.one_hot(responses, vocab_size).sum(dim=-2)
    shared = torch.minimum(wanted, offered).sum(dim=-1)
    return (shared + batch_ordered_pairs(responses)).float()


def batch_exact_reward(prompts: Tensor, responses: Tensor) -> Tensor:
    truth = prompts.sort(dim=-1).values[:, None, :]
    return (responses == truth).all(dim=-1).float()


BATCH_REWARDS = {
    sort_distance_reward: batch_distance_reward,
    sort_inclusion_ordering_reward: batch_inclusion_ordering_reward,
    sort_multiset_reward: batch_multiset_reward,
    sort_exact_reward: batch_exact_reward,
}


def compute_reward(prompts: Tensor, responses: Tensor, reward_fn: Callable) -> Tensor:
    """Reward every response. [batch pos], [batch trial pos] -> float [batch trial]

    `reward_fn` is a reward on two lists, such as `sort_distance_reward` or one of
    your own, or one of the tensor twins. Leading axes of `responses` pass through.
    Raises ValueError where prompts and responses do not line up.
    """
    require_axes("prompts", prompts, "batch pos")
    require_axes("responses", responses, "batch trial pos")
    batch, pos = responses.shape[-3], responses.shape[-1]
    if list(prompts.shape) != [batch, pos]:
        raise ValueError(
            f"prompts has shape {list(prompts.shape)}, but responses has shape "
            f"{list(responses.shape)}. [batch pos] and [batch trial pos] must agree in "
            "batch and pos."
        )
    twin = BATCH_REWARDS.get(reward_fn, reward_fn)
    if twin in BATCH_REWARDS.values():
        return twin(prompts, responses)
    return reward_one_by_one(prompts, responses, reward_fn)


def reward_one_by_one(
    prompts: Tensor, responses: Tensor, reward_fn: Callable
) -> Tensor:
    """The plain loop behind `compute_reward`, for a reward that knows only lists."""
    questions = prompts.tolist()
    rewards = [
        [one_number(reward_fn(question, response)) for response in group]
        for groups in responses.reshape(-1, *responses.shape[-3:]).tolist()
        for question, group in zip(questions, groups, strict=True)
    ]
    return torch.tensor(rewards, dtype=torch.float32).reshape(responses.shape[:-1])


def one_number(reward: object) -> float:
    """The number that a reward returned: of Python, of numpy, or a tensor without axes.

    Raises TypeError for anything else.
    """
    if isinstance(reward, Real) or (isinstance(reward, Tensor) and reward.ndim == 0):
        return float(reward)
    raise TypeError(
        f"reward_fn returned {type(reward).__name__}, but a reward is one number. "
        "Is its `return` missing?"
    )


# The model: every position of the response is drawn on its own.


class SortModel(nn.Module):
    """A non-autoregressive sorter with one encode and one decode matrix per position.

    With `seeds=(0, 1, 2)` the weights carry a leading seed axis: three independent
    models that train side by side. The dots in the shapes below stand for that axis;
    without `seeds` it is not there.

    Args:
        vocab_size: how many different numbers there are.
        embedding_dim: width of the vectors in between.
        prompt_length, response_length: how many numbers come in and go out.
        init_scale: factor on the decode weights. Small values make the first policy
            nearly uniform, large values make it sure of itself from the start.
        seeds: one random seed for each model, or None for one model from torch's own.
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int,
        prompt_length: int,
        response_length: int,
        init_scale: float = 1.0,
        seeds: Sequence[int] | None = None,
    ):
        super().__init__()
        require_seeds(seeds)
        self.vocab_size, self.prompt_length = vocab_size, prompt_length
        draw, scale = make_draw(seeds), 1 / math.sqrt(embedding_dim)
        square = (embedding_dim, embedding_dim)
        self.embedding = nn.Parameter(draw(vocab_size, embedding_dim))
        self.encode_weights = nn.Parameter(draw(prompt_length, *square) * scale)
        self.decode_weights = nn.Parameter(
            draw(response_length, *square) * scale * init_scale
        )

    def encode(self, prompts: Tensor) -> Tensor:
        """int [batch pos] -> what was read of each prompt, [... batch dim]"""
        require_tokens("prompts", prompts, self.vocab_size, self.prompt_length)
        embedded = self.embedding[..., prompts, :]  # [... batch pos dim]
        return einsum(
            embedded,
            self.encode_weights,
            "... batch pos dim_in, ... pos dim_in dim -> ... batch dim",
        )

    def forward(self, prompts: Tensor) -> Tensor:
        """int [batch pos] -> logits [... batch pos vocab]"""
        decoded = einsum(
            self.encode(prompts),
            self.decode_weights,
            "... batch dim, ... pos dim dim_out -> ... batch pos dim_out",
        )
        return einsum(  # input and output share the embedding
            decoded,
            self.embedding,
            "... batch pos dim, ... vocab dim -> ... batch pos vocab",
        )


def require_tokens(argument: str, tokens: Tensor, vocab_size: int, length: int) -> None:
    """Check that tokens are whole numbers of the vocabulary, `length` of them a row."""
    require_vocabulary(argument, tokens, vocab_size)
    if tokens.shape[-1] != length:
        raise ValueError(
            f"{argument} has {tokens.shape[-1]} numbers a row, but the model was built "
            f"for {length}. Build it with that length, or change the rows."
        )


def generate_responses(
    prompts: Tensor,
    model: SortModel,
    num_responses: int,
    generator: Generator | Sequence[Generator] | None = None,
) -> Tensor:
    """Sample a group for each prompt. int [batch pos] -> int [batch trial pos]

    A model with a seed axis needs one generator for each seed and gives
    [seed batch trial pos].
    """
    with torch.no_grad():
        probs = model(prompts).softmax(dim=-1)  # [... batch pos vocab]
    require_finite("the policy's probabilities", probs, "try a smaller learning rate")
    rows = rearrange(probs, "... batch pos vocab -> ... (batch pos) vocab")
    sample = partial(torch.multinomial, num_samples=num_responses, replacement=True)
    if probs.ndim == 3:
        drawn = sample(rows, generator=one_generator(generator))
    else:
        pairs = zip(rows, one_generator_each(probs, generator), strict=True)
        drawn = torch.stack([sample(r, generator=g) for r, g in pairs])
    return rearrange(
        drawn, "... (batch pos) trial -> ... batch trial pos", batch=len(prompts)
    )


def compute_log_probs(prompts: Tensor, responses: Tensor, model: SortModel) -> Tensor:
    """Log-probability of each number. int [batch trial pos] -> [batch trial pos]"""
    log_probs = model(prompts).log_softmax(dim=-1)  # [... batch pos vocab]
    require_axes("responses", responses, "batch trial pos")
    require_tokens("responses", responses, model.vocab_size, log_probs.shape[-2])
    if responses.shape[:-2] != log_probs.shape[:-2]:
        raise ValueError(
            f"responses has shape {list(responses.shape)}, but the model answers "
            f"{list(log_probs.shape[:-2])} prompts (a seed axis first, if it has one). "
            "Score responses with the prompts and the model they were sampled from."
        )
    log_probs = repeat(
        log_probs, "... pos vocab -> ... trial pos vocab", trial=responses.shape[-2]
    )
    picked = log_probs.gather(dim=-1, index=responses[..., None])
    return picked.squeeze(-1)


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


# The truth: every response enumerated, nothing sampled.


def all_responses(vocab_size: int, length: int) -> Tensor:
    """Every response there is, in counting order. -> int [all pos]

    Raises ValueError for more than `MAX_RESPONSES` of them.
    """
    if vocab_size**length > MAX_RESPONSES:
        raise ValueError(
            f"vocab_size={vocab_size} and length={length} make {vocab_size**length:,} "
            f"responses; at most {MAX_RESPONSES:,} are enumerated. Choose smaller ones."
        )
    numbers = [torch.arange(vocab_size)] * length
    return torch.cartesian_prod(*numbers).reshape(-1, length)


def all_rewards(prompts: Tensor, vocab_size: int, reward_fn: Callable) -> Tensor:
    """The reward of every response to every prompt. int [batch pos] -> [batch all]"""
    require_vocabulary("prompts", prompts, vocab_size)
    responses = all_responses(vocab_size, prompts.shape[-1])
    responses = responses.expand(prompts.shape[0], *responses.shape)
    return compute_reward(prompts, responses, reward_fn)


def all_log_probs(model: SortModel, prompts: Tensor) -> Tensor:
    """Log-probability of every whole response. int [batch pos] -> [... batch all]"""
    responses = all_responses(model.vocab_size, prompts.shape[-1])
    seeds = model.embedding.shape[:-2]  # empty, or the seed axis
    responses = responses.expand(*seeds, len(prompts), *responses.shape)
    return compute_log_probs(prompts, responses, model).sum(dim=-1)


def exact_expected_reward(
    model: SortModel, prompts: Tensor, reward_fn: Callable
) -> Tensor:
    """Probability-weighted reward of all responses. int [batch pos] -> [... batch]"""
    rewards = all_rewards(prompts, model.vocab_size, reward_fn)
    return (all_log_probs(model, prompts).exp() * rewards).sum(dim=-1)


def exact_sorted_probability(model: SortModel, prompts: Tensor) -> Tensor:
    """Probability of answering the sorted prompt. int [batch pos] -> [... batch]"""
    log_probs = model(prompts).log_softmax(dim=-1)  # [... batch pos vocab]
    truth = prompts.sort(dim=-1).values[..., None].expand(*log_probs.shape[:-1], 1)
    return log_probs.gather(dim=-1, index=truth).squeeze(-1).sum(dim=-1).exp()


def exact_entropy(model: SortModel, prompts: Tensor) -> Tensor:
    """Entropy in nats, mean over positions. int [batch pos] -> [... batch]"""
    log_probs = model(prompts).log_softmax(dim=-1)
    return -(log_probs.exp() * log_probs).sum(dim=-1).mean(dim=-1)


# The true gradient, and what groups make of it: logits [pos vocab] of one prompt,
# rewards [all] of every response to it.


def response_scores(logits: Tensor) -> Tensor:
    """Gradient of every response's log-probability by the logits.

    [pos vocab] -> [all pos vocab]; for a softmax it is one-hot minus probability.
    """
    pos, vocab = logits.shape
    return F.one_hot(all_responses(vocab, pos), vocab) - logits.softmax(dim=-1)


def push_of(response: Tensor, delta: Tensor, probs: Tensor) -> Tensor:
    """How one response pushes each logit: delta * grad log pi. [pos] -> [pos vocab]

    For a softmax the gradient is one at the number written, minus its probability.
    Several responses of one token go as well: [trial], [trial 1] -> [trial vocab].
    """
    return delta * (F.one_hot(response, probs.shape[-1]) - probs)


def response_probs(logits: Tensor) -> Tensor:
    """Probability of every response to one prompt. [pos vocab] -> [all]"""
    pos, vocab = logits.shape
    log_probs = logits.log_softmax(dim=-1)
    return log_probs[torch.arange(pos), all_responses(vocab, pos)].sum(dim=-1).exp()


def exact_policy_gradient(logits: Tensor, rewards: Tensor) -> Tensor:
    """Gradient of the expected reward. [pos vocab], [all] -> [pos vocab]"""
    weights = response_probs(logits) * rewards
    return einsum(weights, response_scores(logits), "all, all pos vocab -> pos vocab")


def sampled_group_gradients(
    logits: Tensor,
    rewards: Tensor,
    mode: str,
    num_responses: int,
    num_groups: int,
    generator: Generator | None = None,
) -> Tensor:
    """Gradient estimates of many groups, each the mean of delta * score over its group.

    [pos vocab], [all] -> [group pos vocab]
    """
    count = num_groups * num_responses
    drawn = torch.multinomial(
        response_probs(logits), count, replacement=True, generator=generator
    )
    drawn = rearrange(drawn, "(group trial) -> group trial", trial=num_responses)
    deltas = compute_deltas(rewards.to(logits)[drawn], mode)
    scores = response_scores(logits)[drawn]  # [group trial pos vocab]
    pattern = "group trial, group trial pos vocab -> group pos vocab"
    return einsum(deltas, scores, pattern) / num_responses


def exact_pair_gradients(
    logits: Tensor, rewards: Tensor, mode: str
) -> tuple[Tensor, Tensor]:
    """Every group of two, with its probability: -> [pair], [pair pos vocab]"""
    probs, scores = response_probs(logits), response_scores(logits)
    pairs = all_responses(len(probs), 2)  # of the responses' numbers
    deltas = compute_deltas(rewards.to(logits)[pairs], mode)
    pattern = "pair trial, pair trial pos vocab -> pair pos vocab"
    return probs[pairs].prod(dim=-1), einsum(deltas, scores[pairs], pattern) / 2


# A run: policy, optimizer, loop, and after each epoch the exact measures.


def make_policy(
    prompts: Tensor, seeds: Sequence[int], init_scale: float = 1.0
) -> SortPolicy:
    """A fresh policy for each seed, side by side; equal seeds give equal policies."""
    require_axes("prompts", prompts, "batch pos")
    length = prompts.shape[-1]
    model = SortModel(int(prompts.max()) + 1, 10, length, length, init_scale, seeds)
    return SortPolicy(model, [Generator().manual_seed(1000 + seed) for seed in seeds])


def rollout_reward(reward_fn: Callable) -> Callable[[Rollout], Tensor]:
    """The reward of the sort task as the loop wants it: rollout -> [batch trial]."""
    return lambda rollout: compute_reward(rollout.prompts, rollout.responses, reward_fn)


def watch_exactly(
    prompts: Tensor, reward_fn: Callable, held_out: Tensor | None = None
) -> Callable[[SortPolicy], dict]:
    """What to note each epoch, all exact.

    expected_reward, sorted_probability and entropy are [seed], and so is
    held_out_probability, that of sorting the prompts held out; answer, the most likely
    response to each prompt, is [seed batch pos], and so is held_out_answer.
    """

    @torch.no_grad()
    def observe(policy: SortPolicy) -> dict:
        model = policy.model
        expected = exact_expected_reward(model, prompts, reward_fn)
        seen = {
            "expected_reward": expected.mean(-1),
            "sorted_probability": exact_sorted_probability(model, prompts).mean(-1),
            "entropy": exact_entropy(model, prompts).mean(-1),
            "answer": model(prompts).argmax(-1),
        }
        if held_out is not None:
            unseen = exact_sorted_probability(model, held_out)
            seen["held_out_probability"] = unseen.mean(-1)
            seen["held_out_answer"] = model(held_out).argmax(-1)
        return seen

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
    *,
    prompts: Tensor = SORT_PROMPTS,
    held_out: Tensor | None = None,
    seeds: Sequence[int] = (5,),
    init_scale: float = 1.0,
    learning_rate: float = 1e-3,
    optimizer: Callable = torch.optim.Adam,
    watch: Callable[[History], None] | None = None,
    **knobs,
) -> History:
    """Train one sort model for each seed; the history's curves are [step seed].

    With held_out, prompts [batch pos] that are not trained on, it also notes each
    epoch how often those are sorted, held_out_probability, and held_out_answer.

    Further knobs are those of TrainConfig (epsilon, kl_estimator, ...). The last
    record holds the exact measures of the trained models.
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
    policy = make_policy(prompts, seeds, init_scale)
    observe = watch_exactly(prompts, reward_fn, held_out)
    stepper = optimizer(policy.model.parameters(), lr=learning_rate)
    reward = rollout_reward(reward_fn)
    history = train(policy, prompts, reward, stepper, config, observe, watch)
    history.records.append({"epoch": num_epochs} | observe(policy))
    return history
