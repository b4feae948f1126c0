"""All settings of a run on a text task, and their JSON.

Left out: what is made from them (`training`). Nothing here loads transformers, so a
mistake in a setting is found at once.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

from grpo_course.checks import one_of, require_known, settings, unknown_setting
from grpo_course.files import read_text, write_atomically
from grpo_course.loop import TrainConfig
from grpo_course.text.responses import LEAST_VOCABULARY, Reward
from grpo_course.text.tasks import TextTask, find_task

DEFAULT = "default"  # the first preset of any task, whatever its own name is
MODELS = ("qwen2", "llama", "gpt2")  # of which a tiny one can be made


@settings()
class GRPOConfig(TrainConfig):
    """What TrainConfig says of the loop, and all else that makes a run what it is.

    After "TRL:" a comment gives the name in TRL's GRPOConfig, where that differs. What
    the loop's own are called there is in the table `grpo_course.text.trl.NAMES`.
    """

    # The loop, where a run on text begins with other values than TrainConfig

    num_epochs: NonNegativeInt = 200  # rollouts; TRL: max_steps
    num_steps_per_epoch: PositiveInt = 1  # mu; TRL: num_iterations
    num_responses: PositiveInt = 8  # G; TRL: num_generations
    kl_penalty: NonNegativeFloat = 0.04  # beta; 0: no reference policy is kept
    # epochs between two copies of the policy, here: never; TRL: sync_ref_model
    compute_ref_model_period: PositiveInt = 1_000_000
    # a longer gradient is scaled down to it; TRL: max_grad_norm
    max_gradient_norm: PositiveFloat | None = 1.0
    # where pi_old is from: "policy", "sampler", or the only step itself
    old_log_probs_from: Literal["policy", "sampler", "first_step"] = "first_step"

    # What is trained, and on what

    model: str | None = None  # folder or hub name; None: a tiny model from nothing
    task: str = "gsm8k"  # or "countdown", "reverse", or "my_task.py:MyTask"
    # of the task's own settings, those that differ from its defaults
    task_settings: dict[str, Any] = Field(default_factory=dict, strict=False)
    num_problems: PositiveInt | None = 4096  # to train on, at most; None: all there are
    system_prompt: str | None = None  # None: no system message
    # of problems, weights, order and samples
    seed: int = Field(default=0, ge=0, lt=2**63)

    # What an epoch asks and how it is rewarded

    # of a rollout; TRL: generation_batch_size / num_generations
    num_prompts: PositiveInt = 16
    # of the task's rewards, by name, where they differ from its own; TRL: a list
    reward_weights: dict[str, NonNegativeFloat] = Field(
        default_factory=dict, strict=False
    )
    max_new_tokens: PositiveInt = 24  # TRL: max_completion_length
    temperature: PositiveFloat = 1.0  # of the samples to learn from
    top_k: PositiveInt | None = None  # TRL: 0 for None
    top_p: float | None = Field(default=None, gt=0, le=1)  # TRL: 1.0 for None

    # The optimizer: AdamW

    learning_rate: NonNegativeFloat = 2e-4  # after the warmup
    # falls to zero, or stays; TRL: lr_scheduler_type
    schedule: Literal["linear", "constant"] = "linear"
    warmup_epochs: NonNegativeInt = 5  # while the rate rises; TRL: warmup_steps
    weight_decay: NonNegativeFloat = 0.0  # of AdamW
    adam_beta1: float = Field(default=0.9, ge=0, lt=1)  # Adam's memory of gradients
    adam_beta2: float = Field(default=0.95, ge=0, lt=1)  # Adam's, of their squares

    # The machine

    # "auto": a GPU if there is one; or "cpu", "cuda", ...
    device: str = "auto"
    # of matrix products; weights are float32. TRL: bf16=True
    dtype: Literal["float32", "bfloat16"] = "float32"
    # of the CPU; 1 is fastest for a small model. None: as many as are fastest when
    # the run begins, beside what else the machine does
    num_threads: PositiveInt | None = 1
    gradient_checkpointing: bool = False  # less memory, about a third more time
    # of small matrices that learn in place of the model's weights; 0: the weights.
    # TRL: peft_config
    lora_rank: NonNegativeInt = 0

    # The tiny model and its warm start: nothing of this where `model` is given

    architecture: Annotated[str, one_of(MODELS)] = "qwen2"  # or "llama", "gpt2"
    hidden_size: PositiveInt = 96  # a multiple of num_heads
    num_layers: PositiveInt = 2  # of attention and feed-forward
    num_heads: PositiveInt = 4  # of attention
    # tokens that the tokenizer may learn, at most; the bytes come first
    vocab_size: int = Field(default=512, ge=LEAST_VOCABULARY)
    context_length: PositiveInt = 256  # tokens of prompt and response together
    warm_start_steps: NonNegativeInt = 400  # supervised, before GRPO
    warm_start_batch_size: PositiveInt = 32  # demonstrations a step
    warm_start_learning_rate: NonNegativeFloat = 2.5e-3  # of the warm start alone

    # Keeping and measuring

    save_every: PositiveInt = 50  # epochs between checkpoints; TRL: save_steps
    keep_checkpoints: PositiveInt = 2  # beside the first; TRL: save_total_limit
    # epochs between two looks at the accuracy on held-out problems; 0: none
    held_out_every: NonNegativeInt = 20
    # prompts an epoch whose responses are kept as text; TRL: log_completions
    keep_samples: NonNegativeInt = 1
    eval_problems: PositiveInt = 256  # to measure on, at most
    eval_samples: PositiveInt = 8  # responses to each problem
    eval_temperature: PositiveFloat = 1.0  # of those samples

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size={self.hidden_size} with num_heads={self.num_heads}: each "
                "head takes an equal part, so choose a multiple of num_heads."
            )
        fixed = self.compute_ref_model_period >= self.num_epochs
        if self.lora_rank and not (fixed and self.ref_mixture == 1):
            raise ValueError(
                f"lora_rank={self.lora_rank} with "
                f"compute_ref_model_period={self.compute_ref_model_period} and "
                f"ref_mixture={self.ref_mixture}: the reference is the model with the "
                "adapter off, which never moves. Leave out both settings, or LoRA."
            )

    @property
    def sizes(self) -> dict[str, int]:
        """Those of the tiny model."""
        names = "hidden_size", "num_layers", "num_heads", "context_length"
        return {name: getattr(self, name) for name in names}

    def save(self, path: Path) -> None:
        """Write it as JSON, whole or not at all."""
        write_atomically(path, json.dumps(asdict(self), indent=2) + "\n")


def load_config(path: str | Path, task: str | None = None) -> GRPOConfig:
    """Read a JSON file: every setting, as `save` writes it, or those that differ from a
    preset, {"base": "gpu", "learning_rate": 1e-6}. `task` goes before the file's.
    """
    values = json_object(read_text(Path(path)), str(path))
    try:
        return from_values(values | ({"task": task} if task else {}))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def json_object(text: str, where: str) -> dict[str, Any]:
    """The names and values in a text; ValueError, which says where, for another."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise ValueError(f'{where} must hold one object: {{"name": value, ...}}.')
    return values


