"""A pretrained language model on a laptop: what to ask it.

SmolLM2-135M-Instruct (Allal et al. 2025, arXiv 2502.02737) has 134.5 million weights
and was trained by others, on two trillion tokens. It knows English and hardly any sums.

python3 -m grpo_course fetch                                # 93 MB, into a folder
python3 -m grpo_course train --task smollm2 --out runs/smollm2
python3 -m grpo_course evaluate --model runs/smollm2

Left out: the `<think>` and `<answer>` tags of the other tasks, which a model of this
size hardly ever writes. Two worked examples show it a form that it does hit.
"""

import random
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import ClassVar

from pydantic import Field

from grpo_course.checks import settings
from grpo_course.text import fetch
from grpo_course.text.grader import read_number
from grpo_course.text.gsm8k import GSM8K, Operands, Steps
from grpo_course.text.responses import Completion, completion_texts, graded
from grpo_course.text.stories import WordProblem, compute

FOLDER = fetch.folder_of("smollm2")

# The answer, which is the end of what is written, behind this mark.
MARK = "Answer:"


def stated(completion: str, mark: str = MARK) -> Fraction | None:
    """The number behind a mark, said once, where nothing else follows; else None."""
    rest = completion.partition(mark)[2].strip()
    return None if "\n" in rest else read_number(rest)


def is_right(completion: str, answer: str, mark: str = MARK) -> bool:
    """Whether the stated number is the right one."""
    number = stated(completion, mark)
    return number is not None and number == read_number(answer)


def accuracy(
    completions: list[Completion],
    answer: list[str],
    mark: str = MARK,
    **kwargs: object,
) -> list[float]:
    """1.0 for the right number behind the mark."""
    return graded(partial(is_right, mark=mark), completions, answer)


accuracy.meaning = stated  # type: ignore[attr-defined]  # "12." and "7 + 5 = 12" agree


def form(
    completions: list[Completion], mark: str = MARK, **kwargs: object
) -> list[float]:
    """1.0 for any number behind the mark."""
    texts = completion_texts(completions)
    return [float(stated(text, mark) is not None) for text in texts]


@settings()
class ShortAnswers(GSM8K):
    """Word problems, answered in a line or two: the sums, and then the answer."""

    # With numbers up to 40, two recorded runs learned to add, whatever was asked.
    operands: Operands = Field(default=(1, 12), strict=False)
    steps: Steps = Field(default=(1,), min_length=1, strict=False)

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

    def demonstration(self, problem: WordProblem, rng: random.Random) -> str:
        """Its gold; what GSM8K shows a model from nothing has tags."""
        return self.gold(problem)


SUM = re.compile(r"(\d+) *([+*-]) *(\d+)")  # which a calculator is asked for


@settings()
class Calculator(ShortAnswers):
    """The same with larger numbers, and a tool that does the sums: a turn for the call,
    a turn for the answer."""

    operands: Operands = Field(default=(10, 99), strict=False)
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
