"""What the exercises of several notebooks are made of."""

import torch
from torch import Tensor

from grpo_course.classroom.check import Case, case

TOO_LATE = (
    "A probability below 1e-45 rounds to zero, and no epsilon or clamp brings its "
    "logarithm back. Take log_softmax of the logits as they are, without a clamp "
    "before or behind it: it never leaves the log domain."
)
TOO_EARLY = (
    "exp(-200) rounds to zero, and no epsilon or clamp brings it back. Subtract "
    "first, while both are logarithms; exp comes last."
)


PROMPTS = torch.tensor([[1, 0, 2], [3, 2, 4], [1, 2, 3]])  # [batch pos]

NEXT_TO_IMPOSSIBLE = case(
    "tokens that are next to impossible",
    TOO_EARLY,
    log_probs=[[[-200.0, -150.0]]],
    old_log_probs=[[[-199.9, -150.0]]],
    deltas=[[1.0]],
)


def scored_text(
    description: str,
    batch: int,
    pos: int,
    vocab: int,
    hint: str = "",
    scale: float = 2.0,
) -> Case:
    """A model's logits at each token of a text, drawn at random, and its tokens."""
    generator = torch.Generator().manual_seed(pos)
    logits = scale * torch.randn(batch, pos, vocab, generator=generator)
    tokens = torch.randint(vocab, (batch, pos), generator=generator)
    return case(description, hint, logits=logits, tokens=tokens)


def numbers(*shape: int, scale: float = 1.0, shift: float = 0.0) -> Tensor:
    """Different numbers without a random generator: a coarse sine."""
    count = torch.Size(shape).numel()
    angles = shift + torch.arange(1.0, count + 1).mul(1.7)
    return scale * angles.sin().reshape(shape)


def mask_of(lengths: list | Tensor, width: int | None = None) -> Tensor:
    """True on the first tokens of each response. -> bool [... pos]"""
    lengths = torch.as_tensor(lengths)
    width = int(lengths.max()) if width is None else width
    return torch.arange(width) < lengths[..., None]


def pick(scores: Tensor, tokens: Tensor) -> Tensor:
    """The score of each token. [... pos vocab], int [... pos] -> [... pos]"""
    return scores.gather(-1, tokens[..., None]).squeeze(-1)
