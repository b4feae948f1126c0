"""What a model can do on every split, greedily."""

from collections.abc import Sequence
from pathlib import Path

import torch

from grpo_course.language_model.build import make_environment, make_policy
from grpo_course.language_model.evaluation import bootstrap_interval, greedy_scores
from grpo_course.language_model.policy import CausalPolicy
from grpo_course.language_model.pretrained import load_model, load_tokenizer
from grpo_course.stories.problems import Story
from grpo_course.stories.reading import reads_right
from grpo_course.stories.task import LAPTOP, MODEL, Stories

# Chosen before the model was measured; what settings were chosen on has another seed.
SEED, PROBLEMS = 1000, 256


def load_reader(path: str | Path = MODEL) -> CausalPolicy:
    """A model of the stories as a policy; the one of the course unless told."""
    return make_policy(LAPTOP, load_model(path), load_tokenizer(path))


def measure_all(
    path: str | Path, count: int = PROBLEMS, seed: int = SEED
) -> list[dict]:
    """A row of `measure_split` for each split of the task, train last."""
    task = Stories()
    return [
        measure_split(path, split, task.problems(split, count, seed))
        for split in (*task.splits, "train")
    ]


def measure_split(path: str | Path, split: str, stories: Sequence[Story]) -> dict:
    """Greedy figures of a model in a folder on some stories.

    lenient: share whose last number is right, form ignored, with its 95 % interval
    over problems, low to high. strict: the form counts too. reading: share that read
    the story right, whatever the sums.
    """
    policy = load_reader(path)
    environment = make_environment(LAPTOP, stories, load_tokenizer(path))
    scores = greedy_scores(policy, environment)
    lenient = scores.earned["lenient_accuracy"].mean(-1)
    low, high = bootstrap_interval(lenient, scores.groups)
    pairs = zip(scores.texts, stories, strict=True)
    read = torch.tensor([reads_right(texts[0], story) for texts, story in pairs])
    means = {
        "lenient": lenient.mean().item(),
        "low": low,
        "high": high,
        "strict": scores.accuracy.mean().item(),
        "reading": read.float().mean().item(),
    }
    rounded = {name: round(value, 3) for name, value in means.items()}
    return {"split": split, "problems": len(stories)} | rounded
