"""The formulas against an oracle in plain Python, and what numbers alone do not show.

The oracle works on lists of floats and knows nothing of the package; its gradients are
central differences. At the end bugs are planted, and it sees each of them.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean, stdev

import numpy as np
import pytest
import torch

from grpo_course import formulas, loop
from grpo_course.formulas import (
    AGGREGATIONS,
    DELTA_MODES,
    KL_ESTIMATORS,
    LOSS_MODES,
    RATIO_LEVELS,
    aggregate,
    compute_deltas,
    compute_kl_penalty,
    compute_loss,
    exact_kl,
    kl_reward,
    kl_values,
    loss_report,
    sampler_weights,
)
from grpo_course.loop import adapted_beta

# The oracle: deltas

# One group and the batch it stands in -> its deltas, as the papers write them.
CLOSED_FORMS = {
    "rewards": lambda g, _: g,
    "centered_rewards": lambda g, _: centered(g),
    "normalized_rewards": lambda g, _: [(r - mean(g)) / (stdev(g) + 1e-4) for r in g],
    "max_rewards": lambda g, _: [r if r == max(g) else 0 for r in g],
    "centered_max_rewards": lambda g, _: [r - mean(g) if r == max(g) else 0 for r in g],
    "leave_one_out": lambda g, _: [r - (sum(g) - r) / (len(g) - 1) for r in g],
    "batch_normalized_rewards": lambda g, batch: [
        (r - mean(g)) / (stdev(flat(batch)) + 1e-4) for r in g
    ],
    "whitened_rewards": lambda g, batch: [
        (r - mean(g)) / (stdev(flat(map(centered, batch))) + 1e-4) for r in g
    ],
    "softmax_rewards": lambda g, _: softmax(g),
    "centered_softmax_rewards": lambda g, _: centered(softmax(g)),
}


def softmax(group):
    return [math.exp(r) / sum(math.exp(s) for s in group) for r in group]


def centered(group):
    return [r - mean(group) for r in group]


def flat(batch):
    return [r for group in batch for r in group]


# The oracle: losses, KL and means

LOW, HIGH, BOUND, MAX_LENGTH = 0.2, 0.4, 1.6, 7
# Two prompts, two responses each, up to three tokens; the last response is empty.
NEW = [[-1.0, -0.9, -2.0], [-0.3, -1.2, -0.4], [-1.5, -0.7], []]
OLD = [[-1.35, -1.2, -1.6], [-0.35, -0.7, -1.0], [-1.45, -1.2], []]
REF = [[-0.6, -1.4, -1.7], [-0.9, -0.8, -1.1], [-2.1, -0.2], []]
DELTAS = [1.0, -0.5, 2.0, -3.0]
SAPO_BELOW = torch.tensor(1.05).item()  # a number of float32, as TRL has it
DELTA_ROWS = [[delta] * len(row) for delta, row in zip(DELTAS, NEW, strict=True)]


def each_token(function, *columns):
    rows = zip(*columns, strict=True)
    return [[function(*tokens) for tokens in zip(*row, strict=True)] for row in rows]


def oracle_ratios(level, new, old):
    """Of each token, or one for a response: the geometric mean of its tokens'."""
    ratios = each_token(lambda a, b: math.exp(a) / math.exp(b), new, old)
    if level == "token":
        return ratios
    return [[math.prod(row) ** (1 / max(1, len(row)))] * len(row) for row in ratios]


def oracle_token_loss(mode, new, ratio, frozen, delta):
    """`frozen` is the ratio where no gradient flows through it."""
    if mode == "naive":
        return -delta * new
    if mode == "unclipped":
        return -delta * ratio
    if mode == "cispo":
        return -min(frozen, 1 + HIGH) * delta * new
    if mode == "sapo":
        tau = 1.0 if delta > 0 else SAPO_BELOW
        return -4 / tau / (1 + math.exp(-tau * (ratio - 1))) * delta
    most = min(ratio, BOUND) if mode == "dual_clipped" else ratio
    return -min(delta * most, delta * min(max(ratio, 1 - LOW), 1 + HIGH))


def oracle_kl(estimator, new, ref, old):
    quotient = math.exp(ref) / math.exp(new)
    k3 = quotient - 1 - math.log(quotient)
    ratio = math.exp(new) / math.exp(old)
    values = {"k1": new - ref, "k2": (new - ref) ** 2 / 2, "k3": k3}
    return (values | {"corrected_k3": ratio * k3})[estimator]


