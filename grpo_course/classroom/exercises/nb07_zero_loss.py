"""The exercises of 07_zero_loss."""

import torch
from torch import Tensor

from grpo_course.classroom.exercises.shared import TOKENS, case, mask_of
from grpo_course.classroom.old_check.exercise import Exercise, Mistake

EMPTY = (
    "A response without tokens makes 0/0. Give its length a floor: "
    "mask.sum(-1).clamp(min=1)."
)


def _share(deltas: Tensor, mask: Tensor) -> Tensor:
    """Minus delta over the length of the response, as [batch trial 1]."""
    return (-deltas / mask.sum(-1).clamp(min=1))[..., None]


def gradient_by_log_probs(deltas, mask):
    """float [batch trial], bool [batch trial pos] -> float [batch trial pos]"""
    lengths = mask.sum(dim=-1).clamp(min=1)  # [batch trial]
    share = -deltas / (lengths * deltas.numel())
    return share[..., None] * mask


GRADIENT_BY_LOG_PROBS = Exercise(
    key="7.1",
    name="gradient_by_log_probs",
    solution=gradient_by_log_probs,
    axes={"deltas": "batch trial", "mask": TOKENS, "return": TOKENS},
    cases=(
        case(
            "two responses, of 1 and 3 tokens",
            deltas=[[1.0, -1.0]],
            mask=mask_of([[1, 3]]),
        ),
        case(
            "two groups of three",
            deltas=[[2.0, -0.5, -1.5], [0.5, 0.5, -1.0]],
            mask=mask_of([[4, 2, 1], [3, 3, 2]]),
        ),
        case(
            "all axes of the same size",
            deltas=[[1.0, -3.0, 2.0], [0.0, 4.0, -4.0], [-1.0, -1.0, 2.0]],
            mask=mask_of([[3, 1, 2], [2, 2, 3], [1, 3, 1]]),
        ),
        case(
            "a response without tokens",
            EMPTY,
            deltas=[[1.5, -1.5]],
            mask=mask_of([[2, 0]]),
        ),
        case(
            "deltas that are not centered",
            "These deltas do not sum to zero, and they are taken as they are.",
            deltas=[[3.0, 1.0], [0.5, 2.0]],
            mask=mask_of([[2, 3], [1, 2]]),
        ),
        case("one response of one token", deltas=[[2.0]], mask=mask_of([[1]])),
    ),
    words={
        "sign lost": "The sign is reversed. A loss must fall when a better response "
        "gets likelier: the gradient is negative where delta is positive.",
        "deltas.numel()": "The length is missing: a response's tokens share its "
        "weight, so each gets 1 / length of it.",
        "share[..., None]": "The mask is missing: multiply by it, so that each token "
        "of a response gets the share and padding gets 0.",
        "lengths": "The mean over responses is missing: divide by their number, "
        "deltas.numel().",
        "deltas.shape[-1]": "You divide by G alone. The mean runs over all responses "
        "of the batch: divide by deltas.numel().",
        "floor lost": EMPTY,
    },
    mistakes=(
        Mistake(
            lambda d, m: torch.zeros(m.shape),
            "You return zero everywhere: that is the value of the loss. Its gradient "
            "does not vanish where delta is not zero.",
        ),
        Mistake(
            lambda d, m: _share(d, m).expand(m.shape) / d.numel(),
            "Padding gets a gradient: multiply by the mask.",
        ),
        Mistake(
            lambda d, m: -d[..., None] * m / m.sum(),
            "This belongs to the token mean, which divides by all tokens. The "
            "sequence mean divides by each response's own length, then by N.",
        ),
        Mistake(
            lambda d, m: -d[..., None] * m / m.numel(),
            "You divide by the width of the tensor, padding included. The length of a "
            "response is what its mask sums to.",
        ),
    ),
    equivalent={
        "deltas.abs()": "only the number of deltas is used in one place",
        "factor twice": "a mask is its own square",
    },
    insight="The value of the loss is the sum of the deltas, which cancel; the "
    "gradient gives every token its own, and nothing cancels.",
)


ROUNDING = (
    "Eight rewards of 0.1 tie, but their computed mean is not quite 0.1. Compare "
    "rewards with each other: largest against smallest."
)
DIFFERENCE = (
    "A small difference is a difference: normalizing makes it as large as any. Ask "
    "whether the rewards are equal, not whether they are close."
)


