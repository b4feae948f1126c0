"""Load a causal LM and its tokenizer from a folder or the hub, with errors for people.

Code that comes with a model is never run: trust_remote_code stays off.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from grpo_course.language_model.lora import has_adapter, require_peft

HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
# For a base model that knows no roles: the messages, one below the other.
PLAIN_TEMPLATE = "{% for m in messages %}{{ m['content'] }}\n\n{% endfor %}"


def device_name(name: str) -> str:
    """ "auto", or what torch takes for a device."""
    if name != "auto":
        try:
            torch.device(name)
        except RuntimeError:
            raise ValueError(
                'is no device. Choose "auto", which takes a GPU if there is one, '
                '"cpu" or "cuda".'
            ) from None
    return name


def find_device(name: str) -> str:
    """ "auto" is a GPU if there is one. Raises ValueError for what cannot be used."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise ValueError(
            f"device={name!r} cannot be used on this machine ({reason}). Choose "
            '"auto", which takes a GPU if there is one, or "cpu".'
        ) from None
    return name


def load_model(path: str | Path, device: str = "cpu") -> PreTrainedModel:
    """The model with float32 weights, in evaluation mode.

    The weights lie in memory of their own, not in the mapped file: where a tensor
    begins decides how its products are rounded, and a resumed run must round alike.
    """
    require_source(path)
    logging.disable_progress_bar()  # a bar a file would tear the bar of the run
    with told_plainly(path):
        model = AutoModelForCausalLM.from_pretrained(
            str(path), dtype=torch.float32, trust_remote_code=False
        )
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone()
    model.to(device)  # type: ignore[arg-type]  # its decorator hides `self`
    return model.eval()


def load_tokenizer(path: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer, with padding on the left, a padding token and a chat template."""
    require_source(path)
    with told_plainly(path):
        tokenizer = AutoTokenizer.from_pretrained(str(path), trust_remote_code=False)
    tokenizer.padding_side = "left"
    if tokenizer.eos_token is None:
        raise ValueError(f"The tokenizer of {path} has no EOS: no response would end.")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.chat_template is None:
        tokenizer.chat_template = PLAIN_TEMPLATE
    return tokenizer


def save_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path
) -> None:
    """Write both as `from_pretrained` reads them; the weights as safetensors."""
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load_shape(path: str | Path) -> PretrainedConfig:
    """The shape of a model, without its weights."""
    require_source(path)
    with told_plainly(path):
        return AutoConfig.from_pretrained(str(path), trust_remote_code=False)


def require_source(path: str | Path) -> None:
    """Check that a model can be there: a folder with config.json, or a hub name."""
    folder = Path(path)
    if folder.is_dir():
        if has_adapter(folder):
            require_peft()
        elif not (folder / "config.json").is_file():
            found = ", ".join(sorted(p.name for p in folder.iterdir())[:8]) or "nothing"
            raise FileNotFoundError(
                f"model={str(path)!r} has no config.json, so it is not the folder of a "
                f"model; it holds: {found}. Pass a folder written by save_pretrained."
            )
    elif folder.exists() or not HUB_NAME.fullmatch(str(path)):
        raise FileNotFoundError(
            f"model={str(path)!r} is no folder, and no name on the hub either. Pass a "
            "folder written by save_pretrained, or a name like "
            "Qwen/Qwen2.5-0.5B-Instruct."
        )


@contextmanager
def told_plainly(path: str | Path) -> Iterator[None]:
    """Turn what transformers raises for a broken source into one clear error."""
    try:
        yield
    except Exception as error:  # safetensors has a class of its own, too
        local = Path(path).is_dir()
        reason = " ".join(str(error).split())[:300]
        cure = (
            "Copy it again, or save it again with save_pretrained."
            if local
            else "Without a network, pass a folder: --model PATH."
        )
        raise ValueError(
            f"model={str(path)!r} could not be loaded ({type(error).__name__}: "
            f"{reason}). {cure}"
        ) from error
