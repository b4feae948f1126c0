"""GSM8K, and word problems of its kind, as a task.

From top to bottom: prompts and demonstrations; the real data, from a file or the hub;
settings of runs; the task. Problems are made in stories.py and graded in grader.py.
"""

import csv
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from grpo_course.checks import require_known, settings
from grpo_course.files import read_text
from grpo_course.text.grader import (
    correctness_reward,
    length_reward,
    lenient_reward,
    read_number,
)
from grpo_course.text.responses import format_reward
from grpo_course.text.stories import (
    SPLITS,
    WordProblem,
    compute,
    make_problems,
)
from grpo_course.text.tasks import Problem, TextTask, numbered_rows, require_count

# Prompts and demonstrations.

# For a model that was instructed already: it reads, so tell it.
SYSTEM_PROMPT = """\
Solve the problem. First reason step by step between <think> and </think>. Then write \
the final number, and nothing else, between <answer> and </answer>.

Example
Problem: A box holds 12 pencils. How many pencils do 3 boxes hold?
<think>
Each box holds 12 pencils, so 3 boxes hold 3 * 12 = 36 pencils.
</think>
<answer>36</answer>"""

# For a model that starts from nothing: every token of a prompt costs time.
SHORT_SYSTEM_PROMPT = "Think, then answer."

# How a demonstration may look. The forms leave out tags, never the right answer: it is
# always the last number.
FORMS = {
    "full": "<think>{thinking}</think><answer>{answer}</answer>",
    "no_tags": "{thinking}\n{answer}",
    "no_answer_tag": "<think>{thinking}</think>{answer}",
    "no_think_tag": "{thinking}<answer>{answer}</answer>",
}


def demonstration(problem: Problem, form: str = "full") -> str:
    """The gold response to a problem: its own solution and answer, in one of FORMS."""
    require_known("form", form, FORMS)
    return FORMS[form].format(thinking=worked_lines(problem), answer=problem.answer)


def worked_lines(problem: Problem) -> str:
    """A problem's solution without calculator marks <<...>> and its last line, ####."""
    first, *rest = problem.solution.partition("####")[0].rstrip().split("<<")
    return first + "".join(part.partition(">>")[2] for part in rest)


def with_slip(problem: WordProblem, rng: random.Random) -> WordProblem:
    """The made problem with one result off by one; the later ones follow from it.

    Its solution has no calculator marks; a result that would be negative goes up.
    """
    if not problem.operations:
        raise ValueError(
            f"problem {problem.question[:40]!r} was not made by rule, so its steps are "
            "not known. Slips are for make_problems: set slips=0."
        )
    step, slip = rng.randrange(len(problem.operations)), rng.choice((-1, 1))
    for change in (slip, 1):
        value, results, lines = problem.operands[0], [], []
        pairs = zip(problem.operations, problem.operands[1:], strict=True)
        for i, (operation, operand) in enumerate(pairs):
            result = compute(value, operation, operand) + (change if i == step else 0)
            lines.append(f"{value}{operation}{operand}={result}")
            results.append(result)
            value = result
        if min(results) >= 0:
            break
    solution = "\n".join([*lines, f"#### {value}"])
    return replace(problem, solution=solution, answer=str(value))


# The real data.

HUB_NAME, FOLDER_VARIABLE = "openai/gsm8k", "GSM8K_DIR"
GSM8K_SPLITS = ("train", "test")
# What a run sees; the first is the one to report. Its "train" lacks "validation".
RUN_SPLITS = ("test", "validation", "train")
VALIDATION, VALIDATION_SHARE = 256, 10  # rows; at most one row in so many


