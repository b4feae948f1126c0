"""The exercises of 10_bug_hunt on dropout, on deltas, and on what a step remembers."""

import torch
from torch import Tensor, nn

from grpo_course.algorithm.deltas import SPREAD_EPSILON, center, normalize
from grpo_course.classroom.bugs import losses, rewards
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake, numbers

GROUPS = "batch trial"


class _Model(nn.Module):
    """Its dropout draws anew at each call, and the same again for the next answer."""

    def __init__(self):
        super().__init__()
        self.layers, self.calls = losses.make_dropout_model(), 0

    def forward(self, tokens: Tensor) -> Tensor:
        self.calls += 1
        with torch.random.fork_rng():
            torch.manual_seed(self.calls)
            return self.layers(tokens)

    # Calling it and turning its dropout off is no change of an input.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Model)

    __hash__ = nn.Module.__hash__

    def __repr__(self) -> str:
        return "a model with dropout, in train mode"


def _modes(old_trains: bool, new_trains: bool):
    """Old and new scores of a model, each in train or eval mode."""

    def score(model: nn.Module, tokens: Tensor) -> Tensor:
        both = [model.train(mode)(tokens) for mode in (old_trains, new_trains)]
        log_probs = torch.stack(both).log_softmax(-1)
        index = tokens.expand(2, *tokens.shape)[..., None]
        return log_probs.gather(-1, index).squeeze(-1)

    return score


def _tracked(of_old: bool, of_new: bool):
    """Right scores, with a gradient in the old ones, the new ones, both or none."""

    def score(model: nn.Module, tokens: Tensor) -> Tensor:
        rows = _modes(False, False)(model, tokens)
        kept = zip(rows, (of_old, of_new), strict=True)
        return torch.stack([row if keep else row.detach() for row, keep in kept])

    return score


def _tokens_case(description: str, *shape: int) -> Case:
    tokens = torch.arange(torch.Size(shape).numel()).reshape(shape) % 8
    return Case(description, {"model": _Model(), "tokens": tokens})


REPAIRED_OLD_AND_NEW = Exercise(
    key="10.4",
    name="repaired_old_and_new",
    solution=losses.without_dropout,
    axes={"tokens": "batch pos", "return": "two batch pos"},
    gradient_to=("model",),
    cases=(
        _tokens_case("one response of four tokens", 1, 4),
        _tokens_case("three responses", 3, 5),
    ),
    mistakes=(
        Mistake(
            losses.dropout_in_between,
            "The new scores still come from train mode: a thinned copy of the model.",
        ),
        Mistake(
            _modes(True, True),
            "Both are thinned now, each by its own draw: the ratio is still noise. "
            "Turn dropout off for both.",
        ),
        Mistake(
            _modes(True, False),
            "Now the old scores are thinned: the copy that is compared with must "
            "be whole, too.",
        ),
        Mistake(
            lambda model, tokens: _modes(False, False)(model, tokens).exp(),
            "These are probabilities: a ratio needs their logarithms.",
        ),
        Mistake(
            _tracked(False, False),
            "The numbers are right, but the new scores carry no gradient either: "
            "nothing could be learned. Only the old ones belong under no_grad().",
        ),
        Mistake(
            _tracked(True, True),
            "The numbers are right, but the old scores carry a gradient, too: in the "
            "ratio the two cancel. Score them under no_grad(), or detach() them.",
        ),
        Mistake(
            _tracked(True, False),
            "The numbers are right, but the gradient is in the old row, and none in "
            "the new. Old comes first, without a gradient.",
        ),
    ),
    insight="One model, scored twice in the same mode: every ratio is exactly 1.",
)


def _rewards_case(description: str, rewards: list, hint: str = "") -> Case:
    return Case(description, {"rewards": torch.tensor(rewards)}, hint)


def _std(rewards: Tensor) -> Tensor:
    return rewards.std(dim=-1, keepdim=True)


def _mean(rewards: Tensor) -> Tensor:
    return rewards.mean(dim=-1, keepdim=True)


def _by_one_shift(rewards: Tensor, epsilon: float) -> Tensor:
    shifted = rewards - rewards[0, 0]
    return (shifted - _mean(shifted)) / (_std(shifted) + epsilon)


