"""What a trainer downloads: a tokenizer, and a base model with an adapter on it."""

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.func import functional_call

from grpo_course.sequences import TinyLM

SPECIAL = ["<pad>", "<end>", "<user>", "<bot>"]
WORDS = [*"0123456789", "10", "11", "12", " ", "=", ","]
LARGEST = 12
HIDDEN, RANK, DROPOUT = 48, 8, 0.1
WEIGHTS = Path(__file__).with_name("base.pt")


class Tokenizer:
    """Digits, a few merged numbers, and four special tokens.

    Encoding takes the longest token that fits, so "12" is one token; a model may still
    write it as "1" and "2".
    """

    tokens = SPECIAL + WORDS
    pad, eos, equals = map(tokens.index, ("<pad>", "<end>", "="))
    longest_first = re.compile("|".join([*SPECIAL, "1[012]", "[0-9 =,]"]))

    def encode(self, text: str) -> list[int]:
        """Text, special tokens included -> numbers of tokens."""
        return [self.tokens.index(part) for part in self.longest_first.findall(text)]

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        """Numbers of tokens -> text."""
        first = len(SPECIAL) if skip_special_tokens else 0
        return "".join(self.tokens[i] for i in ids if i >= first)

    def pad_rows(self, rows: list[list[int]], side: str) -> Tensor:
        """Rows of any length, padded on the left or the right. -> int [row pos]"""
        width = max(len(row) for row in rows)
        gaps = [[self.pad] * (width - len(row)) for row in rows]
        pairs = zip(gaps, rows, strict=True)
        left = side == "left"
        return torch.tensor([gap + row if left else row + gap for gap, row in pairs])

    def apply_chat_template(self, text: str, add_generation_prompt: bool = True) -> str:
        """What somebody says, as the model has seen it in training."""
        return f"<user>{text}" + "<bot>" * add_generation_prompt


class Reader(TinyLM):
    """The tiny language model, up to its last layer."""

    def forward(  # type: ignore[override]
        self, tokens: Tensor, hidden: Tensor | None = None, real: Tensor | None = None
    ) -> Tensor:
        """int [row pos] -> states [row pos dim]"""
        return self.read(tokens, hidden, real)


class AdaptedLM(nn.Module):
    """A base model with a low-rank adapter, which starts at zero, and with dropout.

    Hu et al. 2021, arXiv 2106.09685.
    """

    adapted = ("input_weights", "hidden_weights", "head_weights")

    def __init__(self, base: Reader, seed: int = 0):
        super().__init__()
        self.base, self.dropout = base, nn.Dropout(DROPOUT)
        self.adapter_is_on = True
        generator = torch.Generator().manual_seed(seed)
        shapes = {name: getattr(base, name).shape for name in self.adapted}
        down = {
            name: torch.randn(rows, RANK, generator=generator) / rows**0.5
            for name, (rows, _) in shapes.items()
        }
        up = {name: torch.zeros(RANK, columns) for name, (_, columns) in shapes.items()}
        self.down, self.up = nn.ParameterDict(down), nn.ParameterDict(up)

    @contextmanager
    def disable_adapter(self) -> Iterator[None]:
        """Inside, the model is its base."""
        self.adapter_is_on = False
        try:
            yield
        finally:
            self.adapter_is_on = True

    def weights(self) -> dict[str, Tensor]:
        """All weights, those of the adapter added."""
        weights: dict[str, Tensor] = dict(self.base.named_parameters())
        if self.adapter_is_on:
            for name in self.adapted:
                weights[name] = weights[name] + self.down[name] @ self.up[name]
        return weights

    def forward(
        self,
        tokens: Tensor,
        attention: Tensor | None = None,
        state: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """int, bool [row pos] -> logits [row pos vocab], and the state after the last.

        The logits at a position are for the token after it. Where attention is False,
        the token is not read. `state` [row dim] goes on from an earlier call.
        """
        if attention is not None and attention.shape != tokens.shape:
            sizes = f"{list(attention.shape)}, and tokens is {list(tokens.shape)}"
            raise ValueError(f"attention is {sizes}. Pad both alike.")
        weights = self.weights()
        states = functional_call(self.base, weights, (tokens, state, attention))
        logits = self.dropout(states) @ weights["head_weights"] + weights["head_bias"]
        return logits, states[:, -1]


def load_model(seed: int = 0) -> AdaptedLM:
    """A fresh copy of the base model, frozen, with a new adapter."""
    return AdaptedLM(copy.deepcopy(pretrained()).requires_grad_(False), seed)


@cache
def pretrained() -> Reader:
    """The base model, as it was stored."""
    model = Reader(len(Tokenizer.tokens), HIDDEN, context_length=64)
    model.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return model
