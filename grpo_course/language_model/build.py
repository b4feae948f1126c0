"""From a config and a task to what a run needs: model, policy, problems, optimizer."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

import torch
from torch import Generator
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.algorithm.validation import choices
from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.environment import Environment
from grpo_course.language_model.find_task import find_task
from grpo_course.language_model.lora import (
    LoraPolicy,
    require_whole_model,
    with_adapter,
)
from grpo_course.language_model.policy import CausalPolicy, require_learning
from grpo_course.language_model.prefill import require_room
from grpo_course.language_model.pretrained import (
    find_device,
    load_model,
    load_tokenizer,
)
from grpo_course.language_model.template import conversation_text
from grpo_course.language_model.text_task import Problem, Reward, TextTask
from grpo_course.language_model.tiny_model import make_tiny_model
from grpo_course.language_model.tokenizer import make_tokenizer
from grpo_course.language_model.warm_start import (
    linear_schedule,
    require_tiny,
    warm_start,
)

Parts = tuple[PreTrainedModel, PreTrainedTokenizerBase]


def make_task(config: GRPOConfig) -> TextTask:
    """The task of a config, with the settings that the config has for it."""
    return find_task(config.task)(**config.task_settings)


def load_problems(
    config: GRPOConfig, split: str = "train", count: int | None = None
) -> list[Problem]:
    """The problems of one split, at most `count`, or as many as a run trains on."""
    count = config.num_problems if count is None else count
    return list(make_task(config).problems(split, count, config.seed))


def weigh(
    rewards: Mapping[str, tuple[Reward, float]], weights: Mapping[str, float]
) -> dict[str, tuple[Reward, float]]:
    """A task's rewards with other weights. Raises ValueError for another name."""
    for name in weights:
        if name not in rewards:
            raise ValueError(f"reward_weights: {name!r} {choices(rewards)}")
    return {name: (f, weights.get(name, w)) for name, (f, w) in rewards.items()}


def spelled_out(config: GRPOConfig) -> GRPOConfig:
    """The config with all that its task leaves at the default: settings and weights."""
    task = make_task(config)
    rewards = weigh(task.rewards, config.reward_weights)
    weights = {name: weight for name, (_, weight) in rewards.items()}
    return replace(config, task_settings=asdict(task), reward_weights=weights)


def make_environment(
    config: GRPOConfig,
    problems: Sequence[Problem],
    tokenizer: PreTrainedTokenizerBase,
) -> Environment:
    """The problems as the loop wants them."""
    task = make_task(config)
    return Environment(
        problems,
        tokenizer,
        weigh(task.rewards, config.reward_weights),
        config.num_prompts,
        config.seed,
        system_prompt=config.system_prompt,
        measures=task.measures,
    )


def make_policy(
    config: GRPOConfig, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> CausalPolicy:
    """The model with its sampler and random numbers of its own."""
    kind = CausalPolicy
    if config.lora_rank:
        model, kind = with_adapter(model, config.lora_rank), LoraPolicy
    if config.gradient_checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
    generator = Generator(model.device)
    generator.manual_seed(config.seed)
    sampler = config.sampler(tokenizer.eos_token_id, tokenizer.pad_token_id)
    autocast = torch.bfloat16 if config.dtype == "bfloat16" else None
    return kind(model, sampler, generator, autocast, config.micro_batch_size)


def make_optimizer(config: GRPOConfig, policy: CausalPolicy) -> AdamW:
    """AdamW with the settings of the config. Raises ValueError for a frozen model."""
    require_learning(policy.model)
    return AdamW(
        [weight for weight in policy.model.parameters() if weight.requires_grad],
        lr=config.learning_rate,
        betas=(config.adam_beta1, config.adam_beta2),
        weight_decay=config.weight_decay,
    )


def make_schedule(config: GRPOConfig, optimizer: AdamW) -> LambdaLR:
    """The learning rate over the epochs: warmup, then down to zero or constant."""
    return linear_schedule(
        optimizer,
        config.num_epochs,
        config.warmup_epochs,
        final_share=0.0 if config.schedule == "linear" else 1.0,
    )


def use_threads(config: GRPOConfig) -> None:
    """Set the number of CPU threads: it decides how sums are rounded, too."""
    if config.num_threads is not None:
        torch.set_num_threads(config.num_threads)


def make_model(config: GRPOConfig, problems: Sequence[Problem]) -> Parts:
    """The given model, or a tiny one with random weights and its own tokenizer."""
    device = find_device(config.device)
    if config.model is not None:
        require_whole_model(config.model)
        return load_model(config.model, device), load_tokenizer(config.model)
    task, system = make_task(config), config.system_prompt
    texts = [conversation_text(p.question, task.gold(p), system) for p in problems]
    tokenizer = make_tokenizer(texts, config.vocab_size)
    model = make_tiny_model(
        tokenizer,
        config.architecture,
        hidden_size=config.hidden_size,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        context_length=config.context_length,
        seed=config.seed,
    )
    model.to(device)  # type: ignore[arg-type]  # its decorator hides `self`
    return model, tokenizer


def make_start(
    config: GRPOConfig, problems: Sequence[Problem], show: bool = True
) -> Parts:
    """The model that GRPO begins with: a given one, or a tiny one with a warm start.

    Raises ValueError before the warm start for what GRPO could not begin with.
    """
    torch.manual_seed(config.seed)
    random.seed(config.seed)
    model, tokenizer = make_model(config, problems)
    tokens = make_environment(config, problems, tokenizer).tokens
    if config.model is None:
        require_tiny(config, tokens.shape[-1])
    require_room(model, tokens, config.max_new_tokens)
    total = config.warm_start_steps if config.model is None else 0
    hidden = not (show and total)
    with tqdm(total=total, desc="warm start", unit="step", disable=hidden) as bar:

        def watch(losses: list[float]) -> None:
            bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
            bar.update()

        if total:
            run_warm_start(config, model, tokenizer, problems, watch)
    return model, tokenizer


def run_warm_start(
    config: GRPOConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    problems: Sequence[Problem],
    watch: Callable[[list[float]], None] | None = None,
) -> list[float]:
    """Supervised training of `model` on demonstrations; the loss of each step.

    Raises ValueError for a frozen model, and as `warm_start`.
    """
    require_learning(model)
    policy, task = make_policy(config, model, tokenizer), make_task(config)
    return warm_start(policy, tokenizer, problems, task.demonstration, config, watch)