def oracle_mean(name, rows, max_length=MAX_LENGTH):
    total, tokens = sum(map(sum, rows)), sum(map(len, rows))
    if name == "token_mean":
        return total / tokens
    if name == "constant":
        return total / (len(rows) * max_length)
    if name == "sequence_sum":
        return total / len(rows)
    return sum(sum(row) / len(row) for row in rows if row) / len(rows)


def oracle_gradient(function):
    """Central differences of function(rows), in the order of the tokens."""
    gradient = []
    for i, row in enumerate(NEW):
        for j in range(len(row)):
            ends = []
            for step in (1e-5, -1e-5):
                rows = [list(r) for r in NEW]
                rows[i][j] += step
                ends.append(function(rows))
            gradient.append((ends[0] - ends[1]) / 2e-5)
    return gradient


# The package held against it. Each function is looked up when it is called, so that a
# planted one is found.


def padded(rows):
    """Lists as [batch trial pos], with NaN in the padding: nothing may read it."""
    full = [row + [math.nan] * (3 - len(row)) for row in rows]
    return torch.tensor(full, dtype=torch.float64).reshape(2, 2, 3)


MASK = ~padded(NEW).isnan()
EACH = torch.tensor(DELTAS, dtype=torch.float64).reshape(2, 2)


def close(given, expected):
    expected = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(given.detach(), expected, rtol=0, atol=1e-9)


def agree(compute, oracle):
    """Same value, same gradient."""
    leaf = padded(NEW).requires_grad_()
    value = compute(leaf)
    close(value, oracle(NEW))
    (gradient,) = torch.autograd.grad(value, leaf)
    close(gradient[MASK], oracle_gradient(oracle))
    assert (gradient[~MASK] == 0).all()


TIES = [0.0, 0.1, -0.1, 0.7, 1.2, 1 / 3, 1e-6, 1e6, 1e6 + 0.1, 1e-30, 2.0, -7.3]
WITHOUT_BASELINE = {"rewards", "max_rewards", "softmax_rewards"}
BATCHES = (
    [[5.0, 3.0, 3.0, 2.0], [2.0, 2.0, 2.0, 2.0]],
    [[0.0, 1.0]],
    [[1.0, 0.0, 0.0, 0.0, 1.0], [0.5, -2.0, 3.0, 3.0, 0.0]],
)


def check_deltas(mode):
    for batch in BATCHES:
        rewards = torch.tensor(batch, dtype=torch.float64)
        expected = [CLOSED_FORMS[mode](group, batch) for group in batch]
        close(formulas.compute_deltas(rewards, mode), expected)
        assert rewards.tolist() == batch  # untouched


def check_ties(mode):
    """Exactly zero with a baseline, alone or beside others; a push without."""
    for dtype in (torch.float32, torch.float64):
        for size in (2, 3, 5, 6, 7, 10, 13, 16, 23, 32):
            tied = torch.tensor(TIES, dtype=dtype)[:, None].expand(-1, size)
            other = torch.arange(float(size), dtype=dtype).expand(len(TIES), size)
            for rewards in (tied[:, None], torch.stack([tied, other], 1)):
                deltas = formulas.compute_deltas(rewards, mode)[:, 0]
                if mode not in WITHOUT_BASELINE:
                    assert (deltas == 0.0).all()
    if mode in WITHOUT_BASELINE:
        assert (formulas.compute_deltas(torch.full((2, 4), 0.7), mode) > 0).all()


def check_mean(name):
    agree(
        lambda leaf: formulas.aggregate(leaf, MASK, name, max_length=MAX_LENGTH),
        partial(oracle_mean, name),
    )
    of_numbers = formulas.aggregate(padded(NEW), MASK.double(), name)
    close(of_numbers, oracle_mean(name, NEW, max_length=3))  # the pos axis
    whole = torch.arange(12.0).reshape(2, 2, 3)
    expected = oracle_mean(name, whole.flatten(0, 1).tolist(), max_length=3)
    assert formulas.aggregate(whole, None, name) == expected


def check_loss(mode, level):
    clip = {"epsilon": LOW, "epsilon_high": HIGH, "dual_clip": BOUND}
    frozen, token = oracle_ratios(level, NEW, OLD), partial(oracle_token_loss, mode)
    for name in AGGREGATIONS:
        how = {"aggregation": name, "max_length": MAX_LENGTH, "ratio_level": level}
        agree(
            lambda leaf, how=how: formulas.compute_loss(
                leaf, EACH, mode, padded(OLD), mask=MASK, **how, **clip
            ),
            lambda new, name=name: oracle_mean(
                name,
                each_token(
                    token, new, oracle_ratios(level, new, OLD), frozen, DELTA_ROWS
                ),
            ),
        )


