"""All settings of a run on a text task in one flat list, to and from JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.sampler import Sampler
from grpo_course.algorithm.settings import one_of, settings
from grpo_course.algorithm.validation import unknown_name
from grpo_course.files import write_atomically
from grpo_course.language_model.find_task import find_task
from grpo_course.language_model.pretrained import device_name
from grpo_course.language_model.tiny_model import MODELS, require_equal_heads
from grpo_course.language_model.tokenizer import LEAST_VOCABULARY


@settings()
class GRPOConfig(TrainConfig):
    """What TrainConfig says of the loop, and all else that makes a run what it is.

    After "TRL:" a comment gives the name in TRL's GRPOConfig, where that differs. What
    the loop's own are called there is in the table `engines.mapping.NAMES`.
    Raises as TrainConfig.
    """

    num_epochs: int = Field(default=200, ge=0)  # rollouts; TRL: max_steps
    num_steps_per_epoch: int = Field(default=1, ge=1)  # mu; TRL: num_iterations
    num_responses: int = Field(default=8, ge=1)  # G; TRL: num_generations
    # beta; 0 means that no reference policy is kept
    kl_penalty: float = Field(default=0.04, ge=0)
    # epochs between two copies of the policy, here: never; TRL: sync_ref_model
    compute_ref_model_period: int = Field(default=1_000_000, ge=1)
    # a longer gradient is scaled down to it; TRL: max_grad_norm
    max_gradient_norm: float | None = Field(default=1.0, gt=0)
    # where pi_old is from: "policy", "sampler", or the only step itself
    old_log_probs_from: Literal["policy", "sampler", "first_step"] = "first_step"

    # What is trained, and on what

    # folder or name on the hub; None: a tiny model from nothing
    model: str | None = None
    task: str = "gsm8k"  # or "countdown", "reverse", or "my_task.py:MyTask"
    # of the task's own settings, those that differ from its defaults
    task_settings: dict[str, Any] = Field(default_factory=dict, strict=False)
    # to train on, at most; None: all there are
    num_problems: int | None = Field(default=4096, ge=1)
    system_prompt: str | None = None  # None: no system message
    # of problems, weights, order and samples
    seed: int = Field(default=0, ge=0, lt=2**63)

    # What an epoch asks and how it is rewarded

    # a rollout; TRL: generation_batch_size / num_generations
    num_prompts: int = Field(default=16, ge=1)
    # of the task's rewards, by name, where they differ from its own; TRL: a list
    reward_weights: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, strict=False
    )
    max_new_tokens: int = Field(default=24, ge=1)  # TRL: max_completion_length
    temperature: float = Field(default=1.0, gt=0)  # of the samples to learn from
    top_k: int | None = Field(default=None, ge=1)  # TRL: 0 for None
    top_p: float | None = Field(default=None, gt=0, le=1)  # TRL: 1.0 for None

    # The optimizer: AdamW

    learning_rate: float = Field(default=2e-4, ge=0)  # after the warmup
    # falls to zero, or stays; TRL: lr_scheduler_type
    schedule: Literal["linear", "constant"] = "linear"
    # the rate rises to learning_rate; TRL: warmup_steps
    warmup_epochs: int = Field(default=5, ge=0)
    weight_decay: float = Field(default=0.0, ge=0)  # of AdamW
    adam_beta1: float = Field(default=0.9, ge=0, lt=1)  # Adam's memory of gradients
    # Adam's memory of their squares
    adam_beta2: float = Field(default=0.95, ge=0, lt=1)

    # The machine

    # "auto": a GPU if there is one; or "cpu", "cuda", ...
    device: Annotated[str, AfterValidator(device_name)] = "auto"
    # of matrix products; weights are float32. TRL: bf16=True
    dtype: Literal["float32", "bfloat16"] = "float32"
    # of the CPU; 1 is fastest for a small model; None: as torch has it
    num_threads: int | None = Field(default=1, ge=1)
    # less memory, about a third more time
    gradient_checkpointing: bool = False
    # of small matrices that learn in place of the model's weights; 0: the weights.
    # TRL: peft_config
    lora_rank: int = Field(default=0, ge=0)

    # The tiny model and its warm start: nothing of this where `model` is given

    architecture: Annotated[str, one_of(MODELS)] = "qwen2"  # or "llama", "gpt2"
    hidden_size: int = Field(default=96, ge=1)  # a multiple of num_heads
    num_layers: int = Field(default=2, ge=1)  # of attention and feed-forward
    num_heads: int = Field(default=4, ge=1)  # of attention
    # tokens that the tokenizer may learn, at most; the bytes come first
    vocab_size: int = Field(default=512, ge=LEAST_VOCABULARY)
    # tokens of prompt and response together
    context_length: int = Field(default=256, ge=1)
    warm_start_steps: int = Field(default=400, ge=0)  # supervised, before GRPO
    warm_start_batch_size: int = Field(default=32, ge=1)  # demonstrations a step
    # of the warm start alone
    warm_start_learning_rate: float = Field(default=2.5e-3, ge=0)

    # Keeping and measuring

    # epochs between checkpoints; TRL: save_steps
    save_every: int = Field(default=50, ge=1)
    # beside the first; TRL: save_total_limit
    keep_checkpoints: int = Field(default=2, ge=1)
    # epochs between two looks at the accuracy on held-out problems; 0: none
    held_out_every: int = Field(default=20, ge=0)
    # prompts an epoch whose responses are kept as text; TRL: log_completions
    keep_samples: int = Field(default=1, ge=0)
    eval_problems: int = Field(default=256, ge=1)  # to measure on, at most
    eval_samples: int = Field(default=8, ge=1)  # responses to each problem
    eval_temperature: float = Field(default=1.0, gt=0)  # of those samples

    def __post_init__(self) -> None:
        super().__post_init__()
        require_equal_heads(self.hidden_size, self.num_heads)
        fixed = self.compute_ref_model_period >= self.num_epochs
        if self.lora_rank and not (fixed and self.ref_mixture == 1):
            raise ValueError(
                f"lora_rank={self.lora_rank} with "
                f"compute_ref_model_period={self.compute_ref_model_period} and "
                f"ref_mixture={self.ref_mixture}: the reference is the model with the "
                "adapter off, which never moves. Leave out both settings, or LoRA."
            )

    def sampler(self, eos: int | None = None, pad: int | None = None) -> Sampler:
        """How the policy writes."""
        return Sampler(
            self.max_new_tokens, eos, pad, self.temperature, self.top_k, self.top_p
        )

    def save(self, path: Path) -> None:
        """Write it as JSON, whole or not at all."""
        write_atomically(path, json.dumps(asdict(self), indent=2) + "\n")


def load_config(path: str | Path, task: str | None = None) -> GRPOConfig:
    """Read a JSON file: every setting, as `save` writes it, or those that differ from a
    preset, {"base": "gpu", "learning_rate": 1e-6}. `task` goes before the file's.

    Raises ValueError for a file that is not JSON, for an unknown setting, and for one
    that leaves settings out without saying what they are.
    """
    try:
        values = json.loads(Path(path).read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise ValueError(f'{path} must hold one object: {{"base": "laptop", ...}}.')
    try:
        return from_values(values | ({"task": task} if task else {}))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def from_values(values: Mapping[str, Any]) -> GRPOConfig:
    """A config from names and values as JSON has them. Raises as `load_config`."""
    task = values.get("task", "gsm8k")
    changes = {name: value for name, value in values.items() if name != "base"}
    if "base" in values:
        presets = presets_of(task)
        if values["base"] not in list(presets):
            raise unknown_name("base", values["base"], presets)
        return replace(presets[values["base"]], **changes)
    left_out = sorted(asdict(GRPOConfig()).keys() - changes.keys())
    if left_out:
        more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
        are = "is" if len(left_out) == 1 else "are"
        raise ValueError(
            f"{', '.join(left_out[:3])}{more} {are} not set. Say what the rest is as "
            f'in: "base": one of {", ".join(presets_of(task))}.'
        )
    return GRPOConfig(**changes)


def presets_of(task: str) -> dict[str, GRPOConfig]:
    """A task's settings of whole runs by name; "laptop" where it has none of its own.

    A task of a learner's own is known by the name that it is asked for.
    """
    presets = find_task(task).presets or {"laptop": GRPOConfig()}
    return {name: replace(preset, task=task) for name, preset in presets.items()}
