"""What GRPO bought, over several seeds, as `tools/reader/finale.py` recorded it."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from grpo_course.checks import unknown_name
from grpo_course.evaluation import bootstrap_interval

PATH = Path(__file__).parent / "finale.json"
SHARED = ("handwritten",)  # the same problems for all seeds
# Where the start voted and was cooled as well, and where many samples were drawn.
SAMPLED = ("edge_both", "unseen_both", "unseen_problems", "handwritten")
DEEP, MANY = "edge_both", 64
SAMPLES = {"cooled": 8, "many": MANY}  # the rest: one answer a problem


def read_finale() -> list[dict]:
    """One row for each model, seed and split.

    right, read, strict: a character for each problem, 1 where the greedy answer has the
    right number, read its story right, has the right number in form. vote: the same of
    the majority of eight samples. cooled, many: a list, how many of 8 samples at
    temperature 0.3, and of 64 samples, have the right number. These three are recorded
    for some models and splits only.
    """
    return json.loads(PATH.read_text("utf-8"))


def shares(rows: Sequence[dict], model: str, split: str, name: str = "right") -> Tensor:
    """One measure of one model, of each problem. -> float [seed problem]

    Raises ValueError for a model, a split or a measure that was not recorded.
    """
    for key, value in (("model", model), ("split", split)):
        rows = [row for row in rows if row[key] == value] or unknown(rows, key, value)
    if name not in rows[0]:
        raise unknown_name("name", name, sorted(rows[0].keys() - {"model", "split"}))
    each = [list(map(int, row[name])) for row in rows]
    return torch.tensor(each).double() / SAMPLES.get(name, 1)


def unknown(rows: Sequence[dict], key: str, value: str) -> list[dict]:
    """Says which there are."""
    raise unknown_name(key, value, sorted({row[key] for row in rows}))


def gain(
    rows: Sequence[dict],
    model: str,
    split: str,
    over: tuple[str, str] = ("start", "right"),
) -> tuple[float, float, float]:
    """How much more often a model's greedy answer is right: mean, low, high.

    Against another model's measure on the same problems, pair by pair; the interval of
    95 % is over the problems of all seeds. A problem that all seeds answer counts once.
    """
    more = shares(rows, model, split) - shares(rows, over[0], split, over[1])
    more = more.mean(0) if split in SHARED else more.flatten()
    low, high = bootstrap_interval(more)
    return more.mean().item(), low, high
