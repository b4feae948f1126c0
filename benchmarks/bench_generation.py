"""Generation and scoring of language models against what they replace.

Completions per CPU-second of our sampler, of `model.generate`, and of a loop that
keeps no cache; then the time and the memory of scoring. The rounds are interleaved,
so that a machine that slows down slows all of them; a ratio comes with its spread.

python benchmarks/bench_generation.py
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from torch import Generator, Tensor

from grpo_course.sampling import Sampler, draw
from grpo_course.text.generation import generate
from grpo_course.text.prompts import encode_prompts
from grpo_course.text.scoring import chunked_log_probs, response_log_probs
from grpo_course.text.stories import make_problems
from grpo_course.text.tiny import make_tiny_model, make_tokenizer

PROMPTS, TRIALS, NEW_TOKENS, ROUNDS = 16, 8, 24, 7


def make_setting() -> tuple:
    """A tiny random Qwen2, 16 prompts, and a sampler that never ends early."""
    questions = [p.question for p in make_problems("train", 1000, seed=0)]
    tokenizer = make_tokenizer(questions)
    model = make_tiny_model(tokenizer)
    prompts = encode_prompts(tokenizer, questions[:PROMPTS])
    return model, prompts, Sampler(NEW_TOKENS, pad=tokenizer.pad_token_id)


def ours(model, prompts: Tensor, sampler: Sampler) -> Tensor:
    """The sampler of the course."""
    return generate(model, prompts, TRIALS, sampler, Generator().manual_seed(0))[0]


def with_generate(model, prompts: Tensor, sampler: Sampler) -> Tensor:
    """The sampler of transformers, without the scores that we note."""
    rows = prompts.repeat_interleave(TRIALS, 0)
    return model.generate(
        input_ids=rows,
        attention_mask=(rows != sampler.pad).long(),
        do_sample=True,
        top_k=0,
        min_new_tokens=NEW_TOKENS,
        max_new_tokens=NEW_TOKENS,
    )


@torch.no_grad()
def without_cache(model, prompts: Tensor, sampler: Sampler) -> Tensor:
    """Every token reads the whole text again."""
    rows, generator = prompts.repeat_interleave(TRIALS, 0), Generator().manual_seed(0)
    for _ in range(NEW_TOKENS):
        real = rows != sampler.pad
        real[:, prompts.shape[-1] :] = True
        logits = model(
            input_ids=rows,
            attention_mask=real.long(),
            position_ids=(real.long().cumsum(-1) - 1).clamp(min=0),
            logits_to_keep=1,
        ).logits[:, -1]
        token = draw(sampler.log_probs(logits), generator)
        rows = torch.cat([rows, token[:, None]], dim=-1)
    return rows


def score_shared(model, prompts: Tensor, responses: Tensor, sampler: Sampler) -> None:
    """Forward and backward pass, each prompt read once."""
    response_log_probs(model, prompts, responses, sampler).sum().backward()


def score_rows(model, prompts: Tensor, responses: Tensor, sampler: Sampler) -> None:
    """Forward and backward pass, each prompt read with each of its responses."""
    rows = prompts.repeat_interleave(TRIALS, 0)
    text = torch.cat([rows, responses.flatten(0, 1)], dim=-1)
    real = text != sampler.pad
    real[:, rows.shape[-1] :] = True
    logits = model(
        input_ids=text,
        attention_mask=real.long(),
        position_ids=(real.long().cumsum(-1) - 1).clamp(min=0),
    ).logits[:, rows.shape[-1] - 1 : -1]
    sampler.token_log_probs(logits, responses.flatten(0, 1)).sum().backward()


def cpu_seconds(call: Callable[[], object]) -> float:
    """CPU time of this process: what other programs use does not count."""
    start = os.times()
    call()
    end = os.times()
    return end.user - start.user + end.system - start.system


def rounds(ways: dict[str, Callable[[], object]], repeats: int) -> dict[str, list]:
    """Seconds of each way in each round, one after the other in every round."""
    for way in ways.values():
        way()  # warm up
    seconds = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            taken = cpu_seconds(lambda way=way: [way() for _ in range(repeats)])
            seconds[name].append(taken / repeats)
    return seconds


def report(title: str, seconds: dict[str, list], amount: int, unit: str) -> None:
    """Rates, and how many times faster the first way is, with the least and most."""
    first = next(iter(seconds))
    print(title)
    for name, taken in seconds.items():
        line = f"  {name:34s} {amount / median(taken):8.0f} {unit} per CPU-second"
        if name != first:
            pairs = zip(taken, seconds[first], strict=True)
            ratios = sorted(theirs / our for theirs, our in pairs)
            line += f"; {first} is {median(ratios):.2f} x as fast"
            line += f" [{ratios[0]:.2f}..{ratios[-1]:.2f}]"
        print(line)


def peak_of_scoring(most_logits: int) -> None:
    """In a process of its own: the most memory, in MB, above what it began with."""
    vocab, rows, dim = 32_000, 4096, 64
    head = torch.nn.Linear(dim, vocab, bias=False)
    hidden = torch.randn(rows, dim, requires_grad=True)
    tokens, sampler = torch.randint(vocab, (rows,)), Sampler(1)
    chunked_log_probs(head, hidden[:8], tokens[:8], sampler).sum().backward()
    before = most_memory()
    chunked_log_probs(head, hidden, tokens, sampler, most_logits).sum().backward()
    print(most_memory() - before)


def most_memory() -> float:
    """The most memory that this process ever held, in MB; Linux only.

    Not `ru_maxrss`: a new process takes that over from the one that started it.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def main() -> None:
    torch.set_num_threads(1)
    model, prompts, sampler = make_setting()
    given = (model, prompts, sampler)
    responses = ours(*given)
    ways = {
        "ours": lambda: ours(*given),
        "model.generate": lambda: with_generate(*given),
        "no cache": lambda: without_cache(*given),
    }
    size = f"{PROMPTS} prompts x {TRIALS}, {prompts.shape[-1]} + {NEW_TOKENS} tokens"
    report(f"generation, {size}", rounds(ways, 3), PROMPTS * TRIALS, "completions")
    both = {
        "each prompt read once": lambda: score_shared(*given[:2], responses, sampler),
        "read with each response": lambda: score_rows(*given[:2], responses, sampler),
    }
    report("scores with gradient", rounds(both, 3), PROMPTS * TRIALS, "completions")
    peaks = {}
    for name, most in {"all logits": 2**40, "in chunks": 2**24}.items():
        command = [sys.executable, __file__, "peak", str(most)]
        peaks[name] = float(subprocess.check_output(command, text=True))
        print(f"  peak memory, 4096 x 32000 logits, {name:10s} {peaks[name]:7.0f} MB")
    print(f"  ratio {peaks['all logits'] / peaks['in chunks']:.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["peak"]:
        peak_of_scoring(int(sys.argv[2]))
    else:
        main()
