"""Planted bugs: an oracle in plain Python passes the package and fails each of them.

The oracle works on lists of floats and knows nothing of the package; gradients are
its central differences.
"""

import math
from functools import partial

import pytest
import torch

from grpo_course import formulas, loop

LOW, HIGH, BOUND, MAX_LENGTH = 0.2, 0.4, 1.6, 7
# Two prompts, two responses each, up to three tokens; the last response is empty.
NEW = [[-1.0, -0.9, -2.0], [-0.3, -1.2, -0.4], [-1.5, -0.7], []]
OLD = [[-1.35, -1.2, -1.6], [-0.35, -0.7, -1.0], [-1.45, -1.2], []]
REF = [[-0.6, -1.4, -1.7], [-0.9, -0.8, -1.1], [-2.1, -0.2], []]
DELTAS = [1.0, -0.5, 2.0, -3.0]
SAPO_BELOW = torch.tensor(1.05).item()  # a number of float32, as TRL has it
DELTA_ROWS = [[delta] * len(row) for delta, row in zip(DELTAS, NEW, strict=True)]


# The oracle


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


def oracle_mean(name, rows):
    total, tokens = sum(map(sum, rows)), sum(map(len, rows))
    if name == "token_mean":
        return total / tokens
    if name == "constant":
        return total / (len(rows) * MAX_LENGTH)
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


# The package held against it


def padded(rows):
    """Lists as [batch trial pos], with NaN in the padding: nothing may read it."""
    full = [row + [math.nan] * (3 - len(row)) for row in rows]
    return torch.tensor(full, dtype=torch.float64).reshape(2, 2, 3)


MASK = ~padded(NEW).isnan()


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


def check_aggregate(options):
    agree(
        lambda leaf: formulas.aggregate(leaf, MASK, **options),
        partial(oracle_mean, options["aggregation"]),
    )


def check_loss(mode, level, options):
    clip = {"epsilon": LOW, "epsilon_high": HIGH, "dual_clip": BOUND}
    clip["ratio_level"] = level
    frozen = oracle_ratios(level, NEW, OLD)
    deltas = torch.tensor(DELTAS, dtype=torch.float64).reshape(2, 2)
    token = partial(oracle_token_loss, mode)
    agree(
        lambda leaf: formulas.compute_loss(
            leaf, deltas, mode, padded(OLD), mask=MASK, **options, **clip
        ),
        lambda new: oracle_mean(
            options["aggregation"],
            each_token(token, new, oracle_ratios(level, new, OLD), frozen, DELTA_ROWS),
        ),
    )


def check_sampler_weights():
    """Three tokens are above the cap; padding, NaN in both, has a weight of one."""
    weights = formulas.sampler_weights(padded(NEW), padded(OLD), 1.3, MASK)
    ratios = oracle_ratios("token", NEW, OLD)
    expected = [min(ratio, 1.3) for row in ratios for ratio in row]
    close(weights[MASK], expected)
    assert (weights[~MASK] == 1).all()


def check_kl(estimator, options):
    token = partial(oracle_kl, estimator)
    agree(
        lambda leaf: formulas.compute_kl_penalty(
            leaf, padded(REF), estimator, MASK, old_log_probs=padded(OLD), **options
        ),
        lambda new: oracle_mean(
            options["aggregation"], each_token(token, new, REF, OLD)
        ),
    )


def check_report():
    deltas = torch.tensor(DELTAS, dtype=torch.float64).reshape(2, 2)
    report = formulas.loss_report(
        padded(NEW), deltas, padded(OLD), mask=MASK, epsilon=LOW, epsilon_high=HIGH
    )
    # ratios 1.42 1.35 .67 | 1.05 .61 1.82 | .95 1.65; deltas + | - | +
    close(report["clip_fraction_high"], 2 / 8)
    close(report["clip_fraction_low"], 1 / 8)
    close(report["gradient_fraction"], 5 / 8)
    close(report["ratio_min"], math.exp(-0.5))
    close(report["ratio_max"], math.exp(0.6))


def check_other_kl():
    p, q = [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]
    exact = formulas.exact_kl(*torch.tensor([p, q], dtype=torch.float64).log())
    close(exact, sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))
    rewards = torch.tensor(DELTAS, dtype=torch.float64).reshape(2, 2)
    inside = formulas.kl_reward(rewards, padded(NEW), padded(REF), 0.3, MASK)
    sums = map(sum, each_token(lambda new, ref: new - ref, NEW, REF))
    expected = [delta - 0.3 * k1 for delta, k1 in zip(DELTAS, sums, strict=True)]
    close(inside.flatten(), expected)
    beta = loop.adapted_beta(0.5, 0.11, target=0.1)
    assert math.isclose(beta, 0.505)


