"""Inputs that no case holds, drawn from those that the cases do hold."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from grpo_course.classroom.check.exercise import Case, Exercise

DRAWS = 2  # of each case
TAG = re.compile(r"(</?\w+>)")


def fresh_cases(exercise: Exercise, seed: int = 0) -> Iterator[Case]:
    """Cases like those of the exercise, with other numbers, tokens, masks and texts."""
    generator, rng = torch.Generator().manual_seed(seed), random.Random(seed)
    texts = _pieces(exercise)
    for case in exercise.cases:
        for draw in range(DRAWS):
            args = {
                name: _fresh(value, draw, generator, rng, texts)
                for name, value in case.args.items()
            }
            yield replace(case, args=args)


def _fresh(
    value: Any, draw: int, generator: torch.Generator, rng: random.Random, texts: list
) -> Any:
    """Another value of the same type, shape and range; the same if there is none."""
    if isinstance(value, Tensor) and value.is_floating_point():
        return _floats(value, draw, generator)
    if isinstance(value, Tensor) and value.dtype == torch.bool:
        return _rows(value, generator)
    if isinstance(value, Tensor):
        return _resampled(value, generator)
    if isinstance(value, list):
        return [rng.choice(value) for _ in value]
    if isinstance(value, dict):
        return {k: _fresh(v, draw, generator, rng, texts) for k, v in value.items()}
    if isinstance(value, bool):
        return rng.random() < 0.5
    if isinstance(value, int):
        return max(1, value + rng.randint(-1, 2))
    if isinstance(value, float):
        return value * rng.uniform(0.7, 1.0)
    if isinstance(value, str) and TAG.search("".join(texts)):
        return "".join(rng.choices(texts, k=rng.randint(1, 9)))
    return value


def _floats(value: Tensor, draw: int, generator: torch.Generator) -> Tensor:
    """Sign and size stay, so that a log-probability stays one; so do NaN and inf."""
    new = value.clone()
    finite = value.isfinite()
    if draw % 2:
        new[finite] = _resampled(value[finite], generator)
    else:
        new *= 0.5 + torch.rand(value.shape, generator=generator)
    return new


def _resampled(value: Tensor, generator: torch.Generator) -> Tensor:
    """Entries drawn from its own: ties and extremes come again."""
    place = torch.randint(value.numel(), value.shape, generator=generator)
    return value.flatten()[place]


def _rows(mask: Tensor, generator: torch.Generator) -> Tensor:
    """The same rows in another order: a mask stays one of beginnings."""
    rows = mask.reshape(-1, mask.shape[-1])
    return rows[torch.randperm(len(rows), generator=generator)].reshape(mask.shape)


def _pieces(exercise: Exercise) -> list[str]:
    """The tags and texts of all cases."""
    texts = [a for c in exercise.cases for a in c.args.values() if isinstance(a, str)]
    return sorted({piece for text in texts for piece in TAG.split(text) if piece})
