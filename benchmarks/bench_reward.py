"""How much faster the vectorized sort rewards are than loops over responses.

Run from the repository root: python benchmarks/bench_reward.py
"""

from argparse import ArgumentParser
from collections.abc import Callable
from statistics import median
from timeit import repeat

import torch
from torch import Tensor

from grpo_course.sort import (
    compute_reward,
    reward_one_by_one,
    sort_distance_reward,
    sort_inclusion_ordering_reward,
)

BATCH, TRIAL, POS, VOCAB = 64, 16, 8, 10


def loop_over_tensors(
    prompts: Tensor, responses: Tensor, reward_fn: Callable
) -> Tensor:
    """A reward on lists, called with rows of tensors, as public code does."""
    rewards = torch.empty(responses.shape[:2])
    for i in range(responses.shape[0]):
        for j in range(responses.shape[1]):
            rewards[i, j] = reward_fn(prompts[i], responses[i, j])
    return rewards


WAYS = {  # how to reward, and how many calls one measurement times
    "loop over tensors": (loop_over_tensors, 1),
    "loop over lists": (reward_one_by_one, 5),
    "vectorized": (compute_reward, 50),
}


def draw_batch() -> tuple[Tensor, Tensor]:
    """int [batch pos], int [batch trial pos]"""
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(VOCAB, (BATCH, POS), generator=generator)
    return prompts, torch.randint(VOCAB, (BATCH, TRIAL, POS), generator=generator)


def measure(reward_fn: Callable, repeats: int) -> dict[str, float]:
    """Median milliseconds of one call, each way; all ways must give equal rewards."""
    prompts, responses = draw_batch()
    truth = loop_over_tensors(prompts, responses, reward_fn)
    times = {}
    for name, (way, calls) in WAYS.items():
        # The first call also warms up what the next ones are timed on.
        assert torch.equal(way(prompts, responses, reward_fn), truth), name
        arguments = {"way": way, "args": (prompts, responses, reward_fn)}
        seconds = repeat("way(*args)", repeat=repeats, number=calls, globals=arguments)
        times[name] = 1000 * median(seconds) / calls
    return times


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repeats", type=int, default=9, help="measurements, median kept"
    )
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    print(f"batch {BATCH}, trial {TRIAL}, n {POS}, one thread, median of {repeats}")
    for reward_fn in (sort_distance_reward, sort_inclusion_ordering_reward):
        times = measure(reward_fn, repeats)
        print(f"\n{reward_fn.__name__}\n{'':20}{'ms':>10}{'times slower':>15}")
        for name, milliseconds in times.items():
            slower = milliseconds / times["vectorized"]
            print(f"{name:20}{milliseconds:10.3f}{slower:15.1f}")


if __name__ == "__main__":
    main()
