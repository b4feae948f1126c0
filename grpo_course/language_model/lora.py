"""LoRA: small matrices beside the layers learn, the model's own weights stay.

Hu et al. 2021, arXiv 2106.09685, by the `peft` library, an optional extra. Gradients
and Adam's averages are then of the small matrices alone, and the reference needs no
copy: it is the model with the adapter off.
"""

import os
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel

from grpo_course.algorithm.rollout import Rollout
from grpo_course.extras import require_extra
from grpo_course.language_model.policy import CausalPolicy

ADAPTER = "adapter_config.json"  # what peft calls it, in a saved folder
SCALE = 2  # of what the adapter adds: alpha / rank
MARK = "lora_"  # in the names of its weights


def require_peft() -> ModuleType:
    """The peft package. Raises MissingExtra with the cure where it is not installed."""
    return require_extra("peft", "lora", "LoRA needs the package peft")


def has_adapter(path: str | Path) -> bool:
    """Whether a folder holds an adapter, not a whole model."""
    return (Path(path) / ADAPTER).is_file()


def require_whole_model(path: str | Path) -> None:
    """Check that a run can begin with a model: its reference is that model."""
    if has_adapter(path):
        raise ValueError(
            f"model={str(path)!r} holds an adapter and not a whole model. To train it "
            "further, merge the two and save them: AutoPeftModelForCausalLM"
            ".from_pretrained(...).merge_and_unload().save_pretrained(...)."
        )


def lora_config(rank: int) -> Any:
    """peft's settings for an adapter beside every linear layer but the last."""
    return require_peft().LoraConfig(
        r=rank, lora_alpha=SCALE * rank, target_modules="all-linear"
    )


def with_adapter(model: PreTrainedModel, rank: int) -> PreTrainedModel:
    """The model with an adapter that learns: a new one, unless it was loaded with one.

    A new one changes nothing yet. Its random numbers are torch's own.
    """
    if not hasattr(model, "peft_config"):
        model.add_adapter(lora_config(rank))
        base = str(model.name_or_path)
        whole = os.path.abspath(base) if os.path.isdir(base) else base
        model.peft_config["default"].base_model_name_or_path = whole
    for name, weight in model.named_parameters():
        weight.requires_grad_(MARK in name)
    return model


class LoraPolicy(CausalPolicy):
    """A model with an adapter, as a policy. What the loop copies is its reference."""

    def __deepcopy__(self, memo: dict) -> "AdapterOff":
        return AdapterOff(self)


class AdapterOff:
    """The frozen reference of a policy with an adapter: the same model without it."""

    def __init__(self, policy: LoraPolicy):
        self.policy = policy

    def log_probs(self, rollout: Rollout) -> Tensor:
        """-> float32 [batch trial pos], as the policy's"""
        self.policy.model.disable_adapters()
        try:
            return self.policy.log_probs(rollout)
        finally:
            self.policy.model.enable_adapters()
