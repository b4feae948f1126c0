"""The claims of 09_sequences."""

from functools import partial

from torch import Tensor

from grpo_course.algorithm.sampler import Sampler
from grpo_course.claims.claim import Claim, Setting
from grpo_course.sequences.recipes import SHARE_LENGTH, train_share

EOS = 0
EARLY = slice(5, 13)  # epochs
LEAVE_OUT = {
    "other prompts": "the prompts of this task say nothing",
    "half as long": "the claim is about epochs 5 to 12",
    "twice as long": "the claim is about epochs 5 to 12",
    "each at its best rate": "a longer response is not better",
}


def early_length(setting: Setting, aggregation: str) -> Tensor:
    """Tokens of a response, over the epochs that are compared. -> [seed]"""
    ends = Sampler(SHARE_LENGTH, eos=EOS, pad=EOS)
    rate = 1e-3 * setting.rate
    _, history = train_share(
        setting.seeds, 16, rate, sampler=ends, aggregation=aggregation
    )
    return history.epochs("mean_length")[EARLY].mean(dim=0)


CLAIMS = (
    Claim(
        "09.length",
        "With an EOS, `sequence_mean` keeps responses short for longer: for the first "
        "epochs, not in the end.",
        partial(early_length, aggregation="constant"),
        partial(early_length, aggregation="sequence_mean"),
        leave_out=LEAVE_OUT,
    ),
)
