"""The claims of 12_gsm8k_grpo, on the recorded seeds: a run takes minutes a seed."""

from functools import partial

from torch import Tensor

from grpo_course.claims.claim import VARIATIONS, Claim, Setting
from grpo_course.stories.recorded import DEEP, read_finale, shares

WHY = "a run takes minutes a seed: only seeds 0 to 4 are recorded"
NEW_RUNS = {name: WHY for name in VARIATIONS if name != "as told"}
Recorded = partial(Claim, told=Setting(seeds=range(5)), leave_out=NEW_RUNS)


def measured(
    setting: Setting, model: str, name: str = "right", split: str = DEEP
) -> Tensor:
    """The mean of a measure over the problems of a split. -> [seed]"""
    return shares(read_finale(), model, split, name).mean(-1)[list(setting.seeds)]


def gain(setting: Setting, name: str = "right", split: str = DEEP) -> Tensor:
    """How far GRPO raises it. -> [seed]"""
    after = measured(setting, "GRPO", name, split)
    return after - measured(setting, "start", name, split)


CLAIMS: tuple[Claim, ...] = ()
