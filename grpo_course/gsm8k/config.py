"""All settings of a GSM8K run in one flat list, to and from JSON."""

import json
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import Any

from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.sampler import Sampler
from grpo_course.algorithm.validation import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    check_choices,
    check_ranges,
)
from grpo_course.gsm8k.problems import require_choices
from grpo_course.gsm8k.prompts import FORMS
from grpo_course.gsm8k.tiny import MODELS
from grpo_course.gsm8k.tokenizer import LEAST_VOCABULARY

SCHEDULES = ("linear", "constant")
DTYPES = ("float32", "bfloat16")
CHOICES = {"schedule": SCHEDULES, "dtype": DTYPES, "architecture": MODELS}
BETA = {"at least": 0, "below": 1}
RANGES = {
    "num_problems": COUNT,
    "num_prompts": COUNT,
    "correctness_weight": NOT_NEGATIVE,
    "format_weight": NOT_NEGATIVE,
    "length_weight": NOT_NEGATIVE,
    "learning_rate": NOT_NEGATIVE,
    "warmup_epochs": {"at least": 0},
    "weight_decay": NOT_NEGATIVE,
    "adam_beta1": BETA,
    "adam_beta2": BETA,
    "num_threads": COUNT,
    "hidden_size": COUNT,
    "num_layers": COUNT,
    "num_heads": COUNT,
    "vocab_size": {"at least": LEAST_VOCABULARY},
    "warm_start_steps": {"at least": 0},
    "warm_start_batch_size": COUNT,
    "warm_start_learning_rate": NOT_NEGATIVE,
    "warm_start_slips": SHARE,
    "save_every": COUNT,
    "keep_checkpoints": COUNT,
    "eval_problems": COUNT,
    "eval_samples": COUNT,
    "eval_temperature": POSITIVE,
}


@dataclass(frozen=True)
class GRPOConfig(TrainConfig):
    """What TrainConfig says of the loop, and all else that makes a run what it is.

    After "TRL:" a comment gives the name in TRL's GRPOConfig, where that differs. What
    the loop's own are called there is in the table `engines.mapping.NAMES`.
    Raises as TrainConfig.
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
    length_weight: float = 0.0  # of rewards.length_reward, which is 0 to -1
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
        check_choices(self, CHOICES)
        check_ranges(self, RANGES)
        self.sampler()  # has checks of its own
        self.check_problems()
        self.check_tiny_model()

    def check_problems(self) -> None:
        """What generated problems are made of."""
        if len(self.operands) != 2:
            raise ValueError(f"operands={self.operands}, but it must hold 2 numbers.")
        require_choices("train", self.operands, self.operations, self.steps)

    def check_tiny_model(self) -> None:
        """Its width, and the weights of its demonstrations."""
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size={self.hidden_size} with num_heads={self.num_heads}: each "
                "head takes an equal part, so choose a multiple of num_heads."
            )
        weights = self.warm_start_forms
        if len(weights) != len(FORMS) or min(weights) < 0 or not 0 < sum(weights) < inf:
            raise ValueError(
                f"warm_start_forms={weights}, but it must hold {len(FORMS)} weights, "
                "none below 0 and one above."
            )

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
    """A config from names and values as JSON has them.

    Raises ValueError with the source for an unknown field and what GRPOConfig refuses.
    """
    known = [field.name for field in fields(GRPOConfig)]
    for name in values:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            names = ", ".join(known)
            raise ValueError(
                f"{source}: {name!r} is no field of GRPOConfig.{hint} Known: {names}."
            )
    lists = {k: tuple(v) for k, v in values.items() if isinstance(v, list)}
    try:
        return GRPOConfig(**(values | lists))
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
