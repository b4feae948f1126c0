"""Random weights for one model, or for several that train side by side."""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from grpo_course.algorithm.validation import require_at_least

Draw = Callable[..., Tensor]


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