def find_tied_groups(rewards):
    """float [batch trial] -> bool [batch], True where a group teaches nothing"""
    return rewards.amax(dim=-1) == rewards.amin(dim=-1)


FIND_TIED_GROUPS = Exercise(
    key="7.2",
    name="find_tied_groups",
    solution=find_tied_groups,
    axes={"rewards": "batch trial", "return": "batch"},
    cases=(
        case(
            "all right, all wrong, mixed, mixed",
            rewards=[[1.0] * 3, [0.0] * 3, [0.0, 1.0, 1.0], [2.0, 0.0, 4.0]],
        ),
        case("first and last agree", rewards=[[3.0, 1.0, 3.0], [5.0, 5.0, 5.0]]),
        case("sums to zero", rewards=[[-1.0, 1.0], [-1.0, -1.0]]),
        case("eight rewards that tie at 0.1", ROUNDING, rewards=[[0.1] * 8]),
        case(
            "eight that tie at 1000.1, beside others",
            ROUNDING,
            rewards=[[1000.1] * 8, [3.0, 1.0] * 4],
        ),
        case("the first two agree", rewards=[[2.0, 2.0, 5.0], [1.0, 1.0, 1.0]]),
        case(
            "the last two agree, and one group",
            rewards=[[0.0, 4.0, 4.0]],
        ),
        case("a tiny difference", DIFFERENCE, rewards=[[0.0, 1e-7, 0.0], [0.5] * 3]),
        case(
            "a small difference",
            DIFFERENCE,
            rewards=[[1.0, 1.001, 1.0], [0.3, 0.3, 0.3]],
        ),
    ),
    words={
        "comparison": "The other way round: these are the groups that teach something.",
        "one for all": "One answer for the whole batch. Each group needs its own: "
        "keep the batch axis.",
        "(rewards.amax(dim=-1) - rewards.amin(dim=-1)).abs() < 0.01": DIFFERENCE,
    },
    mistakes=(
        Mistake(
            lambda r: (r == 0).all(-1),
            "You find groups where all are wrong. A group where all are right teaches "
            "nothing either.",
        ),
        Mistake(
            lambda r: (r == 1).all(-1),
            "You find groups where all are right. A group where all are wrong teaches "
            "nothing either.",
        ),
        Mistake(
            lambda r: r.amax(0) == r.amin(0),
            "You compare across prompts. A group is a row: its responses lie along "
            "trial, the last axis.",
        ),
        Mistake(
            lambda r: r[..., 0] == r[..., -1],
            "You look at the first and the last response only. All of the group must "
            "agree.",
        ),
        Mistake(
            lambda r: r[..., 0] == r[..., 1],
            "You look at the first two responses only. All of the group must agree.",
        ),
    ),
    insight="Loss zero and gradient zero: a share near 1 with a low reward means a run "
    "that is really stuck.",
)


LENGTH_AXES = {"deltas": "batch trial", "lengths": "batch trial", "return": ""}


LONG_IS_GOOD = case("longer is better", deltas=[[1.0, -1.0]], lengths=[[6, 2]])
TWO_GROUPS = case(
    "two groups of three",
    deltas=[[2.0, -0.5, -1.5], [0.5, 0.5, -1.0]],
    lengths=[[4, 2, 1], [3, 9, 2]],
)
SQUARE = case(
    "as many groups as responses",
    deltas=[[1.0, -3.0, 2.0], [0.0, 4.0, -4.0], [-1.0, -1.0, 2.0]],
    lengths=[[3, 1, 2], [2, 8, 3], [1, 3, 10]],
)


def token_mean_loss_at_ratio_one(deltas, lengths):
    """float [batch trial], int [batch trial] -> scalar"""
    return -(lengths * deltas).sum() / lengths.sum()


