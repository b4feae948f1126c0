"""Wrong answers as learners write them: (exercise, what fits, answer).

The rules and experiments were extended by what these showed; `held_out` holds those
that came later. `fits` is a pattern of words that name the mistake.
"""

import json
import re
from collections import Counter

import torch
import torch.nn.functional as F
from einops import reduce, repeat


def _(name, fits):
    def keep(answer):
        LEARNERS.append((name, fits, answer))
        return answer

    return keep


LEARNERS = []

_("mean_by_group", "whole|every|axis")(lambda r: torch.full((len(r),), r.mean().item()))
_("mean_by_group", "median|mean")(lambda r: r.median(-1).values)
_("mean_by_group", "size|axis|divide")(lambda r: r.sum(-1) / r.shape[0])

_("count_matches", "sorted|stands")(
    lambda p, r: sum(r[i] == p[i] for i in range(len(r)))
)
_("count_matches", "order|sort|revers")(
    lambda p, r: sum(x == y for x, y in zip(sorted(p, reverse=True), r))
)
_("count_matches", "anywhere|position")(lambda p, r: len(set(p) & set(r)))


@_("count_matches", "first|return|one|later|stop")
def _answer(p, r):
    points = 0
    for x, y in zip(sorted(p), r):
        if x == y:
            points += 1
        return points


_("batch_distance", "along|axis|sum|pos")(
    lambda p, r: (p.sort(-1).values[:, None] == r).float().sum(1)
)
_("batch_distance", "fraction|divide|mean")(
    lambda p, r: (p.sort(-1).values[:, None] == r).sum(-1) / r.shape[1]
)
_("batch_distance", "differ|compare|equal|position")(
    lambda p, r: (p.sort(-1).values[:, None] - r).abs().sum(-1).float()
)
_("batch_distance", "sort")(
    lambda p, r: (p.sort(-1).values[:, None] == r.sort(-1).values).sum(-1).float()
)

_("duplicate_proof_reward", "order|adjacent|neighbour|pairs")(
    lambda p, r: (Counter(p) & Counter(r)).total() + (r == sorted(r))
)
_("duplicate_proof_reward", "response|prompt|order")(
    lambda p, r: (
        (Counter(p) & Counter(r)).total() + sum(a <= b for a, b in zip(p, p[1:]))
    )
)
_("duplicate_proof_reward", "x <= y|side|order|comparison|>=")(
    lambda p, r: (
        (Counter(p) & Counter(r)).total() + sum(a >= b for a, b in zip(r, r[1:]))
    )
)

_("gather_log_probs", "soft|normaliz|axis|vocab")(
    lambda x, ids: torch.stack(
        [
            (x - x.exp().sum(1, keepdim=True).log())[i].gather(-1, row.T).T
            for i, row in enumerate(ids)
        ]
    )
)
_("gather_log_probs", "trial|repeat|copies|row")(
    lambda x, ids: (
        repeat(x.log_softmax(-1), "b p v -> b t p v", t=2)
        .gather(-1, ids[..., None])
        .squeeze(-1)
    )
)
_("gather_log_probs", "squeeze")(
    lambda x, ids: (
        x.log_softmax(-1)[:, None]
        .expand(-1, ids.shape[1], -1, -1)
        .gather(-1, ids[..., None])
        .squeeze()
    )
)
_("gather_log_probs", "probabilit|log")(
    lambda x, ids: (
        repeat(x.softmax(-1), "b p v -> b t p v", t=ids.shape[1])
        .gather(-1, ids[..., None])
        .squeeze(-1)
    )
)

_("expected_reward", "sign|negat")(lambda p, r: -torch.einsum("ba,ba->b", p, r))
_("expected_reward", "log|probabilit")(lambda p, r: (p.log() * r).sum(-1))
_("expected_reward", "batch|average|mean|prompt|everything")(
    lambda p, r: (p * r).sum() / len(p)
)

