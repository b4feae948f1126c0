"""From a config to what a run needs: problems, model, tokenizer, policy, optimizer."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Generator
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.gsm8k.config import GRPOConfig
from grpo_course.gsm8k.data import RUN_SPLITS, load_run_split
from grpo_course.gsm8k.policy import CausalPolicy
from grpo_course.gsm8k.pretrained import load_model, load_tokenizer
from grpo_course.gsm8k.problems import SPLITS, Problem, make_problems
from grpo_course.gsm8k.prompts import conversation_text
from grpo_course.gsm8k.reading import require_room
from grpo_course.gsm8k.task import Task
from grpo_course.gsm8k.tiny import make_tiny_model
from grpo_course.gsm8k.tokenizer import make_tokenizer
from grpo_course.gsm8k.warm_start import linear_schedule, warm_start

Parts = tuple[PreTrainedModel, PreTrainedTokenizerBase]


def load_problems(
    config: GRPOConfig, split: str = "train", count: int | None = None
) -> list[Problem]:
    """The problems of one split, at most `count` of them.

    Generated ones have the splits of `make_problems`, GSM8K those of `load_run_split`.
    """
    if config.data == "generated":
        return make_problems(
            split,
            count or config.num_problems,
            config.seed,
            operands=config.operands,
            operations=config.operations,
            steps=config.steps,
        )
    path = None if config.data == "gsm8k" else config.data
    return load_run_split(split, path)[:count]


def known_splits(config: GRPOConfig) -> tuple[str, ...]:
    """The splits there are; the first is the one to report."""
    if config.data != "generated":
        return RUN_SPLITS
    return ("unseen_problems", *(s for s in SPLITS if s != "unseen_problems"))


def make_task(
    config: GRPOConfig, problems: list[Problem], tokenizer: PreTrainedTokenizerBase
) -> Task:
    """The problems as the loop wants them."""
    return Task(
        problems,
        tokenizer,
        config.num_prompts,
        config.seed,
        system_prompt=config.system_prompt,
        correctness_weight=config.correctness_weight,
        format_weight=config.format_weight,
        length_weight=config.length_weight,
    )


def make_policy(
    config: GRPOConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
) -> CausalPolicy:
    """The model with its sampler and random numbers of its own."""
    if config.gradient_checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
    generator = Generator(model.device)
    generator.manual_seed(config.seed)
    sampler = config.sampler(tokenizer.eos_token_id, tokenizer.pad_token_id)
    autocast = torch.bfloat16 if config.dtype == "bfloat16" else None
    return CausalPolicy(model, sampler, generator, autocast)


def load_trained(
    config: GRPOConfig, path: str | Path, split: str
) -> tuple[CausalPolicy, Task]:
    """A saved model, and the problems of one split to measure it on.

    `path` is a folder or a name on the hub; `split` one of `known_splits`. Raises
    ValueError or OSError for a model or problems that cannot be loaded.
    """
    tokenizer = load_tokenizer(path)
    model = load_model(path, find_device(config.device))
    problems = load_problems(config, split, config.eval_problems)
    # Nothing is trained here, so nothing needs to be made again.
    config = replace(config, gradient_checkpointing=False)
    policy = make_policy(config, model, tokenizer)
    return policy, make_task(config, problems, tokenizer)


def make_optimizer(config: GRPOConfig, policy: CausalPolicy) -> AdamW:
    """AdamW with the settings of the config."""
    return AdamW(
        policy.model.parameters(),
        lr=config.learning_rate,
        betas=(config.adam_beta1, config.adam_beta2),
        weight_decay=config.weight_decay,
    )


def use_threads(config: GRPOConfig) -> None:
    """Set the number of CPU threads: it decides how sums are rounded, too."""
    if config.num_threads is not None:
        torch.set_num_threads(config.num_threads)


def find_device(name: str) -> str:
    """ "auto" is a GPU if there is one. Raises ValueError for what cannot be used."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise ValueError(
            f"device={name!r} cannot be used on this machine ({reason}). Choose "
            '"auto", which takes a GPU if there is one, or "cpu".'
        ) from None
    return name


def make_schedule(config: GRPOConfig, optimizer: AdamW) -> LambdaLR:
    """The learning rate over the epochs: warmup, then down to zero or constant."""
    return linear_schedule(
        optimizer,
        config.num_epochs,
        config.warmup_epochs,
        final_share=0.0 if config.schedule == "linear" else 1.0,
    )


def make_start(config: GRPOConfig, problems: list[Problem], show: bool = True) -> Parts:
    """The model that GRPO begins with: a given one, or a tiny one with a warm start.

    Raises ValueError before the warm start for what GRPO could not begin with.
    """
    torch.manual_seed(config.seed)
    random.seed(config.seed)
    model, tokenizer = make_model(config, problems)
    task = make_task(config, problems, tokenizer)
    require_room(model, task.tokens, config.max_new_tokens)
    total = config.warm_start_steps if config.model is None else 0
    hidden = not (show and total)
    with tqdm(total=total, desc="warm start", unit="step", disable=hidden) as bar:

        def watch(losses: list[float]) -> None:
            bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
            bar.update()

        if total:
            run_warm_start(config, model, tokenizer, problems, watch)
    return model, tokenizer


def make_model(config: GRPOConfig, problems: list[Problem]) -> Parts:
    """The given model, or a tiny one with random weights and its own tokenizer."""
    device = find_device(config.device)
    if config.model is not None:
        return load_model(config.model, device), load_tokenizer(config.model)
    texts = [conversation_text(problem, config.system_prompt) for problem in problems]
    tokenizer = make_tokenizer(texts, config.vocab_size)
    model = make_tiny_model(
        tokenizer,
        config.architecture,
        hidden_size=config.hidden_size,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        seed=config.seed,
    )
    return model.to(device), tokenizer


def run_warm_start(
    config: GRPOConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    problems: list[Problem],
    watch: Callable[[list[float]], None] | None = None,
) -> list[float]:
    """Supervised training of `model` on demonstrations; the loss of each step."""
    policy = make_policy(config, model, tokenizer)
    return warm_start(policy, tokenizer, problems, config, watch)
