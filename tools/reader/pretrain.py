"""Pretrain the reader, a language model from nothing, on stories that never repeat.

.venv/bin/python -m tools.reader.pretrain --out runs/pretrain

It takes about an hour of one core. The same command goes on with what was stopped,
from its last checkpoint, and the weights come out as if it had never stopped: batch and
step follow from the seed and the number of the step alone. `runs/pretrain/model` is
then the model with its figures and its card; the one of the course is a copy of it.
`runs/pretrain/half` is the model half way, from which the finale begins as well.

The matrices learn by Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon), the
embedding and the scales by AdamW.
"""

import io
import platform
import random
import subprocess
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import torch
import transformers
import tyro
from torch import Tensor
from torch.nn import functional as F
from torch.optim import AdamW, Muon, Optimizer
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from grpo_course.files import write_atomically
from grpo_course.gsm8k import demonstration
from grpo_course.lm import make_tiny_model, make_tokenizer, save_model
from grpo_course.reader import Story
from grpo_course.tasks import conversation_text, prompt_text
from grpo_course.training import linear_schedule
from tools.reader.card import PROBLEMS, write_card
from tools.reader.stories import make_stories, make_sums

TOKENIZER_STORIES = 4000  # from which the tokenizer learns its words
CHUNK = 8  # batches are cut from so many at a time, sorted by length: less padding
# A batch's width is a multiple of it: torch keeps memory for each shape that it meets.
WIDTHS = 16
WARMUP, FINAL_SHARE = 30, 0.02  # steps, and what is left of a rate at the end
MOMENTUM, WEIGHT_DECAY = 0.95, 0.01  # of Muon
BETAS = (0.9, 0.95)  # of AdamW, without weight decay
CHECKPOINT, HALF, MODEL = "checkpoint.pt", "half", "model"  # in the folder of a run


@dataclass(frozen=True)
class PretrainConfig:
    """The settings of a pretraining; the default ones made the model of the course."""

    seed: int = 0
    num_steps: int = 4800
    batch_size: int = 64  # problems a step
    sums: float = 0.25  # share of the problems that are bare sums
    prompt_weight: float = 0.1  # of a prompt's token in the loss
    matrix_rate: float = 0.02  # learning rate of Muon
    other_rate: float = 3e-3  # learning rate of AdamW
    vocab_size: int = 1024
    hidden_size: int = 160  # a multiple of num_heads
    num_layers: int = 4
    num_heads: int = 4
    context_length: int = 256  # tokens
    num_threads: int = 1  # of the CPU; it decides the rounding
    save_every: int = 100  # steps


@dataclass(frozen=True)
class Batch:
    """Whole conversations, padded on the right; all [batch pos].

    tokens: int. weights: float, of each token in the loss; 0 for padding.
    responses: bool, the tokens of the responses.
    """

    tokens: Tensor
    weights: Tensor
    responses: Tensor


def draw_chunk(
    config: PretrainConfig, tokenizer: PreTrainedTokenizerBase, number: int
) -> list[Batch]:
    """CHUNK batches, each of problems of about one length.

    Equal arguments give equal batches, and no two numbers the same problems.
    """
    size, key = config.batch_size, f"{config.seed} {number}"
    num_sums = round(config.sums * CHUNK * size)
    stories = make_stories("train", CHUNK * size - num_sums, key)
    rows = [encode(tokenizer, p) for p in [*stories, *make_sums(num_sums, key)]]
    rows.sort(key=lambda row: len(row[0]) + len(row[1]))
    cut = [rows[i : i + size] for i in range(0, CHUNK * size, size)]
    random.Random(key).shuffle(cut)
    return [pad(rows, tokenizer.pad_token_id, config.prompt_weight) for rows in cut]


def encode(
    tokenizer: PreTrainedTokenizerBase, problem: Story
) -> tuple[list[int], list[int]]:
    """The tokens of the prompt, and those of the response with its end."""
    asked = prompt_text(tokenizer, problem.question, None)
    texts = [asked, demonstration(problem)]
    prompt, response = tokenizer(texts, add_special_tokens=False)["input_ids"]
    return prompt, [*response, tokenizer.eos_token_id]