def check_penalty(estimator):
    token = partial(oracle_kl, estimator)
    for name in AGGREGATIONS:
        how = {"aggregation": name, "max_length": MAX_LENGTH}
        agree(
            lambda leaf, how=how: formulas.compute_kl_penalty(
                leaf, padded(REF), estimator, MASK, old_log_probs=padded(OLD), **how
            ),
            lambda new, name=name: oracle_mean(name, each_token(token, new, REF, OLD)),
        )


def check_sampler_weights():
    """Three tokens are above the cap; padding, NaN in both, has a weight of one."""
    weights = formulas.sampler_weights(padded(NEW), padded(OLD), 1.3, MASK)
    ratios = oracle_ratios("token", NEW, OLD)
    close(weights[MASK], [min(ratio, 1.3) for row in ratios for ratio in row])
    assert (weights[~MASK] == 1).all()


def check_report():
    report = formulas.loss_report(
        padded(NEW), EACH, padded(OLD), mask=MASK, epsilon=LOW, epsilon_high=HIGH
    )
    ratios = flat(oracle_ratios("token", NEW, OLD))
    # ratios 1.42 1.35 .67 | 1.05 .61 1.82 | .95 1.65; deltas + | - | +
    close(report["clip_fraction_high"], 2 / 8)
    close(report["clip_fraction_low"], 1 / 8)
    close(report["gradient_fraction"], 5 / 8)
    close(report["ratio_min"], min(ratios))
    close(report["ratio_max"], max(ratios))
    close(report["ratio_mean"], mean(ratios))
    close(report["old_kl"], mean(ratio - 1 - math.log(ratio) for ratio in ratios))


def check_other_kl():
    p, q = [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]
    exact = formulas.exact_kl(*torch.tensor([p, q], dtype=torch.float64).log())
    close(exact, sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))
    inside = formulas.kl_reward(EACH, padded(NEW), padded(REF), 0.3, MASK)
    sums = map(sum, each_token(lambda new, ref: new - ref, NEW, REF))
    expected = [delta - 0.3 * k1 for delta, k1 in zip(DELTAS, sums, strict=True)]
    close(inside.flatten(), expected)


def check_beta():
    """Ziegler et al. 2019, 2.2, and verl's controller, each in its own words."""
    for kl in (0.0, 0.05, 0.085, 0.1, 0.11, 0.13, 9.0):
        by_paper = 0.5 * (1 + 0.1 * min(max((kl - 0.1) / 0.1, -0.2), 0.2))
        assert math.isclose(loop.adapted_beta(0.5, kl, target=0.1), by_paper)
        share = 512 / 10_000  # samples over horizon
        by_verl = 0.5 * (1 + float(np.clip(kl / 0.1 - 1, -0.2, 0.2)) * share)
        beta = loop.adapted_beta(0.5, kl, target=0.1, gain=share)
        assert math.isclose(beta, by_verl)


