"""Trains the base model of the bug hunt: `python benchmarks/hunt_base.py`.

On demonstrations, for about three minutes, into `grpo_course/lessons/hunt/base.pt`.
"""

import random

import torch
from torch import Tensor, nn

from grpo_course.lessons.hunt.base import HIDDEN, LARGEST, WEIGHTS, Reader, Tokenizer


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


if __name__ == "__main__":
    weights = pretrain().state_dict()
    torch.save({name: weight.half() for name, weight in weights.items()}, WEIGHTS)
