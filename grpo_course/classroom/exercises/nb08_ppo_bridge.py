"""The exercises of 08_ppo_bridge."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from grpo_course import ppo
from grpo_course.classroom.exercises.shared import case
from grpo_course.classroom.old_check.exercise import Case, Exercise, Mistake

TOKEN_AXES = dict.fromkeys(("rewards", "values", "return"), "trial pos")


KNOBS = (
    "The knobs differ from case to case, beside the rewards. Is one of their numbers "
    "written into your function? Use the arguments."
)
RESPONSES = (
    case("a reward at the end", rewards=[[0.0, 0.5]], values=[[0.25, 0.3]]),
    case(
        "as many responses as tokens",
        KNOBS,
        rewards=[[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [0.0, 0.0, 3.0]],
        values=[[0.5, 1.5, 1.0], [1.0, 0.2, 0.7], [2.0, 0.4, 0.9]],
    ),
    case(
        "other knobs",
        KNOBS,
        rewards=[[0.0, 2.0, 0.0, 1.0]],
        values=[[0.3, 1.2, 0.8, 0.1]],
    ),
    case("one token", rewards=[[2.0], [1.0]], values=[[0.5], [1.5]]),
)


def _cases(**knobs: tuple[float, ...]) -> tuple[Case, ...]:
    """The same responses for both exercises; of each knob one number a case."""
    settings = [
        dict(zip(knobs, numbers, strict=True))
        for numbers in zip(*knobs.values(), strict=True)
    ]
    return tuple(
        replace(each, args=dict(each.args) | setting)
        for each, setting in zip(RESPONSES, settings, strict=True)
    )


def _after(values: Tensor, last: Tensor | None = None) -> Tensor:
    """The next value, and at the end `last`, or zero."""
    last = torch.zeros_like(values[:, :1]) if last is None else last
    return torch.cat([values[:, 1:], last], dim=1)


def _before(values: Tensor) -> Tensor:
    """The previous value, and at the start zero."""
    return torch.cat([torch.zeros_like(values[:, :1]), values[:, :-1]], dim=1)


BEYOND = (
    "You bootstrap beyond the end: after the last token there is no next value. Its "
    "TD error is reward minus value."
)


def td_errors(rewards, values, gamma):
    """float [trial pos], float [trial pos], float -> float [trial pos]"""
    after = torch.zeros_like(values)
    after[:, :-1] = values[:, 1:]
    return rewards + gamma * after - values


TD_ERRORS = Exercise(
    key="8.1",
    name="td_errors",
    solution=td_errors,
    axes=TOKEN_AXES,
    cases=_cases(gamma=(0.9, 0.6, 1.0, 0.8)),
    words={
        "after": "gamma is missing: the next value is one token away and counts gamma "
        "times itself.",
        "difference turned": "The sign is reversed: a token after which more is to be "
        "expected has a positive TD error.",
    },
    mistakes=(
        Mistake(lambda r, v, gamma: r + gamma * _after(v, v[:, -1:]) - v, BEYOND),
        Mistake(
            lambda r, v, gamma: r + gamma * v.roll(-1, 1) - v,
            "Your last token sees the first value: roll and index -1 wrap around. "
            "After the last token the next value is zero.",
        ),
        Mistake(
            lambda r, v, gamma: r - v,
            "The next value is missing. The reward still to come is judged by what "
            "the critic says one token later.",
        ),
        Mistake(
            lambda r, v, gamma: gamma * (r + _after(v)) - v,
            "You discount the token's own reward too. It is paid now: only the next "
            "value is multiplied by gamma.",
        ),
        Mistake(
            lambda r, v, gamma: r + gamma * (_after(v) - v),
            "You discount the token's own value too. Only the next value is "
            "multiplied by gamma.",
        ),
        Mistake(
            lambda r, v, gamma: r + gamma * v - _after(v),
            "You swapped the two values: add the next one, subtract the token's own.",
        ),
        Mistake(
            lambda r, v, gamma: r + gamma * _before(v) - v,
            "You shifted the wrong way: this adds the value of the token before. What "
            "is still to come is judged at the next token.",
        ),
    ),
    equivalent={
        "rewards": "both have the same shape",
    },
    insight="Each token is judged by what it changed: what it was paid, plus what is "
    "expected after it, minus what was expected before.",
)


def _recursion(errors: Tensor, factor: float, forward: bool = False) -> Tensor:
    """The running sum of TD errors, from the end unless forward."""
    errors = errors if forward else errors.flip(-1)
    sums, total = [], torch.zeros_like(errors[:, 0])
    for error in errors.unbind(-1):
        total = error + factor * total
        sums.append(total)
    stacked = torch.stack(sums, dim=-1)
    return stacked if forward else stacked.flip(-1)


def _whitened(deltas: Tensor) -> Tensor:
    return (deltas - deltas.mean()) / (deltas.std() + 1e-8)


def generalized_advantages(rewards, values, gamma, lam):
    """float [trial pos], float [trial pos], float, float -> float [trial pos]"""
    after = torch.zeros_like(values)
    after[:, :-1] = values[:, 1:]
    errors = rewards + gamma * after - values
    deltas, delta = torch.zeros_like(rewards), 0.0
    for t in reversed(range(rewards.shape[1])):
        delta = errors[:, t] + gamma * lam * delta
        deltas[:, t] = delta
    return deltas


SAME_SHAPE = "only its shape or size along an axis is used here"

GENERALIZED_ADVANTAGES = Exercise(
    key="8.2",
    name="generalized_advantages",
    solution=generalized_advantages,
    axes=TOKEN_AXES,
    cases=_cases(gamma=(0.9, 0.8, 1.0, 0.7), lam=(0.6, 1.0, 0.0, 0.5)),
    words={
        "after": "Your recursion is right, but the TD errors in it lack their gamma.",
        "order": "Your sum runs forward: a token collects the errors before it. A "
        "token is answerable for what comes after; start at the end.",
        "errors[:, t]": "These are the TD errors, which is lam = 0. Add what comes "
        "later, gamma times lam as much for each step.",
    },
    mistakes=(
        Mistake(
            lambda r, v, gamma, lam: _recursion(ppo.td_errors(r, v, gamma), lam),
            "You forgot gamma in the recursion: each step back multiplies the sum by "
            "gamma times lam.",
        ),
        Mistake(
            lambda r, v, gamma, lam: _recursion(ppo.td_errors(r, v, gamma), gamma),
            "lam is missing: this is return minus value, which is lam = 1. Each step "
            "back multiplies the sum by gamma times lam.",
        ),
        Mistake(
            lambda r, v, gamma, lam: _recursion(
                r + gamma * _after(v, v[:, -1:]) - v, gamma * lam
            ),
            BEYOND,
        ),
        Mistake(
            lambda r, v, gamma, lam: ppo.generalized_advantages(r, v, gamma, lam) + v,
            "You return advantage plus value: that is the return, which is what the "
            "critic learns. The policy needs the advantage.",
        ),
        Mistake(
            lambda r, v, gamma, lam: ppo.generalized_advantages(r, v, gamma, lam).flip(
                -1
            ),
            "The numbers are right, but still in the order in which you found them, "
            "from the last token to the first. Reverse them.",
        ),
        Mistake(
            lambda r, v, gamma, lam: _recursion(r, 1.0) - v,
            "This is return minus value without a discount, which is gamma = lam = 1. "
            "Build it from TD errors, so that both knobs can act.",
        ),
        Mistake(
            lambda r, v, gamma, lam: _whitened(
                ppo.generalized_advantages(r, v, gamma, lam)
            ),
            "Your deltas are whitened: mean zero, spread one. That comes later, over "
            "the whole batch; the critic's targets need them as they are.",
        ),
    ),
    equivalent={
        "rewards": SAME_SHAPE,
        "values": SAME_SHAPE,
        "rewards[:1]": SAME_SHAPE,
    },
    insight="One pass from the end: each token's TD error plus gamma times lam of "
    "the advantage after it.",
)


def masked_advantages(rewards, values, gamma, lam, mask, bootstrap):
    """... as 8.2; bool [trial pos], float [trial] -> float [trial pos], 0 if hidden"""
    deltas, delta, after = torch.zeros_like(rewards), torch.tensor(0.0), bootstrap
    for t in reversed(range(rewards.shape[1])):
        error = rewards[:, t] + gamma * after - values[:, t]
        delta = torch.where(mask[:, t], error + gamma * lam * delta, delta)
        after = torch.where(mask[:, t], values[:, t], after)
        deltas[:, t] = delta
    return torch.where(mask, deltas, 0.0)


def _kept_only(r, v, gamma, lam, mask, bootstrap, first=0.0, factor=None):
    """GAE over the kept tokens; `first` is the sum that the last one adds to."""
    deltas, delta, after = torch.zeros_like(r), torch.as_tensor(first), bootstrap
    for t in reversed(range(r.shape[1])):
        here = r[:, t] + gamma * after - v[:, t] + gamma * lam * delta
        missed = delta if factor is None else factor * delta
        delta = torch.where(mask[:, t], here, missed)
        after = torch.where(mask[:, t], v[:, t], after)
        deltas[:, t] = delta
    return deltas * mask


def _every_token(r, v, gamma, lam, mask, bootstrap):
    """GAE in which what the mask hides is a step like the others."""
    return _recursion(r + gamma * _after(v, bootstrap[:, None]) - v, gamma * lam) * mask


def _until_a_hole(r, v, gamma, lam, mask, bootstrap):
    """GAE that begins anew, with the bootstrap, before each hidden token."""
    deltas, delta, after = torch.zeros_like(r), torch.zeros(len(r)), bootstrap
    for t in reversed(range(r.shape[1])):
        error = r[:, t] + gamma * after - v[:, t]
        delta = torch.where(mask[:, t], error + gamma * lam * delta, 0.0)
        after = torch.where(mask[:, t], v[:, t], bootstrap)
        deltas[:, t] = delta
    return deltas


HOLE = (
    "A hidden token is a step in your recursion. The token before it must see the "
    "value and the sum of the next token that counts: carry both on where the mask is "
    "False."
)
WHERE_CUT = (
    "The bootstrap is missing where a response was cut off: the value after its last "
    "token is bootstrap, which is 0 for those that ended."
)

MASKED_ADVANTAGES = Exercise(
    key="8.3",
    name="masked_advantages",
    solution=masked_advantages,
    axes=TOKEN_AXES | {"mask": "trial pos", "bootstrap": "trial"},
    cases=(
        case(
            "one that ended beside one that was cut off",
            rewards=[[0.0, 0.0, 2.0], [0.0, 0.5, 1.0]],
            values=[[1.0, 0.8, 1.5], [0.7, 1.2, 0.9]],
            gamma=0.9,
            lam=0.6,
            mask=[[True, True, True], [True, True, True]],
            bootstrap=[0.0, 1.4],
        ),
        case(
            "padding after a short response",
            rewards=[[0.0, 2.0, 0.0, 0.0], [0.3, 0.0, 1.0, 0.0]],
            values=[[1.0, 0.8, 0.6, 0.2], [0.7, 1.2, 0.9, 5.0]],
            gamma=0.8,
            lam=0.7,
            mask=[[True, True, False, False], [True, True, True, False]],
            bootstrap=[0.0, 1.1],
        ),
        case(
            "the answer of a tool in the middle",
            rewards=[[0.0, 0.0, 0.0, 0.4, 2.0], [0.0, 1.0, 0.0, 0.0, 1.0]],
            values=[[1.0, 3.0, 2.0, 0.8, 1.5], [0.5, 0.6, 0.9, 4.0, 0.3]],
            gamma=0.7,
            lam=0.5,
            mask=[[True, False, False, True, True], [True, True, True, False, True]],
            bootstrap=[0.0, 0.6],
        ),
        case(
            "one response",
            rewards=[[0.0, 1.0, 0.5]],
            values=[[0.4, 0.9, 0.2]],
            gamma=0.9,
            lam=0.8,
            mask=[[True, False, True]],
            bootstrap=[0.7],
        ),
        case(
            "a response without any token",
            rewards=[[0.0, 0.0], [1.0, 0.5]],
            values=[[1.0, 0.8], [0.5, 0.4]],
            gamma=1.0,
            lam=1.0,
            mask=[[False, False], [True, True]],
            bootstrap=[0.0, 2.0],
        ),
    ),
    words={
        "after": "gamma is missing: what is expected after a token counts gamma times "
        "itself, bootstrap included.",
        "order": "Your recursion runs forward: start at the last token.",
    },
    mistakes=(
        Mistake(
            lambda r, v, gamma, lam, mask, bootstrap: _kept_only(
                r, v, gamma, lam, mask, torch.zeros_like(bootstrap)
            ),
            WHERE_CUT,
        ),
        Mistake(_every_token, HOLE),
        Mistake(
            lambda r, v, gamma, lam, mask, bootstrap: _every_token(
                r * mask, v * mask, gamma, lam, mask, bootstrap
            ),
            HOLE,
        ),
        Mistake(
            lambda r, v, gamma, lam, mask, bootstrap: _kept_only(
                r, v, gamma, lam, mask, bootstrap, factor=gamma * lam
            ),
            "A hidden token costs a factor of gamma times lam in your sum. Only tokens "
            "that count are steps: carry the sum on as it is.",
        ),
        Mistake(
            lambda r, v, gamma, lam, mask, bootstrap: _kept_only(
                r, v, gamma, lam, mask, bootstrap, first=bootstrap
            ),
            "The bootstrap enters twice: as the next value and as the sum to begin "
            "with. It is a value; the sum begins with zero.",
        ),
        Mistake(
            lambda r, v, gamma, lam, mask, bootstrap: _kept_only(
                r, v, gamma, lam, mask, torch.zeros_like(bootstrap), first=bootstrap
            ),
            "Your sum begins with the bootstrap. It is a value, which belongs into the "
            "last TD error; the sum begins with zero.",
        ),
        Mistake(
            _until_a_hole,
            "Your recursion begins anew at a hole, as if the response ended before the "
            "tool answered. Carry the next value and the sum across it.",
        ),
    ),
    equivalent={
        "values": SAME_SHAPE,
        "rewards[:1]": SAME_SHAPE,
        "mask": SAME_SHAPE,
        "mask * deltas": "no number is infinite here",
    },
    insight="Only the policy's own tokens are steps. What follows the last one is zero "
    "where the response ended, and what the critic expects where it was cut off.",
)


def _of_gap(loss: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """A loss of the difference of two rewards, mean over the pairs."""
    return lambda chosen, rejected: loss(chosen - rejected).mean()


NO_LOG = (
    "The logarithm is missing. The sigmoid is the probability of the choice; the "
    "loss is minus its logarithm, which does not stop pulling at a wrong pair."
)


def bradley_terry_loss(chosen, rejected):
    """float [pair], float [pair] -> float []"""
    return -torch.nn.functional.logsigmoid(chosen - rejected).mean()


BRADLEY_TERRY_LOSS = Exercise(
    key="8.4",
    name="bradley_terry_loss",
    solution=bradley_terry_loss,
    axes={"chosen": "pair", "rejected": "pair"},
    gradient_to=("chosen", "rejected"),
    cases=(
        case("three pairs", chosen=[1.0, 0.5, -1.0], rejected=[0.0, 1.5, -3.0]),
        case("rewards that tie", chosen=[2.0, 2.0], rejected=[2.0, 2.0]),
        case("one pair", chosen=[0.5], rejected=[0.25]),
        case(
            "a pair that the model gets very wrong",
            "The sigmoid of a very negative number is 0, and its logarithm is "
            "infinite. torch.nn.functional.logsigmoid does both in one.",
            chosen=[-200.0],
            rejected=[200.0],
        ),
    ),
    words={
        "sign lost": "The sign is missing: this is the log-likelihood, which should "
        "grow. A loss is minus that.",
        "difference turned": "You swapped the two: this teaches that the rejected "
        "response is better. It is chosen minus rejected.",
        "log lost": NO_LOG,
        "sum for mean": "You sum over the pairs. Take the mean, or the learning rate "
        "would depend on how many pairs there are.",
        "torch.nn.functional.logsigmoid(chosen - rejected)": "You return one number "
        "for each pair. The loss is their mean.",
    },
    mistakes=(
        Mistake(_of_gap(lambda gap: 1 - gap.sigmoid()), NO_LOG),
        Mistake(
            _of_gap(lambda gap: gap.square()),
            "You squared the difference: this pulls both rewards together. The chosen "
            "one should be above the rejected one.",
        ),
        Mistake(
            _of_gap(lambda gap: -gap),
            "This is minus the difference alone: nothing ever stops it from growing. "
            "Take -log sigmoid of the difference.",
        ),
    ),
    equivalent={
        "mean left open": "there is only one axis",
    },
    insight="Only the difference counts, so a constant added to all rewards changes "
    "nothing, and pairs that are right already pull little.",
)