CHECKS = {  # those that take longest come last
    **{f"mean: {name}": partial(check_mean, name) for name in AGGREGATIONS},
    "sampler weights": check_sampler_weights,
    "report": check_report,
    "other KL": check_other_kl,
    "beta": check_beta,
    **{f"deltas: {m}": partial(check_deltas, m) for m in DELTA_MODES},
    **{f"KL: {name}": partial(check_penalty, name) for name in KL_ESTIMATORS},
    **{
        f"loss: {mode}, {level}": partial(check_loss, mode, level)
        for mode in LOSS_MODES
        for level in RATIO_LEVELS
    },
    **{f"ties: {m}": partial(check_ties, m) for m in DELTA_MODES},
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_package_agrees_with_the_oracle(check):
    check()


# The planted bugs


def clipped_with(surrogate):
    """A clipped loss whose surrogate is a function of r, c = clip(r), delta."""

    def broken(ratio, deltas, *, epsilon, epsilon_high, **_):
        return -surrogate(ratio, ratio.clamp(1 - epsilon, 1 + epsilon_high), deltas)

    return broken


def drop_empty(kept, mask, _):
    lengths = mask.sum(-1)
    return (kept.sum(-1) / lengths.clamp(min=1)).sum() / (lengths > 0).sum()


DELTA, MODE = formulas.DELTA_MODES, formulas.LOSS_MODES
MEAN, KL = formulas.AGGREGATIONS, formulas.KL_ESTIMATORS
SETTINGS, RATIO = formulas.clip_settings, formulas.compute_ratio
REPORT, REWARD = formulas.loss_report, formulas.kl_reward
WEIGHTS, k3 = formulas.sampler_weights, formulas.k3
exp, low_of = torch.exp, torch.minimum
BUGS = [  # one at least for each of the checks
    # deltas: x = rewards
    ("mean without the first reward taken off", DELTA, "centered_rewards",
        lambda x: x - x.mean(-1, keepdim=True)),
    ("spread over G", DELTA, "normalized_rewards",
        lambda x: formulas.center(x) / (x.std(-1, correction=0, keepdim=True) + 1e-4)),
    ("baseline of the batch", DELTA, "centered_rewards", lambda x: x - x.mean()),
    # losses: a = log pi, b = log pi_old, d = delta, r = ratio, c = clipped ratio
    ("ratio detached", formulas, "compute_ratio",
        lambda a, b, *_: exp(a - b).detach() + 0 * a),
    ("sequence ratio over padding", formulas, "compute_ratio",
        lambda a, b, mask=None, level="token": RATIO(a, b, None, level)),
    ("no minus", MODE, "clipped", clipped_with(lambda r, c, d: -low_of(r * d, c * d))),
    ("no min", MODE, "clipped", clipped_with(lambda r, c, d: c * d)),
    ("min, then delta: wrong side for negative deltas", MODE, "clipped",
        clipped_with(lambda r, c, d: low_of(r, c) * d)),
    ("epsilon_high ignored", formulas, "clip_settings",
        lambda mode, epsilon=LOW, epsilon_high=LOW, **more:
            SETTINGS(mode, epsilon, **more)),
    ("dual clip: no second bound", MODE, "dual_clipped", formulas.clipped_loss),
    ("cispo: weight attached", MODE, "cispo",
        lambda r, d, *, log_probs, epsilon_high, **_:
            -r.clamp(max=1 + epsilon_high) * d * log_probs),
    ("sampler weights without their mask", formulas, "sampler_weights",
        lambda a, b, cap, _: WEIGHTS(a.nan_to_num(-1), b.nan_to_num(-2), cap)),
    ("padding reaches the ratio", formulas, "hide", lambda values, mask: values),
    ("report: sides swapped", formulas, "loss_report",
        lambda a, d, b, **options: REPORT(a, -d, b, **options)),
    # aggregation: k = values, zero outside the mask m
    ("sequence for token mean", MEAN, "token_mean", formulas.sequence_mean),
    ("empty response not counted", MEAN, "sequence_mean", drop_empty),
    ("pos axis for max_length", MEAN, "constant", lambda k, m, _: k.sum() / m.numel()),
    # KL: a = log pi, b = log ref
    ("k3 upside down", KL, "k3", lambda a, b, **_: torch.expm1(a - b) - (a - b)),
    ("corrected k3: ratio detached", KL, "corrected_k3",
        lambda a, b, old_log_probs: exp(a - old_log_probs).detach() * k3(a, b)),
    ("exact KL reversed", formulas, "exact_kl",
        lambda a, b: (b.exp() * (b - a)).sum(-1)),
    ("KL reward: mean for sum", formulas, "kl_reward",
        lambda r, a, b, beta, m: r - (r - REWARD(r, a, b, beta, m)) / 3),
    ("adaptive beta: no gain", loop, "adapted_beta",
        lambda beta, kl, target, gain=0.1: beta * kl / target),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "key", "broken"), [bug[1:] for bug in BUGS],
                         ids=[bug[0] for bug in BUGS])  # fmt: skip
def test_a_planted_bug_is_caught(monkeypatch, owner, key, broken):
    plant = monkeypatch.setitem if isinstance(owner, dict) else monkeypatch.setattr
    plant(owner, key, broken)
    with pytest.raises(AssertionError):
        for check in CHECKS.values():
            check()


# Seeds beside each other, and what stands in the padding, change nothing


@dataclass
class World:
    """Some log-probs, deltas centred in each group, and a mask with empty rows."""

    new: torch.Tensor
    old: torch.Tensor
    ref: torch.Tensor
    deltas: torch.Tensor
    mask: torch.Tensor

    def seed(self, number):
        return World(*(column[number] for column in vars(self).values()))


