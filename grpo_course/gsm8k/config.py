"""All settings of a GSM8K run in one flat list, to and from JSON."""

import json
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.sampler import Sampler
from grpo_course.algorithm.validation import require_at_least, unknown_name
from grpo_course.gsm8k.prompts import FORMS

SCHEDULES = ("linear", "constant")
DTYPES = ("float32", "bfloat16")
AT_LEAST_ONE = (
    "num_prompts",
    "num_problems",
    "num_threads",
    "save_every",
    "keep_checkpoints",
    "eval_problems",
    "eval_samples",
)
NOT_NEGATIVE = (
    "learning_rate",
    "warmup_epochs",
    "weight_decay",
    "correctness_weight",
    "format_weight",
    "warm_start_steps",
)


@dataclass(frozen=True)
class GRPOConfig(TrainConfig):
    """What TrainConfig says of the loop, and all else that makes a run what it is.

    After "TRL:" a comment gives the name in TRL's GRPOConfig, where that differs. Of
    the loop's own: num_epochs is max_steps, num_steps_per_epoch num_iterations,
    num_responses num_generations, kl_penalty beta, max_gradient_norm max_grad_norm,
    loss_mode, deltas_mode and aggregation loss_type and scale_rewards.
    Raises ValueError for a name that is not known and a number out of range.
    """

    num_epochs: int = 200  # rollouts; TRL: max_steps
    num_steps_per_epoch: int = 1  # mu; TRL: num_iterations
    num_responses: int = 8  # G; TRL: num_generations
    kl_penalty: float = 0.04  # beta
    compute_ref_model_period: int = 1_000_000  # epochs: never; TRL: sync_ref_model
    max_gradient_norm: float | None = 1.0  # TRL: max_grad_norm
    old_log_probs_from: str = "first_step"

    # What is trained, and on what
    model: str | None = None  # folder or name on the hub; None: tiny, from nothing
    data: str = "generated"  # or "gsm8k" (hub or GSM8K_DIR), or a folder with JSONL
    num_problems: int = 4096  # generated problems to train on
    operands: tuple[int, ...] = (1, 9)  # smallest and largest number in them
    operations: str = "+-"
    steps: tuple[int, ...] = (1, 2)  # operations in a problem
    system_prompt: str | None = None  # None: no system message
    seed: int = 0  # of problems, weights, order and samples

    # What an epoch asks and how it is rewarded
    num_prompts: int = 16  # a rollout; TRL: generation_batch_size / num_generations
    correctness_weight: float = 1.0  # TRL: reward_weights
    format_weight: float = 0.2  # what the whole format earns; TRL: reward_weights
    max_new_tokens: int = 24  # TRL: max_completion_length
    temperature: float = 1.0
    top_k: int | None = None  # TRL: 0 for None
    top_p: float | None = None  # TRL: 1.0 for None

    # The optimizer: AdamW
    learning_rate: float = 2e-4
    schedule: str = "linear"  # to zero, or "constant"; TRL: lr_scheduler_type
    warmup_epochs: int = 5  # the rate rises to learning_rate; TRL: warmup_steps
    weight_decay: float = 0.0
    adam_beta1: float = 0.9
    adam_beta2: float = 0.95

    # The machine
    device: str = "auto"  # "auto": a GPU if there is one; or "cpu", "cuda", ...
    dtype: str = "float32"  # of matrix products; weights are float32. TRL: bf16=True
    num_threads: int | None = 1  # of the CPU; 1 is fastest for a small model
    gradient_checkpointing: bool = False  # less memory, about a third more time

    # The tiny model and its warm start: nothing of this where `model` is given
    architecture: str = "qwen2"  # or "llama", "gpt2"
    hidden_size: int = 96
    num_layers: int = 2
    num_heads: int = 4
    vocab_size: int = 512  # at most
    warm_start_steps: int = 400
    warm_start_batch_size: int = 32  # demonstrations a step
    warm_start_learning_rate: float = 2.5e-3
    warm_start_forms: tuple[float, ...] = (3, 3, 3, 1)  # weights of prompts.FORMS
    warm_start_slips: float = 0.0  # share of demonstrations with a wrong result

    # Keeping and measuring
    save_every: int = 50  # epochs between checkpoints; TRL: save_steps
    keep_checkpoints: int = 2  # beside the first; TRL: save_total_limit
    eval_problems: int = 256
    eval_samples: int = 8  # responses to each problem
    eval_temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in {"schedule": SCHEDULES, "dtype": DTYPES}.items():
            if getattr(self, name) not in known:
                raise unknown_name(name, getattr(self, name), known)
        for name in AT_LEAST_ONE:
            if getattr(self, name) is not None:
                require_at_least(name, getattr(self, name), 1)
        for name in NOT_NEGATIVE:
            require_at_least(name, getattr(self, name), 0)
        for name, length in {"operands": 2, "warm_start_forms": len(FORMS)}.items():
            if len(getattr(self, name)) != length:
                raise ValueError(
                    f"{name}={getattr(self, name)}, but it must hold {length} numbers."
                )
        self.sampler()  # has checks of its own

    def sampler(self, eos: int | None = None, pad: int | None = None) -> Sampler:
        """How the policy writes. Raises ValueError for settings that cannot be."""
        return Sampler(
            self.max_new_tokens, eos, pad, self.temperature, self.top_k, self.top_p
        )

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        Path(path).write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")


def load_config(path: str | Path) -> GRPOConfig:
    """Read a JSON file; what it leaves out has its default.

    Raises ValueError for a file that is not JSON, an unknown field, a wrong type.
    """
    try:
        values = json.loads(Path(path).read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise ValueError(f'{path} must hold one object: {{"num_epochs": 100, ...}}.')
    return make_config(values, str(path))


def make_config(values: dict[str, Any], source: str = "the config") -> GRPOConfig:
    """A config from names and values as JSON has them."""
    types = get_type_hints(GRPOConfig)
    known = [field.name for field in fields(GRPOConfig)]
    for name, value in values.items():
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            names = ", ".join(known)
            raise ValueError(
                f"{source}: {name!r} is no field of GRPOConfig.{hint} Known: {names}."
            )
        if not fits(value, types[name]):
            raise ValueError(
                f"{source}: {name} is {json.dumps(value)}, but it must be of the type "
                f"{type_name(types[name])}."
            )
    lists = {k: tuple(v) for k, v in values.items() if isinstance(v, list)}
    return GRPOConfig(**(values | lists))


def fits(value: Any, kind: Any) -> bool:
    """Whether a value from JSON is of a field's type."""
    if isinstance(kind, UnionType):
        return any(fits(value, option) for option in get_args(kind))
    if get_args(kind):  # tuple[int, ...]
        listed = isinstance(value, list | tuple)
        return listed and all(fits(entry, get_args(kind)[0]) for entry in value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float if kind is float else kind)


def type_name(kind: Any) -> str:
    """A type as JSON calls it."""
    names = {str: "text", NoneType: "null", bool: "true or false", int: "whole number"}
    if isinstance(kind, UnionType):
        return " or ".join(type_name(option) for option in get_args(kind))
    if get_args(kind):
        return f"list of {type_name(get_args(kind)[0])}s"
    return names.get(kind, "number")
