"""The claims of 12_gsm8k_grpo, on the recorded seeds: a run takes minutes a seed."""

from functools import partial

import torch
from torch import Tensor

from grpo_course.claims.claim import VARIATIONS, Claim, Setting
from grpo_course.gsm8k.recorded import read_finale

WHY = "a run takes about four minutes a seed: only seeds 0 to 4 are recorded"
NEW_RUNS = {name: WHY for name in VARIATIONS if name != "as told"}
Recorded = partial(Claim, told=Setting(seeds=range(5)), leave_out=NEW_RUNS)
LENIENT, STRICT = "sampled lenient accuracy", "sampled strict accuracy"
GREEDY = "greedy lenient accuracy"


def measured(
    setting: Setting, time: str, name: str = STRICT, split: str = "unseen_problems"
) -> Tensor:
    """One measure before or after training, over 512 problems. -> [seed]"""
    rows = {row["seed"]: row for row in read_finale() if row["split"] == split}
    return torch.tensor([rows[seed][time][name] for seed in setting.seeds])


def gain(setting: Setting, name: str, split: str = "unseen_problems") -> Tensor:
    """How far a measure rises in training. -> [seed]"""
    after = measured(setting, "after", name, split)
    return after - measured(setting, "before", name, split)


CLAIMS = (
    Recorded(
        "12.right",
        "GRPO makes it say the right result more often.",
        partial(measured, time="after", name=LENIENT),
        partial(measured, time="before", name=LENIENT),
    ),
    Recorded(
        "12.sharpening",
        "What to see: with the form ignored, samples are right far more often, greedy "
        "answers hardly more.",
        partial(gain, name=LENIENT),
        partial(gain, name=GREEDY),
    ),
    Recorded(
        "12.sentences",
        "What to see: in new sentences the gain is mostly form.",
        partial(gain, name=STRICT, split="unseen_phrasings"),
        lambda setting: 2 * gain(setting, LENIENT, "unseen_phrasings"),
    ),
    Recorded(
        "12.facts",
        "On steps never shown, that is often wrong.",
        partial(measured, time="after", name=GREEDY),
        partial(measured, time="after", name=GREEDY, split="unseen_facts"),
    ),
)