TOKEN_MEAN_LOSS_AT_RATIO_ONE = Exercise(
    key="7.3",
    name="token_mean_loss_at_ratio_one",
    solution=token_mean_loss_at_ratio_one,
    axes=LENGTH_AXES,
    cases=(
        LONG_IS_GOOD,
        TWO_GROUPS,
        SQUARE,
        case(
            "deltas that are not centered",
            deltas=[[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]],
            lengths=[[2, 7, 4], [9, 1, 8]],
        ),
    ),
    words={
        "sign lost": "The minus sign is missing: a loss falls where good responses "
        "gain.",
        "not divided": "You sum. A token mean divides by the number of tokens.",
    },
    mistakes=(
        Mistake(
            lambda d, n: -d.mean(),
            "This is the sequence mean, and zero. In a token mean a response counts "
            "once for each of its tokens.",
        ),
        Mistake(
            lambda d, n: -(n * d).mean(),
            "You divide by the number of responses. A token mean divides by the "
            "number of tokens: lengths.sum().",
        ),
        Mistake(
            lambda d, n: -(n * d).sum() / (d.numel() * n.max()),
            "You divide by the padded size. Padding is no token: lengths.sum().",
        ),
        Mistake(
            lambda d, n: -((n * d).sum(-1) / n.sum(-1)).mean(),
            "You take a token mean in each group and average them. The token mean "
            "runs over all tokens of the batch at once.",
        ),
        Mistake(
            lambda d, n: (-(n * d).sum(0) / n.sum(0)).mean(),
            "Your sums run over the batch axis only. Sum over both axes.",
        ),
        Mistake(
            lambda d, n: -(d / n).sum() / (1 / n).sum(),
            "You divide by the length. In a token mean a longer response weighs more, "
            "not less.",
        ),
        Mistake(
            lambda d, n: -(d / n).sum() / n.sum(),
            "You divide each delta by its length. In a token mean a response counts "
            "once for each of its tokens: multiply by the length.",
        ),
        Mistake(
            lambda d, n: -(d * n / n.sum(-1, keepdim=True)).mean(),
            "You divide twice: by the tokens of each group, then by the number of "
            "responses. A token mean divides once, by the tokens of the whole batch.",
        ),
    ),
    insight="It contains no log-probability: at ratio 1 the printed loss knows nothing "
    "about the policy.",
)


def _spread(values: Tensor) -> Tensor:
    return values.float().std(correction=0)


def _by_group(deltas: Tensor, lengths: Tensor) -> Tensor:
    """The covariance inside each group, averaged."""
    pairs = zip(deltas, lengths, strict=True)
    return torch.stack([length_covariance(d, n) for d, n in pairs]).mean()


def length_covariance(deltas, lengths):
    """float [batch trial], int [batch trial] -> scalar"""
    lengths = lengths.float()
    return ((lengths - lengths.mean()) * (deltas - deltas.mean())).mean()


ONE_MEAN = "one centered factor is enough: a constant in the other adds nothing"

LENGTH_COVARIANCE = Exercise(
    key="7.4",
    name="length_covariance",
    solution=length_covariance,
    axes=LENGTH_AXES,
    cases=(
        LONG_IS_GOOD,
        TWO_GROUPS,
        case(
            "deltas that are not centered",
            deltas=[[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]],
            lengths=[[2, 7, 4], [9, 1, 8]],
        ),
        case(
            "lengths that are floats already",
            deltas=[[1.0, -1.0, 0.5]],
            lengths=[[3.0, 5.0, 2.0]],
        ),
    ),
    words={
        "difference turned": "The sign is reversed: the minus belongs to the loss. If "
        "longer is better, the covariance is positive.",
        "((lengths - lengths.mean()) * (deltas - deltas.mean())).sum()": "You sum the "
        "products. The covariance is their mean.",
    },
    mistakes=(
        Mistake(
            lambda d, n: length_covariance(d, n) * d.numel() / (d.numel() - 1),
            "You divide by N - 1: the sample covariance. The identity needs the plain "
            "mean, over N.",
        ),
        Mistake(
            lambda d, n: length_covariance(d, n) / (_spread(d) * _spread(n)),
            "This is the correlation. The covariance is not divided by the spreads.",
        ),
        Mistake(
            _by_group,
            "You centre lengths within each group. Here both means run over the whole "
            "batch.",
        ),
        Mistake(
            lambda d, n: (d * n).mean(),
            "Only right while the deltas average zero. Take the mean away from one of "
            "the two before you multiply.",
        ),
        Mistake(
            lambda d, n: ((n - n.mean()) * (d - d.mean())).mean(),
            "`lengths` holds integers, and torch takes no mean of integers. Turn them "
            "into floats first: lengths.float().",
        ),
    ),
    equivalent={
        "sign dropped": ONE_MEAN,
        "plus for minus": ONE_MEAN,
        "difference lost": ONE_MEAN,
        "sum for mean": ONE_MEAN,
        "sum along one axis": ONE_MEAN,
        "another name": ONE_MEAN,
        "first row": ONE_MEAN,
    },
    insight="That is all a token-mean loss shows on the first step.",
)