REPAIRED_NORMALIZE = Exercise(
    key="10.8",
    name="repaired_normalize",
    solution=normalize,
    axes={"rewards": GROUPS, "return": GROUPS},
    tolerance=1e-3,  # with or without an epsilon of 1e-4
    cases=(
        _rewards_case("two groups", [[3.0, 1.0, 2.0, 0.0], [8.0, 8.0, 4.0, 8.0]]),
        _rewards_case("eight rewards of 0.1", [[0.1] * 8]),
        _rewards_case("twelve rewards of 100.1", [[100.1] * 12, [100.1] * 12]),
        _rewards_case(
            "tied groups beside one that is not",
            [[1.0] * 8, [0.1] * 8, [3.0, 1.0, 2.0, 0.0] * 2],
            "Groups differ, and each needs a shift of its own: one of its own rewards.",
        ),
        _rewards_case(
            "large tied rewards beside others",
            [[1.0] * 12, [100.1] * 12, [3.0, 1.0, 2.0, 0.0] * 3],
            "Groups differ, and each needs a shift of its own: one of its own rewards.",
        ),
    ),
    mistakes=(
        Mistake(
            lambda r: r * 0 if (r == r[0, 0]).all() else rewards.tiny_epsilon(r),
            "You look whether the whole batch is tied. Each group is tied or not on "
            "its own.",
        ),
        Mistake(
            lambda r: _by_one_shift(r, 1e-8),
            "One shift for the whole batch: a tied group elsewhere is rounded as "
            "before. Take off a reward of the same group: rewards[..., :1].",
        ),
        Mistake(
            lambda r: _by_one_shift(r, 1e-4),
            "One shift for the whole batch: a tied group elsewhere is rounded as "
            "before. Take off a reward of the same group: rewards[..., :1].",
        ),
        Mistake(
            rewards.tiny_epsilon,
            "Ties are still not zero: the mean of equal numbers is rounded. Take "
            "off something first that makes tied rewards exactly 0.",
        ),
        Mistake(
            lambda r: (r - _mean(r)) / (_std(r) + 1e-4),
            "A larger epsilon alone helps where rewards are small. Rounding grows "
            "with the rewards: shift them before you average.",
        ),
        Mistake(
            lambda r: (r - r[..., :1]) / (_std(r) + SPREAD_EPSILON),
            "Shifted, but not centered: the shift comes before the mean, and the "
            "mean of the shifted rewards still has to go.",
        ),
        Mistake(
            lambda r: center(r) / _std(center(r)),
            "NaN: a tied group has no spread now, and 0/0 is not a number. An "
            "epsilon is needed as well.",
        ),
        Mistake(center, "You center, but do not divide by the spread."),
    ),
    insight="Shift first: then ties are exactly zero, however large the rewards.",
)


def converted_deltas(deltas: Tensor) -> Tensor:
    """float [batch trial], divided by the spread over G -> by that over G - 1"""
    size = deltas.shape[-1]
    return deltas * ((size - 1) / size) ** 0.5


def _deltas_case(description: str, rewards_of: Tensor) -> Case:
    return Case(description, {"deltas": rewards.population_normalize(rewards_of)})


CONVERTED_DELTAS = Exercise(
    key="10.9",
    name="converted_deltas",
    solution=converted_deltas,
    axes={"deltas": GROUPS, "return": GROUPS},
    cases=(
        _deltas_case("a group of two", torch.tensor([[1.0, 0.0]])),
        _deltas_case("three groups of four", numbers(3, 4)),
        _deltas_case("a group that is tied", torch.tensor([[2.0, 2.0, 2.0]])),
    ),
    mistakes=(
        Mistake(
            lambda d: d / converted_deltas(torch.ones_like(d)),
            "The other way round: over G - 1 the spread is larger, so the deltas "
            "become smaller.",
        ),
        Mistake(
            lambda d: d * (d.shape[-1] - 1) / d.shape[-1],
            "The factor of the squares: a spread is their root.",
        ),
        Mistake(
            lambda d: d * ((d.shape[0] - 1) / d.shape[0]) ** 0.5,
            "You count the groups. G is the size of one: the trial axis.",
        ),
        Mistake(
            lambda d: d * ((d.numel() - 1) / d.numel()) ** 0.5,
            "You count all responses of the batch. G is the size of one group.",
        ),
        Mistake(
            lambda d: d / _std(d),
            "Do not divide by the spread of the deltas: only G is needed. A tied group "
            "has no spread at all.",
        ),
    ),
    insight="One factor for all groups: 0.707 for G = 2, and near 1 for large G.",
)


def _step_case(description: str, new: list | None, last: float | None) -> Case:
    rewards_of = None if new is None else torch.tensor([new])
    return Case(description, {"rewards": rewards_of, "last": last})


REPAIRED_STEP = Exercise(
    key="10.13",
    name="repaired_step",
    solution=rewards.remembering_step,
    axes={"rewards": GROUPS},
    cases=(
        _step_case("the very first step", [3.0, 1.0], None),
        _step_case("an inner step", None, 2.0),
        _step_case("new responses", [1.0, 0.0, 0.5], 2.0),
        _step_case("an inner step after a mean of 0", None, 0.0),
        _step_case("new responses, all of them paid 0", [0.0, 0.0], 2.0),
    ),
    mistakes=(
        Mistake(
            rewards.forgetful_step,
            "Still unbound on an inner step: the name gets a value only where "
            "responses are new. What was logged last is in `last`.",
        ),
        Mistake(
            lambda r, last: 0.0 if r is None else r.mean().item(),
            "No error, and a wrong log: the reward of an inner step is not 0. It is "
            "that of the responses it trains on.",
        ),
        Mistake(
            lambda r, last: float("nan") if r is None else r.mean().item(),
            "NaN is honest, but the log has holes: the inner step trains on "
            "responses whose mean reward was logged before.",
        ),
        Mistake(
            lambda r, last: (0.0 if r is None else r.mean().item()) or last,
            "A mean of 0 is a number, and `or` takes it for nothing: test whether "
            "rewards is None.",
        ),
        Mistake(
            lambda r, last: r.mean().item() if last is None else last,
            "You keep the first rollout's number forever: new responses, new mean.",
        ),
        Mistake(
            lambda r, last: r.mean().item(),
            "rewards is None on an inner step: nothing was sampled there.",
        ),
    ),
    insight="What an inner step needs is handed from step to step, not hoped for.",
)
