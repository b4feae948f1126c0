"""The reader: the small pretrained model of the finale, and the stories that it reads.

A problem is a story of one to four steps, told by rule or by a person. `model/` holds
the model, with a card that says how it was made and what it can do; `stories.jsonl.xz`
holds the problems of every split. Beside this file stands

    finale  what GRPO made of the model, and what else would have, with five seeds

Left out: how stories are told and how the model was pretrained. That is in
`tools/reader`, which wrote all the data here.
"""

import json
import lzma
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grpo_course.checks import settings, unknown_name
from grpo_course.evaluation import Scores, bootstrap_interval, greedy_scores
from grpo_course.gsm8k import GSM8K, Fact, compute, demonstration, solution_text
from grpo_course.lm import CausalPolicy, load_model, load_tokenizer
from grpo_course.tasks import TAGS, Problem, TextTask
from grpo_course.training import GRPOConfig, make_environment, make_policy

HERE = Path(__file__).parent
MODEL, STORIES = HERE / "model", HERE / "stories.jsonl.xz"
STEP = re.compile(r"(\d+)([-+*/])(\d+)")

# The finale of the course. Prompts are told in sentences that pretraining held out, the
# form is known, so right answers alone are paid, and nothing holds the policy back.
LAPTOP = GRPOConfig(
    model=str(MODEL),
    task="stories",
    num_problems=1920,  # each is asked once
    max_new_tokens=64,  # four steps take about 50
    num_epochs=120,
    learning_rate=1e-4,
    kl_penalty=0.0,
    skip_tied_groups=True,
    reward_weights={"format": 0.0},
)
# Where pretraining's sentences are held out, another split stands behind the name.
NEW_FRAMES = {"train": "edge_practice", "validation": "edge_validation"}


@dataclass(frozen=True)
class Story(Problem):
    """A problem and the steps that solve it, in order: (12, "+", 7)."""

    facts: tuple[Fact, ...] = ()

    @property
    def kind(self) -> str:
        """The operations in a row, "*-" say."""
        return "".join(operation for _, operation, _ in self.facts)

    @property
    def group(self) -> str:
        """The calculation, shared by problems that differ in the words alone."""
        return " ".join(f"{a}{operation}{b}" for a, operation, b in self.facts)


def as_story(question: str, steps: Sequence[str]) -> Story:
    """A problem from its text and its steps: ["24-9", "15*2"].

    Raises ValueError for a step that is none.
    """
    facts = []
    for step in steps:
        if (found := STEP.fullmatch(step)) is None:
            raise ValueError(f"step={step!r} must be two numbers and a sign: 24-9.")
        facts.append((int(found[1]), found[2], int(found[3])))
    return Story(
        question, str(compute(*facts[-1])), solution_text(tuple(facts)), tuple(facts)
    )


@cache
def all_stories() -> dict[str, list[Story]]:
    """Every split with its stories, the one to report first."""
    made: dict[str, list[Story]] = {}
    for line in lzma.decompress(STORIES.read_bytes()).decode("utf-8").splitlines():
        row = json.loads(line)
        story = as_story(row["question"], row["steps"])
        made.setdefault(row["split"], []).append(story)
    return made


@settings()
class Stories(TextTask[Story]):
    """Stories of one to four steps, told in several thousand frames."""

    # train and validate on sentences that the model of the course has not read
    new_frames: bool = True

    rewards: ClassVar = GSM8K.rewards
    measures: ClassVar = GSM8K.measures
    presets: ClassVar = {"reader": asdict(LAPTOP)}

    @property
    def splits(self) -> tuple[str, ...]:
        """Those of the stories; model/README.md says what each asks."""
        first = "edge_both" if self.new_frames else "unseen_problems"
        return (first, *(s for s in all_stories() if s not in (first, "train")))

    def problems(self, split: str, count: int | None, seed: int) -> list[Story]:
        """The first `count` there are, all with None; they depend on no seed."""
        split = NEW_FRAMES.get(split, split) if self.new_frames else split
        if split not in all_stories():
            raise unknown_name("split", split, all_stories())
        return all_stories()[split][:count]

    def gold(self, problem: Story) -> str:
        """The problem's own solution and answer in the full form."""
        return demonstration(problem)


def load_reader(
    path: str | Path = MODEL,
) -> tuple[CausalPolicy, PreTrainedTokenizerBase]:
    """A model of the stories as a policy, the course's unless told, and its tokenizer.

    Its weights are float32 in memory.
    """
    tokenizer = load_tokenizer(path)
    return make_policy(LAPTOP, load_model(path), tokenizer), tokenizer


def measure_greedy(
    policy: CausalPolicy, tokenizer: PreTrainedTokenizerBase, stories: Sequence[Story]
) -> dict[str, float]:
    """Figures of the greedy answers to some stories, rounded to three digits.

    lenient: share whose last number is right, form ignored, with its 95 % interval
    over problems, low to high. strict: the form counts too. reading: share that read
    the story right, whatever the sums. sums: of those, the share whose last number is
    right too.
    """
    scores, read = greedy_answers(policy, tokenizer, stories)
    lenient = scores.earned["lenient_accuracy"].mean(-1)
    low, high = bootstrap_interval(lenient, scores.groups)
    figures = {
        "lenient": lenient.mean().item(),
        "low": low,
        "high": high,
        "strict": scores.accuracy.mean().item(),
        "reading": read.mean().item(),
        "sums": (lenient * read).sum().item() / max(1, int(read.sum())),
    }
    return {name: round(value, 3) for name, value in figures.items()}


def greedy_answers(
    policy: CausalPolicy, tokenizer: PreTrainedTokenizerBase, stories: Sequence[Story]
) -> tuple[Scores, Tensor]:
    """What the greedy answers earned, and 1 for each story that was read right.

    The latter [problem].
    """
    scores = greedy_scores(policy, make_environment(LAPTOP, stories, tokenizer))
    pairs = zip(scores.texts, stories, strict=True)
    return scores, torch.tensor([float(reads_right(t[0], story)) for t, story in pairs])


LINE = re.compile(r"(\d{1,6})([-+*/])(\d{1,6})=(\d{1,6})")
TAG = re.compile("|".join(map(re.escape, TAGS)))


def reads_right(text: str, story: Story) -> bool:
    """Whether the response's own steps, worked out rightly, lead to the answer.

    Where a step takes up the result of an earlier one, it is given the right result.
    So a slip in a sum is none in reading. A text without steps is not right.
    """
    true: dict[str, Fraction] = {}
    last = None
    for left, operation, right, said in LINE.findall(TAG.sub("\n", text)):
        a, b = (true.get(number, Fraction(number)) for number in (left, right))
        if operation == "/" and b == 0:
            return False
        last = {"+": a + b, "-": a - b, "*": a * b}.get(operation)
        last = a / b if last is None else last
        true[said] = last
    return last == Fraction(story.answer)