# What a log shows: column -> what it may say -> in words.
LOG = {
    "loss": {
        "zero": "a loss of 0.000 at step 0 in every row",
        "grows": "a loss above 0 at step 0 of the later rows, which is beta times KL",
    },
    "reward": {
        "rises": "a reward that rises",
        "falls": "a reward that falls",
        "stays": "a reward that stays where it was",
    },
    "gradient": {
        "some": "a gradient norm above 0 in the first row",
        "none": "a gradient norm of 0 in every row",
    },
    "ratio": {
        "leaves 1": "a ratio that leaves 1 within the first epoch",
        "one": "a ratio of exactly 1 in every row",
    },
    "entropy": {
        "slow": "an entropy still above 0.3 in the second row",
        "gone": "an entropy near 0 in the second row already",
    },
}
# Cause -> what it does to the columns, the one that gives it away first.
SIGNS = {
    "all groups tied": {
        "gradient": "none",
        "reward": "stays",
        "ratio": "one",
        "entropy": "slow",
        "loss": "zero",
    },
    "deltas with the wrong sign": {
        "reward": "falls",
        "ratio": "leaves 1",
        "gradient": "some",
        "entropy": "slow",
        "loss": "zero",
    },
    "healthy": {
        "reward": "rises",
        "ratio": "leaves 1",
        "gradient": "some",
        "entropy": "slow",
        "loss": "zero",
    },
    "KL weight far too large": {
        "loss": "grows",
        "reward": "stays",
        "ratio": "leaves 1",
        "gradient": "some",
        "entropy": "slow",
    },
    "learning rate far too large": {
        "entropy": "gone",
        "reward": "rises",
        "ratio": "leaves 1",
        "gradient": "some",
        "loss": "zero",
    },
    "no step is taken": {
        "ratio": "one",
        "gradient": "some",
        "reward": "stays",
        "entropy": "slow",
        "loss": "zero",
    },
    "old log-probs noted anew": {
        "ratio": "one",
        "gradient": "some",
        "reward": "rises",
        "entropy": "slow",
        "loss": "zero",
    },
}


def _ruled_out(run: str, cause: str) -> str:
    """The first number of a run's log that another cause would have made different."""
    seen = SIGNS[cause_of_run(run)]
    column = next(name for name, sign in SIGNS[cause].items() if sign != seen[name])
    expected, found = LOG[column][SIGNS[cause][column]], LOG[column][seen[column]]
    return f"'{cause}' would show {expected}. Run {run} shows {found}."


def _takes_for(run: str, cause: str) -> Mistake:
    """One run is taken for the victim of another cause."""

    def answer(asked: str) -> str:
        return cause if asked == run else cause_of_run(asked)

    return Mistake(answer, _ruled_out(run, cause))


def cause_of_run(run):
    """the letter of a run -> its cause, one of the list"""
    causes = {
        "A": "deltas with the wrong sign",
        "B": "no step is taken",
        "C": "healthy",
        "D": "all groups tied",
        "E": "old log-probs noted anew",
    }
    return causes[run]


CAUSE_OF_RUN = Exercise(
    key="7.5",
    name="cause_of_run",
    solution=cause_of_run,
    choice=True,
    cases=tuple(
        case(
            f"run {run}",
            "No cause of the list has this name. Copy one, letter by letter.",
            run=run,
        )
        for run in "ABCDE"
    ),
    mistakes=tuple(
        _takes_for(run, cause)
        for run in "ABCDE"
        for cause in SIGNS
        if cause != cause_of_run(run)
    ),
    equivalent={"run[:1]": "the name of a run is one letter"},
    insight="Five runs print a loss of 0.000 at step 0. The reward, the gradient norm "
    "and the ratio at the last step tell them apart.",
)
