"""Several models side by side: random weights, and the mean of what they reach."""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from grpo_course.algorithm.validation import require_at_least

Draw = Callable[..., Tensor]
ENOUGH = 2.0  # standard errors; seeds alone differ by as many in one case of twenty


def require_seeds(seeds: Sequence[int] | None) -> None:
    """Check that seeds, where they are given, are a list of whole numbers from 0 on."""
    if seeds is None:
        return
    if not isinstance(seeds, Sequence) or isinstance(seeds, str) or not seeds:
        raise ValueError(f"seeds={seeds!r}, but it must list one at least: seeds=(0,).")
    for place, seed in enumerate(seeds):
        require_at_least(f"seeds[{place}]", seed, 0)


def zeros(seeds: Sequence[int] | None, *shape: int) -> Tensor:
    """Zeros of that shape, with a seed axis in front where there are seeds."""
    return torch.zeros(*([] if seeds is None else [len(seeds)]), *shape)


def make_draw(seeds: Sequence[int] | None) -> Draw:
    """draw(2, 3): standard normals of that shape, [seed 2 3] where there are seeds."""
    if seeds is None:
        return lambda *shape: torch.randn(shape)
    generators = [Generator().manual_seed(seed) for seed in seeds]
    return lambda *shape: torch.stack(
        [torch.randn(shape, generator=g) for g in generators]
    )


def mean_and_error(values: Tensor | Sequence[float]) -> tuple[Tensor, Tensor]:
    """The mean over the seeds and its standard error. [... seed] -> two of [...]"""
    results = torch.as_tensor(values).detach().double()
    return results.mean(dim=-1), results.std(dim=-1) / results.shape[-1] ** 0.5