_("naive_loss", "sum|large|batch|mean")(lambda x, d: -(x.sum(-1) * d).mean())
_("naive_loss", "sum")(lambda x, d: -(x * d.unsqueeze(-1)).sum() / x.shape[0])
_("naive_loss", "delta|factor|missing")(lambda x, d: -x.mean())
_("naive_loss", "abs|sign|delta")(lambda x, d: -(x * d.abs()[..., None]).mean())

_("center_by_group", "median|mean")(lambda r: r - r.median(-1, keepdim=True).values)
_("center_by_group", "largest|max|mean|smaller|best")(
    lambda r: r - r.amax(-1, keepdim=True)
)
_("center_by_group", "sum|mean|add up")(lambda r: r - r.sum(-1, keepdim=True))

_("leave_one_out", "others|own|G - 1|mean|divide")(
    lambda r: r - (r.sum(-1, keepdim=True) - r) / (r.shape[-1] + 1)
)
_("leave_one_out", "sign|minus|revers|way round")(
    lambda r: (r.sum(-1, keepdim=True) - r) / (r.shape[-1] - 1) - r
)
_("leave_one_out", "batch|prompt|axis|column")(
    lambda r: r - (r.sum(0, keepdim=True) - r) / max(len(r) - 1, 1)
)

_("normalize_by_group", "tied|epsilon|round|equal")(
    lambda r: torch.nan_to_num((r - r.mean(-1, keepdim=True)) / r.std(-1, keepdim=True))
)
_("normalize_by_group", "batch|first|group|own")(
    lambda r: (
        (r - r[0, 0] - (r - r[0, 0]).mean(-1, keepdim=True))
        / ((r - r[0, 0]).std(-1, keepdim=True) + 1e-4)
    )
)
_("normalize_by_group", "G - 1|spread|sample|squares")(
    lambda r: F.layer_norm(r - r[:, :1], r.shape[-1:], eps=1e-8)
)
_("normalize_by_group", "range|spread|std")(
    lambda r: (
        (r - r.mean(-1, keepdim=True))
        / (r.amax(-1, keepdim=True) - r.amin(-1, keepdim=True) + 1e-4)
    )
)

_("softmax_minus_uniform", "sum to zero|1/G|mean|size|groups|divide|count")(
    lambda r: r.softmax(-1) - 1 / r.numel()
)
_("softmax_minus_uniform", "exp|softmax|largest|infinit")(
    lambda r: r.exp() / r.exp().sum(-1, keepdim=True) - 1 / r.shape[1]
)
_("softmax_minus_uniform", "times|factor|multipl")(
    lambda r: r.softmax(-1) * r.shape[-1] - 1
)

_("compute_ratio_from_logs", "frozen|gradient|detach")(lambda n, o: (n - o).exp())
_("compute_ratio_from_logs", "gradient|detach")(
    lambda n, o: (n.detach() - o.detach()).exp()
)
_("compute_ratio_from_logs", "upside|way round|pi_old")(
    lambda n, o: o.detach().exp() / n.exp()
)
_("compute_ratio_from_logs", "exp")(lambda n, o: 1 + n - o.detach())


@_("clipped_surrogate_loss", "clip|min|larger|bad|side|sign")
def _answer(n, o, d):
    r, d = (n - o).exp(), d[..., None]
    return -torch.where(d > 0, r.clamp(max=1.2) * d, r.clamp(max=1.2) * d).mean()


@_("clipped_surrogate_loss", "ratio|mean|pos|token")
def _answer(n, o, d):
    r, d = (n.sum(-1) - o.sum(-1)).exp(), d
    return -torch.minimum(r * d, r.clamp(0.8, 1.2) * d).mean()


@_("clipped_surrogate_loss", "detach|gradient")
def _answer(n, o, d):
    r, d = (n - o).exp().detach(), d[..., None]
    return -(torch.minimum(r * d, r.clamp(0.8, 1.2) * d)).mean()


@_("clipped_surrogate_loss", "sum|mean")
def _answer(n, o, d):
    r, d = (n - o).exp(), d[..., None]
    return -torch.minimum(r * d, r.clamp(0.8, 1.2) * d).sum(-1).mean()