def drawn(*shape, number=0):
    """[seed batch trial pos]"""
    generator = torch.Generator().manual_seed(number)
    draw = {"generator": generator, "dtype": torch.float64}
    old = -4 - torch.rand(shape, **draw) * 3  # so that no ratio makes log pi positive
    new = old + torch.randn(shape, **draw)
    ref = old + torch.randn(shape, **draw)
    deltas = torch.randn(shape[:-1], **draw)
    lengths = torch.randint(0, shape[-1] + 1, shape[:-1], generator=generator)
    mask = torch.arange(shape[-1]) < lengths[..., None]
    return World(new, old, ref, deltas - deltas.mean(-1, keepdim=True), mask)


SHAPES = [(1, 1, 1, 1), (2, 3, 2, 4), (3, 1, 3, 2), (2, 2, 1, 5)]
FAR = {"dual_clip": 1.5}  # so that some ratios are above it


def loss_of(mode, world, **knobs):
    return compute_loss(
        world.new, world.deltas, mode, world.old, mask=world.mask, **FAR | knobs
    )


def report_of(mode, world, **knobs):
    return loss_report(
        world.new,
        world.deltas,
        world.old,
        mode=mode,
        mask=world.mask,
        **FAR | knobs,
    )


def penalty_of(estimator, world):
    return compute_kl_penalty(
        world.new, world.ref, estimator, world.mask, old_log_probs=world.old
    )


def all_of_report(world):
    return torch.stack([*report_of("clipped", world).values()], -1)


MEASURES = {
    **{m: lambda world, m=m: aggregate(world.new, world.mask, m) for m in AGGREGATIONS},
    **{mode: partial(loss_of, mode) for mode in LOSS_MODES},
    **{name: partial(penalty_of, name) for name in KL_ESTIMATORS},
    "report": all_of_report,
}


def with_gradient(measure, world):
    leaf = world.new.clone().requires_grad_()
    value = measure(replace(world, new=leaf))
    if not value.requires_grad:
        return value, torch.zeros_like(leaf)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_seeds_stay_apart_and_padding_is_never_read(measure, shape):
    same = {"rtol": 0, "atol": 1e-12, "equal_nan": True}
    for number in range(5):
        world = drawn(*shape, number=number)
        value, gradient = with_gradient(measure, world)
        assert (gradient[~world.mask] == 0).all()
        for junk in (math.nan, -math.inf, 1e30):
            columns = {"new": world.new, "old": world.old, "ref": world.ref}
            dirty = {k: torch.where(world.mask, x, junk) for k, x in columns.items()}
            found = with_gradient(measure, replace(world, **dirty))
            torch.testing.assert_close(found, (value, gradient), **same)
        for seed in range(shape[0]):
            alone = with_gradient(measure, world.seed(seed))
            torch.testing.assert_close((value[seed], gradient[seed]), alone, **same)


