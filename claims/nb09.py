"""What 09_sequences claims."""

from functools import cache, partial
from typing import Any

from torch import Tensor

from claims.runner import BEST, Claim, Setting
from grpo_course.sampling import Sampler
from grpo_course.sequences import (
    NEVER,
    SHARE_LENGTH,
    SequencePolicy,
    all_sort_prompts,
    found_and_ordered_reward,
    has_repeat,
    is_sorted,
    place_reward,
    train_share,
    train_sort,
)

FEW = 8  # seeds of each range, where a run takes ten seconds


def early_length(setting: Setting, aggregation: str) -> Tensor:
    """Tokens of a response, the mean over epochs 5 to 12. -> [seed]"""
    ends: dict[str, Any] = {
        "sampler": Sampler(SHARE_LENGTH, eos=0, pad=0),
        "aggregation": aggregation,
    }
    _, history = train_share(setting.seeds, 16, 1e-3 * setting.rate, **ends)
    return history.epochs("mean_length")[5:13].mean(dim=0)


def share_after(setting: Setting, beta: float) -> Tensor:
    """The share of token 1 in the last five of 20 epochs. -> [seed]"""
    epochs, rate = round(20 * setting.length), 1e-3 * setting.rate
    _, history = train_share(setting.seeds, epochs, rate, kl_penalty=beta)
    return history.epochs("mean_reward")[-5:].mean(dim=0)


@cache
def sorter(setting: Setting, beta: float, honest: int, hacks: bool = True):
    """Paid honestly for so many epochs, then by the reward with the hole."""
    rate = 3e-3 * setting.rate
    knobs: dict[str, Any] = {}
    reward, epochs = place_reward, honest
    if hacks:

        def begin(policy: SequencePolicy) -> SequencePolicy:
            if honest:
                start = sorter(setting, 0.0, honest, hacks=False).model.state_dict()
                policy.model.load_state_dict(start)
            return policy

        reward, epochs = found_and_ordered_reward, 60 if honest else 150
        knobs = {"kl_penalty": beta, "compute_ref_model_period": NEVER, "wrap": begin}
    epochs = round(epochs * setting.length)
    return train_sort(reward, setting.seeds[:FEW], epochs, rate, **knobs)[0]


def hacked(setting: Setting, beta=0.0, honest: int = 0, repeats: bool = True) -> Tensor:
    """The share sorted of the prompts with a repeated number, or without. -> [seed]"""
    prompts = all_sort_prompts()
    right = is_sorted(prompts, sorter(setting, beta, honest).answer(prompts)).float()
    return right[:, has_repeat(prompts) == repeats].mean(dim=-1)


SAME_PROMPTS = {"other prompts": "the prompts of this task say nothing"}
EARLY_ONLY = SAME_PROMPTS | {
    "half as long": "the claim is about epochs 5 to 12",
    "twice as long": "the claim is about epochs 5 to 12",
    BEST: "a longer response is not better",
}
ONE_RUN = {
    "other prompts": "all 216 are asked",
    "twice as long": "it costs as much as three of the others",
    BEST: "both arms are of one run, or begin with one",
}
FRESH_SEEDS = ONE_RUN | dict.fromkeys(
    ("a third of the rate", "three times the rate", "half as long"),
    "a minute and a half each; tried on fresh seeds alone",
)
# fmt: off
CLAIMS = (
    Claim("09.length", "On the way, responses are shorter under the mean per response.",
        (partial(early_length, aggregation="constant"),
         partial(early_length, aggregation="sequence_mean")), not_tried=EARLY_ONLY),
    Claim("09.pull", "A small β holds the toy back.",
        (partial(share_after, beta=0.0), partial(share_after, beta=0.1)),
        not_tried=SAME_PROMPTS),
    Claim("09.hack",
        "The hole in a reward is found: prompts with a repeated number are not sorted.",
        (partial(hacked, repeats=False), hacked), not_tried=ONE_RUN),
    Claim("09.honest_reference",
        "A β to an honest reference prevents most of the hack.",
        (partial(hacked, beta=0.03, honest=60), partial(hacked, honest=60)),
        not_tried=ONE_RUN),
    Claim("09.random_reference", "A β to a random reference does not prevent the hack.",
        (partial(hacked, beta=0.3), hacked), within=0.1, not_tried=FRESH_SEEDS),
)
# fmt: on
