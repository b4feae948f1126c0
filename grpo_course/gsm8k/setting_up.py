"""From a config to what a run needs: problems, model, tokenizer, policy, optimizer."""

import random
from collections.abc import Callable

import torch
from torch import Generator
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.gsm8k.config import GRPOConfig
from grpo_course.gsm8k.data import SPLITS as GSM8K_SPLITS
from grpo_course.gsm8k.data import load_gsm8k
from grpo_course.gsm8k.policy import CausalPolicy
from grpo_course.gsm8k.pretrained import load_model, load_tokenizer
from grpo_course.gsm8k.problems import SPLITS, Problem, make_problems
from grpo_course.gsm8k.prompts import FORMS, conversation_text
from grpo_course.gsm8k.task import Task
from grpo_course.gsm8k.tiny import make_tiny_model
from grpo_course.gsm8k.tokenizer import make_tokenizer
from grpo_course.gsm8k.warm_start import (
    WarmStartConfig,
    linear_schedule,
    warm_start,
)

Parts = tuple[PreTrainedModel, PreTrainedTokenizerBase]


def load_problems(
    config: GRPOConfig, split: str = "train", count: int | None = None
) -> list[Problem]:
    """The problems of one split, at most `count` of them.

    Generated ones have the splits of `make_problems`, GSM8K has "train" and "test".
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
    return load_gsm8k(split, path)[:count]


def known_splits(config: GRPOConfig) -> tuple[str, ...]:
    """The splits there are; the first is the one to report."""
    if config.data != "generated":
        return GSM8K_SPLITS[::-1]
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
    )


def make_policy(
    config: GRPOConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    seed: int | None = None,
) -> CausalPolicy:
    """The model with its sampler and random numbers of its own."""
    if config.gradient_checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
    generator = Generator(model.device)
    generator.manual_seed(config.seed if seed is None else seed)
    sampler = config.sampler(tokenizer.eos_token_id, tokenizer.pad_token_id)
    autocast = torch.bfloat16 if config.dtype == "bfloat16" else None
    return CausalPolicy(model, sampler, generator, autocast)


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
    """ "auto" is a GPU if there is one."""
    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


def make_schedule(config: GRPOConfig, optimizer: AdamW) -> LambdaLR:
    """The learning rate over the epochs: warmup, then down to zero or constant."""
    return linear_schedule(
        optimizer,
        config.num_epochs,
        config.warmup_epochs,
        final_share=0.0 if config.schedule == "linear" else 1.0,
    )


def make_start(config: GRPOConfig, problems: list[Problem], show: bool = True) -> Parts:
    """The model that GRPO begins with: a given one, or a tiny one with a warm start."""
    torch.manual_seed(config.seed)
    random.seed(config.seed)
    model, tokenizer = make_model(config, problems)
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
    settings = WarmStartConfig(
        num_steps=config.warm_start_steps,
        batch_size=config.warm_start_batch_size,
        learning_rate=config.warm_start_learning_rate,
        form_weights=dict(zip(FORMS, config.warm_start_forms, strict=True)),
        slip_share=config.warm_start_slips,
        seed=config.seed,
    )
    policy = make_policy(config, model, tokenizer)
    return warm_start(
        policy, tokenizer, problems, settings, config.system_prompt, watch=watch
    )
