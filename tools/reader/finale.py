"""Record what GRPO bought: .venv/bin/python -m tools.reader.finale 0 1 2 3 4

Each seed draws prompts, samples and test problems of its own, and takes a quarter of an
hour on one core; the handwritten problems are the same for all. With --start FOLDER the
runs begin elsewhere, as half way through the pretraining; with --kept-back GRPO
practises three quarters of the new sentences, and is measured on the fourth. What is
recorded is not done again. Written to grpo_course/reader/finale.json, which notebook 12
shows.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from zlib import crc32

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grpo_course.evaluation import Scores, majority, sampled_scores
from grpo_course.files import write_atomically
from grpo_course.lm import CausalPolicy
from grpo_course.reader import LAPTOP, MODEL, Story, greedy_answers, load_reader
from grpo_course.reader.finale import DEEP, MANY, PATH, SAMPLED, read_finale
from grpo_course.training import (
    GRPOConfig,
    imitate_right,
    make_environment,
    train_policy,
)
from tools.reader.stories import MOST, draw, make_stories

PROBLEMS, TEST_SEED = 256, 2000  # a split; added to the seed
DEEP_PROBLEMS = 128  # those of them that get many samples
COOLED = 0.3  # a temperature

REPORTED = (
    *SAMPLED,
    "unseen_frames",
    "distractor",
    "two_digit",
    "three_step",
    "four_step",
    "out_of_order",
    "sums",
)

# Settings chosen on the split "validation" with seed 50, of the rates that
# benchmarks/README.md lists. Both ways draw as many samples.
ONCE = replace(
    LAPTOP,
    warm_start_steps=400,
    warm_start_batch_size=32,
    warm_start_learning_rate=3e-4,
)


KEY = ("model", "seed", "split")


def by_reward(config: GRPOConfig, policy: CausalPolicy, tokenizer, stories) -> None:
    """Train by the loop of the course."""
    environment = make_environment(config, stories, tokenizer)
    train_policy(config, policy.model, tokenizer, environment)


def by_imitation(config: GRPOConfig, policy: CausalPolicy, tokenizer, stories) -> None:
    """Train on what was right among as many samples, all drawn at the start."""
    imitate_right(config, policy, make_environment(config, stories, tokenizer))


WAYS: dict[str, tuple[GRPOConfig, Callable[..., None]]] = {
    "GRPO": (LAPTOP, by_reward),
    "imitation": (ONCE, by_imitation),
}


def record(seed: int, start: Path, name: str) -> None:
    """Keep rows of the start and of what each way makes of it.

    From another start GRPO alone, at the edge.
    """
    usual = name == "start"
    splits = REPORTED if usual else (DEEP,)
    if not is_kept(name, seed):
        policy, tokenizer = load_reader(start)
        keep(name, measure_all(seed, policy, tokenizer, splits, usual, rivals=True))
    for way in WAYS if usual else ("GRPO",):
        made = way if usual else f"{way}, from {name}"
        if is_kept(made, seed):
            continue
        config, learn = WAYS[way]
        policy, tokenizer = load_reader(start)
        config = replace(config, seed=seed)
        practised = draw("edge_practice", MOST, seed)
        learn(config, policy, tokenizer, practised)
        keep(made, measure_all(seed, policy, tokenizer, splits, usual))


def measure_all(
    seed: int,
    policy: CausalPolicy,
    tokenizer: PreTrainedTokenizerBase,
    splits: Sequence[str],
    deep: bool,
    rivals: bool = False,
) -> list[dict]:
    """A row for each split, and one for stories with a sentence kept back.

    Deep, with many samples at the edge; with rivals, what votes and cooled samples
    reach as well.
    """
    rows = []
    for split in splits:
        stories = draw(split, PROBLEMS, TEST_SEED + seed)
        row = {"seed": seed, "split": split, **measure(policy, tokenizer, stories)}
        asked = make_environment(LAPTOP, stories, tokenizer)
        answer = partial(sampled_scores, policy, seed=seed, batch_size=16)
        if split in SAMPLED and rivals:
            row["vote"] = bits(majority(answer(asked, 8)))
            row["cooled"] = counts(answer(asked, 8, temperature=COOLED))
        if deep and split == DEEP:
            few = make_environment(LAPTOP, stories[:DEEP_PROBLEMS], tokenizer)
            row["many"] = counts(answer(few, MANY))
        rows.append(row)
    return [*rows, kept_back_row(seed, policy, tokenizer)]


def measure(
    policy: CausalPolicy, tokenizer: PreTrainedTokenizerBase, stories: Sequence[Story]
) -> dict:
    """The greedy answers taken apart: a character for each problem."""
    scores, read = greedy_answers(policy, tokenizer, stories)
    lenient, strict = scores.earned["lenient_accuracy"], scores.accuracy
    parts = {"right": lenient, "read": read, "strict": strict}
    return {name: bits(values.flatten()) for name, values in parts.items()}


def bits(values: Tensor) -> str:
    """0 and 1, [problem], as text."""
    return "".join(str(int(value)) for value in values)


def counts(scores: Scores) -> list[int]:
    """How many samples of each problem have the right number, form ignored."""
    return scores.earned["lenient_accuracy"].sum(-1).int().tolist()


def with_kept_back(seed: int, split: str, count: int, wanted: bool) -> Sequence[Story]:
    """Stories with a sentence of those that are kept back, or without any.

    Each seed keeps another quarter of the new sentences back.
    """
    told = make_stories(split, 8 * count, f"{seed} kept back")
    quarters = [{crc32(f.encode()) % 4 for f in story.frames} for story in told]
    pairs = zip(told, quarters, strict=True)
    found = [story for story, kept in pairs if (seed % 4 in kept) == wanted]
    assert len(found) >= count, f"{len(found)} of {len(told)} stories, {count} wanted"
    return found[:count]


def record_kept_back(seed: int) -> None:
    """GRPO that never practises a quarter of the new sentences, measured on these."""
    policy, tokenizer = load_reader()
    config = replace(LAPTOP, seed=seed)
    rest = with_kept_back(seed, "edge_practice", MOST, wanted=False)
    by_reward(config, policy, tokenizer, rest)
    keep("GRPO on the others", [kept_back_row(seed, policy, tokenizer)])


def kept_back_row(seed: int, policy, tokenizer) -> dict:
    """What a model makes of stories that have a sentence which is kept back."""
    stories = with_kept_back(seed, DEEP, PROBLEMS, wanted=True)
    row = {"seed": seed, "split": "kept_back"}
    return row | measure(policy, tokenizer, stories)


def kept() -> list[dict]:
    """What was recorded before."""
    return read_finale() if PATH.exists() else []


def is_kept(model: str, seed: int) -> bool:
    """Whether a model was recorded."""
    return any(row["model"] == model and row["seed"] == seed for row in kept())


def keep(model: str, rows: list[dict]) -> None:
    """Write rows beside what was recorded before."""
    rows = [{"model": model, **row} for row in rows]
    old = kept()
    merged = {tuple(row[k] for k in KEY): row for row in [*old, *rows]}
    lines = ",\n".join(json.dumps(merged[key]) for key in sorted(merged))
    write_atomically(PATH, f"[\n{lines}\n]\n")
    print("recorded", model, "seed", rows[0]["seed"], flush=True)


def main() -> None:
    """Record seed by seed; what is done is on the disk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="*", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--start", type=Path, default=MODEL)
    parser.add_argument("--name", default="start", help="of that start in the tables")
    parser.add_argument("--kept-back", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for seed in given.seeds:
        if given.kept_back:
            record_kept_back(seed)
        else:
            record(seed, given.start, given.name)


if __name__ == "__main__":
    main()