def load_gsm8k(split: str, path: str | Path | None = None) -> list[WordProblem]:
    """GSM8K's "train" (7,473 rows) or "test" (1,319): question, solution, answer.

    `path` is a JSONL file, or a folder with SPLIT.jsonl, in the data set's own format:
    a line {"question": ..., "answer": "... #### 72"} for each row. Without `path` the
    folder that GSM8K_DIR names is taken, and without that the hub, through
    `datasets`, which keeps a copy for later use without a network.
    """
    require_known("split", split, GSM8K_SPLITS)
    path = path or os.environ.get(FOLDER_VARIABLE)
    problems = []
    for number, row in _rows(split, Path(path) if path else None):
        fields = row if isinstance(row, dict) else {}
        question, answer = fields.get("question"), str(fields.get("answer"))
        _, mark, final = answer.rpartition("####")
        if not isinstance(question, str) or not mark or read_number(final) is None:
            raise ValueError(
                f'Row {number} needs the texts "question" and "answer", and at the end '
                f"of the answer #### and a number. It is {str(row)[:80]}...; the "
                f"answer ends with {answer[-40:]!r}."
            )
        problems.append(WordProblem(question, final.strip(), answer))
    if not problems:
        raise ValueError(f"{path or HUB_NAME}: the split {split!r} holds no row.")
    return problems


