"""Rewards of the sort task: on two lists to read, on tensors to train.

Each reward on lists has a twin on tensors that gives the same numbers for all
responses at once; `compute_reward` picks the twin where there is one.
"""

import hashlib
import inspect
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from io import BytesIO
from itertools import pairwise
from numbers import Real
from pathlib import Path
from sysconfig import get_paths
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any

import torch
import torch.nn.functional as F
from einops import einsum, rearrange, repeat
from torch import Generator, Tensor, nn

from grpo_course.checks import (
    require_at_least,
    require_axes,
    require_callable,
    require_finite,
    require_inside,
    require_sizes,
    require_vocabulary,
)
from grpo_course.files import json_lines, read_json_lines, write_atomically
from grpo_course.loop import (
    LEARNING_RATE,
    History,
    Rollout,
    TrainConfig,
    as_json,
    from_json,
    train,
)
from grpo_course.sampling import (
    make_draw,
    one_generator,
    one_generator_each,
    require_seeds,
)

# --- sorting.rewards


ListReward = Callable[[list[int], list[int]], float]


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


def batch_ordered_pairs(responses: Tensor) -> Tensor:
    """[... batch trial pos] -> [... batch trial]"""
    return (responses[..., 1:] >= responses[..., :-1]).sum(dim=-1)


def batch_distance_reward(prompts: Tensor, responses: Tensor) -> Tensor:
    """[batch pos], [... batch trial pos] -> [... batch trial]"""
    truth = prompts.sort(dim=-1).values[:, None, :]
    return (responses == truth).sum(dim=-1).float()


def batch_inclusion_ordering_reward(prompts: Tensor, responses: Tensor) -> Tensor:
    """[batch pos], [... batch trial pos] -> [... batch trial]"""
    found = (prompts[:, None, :, None] == responses[..., None, :]).any(dim=-1)
    return (found.sum(dim=-1) + batch_ordered_pairs(responses)).float()


def batch_multiset_reward(prompts: Tensor, responses: Tensor) -> Tensor:
    """[batch pos], [... batch trial pos] -> [... batch trial]"""
    vocab_size = int(torch.maximum(prompts.max(), responses.max())) + 1
    wanted = F.one_hot(prompts, vocab_size).sum(dim=-2)[:, None, :]
    given = F.one_hot(responses, vocab_size).sum(dim=-2)
    shared = torch.minimum(wanted, given).sum(dim=-1)
    return (shared + batch_ordered_pairs(responses)).float()


def batch_exact_reward(prompts: Tensor, responses: Tensor) -> Tensor:
    """[batch pos], [... batch trial pos] -> [... batch trial]"""
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
    if reward_fn in BATCH_REWARDS.values():
        return reward_fn(prompts, responses)
    if reward_fn in BATCH_REWARDS:
        return BATCH_REWARDS[reward_fn](prompts, responses)
    return reward_one_by_one(prompts, responses, reward_fn)


def reward_one_by_one(
    prompts: Tensor, responses: Tensor, reward_fn: ListReward
) -> Tensor:
    """The plain loop behind `compute_reward`, for a reward that knows only lists."""
    what = "maps two lists, prompt and response, to a number"
    require_callable("reward_fn", reward_fn, what)
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


