"""Which tokens count: up to the end of a response, and from the start of a prompt."""

from collections.abc import Sequence, Sized

import torch
from torch import Tensor

from grpo_course.algorithm.validation import (
    require_at_least,
    require_axes,
    require_known,
)

SIDES = ("left", "right")


def response_mask(tokens: Tensor, eos: int) -> Tensor:
    """True up to the first EOS, that EOS included. int [... pos] -> bool [... pos]

    At each position: how many EOS came strictly before it? Only where none did, the
    token was chosen by the policy. The padding token plays no part, so it may be EOS
    itself. A response without EOS was cut off, and all of it counts.
    """
    require_axes("tokens", tokens, "pos")
    require_at_least("eos", eos, 0)
    is_eos = (tokens == eos).long()
    return is_eos.cumsum(dim=-1) - is_eos == 0


def prompt_mask(prompts: Tensor, pad: int) -> Tensor:
    """False on the padding in front. int [... pos] -> bool [... pos]

    A pad token after the first other token is not padding but part of the prompt.
    """
    require_axes("prompts", prompts, "pos")
    require_at_least("pad", pad, 0)
    return (prompts != pad).long().cumsum(dim=-1) > 0


def pad_rows(rows: Sequence[Sequence[int]], pad: int, side: str = "left") -> Tensor:
    """Lists of unequal lengths as one tensor, filled up on one side. -> int [rows pos]

    Prompts are padded on the left, so that all end where the response begins.
    """
    require_known("side", side, SIDES)
    require_at_least("pad", pad, 0)
    if not isinstance(rows, Sequence) or not all(isinstance(r, Sized) for r in rows):
        raise TypeError(
            f"rows={rows!r} is not a list of lists. Pass the tokens of each prompt, "
            "[[1, 2], [3]]."
        )
    if not rows or not all(len(row) for row in rows):
        raise ValueError(
            "rows has an empty row, or none. A prompt needs at least one token: "
            "give it a start token."
        )
    width = max(map(len, rows))
    fill = [[pad] * (width - len(row)) for row in rows]
    pairs = zip(fill, map(list, rows), strict=True)
    return torch.tensor([f + r if side == "left" else r + f for f, r in pairs])
