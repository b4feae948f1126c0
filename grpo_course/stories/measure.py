"""What a model can do on every split, greedily."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grpo_course.language_model.build import make_environment, make_policy
from grpo_course.language_model.evaluation import (
    Scores,
    bootstrap_interval,
    greedy_scores,
)
from grpo_course.language_model.policy import CausalPolicy
from grpo_course.language_model.pretrained import load_model, load_tokenizer
from grpo_course.stories.problems import Story
from grpo_course.stories.reading import reads_right
from grpo_course.stories.task import LAPTOP, MODEL, Stories

# Chosen before the model was measured; what settings were chosen on has another seed.
SEED, PROBLEMS = 1000, 256


def load_reader(
    path: str | Path = MODEL,
) -> tuple[CausalPolicy, PreTrainedTokenizerBase]:
    """A model of the stories as a policy, the course's unless told, and its tokenizer.

    Its weights are float32 in memory.
    """
    tokenizer = load_tokenizer(path)
    return make_policy(LAPTOP, load_model(path), tokenizer), tokenizer


def measure_all(
    path: str | Path, count: int = PROBLEMS, seed: int = SEED
) -> list[dict]:
    """What `measure_greedy` says of a model in a folder on each split, train last."""
    task, (policy, tokenizer) = Stories(new_frames=False), load_reader(path)
    rows = []
    for split in (*task.splits, "train"):
        stories = task.problems(split, count, seed)
        figures = measure_greedy(policy, tokenizer, stories)
        rows.append({"split": split, "problems": len(stories)} | figures)
    return rows


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
