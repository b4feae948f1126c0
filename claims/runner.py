"""A claim, the two arms that it compares, and how their experiment is run and varied.

Each claim is run as its notebook tells it, and varied: other seeds, rates, prompts and
lengths, and each arm at its own best rate.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module

import torch
from torch import Tensor
from tqdm import tqdm

from claims import report
from claims.report import BEST, VARIATIONS
from grpo_course.files import write_atomically
from grpo_course.loop import History, mean_and_error
from grpo_course.sort import SORT_PROMPTS, run_policy_gradient, sort_distance_reward


@dataclass(frozen=True)
class Setting:
    """How an experiment runs; `rate` and `length` multiply what the notebook takes."""

    seeds: range = range(16)
    rate: float = 1.0
    length: float = 1.0
    prompts: int = 0  # which set of prompts; 0 is the notebook's


# One result of each seed [seed]: a function, the settings of a sort run, or a bound.
Arm = Callable[[Setting], Tensor] | dict | float


@dataclass(frozen=True)
class Claim:
    """The first arm lies above the second; with `within`, less than that apart.

    `key` begins with the number of the notebook that tells it: a text there has the key
    in its metadata, under `claims`. `not_tried` are variations that the experiment does
    not have, with the reason.
    """

    key: str
    says: str
    arms: tuple[Arm, Arm]
    within: float | None = None
    seeds: range = range(16)
    not_tried: Mapping[str, str] = field(default_factory=dict)


FRESH = range(100, 116)
CHANGES: tuple[dict, ...] = (
    {},
    {"seeds": FRESH},
    {"seeds": range(200, 216)},
    {"seeds": FRESH, "rate": 1 / 3},
    {"seeds": FRESH, "rate": 3.0},
    {"seeds": FRESH, "prompts": 1},
    {"seeds": FRESH, "length": 0.5},
    {"seeds": FRESH, "length": 2.0},
)
RATES = (1 / 9, 1 / 3, 1.0, 3.0, 9.0)
TUNING_SEEDS = range(300, 308)  # none that the rates are judged on


def all_claims() -> dict[str, Claim]:
    """Every claim by its key, in the order of the course."""
    files = sorted(report.TABLE.parent.glob("nb*.py"))
    modules = [import_module(f"claims.{file.stem}") for file in files]
    return {claim.key: claim for module in modules for claim in module.CLAIMS}


# What most arms are made of.

PROMPT_SETS = (SORT_PROMPTS, torch.tensor([[4, 1, 0], [2, 4, 3], [0, 3, 1]]))
NORMALIZED = {"deltas_mode": "normalized_rewards"}
PLAIN = NORMALIZED | {"loss_mode": "clipped"}
ONE_STEP = {"num_steps_per_epoch": 1, "learning_rate": 0.01, "loss_mode": "naive"}
NO_RATE = {BEST: "a bound has no rate"}


def result(arm: Arm, setting: Setting) -> Tensor:
    """-> [seed], or one number for a bound"""
    if isinstance(arm, dict):
        return sort_after(setting, **arm)
    return torch.as_tensor(arm(setting) if callable(arm) else arm)


def sort_run(
    setting: Setting,
    num_epochs: float = 100,
    learning_rate: float = 1e-3,
    prompt_sets: Sequence[Tensor] = PROMPT_SETS,
    reward_fn: Callable = sort_distance_reward,
    init_scale: float = 0.1,
    **knobs,
) -> History:
    """A sort run of the notebooks, varied; its history."""
    return run_policy_gradient(
        max(1, round(num_epochs * setting.length)),
        learning_rate=learning_rate * setting.rate,
        prompts=prompt_sets[setting.prompts],
        seeds=setting.seeds,
        reward_fn=reward_fn,
        init_scale=init_scale,
        **knobs,
    )


def sort_after(setting: Setting, measure="sorted_probability", **knobs) -> Tensor:
    """What a sort policy has reached after training. -> [seed]"""
    return sort_run(setting, **knobs).final(measure)


def minus(more: Arm, less: Arm) -> Arm:
    """By how much one arm is ahead of another."""
    return lambda setting: result(more, setting) - result(less, setting)


def mean_of(arms: Iterable[Arm]) -> Arm:
    """The mean over several arms."""
    return lambda setting: torch.stack([result(a, setting) for a in arms]).mean(dim=0)


def repeated(arm: Arm, runs: int) -> Arm:
    """An arm of which each seed is the mean of several runs: for small effects."""

    def mean(setting: Setting) -> Tensor:
        first, count = setting.seeds.start, len(setting.seeds)
        many = replace(setting, seeds=range(first, first + runs * count))
        return result(arm, many).view(count, runs).mean(dim=-1)

    return mean


# Running them.


def replicate(claim: Claim, variation: str) -> dict:
    """Run both arms as one variation wants it: their means, and the difference."""
    told, rates = Setting(claim.seeds), (1.0, 1.0)
    if variation == BEST:
        told = replace(told, seeds=FRESH)
        rates = (best_rate(claim.arms[0], claim), best_rate(claim.arms[1], claim))
    else:
        told = replace(told, **CHANGES[VARIATIONS.index(variation)])
    higher, lower = (
        result(arm, replace(told, rate=told.rate * rate)).double()
        for arm, rate in zip(claim.arms, rates, strict=True)
    )
    each = higher - lower
    if each.dim() != 1 or len(each) < 3:
        raise ValueError(
            f"the arms are {list(higher.shape)} and {list(lower.shape)}; at least one "
            "must have one number for each of at least 3 seeds"
        )
    difference, error = (value.item() for value in mean_and_error(each))
    means = {"higher": higher.mean().item(), "lower": lower.mean().item()}
    effect = {"difference": difference, "error": error, "seeds": len(each)}
    return means | effect | {"rates": [*rates]}


def best_rate(arm: Arm, claim: Claim) -> float:
    """The rate at which an arm does best, on seeds of its own."""
    settings = {rate: Setting(TUNING_SEEDS, rate) for rate in RATES}
    return max(RATES, key=lambda rate: result(arm, settings[rate]).mean().item())


def run_missing(keys: list[str], again: bool = False) -> None:
    """Run each variation that is not stored, and store it at once."""
    claims, table = all_claims(), report.stored()
    for key, claim in claims.items():  # a stored result says what it is the result of
        runs = {} if again and key in keys else table.get(key, {}).get("runs", {})
        bound = {} if claim.within is None else {"within": claim.within}
        words = {"says": claim.says, **bound, "not tried": dict(claim.not_tried)}
        table[key] = {**words, "runs": runs}
    missing = [
        (key, name)
        for key in keys
        for name in VARIATIONS
        if name not in table[key]["runs"] and name not in claims[key].not_tried
    ]
    store({key: table[key] for key in claims})
    with tqdm(missing, disable=not missing) as bar:
        for key, name in bar:
            bar.set_description_str(f"{key}, {name}")
            start = time.process_time()
            run = replicate(claims[key], name)
            run["seconds"] = round(time.process_time() - start, 1)
            table[key]["runs"][name] = run
            store({key: table[key] for key in claims})


def store(table: dict[str, dict]) -> None:
    """Keep the table whole, a run on a line."""
    spread = json.dumps(table, indent=1, ensure_ascii=False)
    folded = re.sub(r"\{[^{}]*\}", lambda found: " ".join(found[0].split()), spread)
    write_atomically(report.TABLE, folded + "\n")
