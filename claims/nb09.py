"""The claims of 09_sequences."""

from functools import cache, partial

from torch import Tensor

from claims.claim import BEST, Claim, Setting
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

EOS = 0
FEW = 8  # seeds of each range, where a run takes ten seconds
EARLY = slice(5, 13)  # epochs
SAME_PROMPTS = {"other prompts": "the prompts of this task say nothing"}
EARLY_ONLY = SAME_PROMPTS | {
    "half as long": "the claim is about epochs 5 to 12",
    "twice as long": "the claim is about epochs 5 to 12",
    BEST: "a longer response is not better",
}
ALL_PROMPTS = {"other prompts": "all 216 are asked"}
ONE_RUN = ALL_PROMPTS | {
    "twice as long": "it costs as much as three of the others",
    BEST: "both arms are of one run, or begin with one",
}
COST = "a minute and a half each; tried on fresh seeds alone"
RATES = ("a third of the rate", "three times the rate", "half as long")
FRESH_SEEDS = ONE_RUN | dict.fromkeys(RATES, COST)


def early_length(setting: Setting, aggregation: str) -> Tensor:
    """Tokens of a response, over the epochs that are compared. -> [seed]"""
    ends = Sampler(SHARE_LENGTH, eos=EOS, pad=EOS)
    rate = 1e-3 * setting.rate
    _, history = train_share(
        setting.seeds, 16, rate, sampler=ends, aggregation=aggregation
    )
    return history.epochs("mean_length")[EARLY].mean(dim=0)


def share_after(setting: Setting, beta: float) -> Tensor:
    """The share of token 1 in the last five of 20 epochs. -> [seed]"""
    epochs, rate = round(20 * setting.length), 1e-3 * setting.rate
    _, history = train_share(setting.seeds, epochs, rate, kl_penalty=beta)
    return history.epochs("mean_reward")[-5:].mean(dim=0)


@cache
def sorter(setting: Setting, epochs: int) -> SequencePolicy:
    """Paid honestly, for the right number in each place."""
    epochs, rate = round(epochs * setting.length), 3e-3 * setting.rate
    return train_sort(place_reward, setting.seeds[:FEW], epochs, rate)[0]


@cache
def hacker(setting: Setting, beta: float, honest: int) -> SequencePolicy:
    """Paid by the reward with the hole, after so many honest epochs or from nothing."""
    epochs = round((60 if honest else 150) * setting.length)

    def begin(policy: SequencePolicy) -> SequencePolicy:
        if honest:
            start = sorter(setting, honest).model.state_dict()
            policy.model.load_state_dict(start)
        return policy

    return train_sort(
        found_and_ordered_reward,
        setting.seeds[:FEW],
        epochs,
        3e-3 * setting.rate,
        kl_penalty=beta,
        compute_ref_model_period=NEVER,
        wrap=begin,
    )[0]


def sorted_greedily(policy: SequencePolicy, repeats: bool) -> Tensor:
    """The share of the prompts with a repeated number, or without. -> [seed]"""
    prompts = all_sort_prompts()
    right = is_sorted(prompts, policy.answer(prompts)).float()
    return right[:, has_repeat(prompts) == repeats].mean(dim=-1)


def hacked(
    setting: Setting, beta: float = 0.0, honest: int = 0, repeats: bool = True
) -> Tensor:
    return sorted_greedily(hacker(setting, beta, honest), repeats)


HONEST = "β prevents most of the hack where the reference is honest, not where it is "
HONEST += "random."

CLAIMS = (
    Claim(
        "09.length",
        "With an EOS, responses are shorter under `sequence_mean` in epochs 5 to 12: "
        "on the way, not in the end.",
        partial(early_length, aggregation="constant"),
        partial(early_length, aggregation="sequence_mean"),
        leave_out=EARLY_ONLY,
    ),
    Claim(
        "09.pull",
        r"With $\beta = 0$ the toy passes 0.9; $\beta = 0.1$ holds it near three "
        "quarters",
        partial(share_after, beta=0.0),
        partial(share_after, beta=0.1),
        leave_out=SAME_PROMPTS,
    ),
    Claim(
        "09.hack",
        "The sort task is learned token by token, and the hole in a reward is found.",
        partial(hacked, repeats=False),
        hacked,
        leave_out=ONE_RUN,
    ),
    Claim(
        "09.honest_reference",
        HONEST,
        partial(hacked, beta=0.03, honest=60),
        partial(hacked, honest=60),
        leave_out=ONE_RUN,
    ),
    Claim(
        "09.random_reference",
        HONEST,
        partial(hacked, beta=0.3),
        hacked,
        within=0.1,
        leave_out=FRESH_SEEDS,
    ),
)