@pytest.mark.parametrize("mode", DELTA_MODES)
def test_deltas_of_any_leading_axes_and_numbers(mode):
    rewards = torch.randn(2, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    alone = [[compute_deltas(one, mode) for one in seeds] for seeds in rewards]
    expected = torch.stack([torch.stack(seeds) for seeds in alone])
    torch.testing.assert_close(compute_deltas(rewards, mode), expected)
    whole = torch.tensor([[1, 0, 0, 1], [0, 0, 0, 1]])
    for rewards in (whole, whole.bool()):
        deltas = compute_deltas(rewards, mode)
        assert deltas.dtype == torch.float32
        assert torch.equal(deltas, compute_deltas(whole.float(), mode))


@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_no_token_at_all_is_zero(mode):
    values = torch.full((1, 2, 3), math.inf, requires_grad=True)
    result = aggregate(values, torch.zeros(1, 2, 3), mode)
    result.backward()
    assert result == 0 and (values.grad == 0).all()


# Losses: at the old policy, far from it, and what the report says of them


def one_token(ratio, delta):
    """One prompt, one response, one token with that ratio."""
    old = torch.full((1, 1, 1), -3.0, dtype=torch.float64)
    deltas = torch.tensor([[delta]], dtype=torch.float64)
    return old + math.log(ratio), deltas, old


@pytest.mark.parametrize("epsilon", [1.0, 1.5, 5.0])
def test_an_epsilon_from_1_on_leaves_no_lower_bound(epsilon):
    """Down to a ratio of zero the loss is the unclipped one; above, it is cut."""
    for ratio in (1e-30, 0.1, 0.9, 1 + epsilon / 2, 2 + epsilon):
        for delta in (1.0, -1.0):
            new, deltas, old = one_token(ratio, delta)
            loss = compute_loss(new, deltas, "clipped", old, epsilon=epsilon)
            bound = min(ratio, 1 + epsilon)
            assert loss.item() == pytest.approx(-min(ratio * delta, bound * delta))
            report = loss_report(new, deltas, old, epsilon=epsilon)
            assert report["clip_fraction_low"] == 0
            pulls = ratio < 1 + epsilon or delta < 0
            assert report["gradient_fraction"] == pulls


@pytest.mark.parametrize("level", RATIO_LEVELS)
@pytest.mark.parametrize("mode", LOSS_MODES)
def test_a_report_is_that_of_the_gradient(mode, level, monkeypatch):
    """Also of a loss of your own: its clip is not known by its name."""
    known = LOSS_MODES[mode]
    monkeypatch.setitem(LOSS_MODES, "mine", lambda *given, **by: known(*given, **by))
    for shape in SHAPES:
        world = drawn(*shape)
        _, gradient = with_gradient(partial(loss_of, mode, ratio_level=level), world)
        pulls = (gradient != 0).sum((-3, -2, -1)) / world.mask.sum((-3, -2, -1))
        report = report_of(mode, world, ratio_level=level)
        seen = report["gradient_fraction"].float()
        torch.testing.assert_close(seen, pulls, equal_nan=True)  # NaN: without a token
        mine = report_of("mine", world, ratio_level=level)
        torch.testing.assert_close(mine, report, equal_nan=True)


def test_a_loss_of_your_own_without_a_gradient_pulls_nobody(monkeypatch):
    monkeypatch.setitem(LOSS_MODES, "mine", lambda ratio, deltas, **_: -deltas)
    report = loss_report(*one_token(9.0, 1.0), mode="mine")
    assert report["gradient_fraction"] == 0 and report["clip_fraction_high"] == 1


def test_a_report_reads_only_the_mask_and_old_kl_only_tokens():
    world = drawn(2, 3, 4)
    ratio = (world.new - world.old).exp()
    expected = (ratio - 1 - ratio.log())[world.mask].mean()
    report = report_of("clipped", world, ratio_level="sequence")
    torch.testing.assert_close(report["old_kl"], expected)
    for ratio in (0.5, 1.5):  # padding, whose ratio is 1, must not pull the range there
        new, deltas, old = (each.expand(1, 2, 3) for each in one_token(ratio, 0.0))
        mask = torch.tensor([[[1, 1, 0], [1, 0, 0]]])
        report = loss_report(new, deltas, old, mask=mask)
        for name in ("ratio_min", "ratio_max", "ratio_mean"):
            assert report[name].item() == pytest.approx(ratio)
    nothing = report_of("clipped", replace(world, mask=world.mask & False))
    assert len(nothing) == 7 and all(value.isnan() for value in nothing.values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("level", RATIO_LEVELS)
@pytest.mark.parametrize("mode", LOSS_MODES)
def test_a_token_far_likelier_than_it_was_leaves_the_gradient_finite(
    mode, level, dtype
):
    for far in (-95.0, -3e4):
        old = torch.tensor([[[far], [far], [far]]], dtype=dtype)
        new = torch.full_like(old, -1.0).requires_grad_()
        deltas = torch.tensor([[1.0, -1.0, 0.0]], dtype=dtype)
        loss = compute_loss(new, deltas, mode, old, ratio_level=level)
        loss.backward()
        assert loss.isfinite() and new.grad.isfinite().all()
        report = loss_report(new, deltas, old, mode=mode, ratio_level=level)
        assert all(value.isfinite() for value in report.values())


# Half precision: 65504 is the largest number, so a sum soon is infinite.

LARGE = torch.tensor([[60000.0, 50000.0, 40000.0, 0.0]])
HALVES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])


@HALVES
@pytest.mark.parametrize("mode", DELTA_MODES)
def test_large_rewards_in_half_precision_give_the_deltas_of_float32(mode, dtype):
    deltas = compute_deltas(LARGE.to(dtype), mode)
    assert deltas.dtype == torch.float32 and deltas.isfinite().all()
    assert torch.equal(deltas, compute_deltas(LARGE.to(dtype).float(), mode))


@HALVES
@pytest.mark.parametrize("name", ["sequence_mean", "token_mean", "constant"])
def test_a_mean_of_large_losses_in_half_precision_is_finite(name, dtype):
    losses = LARGE[None].to(dtype).requires_grad_()
    mean = aggregate(losses, aggregation=name)
    mean.backward()
    assert mean.dtype == torch.float32
    assert mean.item() == losses.detach().float().mean().item()
    assert (losses.grad == 0.25).all()


