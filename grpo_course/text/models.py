"""Models and tokenizers on disk, or on the hub."""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from grpo_course import install
from grpo_course.files import read_text
from grpo_course.text.config import json_object
from grpo_course.text.errors import require_peft
from grpo_course.text.prompts import plain_template, turn_end

HUB_NAME = r"[\w-][\w.-]*/[\w.-]+"  # OWNER/MODEL
WORK = "Qwen2 and 3, Llama, Gemma, Phi, SmolLM, OLMo, Granite"


def text_config(
    model_or_config: PreTrainedModel | PretrainedConfig,
) -> PretrainedConfig:
    """The config of the part that reads and writes text; most models have no other."""
    config = getattr(model_or_config, "config", model_or_config)
    return config.get_text_config(decoder=True)


# --- Adapters (LoRA: Hu et al. 2021, arXiv 2106.09685), with the package peft


def has_adapter(path: str | Path) -> bool:
    """Whether a folder holds an adapter, not a whole model."""
    return (Path(path) / "adapter_config.json").is_file()


def whole_model(path: str | Path) -> str:
    """The model itself, or the one that an adapter stands beside, as it was noted."""
    if not has_adapter(path):
        return str(path)
    noted = Path(path, "adapter_config.json")
    values = json_object(read_text(noted), str(noted))
    name = str(values.get("base_model_name_or_path") or "")
    if Path(name, "config.json").is_file() or re.fullmatch(HUB_NAME, name):
        return name
    raise FileNotFoundError(
        f"model={str(path)!r} holds an adapter beside the model {name!r}, which is not "
        'there any more. Put it back, or write its new place behind "base_model_name_or'
        f'_path" in {noted}.'
    )


def require_whole_model(path: str | Path) -> None:
    """Check that a run can begin with a model: its reference is that model."""
    if has_adapter(path):
        imported = "from grpo_course.text.adapters import merge_adapter"
        call = f'merge_adapter({json.dumps(Path(path).as_posix())}, "merged")'
        command = install.quoted(sys.executable, "-c", f"{imported}; {call}")
        raise ValueError(
            f"model={str(path)!r} holds an adapter and not a whole model. To train it "
            f"further, merge the two, then pass --model merged: {command}"
        )


def lasting(name: str) -> str:
    """A model's name as it holds in any folder: a path from the root, or a hub name."""
    return os.path.abspath(name) if os.path.isdir(name) else name


# --- Models on disk, or on the hub


def find_device(name: str) -> str:
    """ "auto" is a GPU if there is one. Raises ValueError for what cannot be used."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"device={name!r} cannot be used on this machine "
            f"({str(error).splitlines()[0]}). Choose "
            '"auto", which takes a GPU if there is one, or "cpu".'
        ) from None
    return name


def load_model(path: str | Path, device: str = "cpu") -> PreTrainedModel:
    """The model with float32 weights, in evaluation mode.

    The weights lie in memory of their own, not in the mapped file: where a tensor
    begins decides how its products are rounded, and a resumed run must round alike.
    """
    logging.disable_progress_bar()  # a bar a file would tear the bar of the run
    whole = whole_model(path)
    load_shape(whole)  # refuses what is no causal language model
    with loading(whole):
        model = AutoModelForCausalLM.from_pretrained(
            whole, dtype=torch.float32, trust_remote_code=False
        )
    if has_adapter(path):
        with loading(path):
            model.load_adapter(str(path))
        model.peft_config["default"].base_model_name_or_path = lasting(whole)
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone()
    model.to(device)
    return model.eval()


# Files that hold the words of a tokenizer, by their names in transformers.
VOCABULARY = re.compile(r"^tokenizer\.json$|^vocab|\.model$|spiece|tekken|\.tiktoken$")


def load_tokenizer(path: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer, with padding on the left, a padding token and a chat template."""
    folder, adapter = Path(path), has_adapter(path)
    is_model = adapter or (folder / "config.json").is_file()
    names = [each.name for each in folder.iterdir()] if is_model else []
    if names and not any(map(VOCABULARY.search, names)):  # transformers may make one
        made_from = whole_model(path) if adapter else "OWNER/MODEL"
        raise ValueError(
            f"model={str(path)!r} has no tokenizer. Put that of the model that it was "
            f"made from beside it: AutoTokenizer.from_pretrained({made_from!r})"
            f".save_pretrained({folder.as_posix()!r})"
        )
    with loading(path):
        tokenizer = AutoTokenizer.from_pretrained(str(path), trust_remote_code=False)
    tokenizer.padding_side = "left"
    if tokenizer.eos_token is None:
        raise ValueError(f"The tokenizer of {path} has no EOS: no response would end.")
    if tokenizer.chat_template is None:
        tokenizer.chat_template = plain_template(tokenizer)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def turn_ends(
    generation: GenerationConfig | None, tokenizer: PreTrainedTokenizerBase
) -> tuple[int, ...]:
    """Every token that ends a response: EOS, what `generate` of the model stops at,
    and what the chat template writes behind an answer.
    """
    listed = getattr(generation, "eos_token_id", None)
    several = listed if isinstance(listed, list | tuple) else [listed]
    ends = [tokenizer.eos_token_id, turn_end(tokenizer), *several]
    return tuple(dict.fromkeys(end for end in ends if end is not None))


def load_shape(path: str | Path) -> PretrainedConfig:
    """The shape of a model, or of the one beside an adapter, without its weights."""
    whole = whole_model(path)
    with loading(whole):
        config = AutoConfig.from_pretrained(whole, trust_remote_code=False)
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise ValueError(
            f"model={str(path)!r} is of the type {config.model_type!r}, which "
            "transformers does not load as a causal language model. Choose another "
            f"model: {WORK} hold."
        )
    return config


def load_generation(path: str | Path) -> GenerationConfig:
    """How a model is to be sampled from, without its weights."""
    try:
        return GenerationConfig.from_pretrained(str(path))
    except OSError:  # it has none: it is as the shape says
        return GenerationConfig.from_model_config(load_shape(path))


def save_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path
) -> None:
    """Write both as `from_pretrained` reads them; the weights as safetensors."""
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@contextmanager
def loading(path: str | Path) -> Iterator[None]:
    """A model's folder or its name on the hub; what fails is told in one error."""
    cure = "Pass a folder that save_pretrained has written, whole."
    if not Path(path).is_dir():
        cure = (
            "No folder of that name is here, so it was looked for on the hub. "
            "Without a network, pass a folder: --model PATH. "
            f"`{install.call('fetch')}` makes one, models/smollm2."
        )
    elif has_adapter(path):
        require_peft()
    try:
        yield
    except Exception as error:  # safetensors has a class of its own, too
        reason = " ".join(str(error).split())[:300]
        raise ValueError(
            f"model={str(path)!r} could not be loaded ({type(error).__name__}: "
            f"{reason}). {cure}"
        ) from error