# --- sorting.model


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
        sizes = {"vocab_size": vocab_size, "embedding_dim": embedding_dim}
        sizes |= {"prompt_length": prompt_length, "response_length": response_length}
        require_sizes(**sizes)
        require_inside("init_scale", init_scale, {"at least": 0, "below": math.inf})
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
    require_axes(argument, tokens, "batch pos")
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
    [seed batch trial pos]. Raises ValueError for fewer than one response.
    """
    require_at_least("num_responses", num_responses, 1)
    with torch.no_grad():
        probs = model(prompts).softmax(dim=-1)  # [... batch pos vocab]
    require_finite("the policy's probabilities", probs, "try a smaller learning rate")
    if probs.ndim == 3:
        return sample_group(probs, num_responses, one_generator(generator))
    pairs = zip(probs, one_generator_each(probs, generator), strict=True)
    return torch.stack([sample_group(p, num_responses, g) for p, g in pairs])


def sample_group(
    probs: Tensor, num_responses: int, generator: Generator | None
) -> Tensor:
    """Every position of every response is drawn on its own. -> [batch trial pos]"""
    flat = rearrange(probs, "batch pos vocab -> (batch pos) vocab")
    drawn = torch.multinomial(
        flat, num_responses, replacement=True, generator=generator
    )
    return rearrange(
        drawn, "(batch pos) trial -> batch trial pos", batch=probs.shape[0]
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


# --- sorting.cache


Code = FunctionType | BuiltinFunctionType | type


PLAIN = (NoneType, bool, int, float, complex, str, bytes, range, torch.dtype)


LIBRARIES = tuple(get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def cache_key(settings: dict) -> str:
    """A short name that changes with every setting, the reward's code included."""
    parts = {name: describe(value) for name, value in sorted(settings.items())}
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def describe(value: Any, told: tuple = ()) -> str:
    """A setting as text; a function is its source and all that it reads besides.

    `told` are the functions that are being described. Raises ValueError for what has
    no text of its own: it would be taken for another.
    """
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, Code):
        return describe_function(value, told)
    if isinstance(value, torch.Tensor) or type(value).__module__ == "numpy":
        return describe(value.tolist(), told)
    if isinstance(value, dict):
        return f"{{{describe([*value], told)}: {describe([*value.values()], told)}}}"
    if isinstance(value, list | tuple | set | frozenset):
        parts = [describe(each, told) for each in value]
        return str(sorted(parts) if isinstance(value, set | frozenset) else parts)
    if is_dataclass(value):
        return f"{type(value).__qualname__} {describe(vars(value), told)}"
    if isinstance(value, PLAIN):
        return repr(value)
    raise ValueError(
        f"use_cache=True cannot tell {value!r} from another of its kind. Let the "
        "reward be a function that reads plain numbers, texts, lists or tensors; "
        "or leave use_cache out."
    )


def describe_function(function: Code, told: tuple) -> str:
    """Its source, and what its code finds outside: defaults, closure, globals."""
    if "<lambda>" in function.__qualname__:
        raise ValueError(
            "use_cache=True cannot tell one lambda from another. Define it with `def`."
        )
    name = f"{function.__module__}.{function.__qualname__}"
    home = told[-1].__module__ if told else function.__module__
    elsewhere = function.__module__ != home
    if function in told or (elsewhere and is_library(function.__module__)):
        return name
    found = [describe(value, (*told, function)) for value in outside(function)]
    return " ".join([f"{name}: {inspect.getsource(function)}", *found])


def is_library(module: str | None) -> bool:
    """Whether a module is Python's, an installed package's or the course's."""
    if module is None or module.startswith("grpo_course."):
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file.startswith(LIBRARIES) if file else module != "__main__"


def outside(function: Code) -> Iterator[Any]:
    """The values that a function's code reads and does not make."""
    names = [*names_in(getattr(function, "__code__", None))]
    known = getattr(function, "__globals__", {})
    for value in (
        *(getattr(function, "__defaults__", None) or ()),
        *(getattr(function, "__kwdefaults__", None) or {}).values(),
        *(c.cell_contents for c in getattr(function, "__closure__", None) or ()),
        *(known[name] for name in names if name in known),
    ):
        yield value
        if isinstance(value, ModuleType) and not is_library(value.__name__):
            yield from (vars(value)[name] for name in names if name in vars(value))


def names_in(code: CodeType | None) -> Iterator[str]:
    """The names that code and the code inside it look up."""
    if code is not None:
        yield from code.co_names
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                yield from names_in(inner)


def cached(run: Callable[[], History], log: Path) -> History:
    """The run in `log` if it is there; else run it, and write log and figure."""
    if log.exists():
        cure = "Delete the file, and the next call runs again."
        return History(list(read_json_lines(log, from_json, cure)))
    history = run()
    write_atomically(log.with_suffix(".png"), figure(history))
    write_atomically(log, json_lines([as_json(record) for record in history.records]))
    return history


def figure(history: History) -> bytes:
    """Loss and mean reward against the optimizer step, one line a seed; a PNG."""
    from matplotlib.figure import Figure

    drawn, image = Figure(figsize=(9, 3.2), layout="constrained"), BytesIO()
    for ax, name in zip(drawn.subplots(1, 2), ("loss", "mean_reward"), strict=True):
        ax.plot(history.curve(name))
        ax.set_xlabel("optimizer step")
        ax.set_ylabel(name)
    drawn.savefig(image, format="png")
    return image.getvalue()


# --- sorting.policy_gradient


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
    from grpo_course.exact import (
        exact_entropy,
        exact_expected_reward,
        exact_sorted_probability,
    )

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