def test_a_delta_for_each_token_weighs_and_gets_no_gradient():
    world = drawn(2, 3, 4)
    spread = world.deltas[..., None].expand_as(world.new).clone().requires_grad_()
    for mode in LOSS_MODES:
        leaf = world.new.clone().requires_grad_()
        loss = loss_of(mode, replace(world, new=leaf, deltas=spread))
        loss.backward()
        assert loss == loss_of(mode, world)
        assert spread.grad is None and leaf.grad is not None


# KL: which gradients the estimators have on average, exactly, by enumeration


EXACT = {"rtol": 0, "atol": 1e-10}


def two_policies(number=0):
    """Logits of a policy, and log-probs of a reference, in float64."""
    generator = torch.Generator().manual_seed(number)
    logits, ref = torch.randn(2, 6, generator=generator, dtype=torch.float64)
    return logits.requires_grad_(), ref.log_softmax(-1)


def gradient_of(value, logits):
    return torch.autograd.grad(value, logits, retain_graph=True)[0]


@pytest.mark.parametrize("number", range(3))
def test_expected_values_and_gradients_as_a_loss(number):
    logits, ref = two_policies(number)
    log_probs = logits.log_softmax(-1)
    kl = exact_kl(log_probs, ref)
    to_ref = gradient_of(kl, logits)
    from_ref = gradient_of((ref.exp() * (ref - log_probs)).sum(), logits)
    assert (to_ref - from_ref).norm() > 0.05 * to_ref.norm()
    gradients = {"k1": 0 * to_ref, "k2": to_ref, "k3": from_ref, "corrected_k3": to_ref}
    for name, gradient in gradients.items():
        values = kl_values(log_probs, ref, name)
        mean = (log_probs.exp().detach() * values).sum()
        torch.testing.assert_close(gradient_of(mean, logits), gradient, **EXACT)
        is_biased = abs(mean - kl) > 0.01 * kl
        assert is_biased == (name == "k2")
        assert is_biased or torch.isclose(mean, kl, **EXACT)


def test_exact_kl_with_impossible_outcomes():
    logits = torch.tensor([0.0, 0.0, -torch.inf], dtype=torch.float64)
    logits.requires_grad_()
    never = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64).log()
    sometimes = torch.tensor([0.25, 0.25, 0.5], dtype=torch.float64).log()
    for ref, expected in ((never, 0.0), (sometimes, math.log(2))):
        kl = exact_kl(logits.log_softmax(-1), ref)
        assert kl.item() == pytest.approx(expected, abs=1e-12)
        assert gradient_of(kl, logits).isfinite().all()
    assert exact_kl(sometimes, never) == torch.inf


def test_k3_keeps_small_differences_in_float32():
    difference = torch.logspace(-7, -1, 200)
    log_probs = torch.full_like(difference, -1.0).double()
    truth = kl_values(log_probs, log_probs - difference.double(), "k3")
    # log pi = 0 so that the difference itself is not rounded
    near = kl_values(torch.zeros_like(difference), -difference, "k3").double()
    tolerance = 1.2e-7 * difference.double()
    assert ((near - truth).abs() <= tolerance).all()
    naive = ((-difference).exp() - 1 + difference).double()
    assert ((naive - truth).abs() > tolerance).any()


def test_each_seed_has_its_own_coefficient():
    both = adapted_beta(0.5, torch.tensor([9.0, 0.1]), target=0.1)
    assert both.tolist() == [pytest.approx(0.51), pytest.approx(0.5)]


# What a person would get wrong is refused: the argument, what was given, the cure.

L = torch.full((2, 3, 4), -1.0)  # log-probs
D = torch.tensor([[1.0, 0.0, -1.0]] * 2)  # deltas, or rewards
GRAPH = L.clone().requires_grad_()
NOT_LOG = "floats that are never above 0. Apply log_softmax"


def deltas_of(rewards, mode="centered_rewards"):
    return lambda: compute_deltas(rewards, mode)


def mean_of(*given, **options):
    return lambda: aggregate(*given, **options)


def loss(*given, **options):
    return lambda: compute_loss(*given, **options)


def clip(**options):
    mode = "dual_clipped" if "dual_clip" in options else "clipped"
    return lambda: compute_loss(L, D, mode, L, **options)