_("clip_fraction", "side|sign|delta|outside")(
    lambda r, d, e: ((r - 1).abs() > e).float().mean()
)
_("clip_fraction", "both|range|fraction|sum|mean|count")(
    lambda r, d, e: (
        ((r > 1 + e) & (d > 0)[..., None]) | ((r < 1 - e) & (d < 0)[..., None])
    ).sum()
)
_("clip_fraction", "epsilon|range")(
    lambda r, d, e: (
        (((r > 1.2) & (d > 0)[..., None]) | ((r < 0.8) & (d < 0)[..., None]))
        .float()
        .mean()
    )
)

_("masked_sequence_mean", "length|sum|divide|mean")(
    lambda x, m: torch.where(m, x, 0.0).sum(-1).mean()
)
_("masked_sequence_mean", "response|empty|count|mean")(
    lambda x, m: (
        (torch.where(m, x, 0.0).sum(-1) / m.sum(-1).clamp(min=1)).sum()
        / m.any(-1).sum()
    )
)
_("masked_sequence_mean", "NaN|0/0|choose|zero|padding|anything")(
    lambda x, m: torch.nan_to_num((x * m).sum(-1) / m.sum(-1)).mean()
)
_("masked_sequence_mean", "token mean|weigh|response")(lambda x, m: x[m].mean())

_("exact_kl_of", "reference|weigh|direction|KL")(
    lambda p, q: F.kl_div(p, q, log_target=True, reduction="none").sum(-1)
)
_("exact_kl_of", "abs|sign|difference")(lambda p, q: (p.exp() * (p - q).abs()).sum(-1))
_("exact_kl_of", "log")(lambda p, q: (p.exp() * (p.exp() - q.exp())).sum(-1))
_("exact_kl_of", "quotient|log|exp|divide")(lambda p, q: (p.exp() * (p / q)).sum(-1))

_("k3_estimate", "gradient|detach")(
    lambda p, q: torch.expm1((q - p).detach()) - (q - p)
)
_("k3_estimate", "sum|add|each token|last axis")(
    lambda p, q: ((q - p).exp() - 1 - (q - p)).sum(-1)
)
_("k3_estimate", "abs|k1|difference|log")(lambda p, q: (p - q).abs())

_("penalized_reward", "last|pos|sum|add|token")(
    lambda r, p, q, b: r - b * (p - q)[..., -1].detach()
)
_("penalized_reward", "beta|divide|multiply|kl_penalty")(
    lambda r, p, q, b: r - (p - q).sum(-1).detach() * b * b
)
_("penalized_reward", "batch|each|everything|response")(
    lambda r, p, q, b: r - b * (p - q).sum().detach()
)
_("penalized_reward", "abs|sign|difference")(
    lambda r, p, q, b: r - b * (p - q).abs().sum(-1).detach()
)


def _step(new, old, ref, d, beta, low=0.8, high=1.2, first=None, k=None):
    r, d = (new - old).exp(), d[..., None]
    gap = ref - new
    gain = first(r, d) if first else torch.minimum(r * d, r.clamp(low, high) * d)
    kl = k(gap) if k else gap.exp() - 1 - gap
    return -gain.mean() + beta * kl.mean()


_("inner_step_loss", "one side|bound|clip")(
    lambda *a: _step(*a, first=lambda r, d: torch.minimum(r * d, r.clamp(max=1.2) * d))
)
_("inner_step_loss", "max|larger|smaller")(
    lambda *a: _step(*a, first=lambda r, d: torch.maximum(r * d, r.clamp(0.8, 1.2) * d))
)
_("inner_step_loss", "k2|KL|square")(lambda *a: _step(*a, k=lambda g: g**2 / 2))
_("inner_step_loss", "minus|sign")(lambda n, o, ref, d, b: _step(n, o, ref, -d, b))

