"""What 09_sequences claims."""

from functools import partial
from typing import Any

from torch import Tensor

from claims.runner import BEST, Claim, Setting
from grpo_course.sampling import Sampler
from grpo_course.sequences import (
    SHARE_LENGTH,
    train_share,
)


def early_length(setting: Setting, aggregation: str) -> Tensor:
    """Tokens of a response, the mean over epochs 5 to 12. -> [seed]"""
    ends: dict[str, Any] = {
        "sampler": Sampler(SHARE_LENGTH, eos=0, pad=0),
        "aggregation": aggregation,
    }
    _, history = train_share(setting.seeds, 16, 1e-3 * setting.rate, **ends)
    return history.epochs("mean_length")[5:13].mean(dim=0)


SAME_PROMPTS = {"other prompts": "the prompts of this task say nothing"}
EARLY_ONLY = SAME_PROMPTS | {
    "half as long": "the claim is about epochs 5 to 12",
    "twice as long": "the claim is about epochs 5 to 12",
    BEST: "a longer response is not better",
}
# fmt: off
CLAIMS = (
    Claim("09.length", "On the way, responses are shorter under the mean per response.",
        (partial(early_length, aggregation="constant"),
         partial(early_length, aggregation="sequence_mean")), not_tried=EARLY_ONLY),
)
# fmt: on
