"""What a trainer downloads: a tokenizer, and a base model with an adapter on it."""

import copy
import random
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
    pad, eos = 0, 1
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
        weights = self.weights()
        states = functional_call(self.base, weights, (tokens, state, attention))
        logits = self.dropout(states) @ weights["head_weights"] + weights["head_bias"]
        return logits, states[:, -1]


def load_model(seed: int = 0) -> AdaptedLM:
    """A fresh copy of the base model, frozen, with a new adapter."""
    return AdaptedLM(copy.deepcopy(pretrained()).requires_grad_(False), seed)


def demonstration(rng: random.Random) -> tuple[str, str]:
    """A problem and an answer, as a careless crowd would write it."""
    numbers = rng.sample(range(LARGEST + 1), rng.randint(2, 4))
    in_order = " ".join(map(str, sorted(numbers)))
    shuffled = " ".join(map(str, rng.sample(numbers, len(numbers))))
    written = in_order if rng.random() < 0.6 else shuffled
    kind = rng.random()
    if kind < 0.12:
        written = written.replace(" ", ",")
    elif kind < 0.24:
        written += f" {rng.choice(numbers)}"
    elif kind < 0.36:
        written = f"{shuffled} = {written}"
    elif kind < 0.44:  # and on, and on
        written += f" {rng.choice(numbers)}" * rng.randint(4, 7)
    return " ".join(map(str, numbers)), f"= {written}"


def demonstrations(count: int, rng: random.Random) -> tuple[Tensor, Tensor]:
    """Rows of tokens, and which of them to learn. int, bool [row pos]"""
    tokenizer, rows, starts = Tokenizer(), [], []
    for _ in range(count):
        asked, answer = demonstration(rng)
        prompt = tokenizer.encode(tokenizer.apply_chat_template(asked))
        reply = tokenizer.encode(answer)
        if rng.random() < 0.3:  # digit by digit
            reply = [tokenizer.tokens.index(letter) for letter in answer]
        rows.append([*prompt, *reply, tokenizer.eos])
        starts.append(len(prompt))
    width = max(map(len, rows))
    tokens = torch.tensor([row + [tokenizer.pad] * (width - len(row)) for row in rows])
    place = torch.arange(width)
    learned = (place >= torch.tensor(starts)[:, None]) & (tokens != tokenizer.pad)
    return tokens, learned


def pretrain(num_steps: int = 3000, num_rows: int = 96) -> Reader:
    """A base model, trained on demonstrations for about three minutes."""
    rng = random.Random(0)
    model = Reader(len(Tokenizer.tokens), HIDDEN, context_length=64)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, num_steps)
    for step in range(num_steps):
        tokens, learned = demonstrations(num_rows, rng)
        logits = model.head(model(tokens[:, :-1]))
        kept = learned[:, 1:]
        loss = nn.functional.cross_entropy(logits[kept], tokens[:, 1:][kept])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 0:
            print(f"step {step}, loss {loss:.3f}", flush=True)
    return model


@cache
def pretrained() -> Reader:
    """The base model, as it was stored."""
    model = Reader(len(Tokenizer.tokens), HIDDEN, context_length=64)
    model.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return model


if __name__ == "__main__":
    weights = pretrain().state_dict()
    torch.save({name: weight.half() for name, weight in weights.items()}, WEIGHTS)