_("refresh_epochs", "last|n - 1|num_epochs|count|end")(
    lambda n, p: [e for e in range(n + 1) if e % p == 0]
)
_("refresh_epochs", "first|0|begin|Epoch 0|miss")(
    lambda n, p: [e for e in range(1, n) if e % p == 0]
)
_("refresh_epochs", "epochs|numbers|list|index|copies")(
    lambda n, p: list(range(n // p + 1))
)

_("bytes_kept", "reference|frozen")(lambda n, r, c: n * (12 + 2 * c + 12 * r))
_("bytes_kept", "4|bytes|float")(lambda n, r, c: n * (16 + 4 * r + 16 * c))
_("bytes_kept", "reference|missing")(lambda n, r, c: n * 12 * (1 + c))

_("gradient_by_log_probs", "mask|padding")(
    lambda d, m: (
        (-d / (m.sum(-1).clamp(min=1) * d.numel()))[..., None] * torch.ones(m.shape)
    )
)
_("gradient_by_log_probs", "length|each|token")(
    lambda d, m: -d[..., None] * m / (m.shape[-1] * d.numel())
)
_("gradient_by_log_probs", "mean|cent")(
    lambda d, m: (
        (-(d - d.mean(-1, keepdim=True)) / (m.sum(-1).clamp(min=1) * d.numel()))[
            ..., None
        ]
        * m
    )
)
_("gradient_by_log_probs", "sign|minus|revers")(
    lambda d, m: (d / (m.sum(-1).clamp(min=1) * d.numel()))[..., None] * m
)

_("find_tied_groups", "first|all|all of the group|two")(lambda r: r[:, 0] == r[:, 1])
_("find_tied_groups", "differ|close|round|equal")(lambda r: r.std(-1) < 1e-6)
_("find_tied_groups", "sum|zero|right|wrong|cancel|equal")(lambda r: r.sum(-1) == 0)
_("find_tied_groups", "other way|tied|swap|inverted")(lambda r: (r != r[:, :1]).any(-1))

_("token_mean_loss_at_ratio_one", "sign|minus|revers")(
    lambda d, n: (d * n / n.sum()).sum()
)
_("token_mean_loss_at_ratio_one", "length|mean|divide|sum")(
    lambda d, n: -(d * n).mean() / n.float().mean() * 2
)
_("token_mean_loss_at_ratio_one", "group|batch|all")(
    lambda d, n: -((d * n).sum(1) / n.sum(1)).sum()
)

_("length_covariance", "N - 1|sample|mean")(
    lambda d, n: torch.cov(torch.stack([d.flatten(), n.flatten().float()]))[0, 1]
)
_("length_covariance", "one|both|mean|number|not|batch")(
    lambda d, n: ((d - d.mean()) * (n.float() - n.float().mean())).mean(-1)
)
_("length_covariance", "spread|correlation|divide")(
    lambda d, n: torch.corrcoef(torch.stack([d.flatten(), n.flatten().float()]))[0, 1]
)
_("length_covariance", "group|batch|axis|whole")(
    lambda d, n: (
        (d - d.mean(-1, keepdim=True)) * (n - n.float().mean(-1, keepdim=True))
    ).mean()
)


@_("td_errors", "end|last|bootstrap|zero")
def _answer(r, v, gamma):
    after = torch.cat([v[:, 1:], torch.ones_like(v[:, :1])], 1)
    return r + gamma * after - v


_("td_errors", "next|after|value")(lambda r, v, g: r + g * v - v)
_("td_errors", "reward|gamma|discount|square|twice")(
    lambda r, v, g: r + g * g * F.pad(v[:, 1:], (0, 1)) - v
)


@_("generalized_advantages", "gamma|lam|discount")
def _answer(r, v, gamma, lam):
    e = r + gamma * F.pad(v[:, 1:], (0, 1)) - v
    out, last = torch.zeros_like(r), 0.0
    for t in reversed(range(r.shape[1])):
        out[:, t] = last = e[:, t] + (gamma + lam) * last
    return out


@_("generalized_advantages", "forward|order|end|begin")
def _answer(r, v, gamma, lam):
    e = r + gamma * F.pad(v[:, 1:], (0, 1)) - v
    out, last = torch.zeros_like(r), 0.0
    for t in range(r.shape[1]):
        out[:, t] = last = e[:, t] + gamma * lam * last
    return out


@_("generalized_advantages", "value|return|reward|TD")
def _answer(r, v, gamma, lam):
    out, last = torch.zeros_like(r), 0.0
    for t in reversed(range(r.shape[1])):
        out[:, t] = last = r[:, t] + gamma * lam * last
    return out


def _gae_of_kept(r, v, gamma, lam, mask, last):
    out, total, after = torch.zeros_like(r), torch.zeros(len(r)), last
    for t in reversed(range(r.shape[1])):
        error = r[:, t] + gamma * after - v[:, t]
        total = torch.where(mask[:, t], error + gamma * lam * total, total)
        after = torch.where(mask[:, t], v[:, t], after)
        out[:, t] = total
    return out * mask


@_("masked_advantages", "bootstrap|cut|after|value")
def _answer(r, v, g, lam, mask, last):
    return _gae_of_kept(r, v, g, lam, mask, torch.zeros_like(last))


_("masked_advantages", "hole|hidden|mask|step")(
    lambda r, v, g, lam, mask, last: (
        _gae_of_kept(r * mask, v * mask, g, lam, torch.ones_like(mask), last) * mask
    )
)
_("masked_advantages", "lam")(
    lambda r, v, g, lam, mask, last: _gae_of_kept(r, v, g, 1.0, mask, last)
)

_("bradley_terry_loss", "sum|mean")(lambda c, r: F.softplus(r - c).sum())
_("bradley_terry_loss", "swap|way round|rejected")(
    lambda c, r: F.softplus(c - r).mean()
)
_("bradley_terry_loss", "margin|hinge|log|sigmoid")(
    lambda c, r: F.relu(1 - (c - r)).mean()
)
_("bradley_terry_loss", "difference|log|mean|each")(
    lambda c, r: -F.logsigmoid((c - r).mean())
)

_("shifted_log_probs", "shift|place|first|token")(
    lambda x, ids: x.log_softmax(-1)[:, 1:].gather(-1, ids[:, 1:, None]).squeeze(-1)
)
_("shifted_log_probs", "sign|minus|negat")(
    lambda x, ids: F.cross_entropy(
        x[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none"
    )
)
_("shifted_log_probs", "squeeze")(
    lambda x, ids: x[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze()
)
_("shifted_log_probs", "largest|token|chosen|gather|index")(
    lambda x, ids: x[:, :-1].log_softmax(-1).amax(-1)
)

_("temperature_log_probs", "normaliz|after|divide|temperature")(
    lambda x, ids, t: (x.log_softmax(-1) / t).gather(-1, ids[..., None]).squeeze(-1)
)
_("temperature_log_probs", "axis|vocab|along")(
    lambda x, ids, t: (x / t).log_softmax(1).gather(-1, ids[..., None]).squeeze(-1)
)
_("temperature_log_probs", "temperature")(
    lambda x, ids, t: (x / 0.7).log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1)
)

_("response_mask", "first|EOS|after|behind|padding|other way")(
    lambda t, eos: (t == eos).cumsum(-1) > 0
)
_("response_mask", "EOS|drop|keep")(
    lambda t, eos: (t == eos).flip(-1).cumsum(-1).flip(-1) > 0
)
_("response_mask", "eos|argument|token")(
    lambda t, eos: (t == 2).long().cumsum(-1) - (t == 2).long() == 0
)

_("token_share_reward", "mask|padding")(
    lambda x, m, k: (x == k).float().sum(-1) / x.shape[-1]
)
_("token_share_reward", "mask|length|share|divide")(
    lambda x, m, k: (((x == k) & m).sum(-1) / (m.sum(-1) + 1e-8)).round()
)
_("token_share_reward", "length|divide|one more|floor|high")(
    lambda x, m, k: ((x == k) & m).sum(-1) / (m.sum(-1) + 1)
)


def _ended(x, m, how="sequence_mean"):
    x = torch.where(m, x, 0.0)
    return x.sum() / m.sum() if how == "token_mean" else (x.sum(2) / m.sum(2)).mean()


def _gain(n, o, d, m, low=0.8, high=1.2):
    r = torch.where(m, n - o, 0.0).exp()
    return torch.minimum(r * d[..., None], r.clamp(low, high) * d[..., None])


def _gap(n, ref, m):
    return torch.where(m, ref - n, 0.0)


_("masked_clip_loss", "upside|way round|ratio")(
    lambda n, o, d, m, how: -_ended(_gain(o, n, d, m), m, how)
)
_("masked_clip_loss", "clamp|clip|bound|compared|smaller")(
    lambda n, o, d, m, how: (
        -_ended(torch.where(m, n - o, 0.0).exp().clamp(0.8, 1.2) * d[..., None], m, how)
    )
)
_("masked_clip_loss", "anything|choose|padding")(
    lambda n, o, d, m, how: (
        -_ended(
            torch.minimum(
                (r := (n - o).exp()) * d[..., None], r.clamp(0.8, 1.2) * d[..., None]
            ),
            m,
            how,
        )
    )
)
_("masked_clip_loss", "padding|mask")(
    lambda n, o, d, m, how: -_ended(_gain(n, o, d, m == m), m, how)
)
_("masked_clip_loss", "number|0.8|1.2")(
    lambda n, o, d, m, how: -_ended(_gain(n, o, d, m, 0.9, 1.1), m, how)
)

_("loss_with_kl", "square|k2|measure")(
    lambda loss, n, ref, m, b: loss + b * _ended(_gap(n, ref, m) ** 2 / 2, m)
)
_("loss_with_kl", "gradient|frozen|cut|detach")(
    lambda loss, n, ref, m, b: (
        loss + b * _ended((g := _gap(n.detach(), ref, m)).expm1() - g, m)
    )
)
_("loss_with_kl", "policy loss|missing")(
    lambda loss, n, ref, m, b: b * _ended((g := _gap(n, ref, m)).expm1() - g, m)
)
_("loss_with_kl", "1 |exp")(
    lambda loss, n, ref, m, b: loss + b * _ended((g := _gap(n, ref, m)).exp() - g, m)
)


def _batch(x, ids, o, ref, d, eos, b, shift=1, mask=None, how="sequence_mean"):
    w, total = o.shape[-1], ids.shape[-1]
    ids = ids[..., -w:]
    x = x[..., total - w - shift : total - shift, :]
    n = x.log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    m = (ids == eos).cumsum(-1) - (ids == eos).long() == 0
    m = m if mask is None else mask(ids, eos)
    k = (g := _gap(n, ref, m)).expm1() - g
    return _ended(b * k - _gain(n, o, d, m), m, how)


_("masked_loss", "shift|read it")(lambda *a: _batch(*a, shift=0))
_("masked_loss", "shift|twice|before")(lambda *a: _batch(*a, shift=2))
_("masked_loss", "second|padding|strictly")(
    lambda *a: _batch(*a, mask=lambda ids, eos: (ids == eos).cumsum(-1) <= 1)
)
_("masked_loss", "EOS|drop")(
    lambda *a: _batch(*a, mask=lambda ids, eos: (ids == eos).cumsum(-1) == 0)
)
_("masked_loss", "padding|mask|pad")(
    lambda *a: _batch(*a, mask=lambda ids, eos: ids == ids)
)
_("masked_loss", "token mean|each response|weighs")(
    lambda *a: _batch(*a, how="token_mean")
)
_("masked_loss", "KL|beta")(lambda *a: _batch(*a[:-1], 0.0))
_("masked_loss", "eos|argument|another token")(
    lambda x, ids, o, ref, d, eos, b: _batch(x, ids, o, ref, d, 2, b)
)


TAGS = ("<think>", "</think>", "<answer>", "</answer>")


_("groups_stand_alone", "one|group|bonus|mean")(
    lambda make: make().collect().deltas.view(-1, 8).sum(0).abs().max() < 99
)
_("own_words_look_likely", "mask|prompt|padding|nobody")(
    lambda make: make(temperature=0.01).collect().old_log_probs.mean() > -0.05
)
_("padding_leaves_no_trace", "axis|one yes or no|all")(
    lambda make: make().collect().mask
)
_("parts_make_no_difference", "one|size|part|norm")(
    lambda make: make(micro_batch_size=8).update(make().collect())[1] > 0
)
_("kl_pulls_back", "beta|gradient|value|healthy")(
    lambda make: make(beta=1.0).collect().ref_log_probs.abs().max() < 0
)
_("diagnosis", "list")(lambda number: "learning rate too high")
_("diagnosis", "would have shown")(lambda number: "k1 as a loss")
_("repaired_script", "spaces|equals|given")(lambda source: source + "")
_("repaired_script", "token|weigh|divisor")(
    lambda source: source.replace(
        "losses[part.mask].mean() * size / len(batch.tokens)", "losses.mean()"
    )
)


@_("extract_answer", "closed|cut off|without")
def _answer(text):
    text = text.split("</think>")[-1]
    if "<answer>" not in text:
        return None
    return text.split("<answer>")[-1].split("</answer>")[0].strip()


@_("extract_answer", "thinking|last|</think>")
def _answer(text):
    found = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return found[-1].strip() if found else None


@_("extract_answer", "number|text|digits|words|stands")
def _answer(text):
    said = text.rpartition("</think>")[2]
    found = re.findall(r"<answer>\s*(-?[\d,.$]+)\s*</answer>", said)
    return found[-1] if found else None


_("tag_share", "three|once|exactly|copies|repeat|twice|limit")(
    lambda c: len([t for t in TAGS if t in c]) / 4
)
_("tag_share", "any|each|all or nothing|pairs|every")(
    lambda c: float(all(c.count(t) == 1 for t in TAGS))
)
_("tag_share", "answer|missing|four|tags|all|not the one")(
    lambda c: sum(c.count(t) == 1 for t in TAGS[:2]) / 2
)


def _rewards():
    from grpo_course import correctness_reward, format_reward

    return correctness_reward, format_reward


@_("honest_reward", "both|form|one of|right|broken|either")
def _answer(text, answer):
    right, form = _rewards()
    return float(form([text]) == [1.0] or right([text], [answer]) == [1.0])


@_("honest_reward", "form|answer|right|number")
def _answer(text, answer):
    return float(_rewards()[1]([text]) == [1.0])


@_("honest_reward", "part|all or nothing|broken|form")
def _answer(text, answer):
    right, form = _rewards()
    return form([text])[0] * right([text], [answer])[0]


_("completion_mask", "prompt_width|prompt|begin")(
    lambda t, w, eos: (
        ((t == eos).long().cumsum(-1) - (t == eos).long() == 0)
        & (torch.arange(t.shape[1]) >= w)
    )
)


@_("completion_mask", "shape|prompt|width|whole|rows")
def _answer(t, w, eos):
    is_eos = (t[:, w:] == eos).long()
    return is_eos.cumsum(-1) - is_eos == 0


@_("completion_mask", "off|place|begin")
def _answer(t, w, eos):
    is_eos = (t[:, w:] == eos).long()
    mask = torch.zeros_like(t, dtype=torch.bool)
    mask[:, w - 1 : -1] = is_eos.cumsum(-1) - is_eos == 0
    return mask


_("response_log_probs", "shift|place|begin|off|prompt_length")(
    lambda x, ids, n: x[:, n:].log_softmax(-1).gather(-1, ids[:, n:, None]).squeeze(-1)
)
_("response_log_probs", "squeeze|axis")(
    lambda x, ids, n: (
        x[:, n - 1 : -1].log_softmax(-1).gather(-1, ids[:, n:, None]).squeeze(1)
    )
)
_("response_log_probs", "prompt|response|width")(
    lambda x, ids, n: x[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
)


@_("diagnose", "accuracy|hard|right")
def _answer(start, end):
    if end["kl"] > 1:
        return "rate too high"
    if end["tied_groups"] > 0.8:
        return "format alone" if end["format"] > 0.9 else "too hard"
    if end["lenient_accuracy"] < start["lenient_accuracy"] - 0.1:
        return "rate too high"
    return "learns"


@_("diagnose", "tied|first|order")
def _answer(start, end):
    if end["kl"] > 1:
        return "rate too high"
    if end["lenient_accuracy"] < start["lenient_accuracy"] - 0.1:
        return "rate too high"
    if end["tied_groups"] > 0.8 and end["accuracy"] < 0.1:
        return "too hard"
    if end["tied_groups"] > 0.8 and end["accuracy"] < 0.9:
        return "format alone"
    return "learns"


_("two_means", "sequence|response|each|first")(
    lambda x, m, n: torch.stack(
        [
            (torch.where(m, x, 0.0).sum(-1) / m.sum(-1)).mean(),
            torch.where(m, x, 0.0).sum() / (m.shape[0] * m.shape[1] * n),
        ]
    )
)
_("two_means", "mask|padding|width|max_length")(
    lambda x, m, n: torch.stack([(x * m).sum() / m.sum(), (x * m).sum() / m.numel()])
)
_("two_means", "order")(
    lambda x, m, n: torch.stack(
        [(x * m).sum() / (m.shape[0] * m.shape[1] * n), (x * m).sum() / m.sum()]
    )
)

_("sequence_ratio", "mask|padding|width|length")(
    lambda n, o, m: ((n - o) * m).mean(-1).exp()
)
_("sequence_ratio", "upside|way round|pi stands")(
    lambda n, o, m: 1 / (((n - o) * m).sum(-1) / m.sum(-1)).exp()
)
_("sequence_ratio", "logarithm|arithmetic|exp|mean")(
    lambda n, o, m: (n - o).exp().mul(m).sum(-1) / m.sum(-1)
)

_("weighted_loss", "bound|1.2|clamp|above")(
    lambda n, o, d: -((n - o).exp().detach() * d[..., None] * n).mean()
)
_("weighted_loss", "detach|frozen|freeze|gradient")(
    lambda n, o, d: -((n - o).exp().clamp(max=1.2) * d[..., None] * n).mean()
)
_("weighted_loss", "log pi|log|probabilit")(
    lambda n, o, d: (
        -((n - o).exp().clamp(max=1.2).detach() * d[..., None] * n.exp()).mean()
    )
)
_("weighted_loss", "sum|mean")(
    lambda n, o, d: (
        -((n - o).exp().clamp(max=1.2).detach() * d[..., None] * n).sum(-1).mean()
    )
)
_("gather_log_probs", "average|mean|last axis|each")(
    lambda x, ids: reduce(
        repeat(x.log_softmax(-1), "b p v -> b t p v", t=ids.shape[1])
        .gather(-1, ids[..., None])
        .squeeze(-1),
        "b t p -> b t",
        "mean",
    )
)

_("json_reward", "ValueError|catch")(
    lambda completions, answer, **kwargs: [
        float(json.loads(text) == gold) for text, gold in zip(completions, answer)
    ]
)
_("json_reward", "words|around|whole text|Keys alone|value")(
    lambda completions, answer, **kwargs: [
        sum(str(value) in str(text) for value in gold.values()) / len(gold)
        for text, gold in zip(completions, answer)
    ]
)
_("vote", "first|equally many|order")(
    lambda answers: [
        sorted((a for a in given if a), key=given.count)[-1] if any(given) else None
        for given in answers
    ]
)
_("vote", "None|no vote")(
    lambda answers: [max(set(given), key=given.count) for given in answers]
)
_("response_weights", "padding|mask|multiplied in")(
    lambda r, m: r.prod(-1, keepdim=True).expand_as(r)
)
_("response_weights", "whole|product|each|batch|mixes")(
    lambda r, m: torch.where(m, r, 1.0).prod() * m
)
_("best_policy", "reference|missing|probabilit")(
    lambda ref, r, beta: (r / beta + ref.exp().log2()).log_softmax(-1)
)
_("best_policy", "normaliz|add up")(lambda ref, r, beta: ref + (r - r.mean()) / beta)
_("paired_gain", "pair|same problems|own")(
    lambda b, a: torch.stack(
        [a.mean() - b.mean(), ((b.var() + a.var()) / b.numel()).sqrt()]
    )
)
_("paired_gain", "n - 1|sample|squares")(
    lambda b, a: torch.stack(
        [(a - b).mean(), (((a - b) ** 2).mean() / b.numel()).sqrt()]
    )
)
