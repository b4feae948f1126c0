"""Settings that belong together, by name."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from grpo_course.algorithm.validation import unknown_name
from grpo_course.gsm8k.config import GRPOConfig, load_config
from grpo_course.gsm8k.prompts import SYSTEM_PROMPT
from grpo_course.gsm8k.recipes import FINALE
from grpo_course.gsm8k.run_folder import find_model

# A tiny model from nothing, on generated problems: the finale of the course.
LAPTOP = FINALE

# A pretrained model on the real data; the rest is as GRPOConfig has it. Four prompts
# with their responses are read at a time, so that one GPU with 24 GB holds it.
GPU = GRPOConfig(
    model="Qwen/Qwen2.5-0.5B-Instruct",
    data="gsm8k",
    system_prompt=SYSTEM_PROMPT,
    num_epochs=300,
    micro_batch_size=4,
    max_new_tokens=300,
    learning_rate=2e-6,
    warmup_epochs=10,
    adam_beta2=0.999,
    dtype="bfloat16",
    num_threads=None,
    gradient_checkpointing=True,
    eval_temperature=0.7,
)

# Pramodith B. 2025, "The One Big Beautiful Blog on GRPO": 200 updates, each from four
# prompts that were read one at a time. Its format reward is 0.5 at most. The rest is as
# GPU.
GPU_SMOLLM2 = replace(
    GPU,
    model="HuggingFaceTB/SmolLM2-1.7B-Instruct",
    num_epochs=200,
    num_prompts=4,
    micro_batch_size=1,
    learning_rate=5e-5,
    warmup_epochs=0,
    temperature=0.9,
    top_p=0.9,
    top_k=50,
    format_weight=0.5,
)

PRESETS = {"laptop": LAPTOP, "gpu": GPU, "gpu-smollm2": GPU_SMOLLM2}


def choose_config(
    name: str | None,
    changes: dict[str, Any],
    default: GRPOConfig = LAPTOP,
) -> GRPOConfig:
    """A preset or a file, with what is not None in `changes`; no name: the default.

    For a model that is the folder of a run, its newest checkpoint is taken. Raises
    ValueError for a name that is neither.
    """
    if name is None:
        config = default
    elif name in PRESETS:
        config = PRESETS[name]
    elif Path(name).is_file():
        config = load_config(name)
    else:
        raise unknown_name("config", name, (*PRESETS, "a JSON file that exists"))
    config = replace(config, **{k: v for k, v in changes.items() if v is not None})
    if config.model is None:
        return config
    return replace(config, model=find_model(config.model))