def check_all():
    for name in formulas.AGGREGATIONS:
        options = {"aggregation": name, "max_length": MAX_LENGTH}
        check_aggregate(options)
        for mode in formulas.LOSS_MODES:
            for level in formulas.RATIO_LEVELS:
                check_loss(mode, level, options)
        for estimator in formulas.KL_ESTIMATORS:
            check_kl(estimator, options)
    check_report()
    check_other_kl()
    check_sampler_weights()


# The planted bugs


def clipped_with(surrogate):
    """A clipped loss whose surrogate is a function of r, c = clip(r), delta."""

    def broken(ratio, deltas, *, epsilon, epsilon_high, **_):
        return -surrogate(ratio, ratio.clamp(1 - epsilon, 1 + epsilon_high), deltas)

    return broken


AGGREGATE, SETTINGS, k3 = formulas.aggregate, formulas.clip_settings, formulas.k3


def forget_mask(values, mask, aggregation="sequence_mean", *, max_length):
    ones = torch.ones_like(values)
    return AGGREGATE(values.nan_to_num(), ones, aggregation, max_length=max_length)


def drop_empty(kept, mask, _):
    lengths = mask.sum(-1)
    return (kept.sum(-1) / lengths.clamp(min=1)).sum() / (lengths > 0).sum()