def pad(
    rows: list[tuple[list[int], list[int]]], padding: int, prompt_weight: float
) -> Batch:
    """Prompts with their responses as one batch."""
    longest = max(len(prompt) + len(response) for prompt, response in rows)
    width = -(-longest // WIDTHS) * WIDTHS
    tokens = torch.full((len(rows), width), padding)
    weights = torch.zeros(len(rows), width)
    responses = torch.zeros(len(rows), width, dtype=torch.bool)
    for i, (prompt, response) in enumerate(rows):
        end = len(prompt) + len(response)
        tokens[i, :end] = torch.tensor(prompt + response)
        weights[i, : len(prompt)] = prompt_weight
        weights[i, len(prompt) : end] = 1.0
        responses[i, len(prompt) : end] = True
    return Batch(tokens, weights, responses)


@cache
def fast_dtype() -> torch.dtype:
    """bfloat16 where this processor multiplies it faster than float32.

    Where it does not, bfloat16 may take three times as long, for the same losses.
    """
    seconds = {}
    for dtype in (torch.float32, torch.bfloat16):
        left, right = torch.ones(4096, 160, dtype=dtype), torch.ones(160, 480).to(dtype)
        times = []
        for _ in range(4):  # the first one prepares
            before = time.perf_counter()
            left @ right
            times.append(time.perf_counter() - before)
        seconds[dtype] = min(times)
    return min(seconds, key=lambda dtype: seconds[dtype])


class Pretraining:
    """A model with random weights that learns, and a tokenizer made from stories."""

    def __init__(self, config: PretrainConfig) -> None:
        torch.set_num_threads(config.num_threads)
        self.config, self.dtype = config, fast_dtype()
        self.origin = origin()
        self.losses: list[float] = []  # of each step
        self.seconds = 0.0  # of the processor
        key = f"{config.seed} tokenizer"
        stories = make_stories("train", TOKENIZER_STORIES, key)
        texts = [conversation_text(s.question, demonstration(s)) for s in stories]
        self.tokenizer = make_tokenizer(texts, config.vocab_size)
        self.model = make_tiny_model(
            self.tokenizer,
            hidden_size=config.hidden_size,
            num_layers=config.num_layers,
            num_heads=config.num_heads,
            context_length=config.context_length,
            seed=config.seed,
        ).train()
        # In bfloat16 it is the faster one on a CPU, half as fast again.
        self.model.set_attn_implementation("eager")
        named = list(self.model.named_parameters())
        matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name]
        others = [p for name, p in named if p.ndim != 2 or "embed" in name]
        rate, other_rate = config.matrix_rate, config.other_rate
        self.optimizers: list[Optimizer] = [
            Muon(matrices, lr=rate, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY),
            AdamW(others, lr=other_rate, betas=BETAS, weight_decay=0.0),
        ]
        self.schedules = [
            linear_schedule(each, config.num_steps, WARMUP, FINAL_SHARE)
            for each in self.optimizers
        ]
        self.batches: list[Batch] = []  # those of the chunk at hand

    @property
    def step(self) -> int:
        """How many steps it took."""
        return len(self.losses)

    def learn(self) -> float:
        """One step. -> the mean loss of the responses' tokens, in nats"""
        before = time.process_time()
        chunk, place = divmod(self.step, CHUNK)
        if place == 0 or not self.batches:
            self.batches = draw_chunk(self.config, self.tokenizer, chunk)
        batch = self.batches[place]
        with torch.autocast("cpu", torch.bfloat16, self.dtype is torch.bfloat16):
            logits = self.model(batch.tokens, use_cache=False).logits
        losses = F.cross_entropy(  # [batch pos], of each token but the first
            logits[:, :-1].float().transpose(1, 2),
            batch.tokens[:, 1:],
            reduction="none",
        )
        weights = batch.weights[:, 1:]
        loss = (losses * weights).sum() / weights.sum()
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer, schedule in zip(self.optimizers, self.schedules, strict=True):
            optimizer.step()
            schedule.step()
        self.losses.append(losses.detach()[batch.responses[:, 1:]].mean().item())
        self.seconds += time.process_time() - before
        return self.losses[-1]

    def parts(self) -> list[Any]:
        """All that learning changes."""
        return [self.model, *self.optimizers, *self.schedules]

    def save(self, path: Path) -> None:
        """Write a checkpoint, whole or not at all."""
        buffer = io.BytesIO()
        saved = {name: getattr(self, name) for name in SAVED}
        saved |= {"config": asdict(self.config)}
        saved |= {"parts": [part.state_dict() for part in self.parts()]}
        torch.save(saved, buffer)
        write_atomically(path, buffer.getvalue())

    def go_on(self, path: Path) -> None:
        """Take everything from a checkpoint. Raises ValueError for another run's."""
        saved = torch.load(path, weights_only=True)
        if saved["config"] != asdict(self.config):
            raise ValueError(
                f"{path} is a checkpoint of other settings, {saved['config']}. Go on "
                "with these, or choose another folder: --out DIR."
            )
        for name in SAVED:
            setattr(self, name, saved[name])
        for part, state in zip(self.parts(), saved["parts"], strict=True):
            part.load_state_dict(state)


SAVED = ("losses", "seconds", "dtype", "origin")  # beside the settings and the parts


def origin() -> dict[str, Any]:
    """The commit that a run begins with, and the versions of what rounds."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    root = Path(__file__).parents[2]
    told = subprocess.run(command, cwd=root, capture_output=True, text=True)
    versions = {
        "Python": platform.python_version(),
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
    }
    return {"commit": told.stdout.strip() or "unknown", "versions": versions}


def pretrain(
    config: Annotated[PretrainConfig, tyro.conf.arg(name="")],
    out: Path = Path("runs/pretrain"),
    problems: int = PROBLEMS,
) -> Pretraining:
    """Begin or go on in the folder `out`, then measure on so many problems a split."""
    made, checkpoint = Pretraining(config), out / CHECKPOINT
    if checkpoint.exists():
        made.go_on(checkpoint)
    with tqdm(total=config.num_steps, initial=made.step, unit="step") as bar:
        while made.step < config.num_steps:
            bar.set_postfix(loss=f"{made.learn():.3f}", refresh=False)
            bar.update()
            if made.step == config.num_steps // 2:
                save_model(made.model, made.tokenizer, out / HALF)
            if made.step % config.save_every == 0 or made.step == config.num_steps:
                made.save(checkpoint)
    figures = made.origin | {
        "config": asdict(config),
        "dtype": str(made.dtype).removeprefix("torch."),
        "steps": config.num_steps,
        "problems": config.num_steps * config.batch_size,
        "seconds": made.seconds,
    }
    print("Measuring ...", flush=True)
    print(write_card(out / MODEL, made.model.eval(), made.tokenizer, figures, problems))
    return made


if __name__ == "__main__":
    tyro.cli(pretrain)
