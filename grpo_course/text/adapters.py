"""Adapters that learn in place of a model's weights, with the package peft.

LoRA: Hu et al. 2021, arXiv 2106.09685.
"""

from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel

from grpo_course.loop import Rollout
from grpo_course.text.errors import require_peft
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.models import (
    lasting,
    load_model,
    load_tokenizer,
    save_model,
    whole_model,
)


def merge_adapter(path: str | Path, folder: str | Path) -> None:
    """Write an adapter and its model as one model, with its tokenizer."""
    peft = require_peft()
    if Path(folder).exists():
        raise FileExistsError(f"{folder} is there already. Name another folder.")
    model = peft.PeftModel.from_pretrained(load_model(whole_model(path)), str(path))
    save_model(model.merge_and_unload(), load_tokenizer(path), Path(folder))


def lora_config(rank: int) -> Any:
    """peft's settings for an adapter beside every linear layer but the last."""
    peft = require_peft()
    return peft.LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        target_modules="all-linear",
        task_type="CAUSAL_LM",  # by which peft's AutoPeftModelForCausalLM finds it
    )


def with_adapter(model: PreTrainedModel, rank: int) -> PreTrainedModel:
    """The model with an adapter that learns: a new one, unless it was loaded with one.

    A new one changes nothing yet. Its random numbers are torch's own.
    """
    if not hasattr(model, "peft_config"):
        model.add_adapter(lora_config(rank))
        base = lasting(str(model.name_or_path))
        model.peft_config["default"].base_model_name_or_path = base
    for name, weight in model.named_parameters():
        weight.requires_grad_("lora_" in name)
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