MODE, MEAN, KL = formulas.LOSS_MODES, formulas.AGGREGATIONS, formulas.KL_ESTIMATORS
REPORT, REWARD = formulas.loss_report, formulas.kl_reward
DUAL, RATIO = formulas.dual_clipped_loss, formulas.compute_ratio
SAPO = formulas.sapo_loss
WEIGHTS = formulas.sampler_weights
exp, low_of, high_of = torch.exp, torch.minimum, torch.maximum
BUGS = [
    # losses: a = log pi, b = log pi_old, d = delta, r = ratio, c = clipped ratio
    ("ratio as a quotient", formulas, "compute_ratio", lambda a, b, *_: a / b),
    ("ratio upside down", formulas, "compute_ratio", lambda a, b, *_: exp(b - a)),
    ("pi_old not used", formulas, "compute_ratio",
        lambda a, b, *_: exp(a - a.detach())),
    ("ratio detached", formulas, "compute_ratio",
        lambda a, b, *_: exp(a - b).detach() + 0 * a),
    ("naive: no minus", MODE, "naive", lambda r, d, log_probs, **_: d * log_probs),
    ("naive: no logarithm", MODE, "naive",
        lambda r, d, log_probs, **_: -d * log_probs.exp()),
    ("unclipped: clips", MODE, "unclipped", formulas.clipped_loss),
    ("no minus", MODE, "clipped", clipped_with(lambda r, c, d: -low_of(r * d, c * d))),
    ("max for min", MODE, "clipped",
        clipped_with(lambda r, c, d: high_of(r * d, c * d))),
    ("no min", MODE, "clipped", clipped_with(lambda r, c, d: c * d)),
    ("no clip", MODE, "clipped", clipped_with(lambda r, c, d: r * d)),
    ("min, then delta: wrong side for negative deltas", MODE, "clipped",
        clipped_with(lambda r, c, d: low_of(r, c) * d)),
    ("epsilon_high ignored", formulas, "clip_settings",
        lambda mode, epsilon, epsilon_high, **more: SETTINGS(mode, epsilon, **more)),
    ("epsilons swapped", formulas, "clip_settings",
        lambda mode, epsilon, epsilon_high, **more:
            SETTINGS(mode, epsilon_high, epsilon, **more)),
    ("dual clip: epsilon_high ignored", MODE, "dual_clipped",
        lambda r, d, *, epsilon, epsilon_high, dual_clip, **_:
            DUAL(r, d, epsilon=epsilon, epsilon_high=epsilon, dual_clip=dual_clip)),
    ("dual clip: no second bound", MODE, "dual_clipped", formulas.clipped_loss),
    ("cispo: weight attached", MODE, "cispo",
        lambda r, d, *, log_probs, epsilon_high, **_:
            -r.clamp(max=1 + epsilon_high) * d * log_probs),
    ("cispo: bound of epsilon", MODE, "cispo",
        lambda r, d, *, log_probs, epsilon, **_:
            -r.clamp(max=1 + epsilon).detach() * d * log_probs),
    ("sapo: one temperature", MODE, "sapo",
        lambda r, d, **_: SAPO(r, d, temperatures=(1.0, 1.0))),
    ("sapo: no 4 / tau", MODE, "sapo",
        lambda r, d, **_: -torch.sigmoid(torch.where(d > 0, 1, 1.05) * (r - 1)) * d),
    ("sequence ratio over padding", formulas, "compute_ratio",
        lambda a, b, mask, level: RATIO(a, b, None, level)),
    ("sequence ratio of one token", formulas, "compute_ratio",
        lambda a, b, mask, level: RATIO(a, b, mask)),
    ("sampler weights without their mask", formulas, "sampler_weights",
        lambda a, b, cap, _: WEIGHTS(a.nan_to_num(-1), b.nan_to_num(-2), cap)),
    ("sampler weights upside down", formulas, "sampler_weights",
        lambda a, b, cap, mask: WEIGHTS(b, a, cap, mask)),
    ("sampler weights: no cap", formulas, "sampler_weights",
        lambda a, b, cap, mask: WEIGHTS(a, b, 1e9, mask)),
    ("loss and penalty without their mask", formulas, "aggregate", forget_mask),
    ("padding reaches the ratio", formulas, "hide", lambda values, mask: values),
    ("report: sign of delta unread", formulas, "loss_report",
        lambda a, d, b, **options: REPORT(a, d.abs(), b, **options)),
    ("report: sides swapped", formulas, "loss_report",
        lambda a, d, b, **options: REPORT(a, -d, b, **options)),
    # aggregation: k = values, zero outside the mask m
    ("token for sequence mean", MEAN, "sequence_mean", formulas.token_mean),
    ("sequence for token mean", MEAN, "token_mean", formulas.sequence_mean),
    ("sequence mean over padding", MEAN, "sequence_mean", lambda k, m, _: k.mean()),
    ("token mean over padding", MEAN, "token_mean", lambda k, m, _: k.mean()),
    ("empty response not counted", MEAN, "sequence_mean", drop_empty),
    ("pos axis for max_length", MEAN, "constant", lambda k, m, _: k.sum() / m.numel()),
    ("mean for sum", MEAN, "sequence_sum", formulas.sequence_mean),
    ("responses not counted", MEAN, "constant", lambda k, m, length: k.sum() / length),
    ("padding summed", formulas, "hide", lambda values, mask: values.nan_to_num(1)),
    ("mask by product", formulas, "hide", lambda values, mask: values * mask),
    # KL: a = log pi, b = log ref
    ("k1: sign", KL, "k1", lambda a, b, **_: b - a),
    ("k2: no half", KL, "k2", lambda a, b, **_: (a - b) ** 2),
    ("k3 upside down", KL, "k3", lambda a, b, **_: torch.expm1(a - b) - (a - b)),
    ("k3: sign of the log", KL, "k3", lambda a, b, **_: torch.expm1(b - a) + (b - a)),
    ("k2 for k3", KL, "k3", formulas.k2),
    ("k3 detached", KL, "k3", lambda a, b, **_: formulas.k3(a, b).detach() + 0 * a),
    ("corrected k3: no ratio", KL, "corrected_k3", formulas.k3),
    ("corrected k3: ratio detached", KL, "corrected_k3",
        lambda a, b, old_log_probs: exp(a - old_log_probs).detach() * k3(a, b)),
    ("corrected k3: pi_old not used", KL, "corrected_k3",
        lambda a, b, old_log_probs: exp(a - a.detach()) * k3(a, b)),
    ("exact KL reversed", formulas, "exact_kl",
        lambda a, b: (b.exp() * (b - a)).sum(-1)),
    ("KL reward: sign", formulas, "kl_reward",
        lambda r, a, b, beta, m: 2 * r - REWARD(r, a, b, beta, m)),
    ("KL reward: mean for sum", formulas, "kl_reward",
        lambda r, a, b, beta, m: r - (r - REWARD(r, a, b, beta, m)) / 3),
    ("adaptive beta: sign", loop, "adapted_beta",
        lambda beta, value, target: beta * (1 - (value / target - 1) * 0.1)),
    ("adaptive beta: no gain", loop, "adapted_beta",
        lambda beta, value, target: beta * value / target),
]  # fmt: skip


def test_the_package_agrees_with_the_oracle():
    check_all()


@pytest.mark.parametrize(("owner", "key", "broken"), [bug[1:] for bug in BUGS],
                         ids=[bug[0] for bug in BUGS])  # fmt: skip
def test_a_planted_bug_is_caught(monkeypatch, owner, key, broken):
    if isinstance(owner, dict):
        monkeypatch.setitem(owner, key, broken)
    else:
        monkeypatch.setattr(owner, key, broken)
    with pytest.raises(AssertionError):
        check_all()
