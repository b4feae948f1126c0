"""The claims of 12_gsm8k_grpo, on the recorded seeds: a run takes minutes a seed."""

from functools import partial

from torch import Tensor

from claims.claim import VARIATIONS, Claim, Setting
from grpo_course.reader.finale import DEEP, read_finale, shares

WHY = "a run takes minutes a seed: only seeds 0 to 4 are recorded"
NEW_RUNS = {name: WHY for name in VARIATIONS if name != "as told"}
Recorded = partial(Claim, told=Setting(seeds=range(5)), leave_out=NEW_RUNS)


def measured(
    setting: Setting, model: str, name: str = "right", split: str = DEEP
) -> Tensor:
    """The mean of a measure over the problems of a split. -> [seed]"""
    return shares(read_finale(), model, split, name).mean(-1)[list(setting.seeds)]


def gain(setting: Setting, split: str = DEEP) -> Tensor:
    """How far GRPO raises the share of right greedy answers. -> [seed]"""
    return measured(setting, "GRPO", split=split) - measured(
        setting, "start", split=split
    )


def tries(setting: Setting, model: str) -> Tensor:
    """The share of problems that one of 64 samples solves. -> [seed]"""
    solved = shares(read_finale(), model, DEEP, "many") > 0
    return solved.double().mean(-1)[list(setting.seeds)]


CLAIMS = (
    Recorded(
        "12.gain",
        "GRPO raised right answers at the edge by more than a tenth, in each of five "
        "seeds",
        gain,
        lambda setting: 0.1,
    ),
    Recorded(
        "12.untrained",
        "Cooling and voting raised nothing.",
        partial(measured, model="start", name="vote"),
        partial(measured, model="start"),
        within=0.02,
    ),
    Recorded(
        "12.cooled",
        "cooling and voting add nothing to the start's greedy answers",
        partial(measured, model="start", name="cooled"),
        partial(measured, model="start"),
        within=0.02,
    ),
    Recorded(
        "12.imitation",
        "Imitating one's own right answers, with as many samples, did as well",
        partial(measured, model="imitation"),
        partial(measured, model="GRPO"),
        within=0.02,
    ),
    Recorded(
        "12.tries",
        "With 64 tries the start did not catch up",
        partial(tries, model="GRPO"),
        partial(tries, model="start"),
    ),
    Recorded(
        "12.others",
        "Practising one thing cost others: two-digit stories lost a little, in each of "
        "five seeds.",
        partial(measured, model="start", split="two_digit"),
        partial(measured, model="GRPO", split="two_digit"),
    ),
)