def load_run_split(split: str, path: str | Path | None = None) -> list[WordProblem]:
    """One of RUN_SPLITS: "validation" is the end of GSM8K's own "train".

    It takes the last 256 rows, a tenth at most, and the run's "train" the others. So
    settings can be chosen without a look at "test". `path` and errors as in
    `load_gsm8k`.
    """
    require_known("split", split, RUN_SPLITS)
    if split == "test":
        return load_gsm8k(split, path)
    rows = load_gsm8k("train", path)
    first = len(rows) - min(VALIDATION, len(rows) // VALIDATION_SHARE)
    return rows[:first] if split == "train" else rows[first:]


def _rows(split: str, path: Path | None) -> Iterator[tuple[int, Any]]:
    """The rows with their lines in the file, or their places on the hub, from 1."""
    ways = (
        f"Put {split}.jsonl (github.com/openai/grade-school-math) into a folder, and "
        f"pass path=FOLDER or set {FOLDER_VARIABLE}=FOLDER. Without either, it is "
        "loaded from the hub, once."
    )
    if path is None:
        import datasets  # slow to import, and not needed for files

        try:
            rows = datasets.load_dataset(HUB_NAME, "main", split=split)
        except (OSError, ValueError, RuntimeError) as error:
            # Offline it is a ConnectionError, or a ValueError about a missing copy.
            raise ConnectionError(
                f"GSM8K could not be loaded from the hub ({type(error).__name__}: "
                f"{str(error)[:200]}). {ways}"
            ) from error
        yield from enumerate(rows, start=1)
        return

    file = path / f"{split}.jsonl" if path.is_dir() else path
    if not file.is_file():
        raise FileNotFoundError(f"There is no {file}. {ways}")
    text = read_text(file)
    try:
        yield from numbered_rows(text)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{file} cannot be read: {error}.") from error


# Settings of whole runs, where they differ from GRPOConfig's.

# A tiny model from nothing, on generated problems. One demonstration in four has a
# slip, and six in ten lack a tag: so the warm start leaves something to learn.
LAPTOP: dict[str, Any] = {
    "task_settings": {"slips": 0.25, "forms": (4, 2, 3, 1)},
    "num_problems": 8192,
    "warm_start_steps": 1200,
    "warm_start_learning_rate": 3e-3,
    "num_epochs": 250,
    "learning_rate": 3e-4,
    "kl_penalty": 0.02,
}

# As published (Shao et al. 2024, arXiv 2402.03300): deltas divided by the spread of
# their group, the mean of each response, and k3 in the loss.
PUBLISHED: dict[str, Any] = {
    "deltas_mode": "normalized_rewards",
    "aggregation": "sequence_mean",
    "kl_penalty": 0.04,
}
# As notebooks 05 and 14 advise where the reward is a rule that cannot be fooled. Of the
# two means that 14 finds close, the one that needs no divisor beside max_new_tokens.
ADVISED: dict[str, Any] = {
    "deltas_mode": "centered_rewards",
    "aggregation": "token_mean",
    "kl_penalty": 0.0,
}

# A pretrained model on the real data. Four prompts with their responses are read at a
# time, so that one GPU with 24 GB holds it. No preset for a GPU has been run to its end
# for this course.
GPU: dict[str, Any] = ADVISED | {
    "model": "Qwen/Qwen2.5-0.5B-Instruct",
    "task_settings": {"data": "gsm8k"},
    "num_problems": None,
    "system_prompt": SYSTEM_PROMPT,
    "num_epochs": 300,
    "micro_batch_size": 4,
    "max_new_tokens": 300,
    "learning_rate": 2e-6,
    "warmup_epochs": 10,
    "adam_beta2": 0.999,
    "dtype": "bfloat16",
    "num_threads": None,
    "gradient_checkpointing": True,
    "eval_temperature": 0.7,
}

PRESETS = {
    "sums": LAPTOP,
    "gpu": GPU,
    # Pramodith B. 2025, "The One Big Beautiful Blog on GRPO": 200 updates, each from
    # four prompts that were read one at a time, with the loss as published. All weights
    # learn: that needs 38 GB. With lora_rank=16 it is 11 GB.
    "gpu-smollm2": GPU
    | PUBLISHED
    | {
        "model": "HuggingFaceTB/SmolLM2-1.7B-Instruct",
        "num_epochs": 200,
        "num_prompts": 4,
        "micro_batch_size": 1,
        "learning_rate": 5e-5,
        "warmup_epochs": 0,
        "temperature": 0.9,
        "top_p": 0.9,
        "top_k": 50,
        "reward_weights": {"format": 0.5},
    },
    # With one prompt and its responses at a time, 16 GB hold it.
    "gpu-16gb": GPU | {"micro_batch_size": 1},
    # A free Colab T4 has 15 GB, is slow, and multiplies bfloat16 no faster than
    # float32. So an adapter learns (LoRA), at ten times the rate, from fewer and
    # shorter responses, in a shorter run. Nobody has timed it.
    "colab-t4": GPU
    | {
        "lora_rank": 16,
        "dtype": "float32",
        "num_prompts": 8,
        "max_new_tokens": 200,
        "num_epochs": 100,
        "learning_rate": 2e-5,
        "eval_problems": 64,
        "save_every": 20,
    },
}


Operands = tuple[NonNegativeInt, NonNegativeInt]
Steps = tuple[PositiveInt, ...]
Weights = tuple[NonNegativeFloat, NonNegativeFloat, NonNegativeFloat, NonNegativeFloat]


@settings()
class GSM8K(TextTask[WordProblem]):
    """Word problems, made by rule or GSM8K's own."""

    # "generated", "gsm8k" (hub or GSM8K_DIR), or a folder with JSONL
    data: str = "generated"
    # smallest and largest number in a generated problem
    operands: Operands = Field(default=(1, 9), strict=False)
    # those in a generated problem, of + - *
    operations: str = Field(default="+-", pattern=r"^[-+*]+$")
    # operations in a generated problem; (1, 2, 2): two in three have two
    steps: Steps = Field(default=(1, 2), min_length=1, strict=False)
    # how often a demonstration has each of FORMS, as weights
    forms: Weights = Field(default=(3, 3, 3, 1), strict=False)
    # share of demonstrations with a wrong result
    slips: float = Field(default=0.0, ge=0, le=1)

    rewards: ClassVar = {
        "accuracy": (correctness_reward, 1.0),
        "lenient_accuracy": (lenient_reward, 0.0),
        "format": (format_reward, 0.2),
        "length_reward": (length_reward, 0.0),
    }
    measures: ClassVar[Sequence[str]] = ("accuracy", "lenient_accuracy", "format")
    presets: ClassVar = PRESETS

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits there are; the first is the one to report."""
        if self.data != "generated":
            return RUN_SPLITS
        return ("unseen_problems", *(s for s in SPLITS if s != "unseen_problems"))

    def problems(self, split: str, count: int | None, seed: int) -> list[WordProblem]:
        """At most `count` problems of one split; GSM8K's own depend on no seed."""
        if self.data != "generated":
            path = None if self.data == "gsm8k" else self.data
            return load_run_split(split, path)[:count]
        return make_problems(
            split,
            require_count(count),
            seed,
            operands=self.operands,
            operations=self.operations,
            steps=self.steps,
        )

    def gold(self, problem: WordProblem) -> str:
        """The problem's own solution and answer in the full form."""
        return demonstration(problem)

    def demonstration(self, problem: WordProblem, rng: random.Random) -> str:
        """Now and then with a slip, in a form that lacks tags or does not."""
        if rng.random() < self.slips:
            problem = with_slip(problem, rng)
        return demonstration(problem, rng.choices([*FORMS], weights=self.forms)[0])
