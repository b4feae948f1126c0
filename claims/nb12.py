"""What 12_gsm8k_grpo claims, on the recorded seeds: a run takes minutes a seed."""

from functools import partial

from torch import Tensor

from claims.runner import VARIATIONS, Claim, Setting
from grpo_course.reader.finale import DEEP, read_finale, shares


def measured(setting: Setting, model: str, name="right", split=DEEP) -> Tensor:
    """The mean of a measure over the problems of a split. -> [seed]"""
    return shares(read_finale(), model, split, name).mean(-1)[list(setting.seeds)]


def gain(setting: Setting) -> Tensor:
    """How far GRPO raises the share of right greedy answers. -> [seed]"""
    return measured(setting, "GRPO") - measured(setting, "start")


def tries(setting: Setting, model: str) -> Tensor:
    """The share of problems that one of 64 samples solves. -> [seed]"""
    solved = shares(read_finale(), model, DEEP, "many") > 0
    return solved.double().mean(-1)[list(setting.seeds)]


WHY = "a run takes minutes a seed: only seeds 0 to 4 are recorded"
NEW_RUNS = {name: WHY for name in VARIATIONS if name != "as told"}
Recorded = partial(Claim, seeds=range(5), not_tried=NEW_RUNS)
start, grpo = partial(measured, model="start"), partial(measured, model="GRPO")
# fmt: off
CLAIMS = (
    Recorded("12.gain", "GRPO raised right answers at the edge by more than a tenth.",
        (gain, 0.1)),
    Recorded("12.untrained", "A vote adds nothing to the start's greedy answers.",
        (partial(start, name="vote"), start), within=0.02),
    Recorded("12.cooled", "Cooling adds nothing to the start's greedy answers.",
        (partial(start, name="cooled"), start), within=0.02),
    Recorded("12.imitation",
        "Imitating one's own right answers, with as many samples, did as well as GRPO.",
        (partial(measured, model="imitation"), grpo), within=0.02),
    Recorded("12.tries", "With 64 tries the start did not catch up with GRPO.",
        (partial(tries, model="GRPO"), partial(tries, model="start"))),
    Recorded("12.others",
        "Practising one thing cost others: two-digit stories lost a little.",
        (partial(start, split="two_digit"), partial(grpo, split="two_digit"))),
)
# fmt: on
