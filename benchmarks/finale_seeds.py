"""Record what GRPO bought: python benchmarks/finale_seeds.py 0 1 2 3 4

Each seed draws prompts, samples and test problems of its own, and takes about half an
hour on one core; the handwritten problems are the same for all. With --from FOLDER the
runs begin at another start, such as a checkpoint of `pretrain`, and with --halves GRPO
is trained on each half of the new sentences alone. What was recorded before is kept;
what is there is done again. Written to grpo_course/stories/finale.json, which notebook
12 shows.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from zlib import crc32

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grpo_course.files import write_atomically
from grpo_course.language_model.build import make_environment
from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.evaluation import Scores, majority, sampled_scores
from grpo_course.language_model.imitation import imitate_right
from grpo_course.language_model.policy import CausalPolicy
from grpo_course.language_model.training import train_policy
from grpo_course.stories.measure import greedy_answers, load_reader
from grpo_course.stories.problems import Story, make_stories
from grpo_course.stories.recorded import DEEP, MANY, PATH, SAMPLED, read_finale
from grpo_course.stories.task import LAPTOP, MODEL, Stories

PROBLEMS, TEST_SEED = 256, 2000  # a split; added to the seed
COOLED = 0.3  # a temperature

# Settings chosen on the split "validation" with seed 50, of the rates and lengths that
# benchmarks/README.md lists.
ANEW = replace(
    LAPTOP, deltas_mode="rewards", skip_tied_groups=False, learning_rate=5e-4
)
ONCE = replace(
    LAPTOP,
    warm_start_steps=400,
    warm_start_batch_size=32,
    warm_start_learning_rate=1e-4,
)


def by_reward(config: GRPOConfig, policy: CausalPolicy, tokenizer, stories) -> None:
    """Train by the loop of the course."""
    environment = make_environment(config, stories, tokenizer)
    train_policy(config, policy.model, tokenizer, environment)


def by_imitation(config: GRPOConfig, policy: CausalPolicy, tokenizer, stories) -> None:
    """Train on what was right among as many samples, all drawn at the start."""
    imitate_right(config, policy, make_environment(config, stories, tokenizer))


WAYS: dict[str, tuple[GRPOConfig, Callable[..., None]]] = {
    "GRPO": (LAPTOP, by_reward),
    "imitation, sampled anew": (ANEW, by_reward),
    "imitation, sampled once": (ONCE, by_imitation),
}


def record(seed: int, start: Path, name: str) -> list[dict]:
    """Rows of the start and of what each way makes of it, as `read_finale` has them."""
    rows = measure_all(seed, *load_reader(start), cooled=True)
    made = {name: rows}
    for way, (config, learn) in WAYS.items():
        policy, tokenizer = load_reader(start)
        config = replace(config, seed=seed)
        count = config.num_epochs * config.num_prompts
        learn(config, policy, tokenizer, Stories().problems("train", count, seed))
        made[way if name == "start" else f"{way} from {name}"] = measure_all(
            seed, policy, tokenizer
        )
        print(seed, way, flush=True)
    return [{"model": model, **row} for model, rows in made.items() for row in rows]


def measure_all(
    seed: int,
    policy: CausalPolicy,
    tokenizer: PreTrainedTokenizerBase,
    cooled: bool = False,
) -> list[dict]:
    """A row for each split."""
    rows = []
    for split in Stories().splits:
        stories = Stories().problems(split, PROBLEMS, TEST_SEED + seed)
        row = {"seed": seed, "split": split, **measure(policy, tokenizer, stories)}
        if split in SAMPLED:
            answer = partial(
                sampled_scores,
                policy,
                make_environment(LAPTOP, stories, tokenizer),
                seed=seed,
            )
            samples = answer(8)
            row |= {"samples": counts(samples), "vote": bits(majority(samples))}
            if cooled:
                row["cooled"] = counts(answer(8, temperature=COOLED))
        if split == DEEP:
            row["many"] = counts(answer(MANY, batch_size=16))
        rows.append(row)
    return rows


def measure(
    policy: CausalPolicy, tokenizer: PreTrainedTokenizerBase, stories: list[Story]
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


def in_half(half: int, split: str, count: int, seed: int) -> list[Story]:
    """Stories all of whose sentences are in one half of those that are held out."""
    told = make_stories(split, 12 * count, f"{seed} halves")
    own = [s for s in told if all(crc32(f.encode()) % 2 == half for f in s.frames)]
    if len(own) < count:
        raise ValueError(f"{len(own)} of {len(told)} stories are in half {half}.")
    return own[:count]


def halves(seed: int) -> list[dict]:
    """GRPO on one half of the new sentences, measured on both; then on the other."""
    count = LAPTOP.num_epochs * LAPTOP.num_prompts
    start = load_reader()
    rows = [half_row("start", seed, half, *start) for half in (0, 1)]
    for trained in (0, 1):
        policy, tokenizer = load_reader()
        stories = in_half(trained, "unseen_frames", count, seed)
        by_reward(replace(LAPTOP, seed=seed), policy, tokenizer, stories)
        for half in (0, 1):
            name = "GRPO on these" if half == trained else "GRPO on the others"
            rows += [half_row(name, seed, half, policy, tokenizer)]
    return rows


def half_row(model: str, seed: int, half: int, policy, tokenizer) -> dict:
    """One model on one half, new numbers."""
    stories = in_half(half, DEEP, PROBLEMS, TEST_SEED + seed)
    row = {"model": model, "seed": seed, "split": f"half {half}"}
    return row | measure(policy, tokenizer, stories)


def keep(rows: list[dict]) -> None:
    """Write rows beside what was recorded before, in place of those of equal name."""
    key = ("model", "seed", "split")
    old = read_finale() if PATH.exists() else []
    merged = {tuple(row[k] for k in key): row for row in [*old, *rows]}
    lines = ",\n".join(json.dumps(merged[k]) for k in sorted(merged))
    write_atomically(PATH, f"[\n{lines}\n]\n")


def main() -> None:
    """Record seed by seed; what is done is on the disk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="*", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--start", type=Path, default=MODEL)
    parser.add_argument("--name", default="start", help="of that start in the tables")
    parser.add_argument("--halves", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for seed in given.seeds:
        keep(halves(seed) if given.halves else record(seed, given.start, given.name))
        print("recorded seed", seed, flush=True)


if __name__ == "__main__":
    main()