def from_values(values: Mapping[str, Any]) -> GRPOConfig:
    """A config from names and values as JSON has them.

    What they leave out is as in their "base", a preset of the task; by default its
    first.
    """
    task = values.get("task", "gsm8k")
    changes = {name: value for name, value in values.items() if name != "base"}
    known = [field.name for field in fields(GRPOConfig)]
    if unknown := [name for name in changes if name not in known]:
        why = unknown_setting(unknown[0], ["base", *known])
        raise ValueError(f'{why} Those of the task stand in "task_settings".')
    if "base" not in values and all(name in changes for name in known):
        return GRPOConfig(**changes)
    return replace(find_preset(task, values.get("base"), "base"), **changes)


def presets_of(task: str) -> dict[str, GRPOConfig]:
    """A task's settings of whole runs by name; "default" where it has none."""
    presets = find_task(task).presets or {DEFAULT: {}}
    return {
        name: GRPOConfig(**dict(preset) | {"task": task})
        for name, preset in presets.items()
    }


def find_preset(task: str, name: str | None, argument: str = "config") -> GRPOConfig:
    """One of a task's presets, the first where none is named, or "default"."""
    presets = presets_of(task)
    names = list(presets)
    if name is None or (name == DEFAULT and name not in names):
        name = names[0]
    require_known(argument, name, names)
    return presets[name]


# The task of a config


def make_task(config: GRPOConfig) -> TextTask:
    """The task of a config, with the settings that the config has for it."""
    kind = find_task(config.task)
    try:
        return kind(**config.task_settings)
    except ValueError as error:
        raise ValueError(f"task_settings: {error}") from None


def weigh(
    rewards: Mapping[str, tuple[Reward, float]], weights: Mapping[str, float]
) -> dict[str, tuple[Reward, float]]:
    """A task's rewards with other weights. Raises ValueError for another name."""
    for name in weights:
        require_known("reward_weights", name, rewards)
    return {name: (f, weights.get(name, w)) for name, (f, w) in rewards.items()}


def spelled_out(config: GRPOConfig) -> GRPOConfig:
    """The config with all that its task leaves at the default: settings and weights."""
    task = make_task(config)
    rewards = weigh(task.rewards, config.reward_weights)
    weights = {name: weight for name, (_, weight) in rewards.items()}
    return replace(config, task_settings=asdict(task), reward_weights=weights)
