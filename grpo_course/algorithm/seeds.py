"""Random weights for one model, or for several that train side by side."""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

Draw = Callable[..., Tensor]


def require_seeds(seeds: Sequence[int] | None) -> None:
    """Check that seeds, where they are given, are a list with something in it."""
    if isinstance(seeds, int) or (seeds is not None and len(seeds) == 0):
        raise ValueError(f"seeds={seeds!r}, but it must list at least one: seeds=(0,).")


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