REFUSED = {
    # deltas
    "an unknown mode": (deltas_of(D, "centred"), "'centred' is not.*'leave_one_out'"),
    "rewards of one axis": (deltas_of(D[0]), r"shape \[3\].*\[batch trial\]"),
    "no rewards": (deltas_of(torch.zeros(2, 0)), r"shape \[2, 0\].*empty"),
    "rewards in a list": (deltas_of([[1.0]]), r"rewards is a list.*torch\.tensor"),
    "rewards of NaN": (deltas_of(D * math.nan), r"rewards\[0, 0\] is nan"),
    # means
    "an unknown mean": (mean_of(L, None, "median"), "sequence_mean.*token_mean.*const"),
    "values of two axes": (mean_of(L[0]), "batch trial pos"),
    "a short mask": (mean_of(L, L[..., :2]), "mask has shape"),
    "a mask of shares": (mean_of(L, L / -2), "which tokens count"),
    "a length of zero": (mean_of(L, None, "constant", max_length=0), "max_length=0"),
    "half a token": (mean_of(L, max_length=1.5), "max_length=1.5.*a whole"),
    # losses
    "an unknown loss": (loss(L, D, "clip", L), "naive.*unclipped.*clipped"),
    "no pi_old": (loss(L, D, "clipped"), r"needs old_log_probs.*no_grad"),
    "a short pi_old": (loss(L, D, "clipped", L[:1]), "old_log_probs has shape"),
    "a pi_old that learns": (loss(L, D, "clipped", GRAPH), "no_grad"),
    "turned deltas": (loss(L, D.T, "naive"), "one delta per response"),
    "no batch": (loss(L[0], D[0], "naive"), "batch trial pos"),
    "a mask of one": (loss(L, D, "naive", mask=L[:1]), "mask has shape"),
    "no range": (clip(epsilon=0.0), "epsilon=0"),
    "a range below": (clip(epsilon_high=-1.0), "epsilon_high=-1"),
    "a level unknown": (clip(ratio_level="group"), "'sequence'"),
    "a bound inside": (clip(dual_clip=1.1), "above 1 . epsilon"),
    "probabilities": (loss(L.exp(), D, "naive"), f"0.3679.*{NOT_LOG}"),
    "old probabilities": (loss(L, D, "clipped", -L), f"old_log_probs.*{NOT_LOG}"),
    # KL
    "an estimator unknown": (lambda: kl_values(L, L, "k4"), "k1.*k2.*k3.*corrected_k3"),
    "a short reference": (lambda: kl_values(L, L[..., :2]), "ref_log_probs has shape"),
    "a reference that learns": (lambda: kl_values(L, GRAPH), "reference is pulled"),
    "logits of it": (lambda: kl_values(L, -2 * L), f"ref_log_probs.*{NOT_LOG}"),
    "a list": (lambda: kl_values([-1.0], L), "log_probs is a list, not a tensor"),
    "a penalty of one": (lambda: compute_kl_penalty(L[0], L[0]), "batch trial pos"),
    "logits for both": (lambda: exact_kl(L, L), "Apply log_softmax"),
    "turned rewards": (lambda: kl_reward(D.T, L, L, 0.1), r"one for each.*\[2, 3\]"),
    "a negative price": (lambda: kl_reward(D, L, L, -0.1), "beta is 0 or more"),
    "a mask of two axes": (lambda: sampler_weights(L, L, 2.0, D > 0), "mask has shape"),
    "a cap of zero": (lambda: sampler_weights(L, L, 0.0), "cap=0"),
    # beta
    "a target below": (lambda: adapted_beta(1.0, 0.1, -0.1), "target=-0.1"),
    "no gain": (lambda: adapted_beta(1.0, 0.1, 0.1, 0.0), "gain=0.0.*above 0"),
    "a KL of NaN": (lambda: adapted_beta(1.0, math.nan, 0.1), "finite"),
    "a beta below": (lambda: adapted_beta(-1.0, 0.1, 0.1), "beta=-1.0.*0 or more"),
}


@pytest.mark.parametrize(("call", "says"), REFUSED.values(), ids=REFUSED)
def test_a_bad_call_is_refused(call, says):
    with pytest.raises((TypeError, ValueError), match=says):
        call()


@pytest.mark.parametrize("mode", DELTA_MODES)
def test_a_group_of_one_has_only_its_reward(mode):
    if mode == "rewards":
        assert compute_deltas(torch.ones(3, 1), mode).tolist() == [[1], [1], [1]]
    else:
        with pytest.raises(ValueError, match=f"mode='{mode}'.*at least two"):
            compute_deltas(torch.zeros(3, 1), mode)
