"""A text task on TRL's GRPOTrainer: settings, data, trainer, measures.

Prompts, rewards and evaluation are this course's; the loop, the sampler and what
spreads them over processes are TRL's and accelerate's.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset

from grpo_course.engines.mapping import to_trl_config
from grpo_course.engines.require import require_trl
from grpo_course.language_model.build import make_task, weigh
from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.held_out import load_trained
from grpo_course.language_model.lora import lora_config
from grpo_course.language_model.pretrained import find_device, load_tokenizer
from grpo_course.language_model.tables import Measures, evaluate_policy
from grpo_course.language_model.task_check.data import changed_answer
from grpo_course.language_model.template import chat_messages
from grpo_course.language_model.text_task import Problem, Reward

SAME_NAMES = (
    "learning_rate",
    "weight_decay",
    "adam_beta1",
    "adam_beta2",
    "gradient_checkpointing",
)
SCHEDULES = {"linear": "linear", "constant": "constant_with_warmup"}


def trl_settings(config: GRPOConfig, out: Path, world_size: int = 1) -> dict[str, Any]:
    """What TRL must be told beside the knobs of the loop. Needs no TRL.

    Three differences stay. TRL's warmup begins at a rate of 0, ours at one part of it.
    TRL shuffles the problems its own way. And where top_k or top_p cut the softmax,
    TRL scores the whole of it, ours what is left.
    Raises ValueError as `batch_settings` and `response_limit` do.
    """
    steps = config.num_steps_per_epoch
    on_cpu = torch.device(find_device(config.device)).type == "cpu"
    return (
        batch_settings(config, world_size)
        | {
            "output_dir": str(out),
            "seed": config.seed,
            "reward_weights": [weight for _, weight in paid_rewards(config)],
            "max_completion_length": response_limit(config),
            "temperature": config.temperature,
            "top_k": config.top_k or 0,
            "top_p": 1.0 if config.top_p is None else config.top_p,
            "lr_scheduler_type": SCHEDULES[config.schedule],
            "warmup_steps": config.warmup_epochs * steps,
            "optim": "adamw_torch",
            "use_cpu": on_cpu,
            "bf16": config.dtype == "bfloat16" and not on_cpu,
            "model_init_kwargs": {"dtype": "float32"},
            "save_steps": config.save_every * steps,
            "save_total_limit": config.keep_checkpoints,
            "logging_steps": 1,
            "report_to": "none",
        }
        | {name: getattr(config, name) for name in SAME_NAMES}
    )


def paid_rewards(config: GRPOConfig) -> list[tuple[Reward, float]]:
    """The task's reward functions that pay, with their weights."""
    rewards = weigh(make_task(config).rewards, config.reward_weights)
    return [(function, weight) for function, weight in rewards.values() if weight]


def response_limit(config: GRPOConfig) -> int:
    """The most tokens of a response; TRL also divides by it under "constant".

    Raises ValueError where these are two numbers.
    """
    if config.aggregation == "constant" and config.max_length != config.max_new_tokens:
        raise ValueError(
            f"max_length={config.max_length} with aggregation='constant', but TRL "
            f"divides by max_new_tokens. Set max_length={config.max_new_tokens}."
        )
    return config.max_new_tokens


def batch_settings(config: GRPOConfig, world_size: int) -> dict[str, int]:
    """How the responses to one rollout's prompts are spread over processes and time.

    `micro_batch_size` counts prompts, with all their responses, in one process.
    Raises ValueError where a rollout cannot be cut into equal parts.
    """
    prompts = config.micro_batch_size or max(1, config.num_prompts // world_size)
    parts = world_size * prompts
    if config.num_prompts % parts:
        raise ValueError(
            f"num_prompts={config.num_prompts} cannot be spread over {world_size} "
            f"processes with {prompts} prompts each at a time. Choose a multiple of "
            f"{parts}, or another micro_batch_size or number of processes."
        )
    return {
        "per_device_train_batch_size": prompts * config.num_responses,
        "gradient_accumulation_steps": config.num_prompts // parts,
    }


def chat_dataset(problems: Sequence[Problem], system_prompt: str | None) -> Dataset:
    """A row a problem: the conversation as `prompt`, the right `answer`.

    Raises ValueError for an answer that the table would change.
    """
    answers = [problem.answer for problem in problems]
    if words := changed_answer(answers):
        raise ValueError(words)
    prompts = [chat_messages(p.question, system_prompt) for p in problems]
    return Dataset.from_dict({"prompt": prompts, "answer": answers})


def make_args(
    config: GRPOConfig, out: Path, world_size: int = 1, **trl_only: Any
) -> Any:
    """The trl.GRPOConfig of a run; `trl_only` wins over what follows from `config`."""
    return to_trl_config(config, **trl_settings(config, out, world_size) | trl_only)


def make_trainer(
    config: GRPOConfig,
    args: Any,
    start: str | Path,
    problems: Sequence[Problem],
    trainer_class: type | None = None,
) -> Any:
    """TRL's trainer at the model in `start`, a folder or a name on the hub.

    TRL loads the model itself, and the reference a second time from the same place.
    """
    return (trainer_class or require_trl().GRPOTrainer)(
        model=str(start),
        reward_funcs=[function for function, _ in paid_rewards(config)],
        args=args,
        train_dataset=chat_dataset(problems, config.system_prompt),
        processing_class=load_tokenizer(start),
        peft_config=lora_config(config.lora_rank) if config.lora_rank else None,
    )


def measure(config: GRPOConfig, folder: str | Path) -> Measures:
    """What a saved model can do on problems it was not trained on; name -> [problem]"""
    held_out = make_task(config).splits[0]
    policy, environment = load_trained(config, folder, held_out)
    heat = config.eval_temperature
    return evaluate_policy(policy, environment, config.eval_samples, temperature=heat)
