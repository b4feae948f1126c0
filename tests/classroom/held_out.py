"""Wrong answers that no rule, case or hint was made for: (exercise, what fits, answer).

They measure how far the checks reach beyond what they were built with: extend the
checks by others, and leave these alone. `fits` is a pattern of words that name the
mistake.
"""

import json
import re
from collections import Counter

import torch
import torch.nn.functional as F
from einops import rearrange, reduce, repeat

HELD_OUT = []


def _(name, fits):
    def keep(answer):
        HELD_OUT.append((name, fits, answer))
        return answer

    return keep


_("mean_by_group", "largest|extreme|another number")(
    lambda r: reduce(r, "b t -> b", "max")
)
_("mean_by_group", "axis|batch|lengths?|trial")(lambda r: reduce(r, "b t -> t", "mean"))
_("mean_by_group", "divi|sum|one|G - 1")(lambda r: r.sum(1) / (r.shape[1] - 1 or 1))

_("count_matches", "wrong|position|==")(
    lambda p, r: len(p) - sum(a == b for a, b in zip(sorted(p), r))
)
_("count_matches", "fraction|divide")(
    lambda p, r: sum(a == b for a, b in zip(sorted(p), r)) / len(r)
)

_("batch_distance", "sort|stand")(
    lambda p, r: (rearrange(p, "b p -> b 1 p") == r).sum(-1).float()
)
_("batch_distance", "average|mean|one number|sum|axis")(
    lambda p, r: (p.sort().values[:, None] == r).sum(-1).float().mean(1)
)
_("batch_distance", "wrong|!=|other way|equal|comparison")(
    lambda p, r: (p.sort().values[:, None] != r).sum(-1).float()
)

_("duplicate_proof_reward", "set|multiplicity|often|once")(
    lambda p, r: sum(x in r for x in set(p)) + sum(a <= b for a, b in zip(r, r[1:]))
)
_("duplicate_proof_reward", "inclusion|missing")(
    lambda p, r: sum(r[i] <= r[i + 1] for i in range(len(r) - 1))
)
_("duplicate_proof_reward", "tie|strict|<")(
    lambda p, r: (
        sum((Counter(p) & Counter(r)).values())
        + sum(r[i] < r[i + 1] for i in range(len(r) - 1))
    )
)


@_("gather_log_probs", "log|probabilit|underflow|zero")
def _answer(x, ids):
    p = x.softmax(-1)
    return torch.stack(
        [
            p.gather(-1, ids[:, t, :, None]).squeeze(-1).log()
            for t in range(ids.shape[1])
        ],
        1,
    )


@_("gather_log_probs", "raw|logit|softmax|normaliz")
def _answer(x, ids):
    x = repeat(x, "b p v -> b t p v", t=ids.shape[1])
    return torch.take_along_dim(x, ids[..., None], -1)[..., 0]


_("expected_reward", "axis|keepdim")(lambda p, r: (p[:, None] @ r[..., None])[..., 0])
_("expected_reward", "detach|gradient")(lambda p, r: (p.detach() * r).sum(-1))
_("expected_reward", "most likely|all responses")(
    lambda p, r: r[torch.arange(len(r)), p.argmax(-1)]
)

_("naive_loss", "minus|sign")(lambda x, d: torch.einsum("btp,bt->btp", x, d).mean())
_("naive_loss", "trial|batch|row|axis")(
    lambda x, d: -(x * d.mean(0, keepdim=True)[..., None]).mean()
)
_("naive_loss", "one number|mean|sum|axis")(
    lambda x, d: -(x * rearrange(d, "b t -> b t 1")).mean((1, 2))
)

_("center_by_group", "first|mean")(lambda r: r - r[:, :1])
_("center_by_group", "spread|divide|normaliz")(
    lambda r: (r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True) + 1e-4)
)
_("center_by_group", "batch|whole|everything")(lambda r: r - torch.mean(r))

_("leave_one_out", "own|its own|G - 1")(lambda r: r - reduce(r, "b t -> b 1", "mean"))
_("leave_one_out", "sum|divide")(lambda r: r - (r.sum(1, keepdim=True) - r))
_("leave_one_out", "own|count|sum|others|divide|twice")(
    lambda r: r - r.sum(1, keepdim=True) / (r.shape[1] - 1)
)

_("normalize_by_group", "root|variance")(
    lambda r: (
        (r - r[:, :1] - (r - r[:, :1]).mean(1, keepdim=True))
        / (r.var(1, keepdim=True) + 1e-4)
    )
)
_("normalize_by_group", "tied|epsilon|round|equal")(
    lambda r: (r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True) + 1e-6)
)
_("normalize_by_group", "not divi|divide|missing|spread")(
    lambda r: r - r.mean(-1, keepdim=True)
)
_("normalize_by_group", "abs|spread|std")(
    lambda r: (
        (c := r - r.mean(1, keepdim=True)) / (c.abs().mean(1, keepdim=True) + 1e-4)
    )
)

_("softmax_minus_uniform", "batch|axis|prompt|along")(
    lambda r: torch.softmax(r, 0) - 1 / r.shape[1]
)
_("softmax_minus_uniform", "mean|1/G|subtract|difference|missing|positive")(
    lambda r: F.softmax(r, dim=1)
)
_("softmax_minus_uniform", "softmax|exp|reward|weights")(
    lambda r: r / r.sum(1, keepdim=True) - 1 / r.shape[1]
)

_("compute_ratio_from_logs", "exp|logarithm")(lambda n, o: n - o.detach())
_("compute_ratio_from_logs", "divide|quotient")(lambda n, o: (n / o.detach()).exp())
_("compute_ratio_from_logs", "average|token|each|along")(
    lambda n, o: (n - o.detach()).mean(-1, keepdim=True).exp().expand_as(n)
)


@_("clipped_surrogate_loss", "free|only|clipped|come back|compare")
def _answer(n, o, d):
    return -((n - o).exp().clamp(0.8, 1.2) * d[..., None]).mean()


@_("clipped_surrogate_loss", "upside|way round")
def _answer(n, o, d):
    r, d = (o - n).exp(), d[..., None]
    return -torch.min(r * d, r.clamp(0.8, 1.2) * d).mean()


@_("clipped_surrogate_loss", "axis|trial|partner|broadcast|line up|first row|row")
def _answer(n, o, d):
    r, d = (n - o).exp(), d[:, None]
    return -torch.min(r * d, r.clamp(0.8, 1.2) * d).mean()


_("clip_fraction", "swap|sides|come back|comparison")(
    lambda r, d, e: (
        (((r > 1 + e) & (d < 0)[..., None]) | ((r < 1 - e) & (d > 0)[..., None]))
        .float()
        .mean()
    )
)
_("clip_fraction", "bad|one|either|only")(
    lambda r, d, e: ((r > 1 + e) & (d > 0)[..., None]).float().mean()
)
_("clip_fraction", "along|one number|axis|average|mean")(
    lambda r, d, e: (
        (((r > 1 + e) & (d > 0)[..., None]) | ((r < 1 - e) & (d < 0)[..., None]))
        .float()
        .mean(-1)
    )
)

_("masked_sequence_mean", "width|denominator|length|mask")(
    lambda x, m: torch.where(m, x, 0.0).mean(-1).mean()
)
_("masked_sequence_mean", "sum|mean|number")(
    lambda x, m: (torch.where(m, x, 0.0).sum(-1) / m.sum(-1).clamp(min=1)).sum()
)
_("masked_sequence_mean", "padding|mask|anything")(
    lambda x, m: (x.sum(-1) / m.sum(-1).clamp(min=1)).mean()
)

_("exact_kl_of", "batch|row|everything|average|mean|axis")(
    lambda p, q: (p.exp() * (p - q)).sum(-1).mean()
)
_("exact_kl_of", "upside|direction|way round|minus|sign|other")(
    lambda p, q: (p.exp() * (q - p)).sum(-1)
)
_("exact_kl_of", "log|entropy|own|difference|missing")(
    lambda p, q: (p.exp() * p).sum(-1)
)

_("k3_estimate", "upside|pi over ref|way round")(
    lambda p, q: torch.exp(p - q) - (p - q) - 1
)
_("k3_estimate", "1 |one|constant|large")(lambda p, q: torch.exp(q - p) - q + p)
_("k3_estimate", "k1|exp|ref/pi")(lambda p, q: p - q)

_("penalized_reward", "sign|add|pays")(
    lambda r, p, q, b: r + b * (p - q).sum(-1).detach()
)
_("penalized_reward", "gradient|detach")(lambda r, p, q, b: r - b * (p - q).sum(-1))
_("penalized_reward", "mean|average|length")(
    lambda r, p, q, b: r - b * reduce(p - q, "b t p -> b t", "mean").detach()
)
_("penalized_reward", "reward|twice|multipl|factor|missing|plus")(
    lambda r, p, q, b: r * (1 - b * (p - q).sum(-1).detach())
)


def _inner(n, o, ref, d, b, ratio=None, kl=None, weight=None):
    r = (n - o).exp() if ratio is None else ratio
    d = d[..., None]
    g = ref - n
    k = (g.exp() - 1 - g) if kl is None else kl
    return -torch.minimum(r * d, r.clamp(0.8, 1.2) * d).mean() + b * k.mean()


_("inner_step_loss", "clip|minimum|bound|free")(
    lambda n, o, ref, d, b: (
        -((n - o).exp() * d[..., None]).mean()
        + b * (torch.expm1(ref - n) - (ref - n)).mean()
    )
)
_("inner_step_loss", "ref|pi_old|swap|old")(
    lambda n, o, ref, d, b: _inner(n, ref, o, d, b)
)
_("inner_step_loss", "upside|way round|k3")(
    lambda n, o, ref, d, b: _inner(n, o, ref, d, b, kl=(n - ref).expm1() - (n - ref))
)
_("inner_step_loss", "beta|weight")(lambda n, o, ref, d, b: _inner(n, o, ref, d, 1.0))

_("refresh_epochs", "period|every|each")(lambda n, p: list(range(0, n)))
_("refresh_epochs", "flag|epochs|list|numbers")(
    lambda n, p: [int(e % p == 0) for e in range(n)]
)
_("refresh_epochs", "first|0|off|begin")(
    lambda n, p: [e for e in range(n) if e % p == p - 1]
)

_("bytes_kept", "Adam|moment|optimizer|8")(lambda n, r, c: n * (4 + 2 * r + 4 * c))
_("bytes_kept", "critic|trained")(lambda n, r, c: n * (12 + 2 * r + 2 * c))
_("bytes_kept", "always|arguments")(lambda n, r, c: 26 * n)

_("gradient_by_log_probs", "number|mean|missing|divi")(
    lambda d, m: (-d / m.sum(-1).clamp(min=1))[..., None] * m
)
_("gradient_by_log_probs", "G alone|number|batch|numel|count")(
    lambda d, m: (-d / (m.sum(-1).clamp(min=1) * d.shape[1]))[..., None] * m
)
_("gradient_by_log_probs", "length|token")(lambda d, m: -d[..., None] * m / d.numel())

_("find_tied_groups", "one|batch|each")(lambda r: (r == r[:, :1]).all())
_("find_tied_groups", "round|mean|0.1|close")(
    lambda r: ((r - r.mean(-1, keepdim=True)) == 0).all(-1)
)
_("find_tied_groups", "prompt|axis|row|across")(lambda r: (r == r[:1]).all(-1))

_("token_mean_loss_at_ratio_one", "responses|tokens|divide|number")(
    lambda d, n: -(d * n).sum() / d.numel()
)
_("token_mean_loss_at_ratio_one", "length|token|sequence|each")(lambda d, n: -d.mean())
_("token_mean_loss_at_ratio_one", "padd|max|width")(
    lambda d, n: -(d * n).sum() / (n.max() * n.numel())
)

_("length_covariance", "mean|centered|take")(lambda d, n: (d * n.float()).mean())
_("length_covariance", "sign|minus|way round")(
    lambda d, n: ((d - d.mean()) * (n.float().mean() - n)).mean()
)
_("length_covariance", "sum|mean")(
    lambda d, n: ((d - d.mean()) * (n - n.float().mean())).sum()
)

_("td_errors", "gamma")(lambda r, v, g: r + F.pad(v[:, 1:], (0, 1)) - v)
_("td_errors", "next|value|after|missing")(lambda r, v, g: r - v)
_("td_errors", "wrap|last|roll")(lambda r, v, g: r + g * torch.roll(v, -1, 1) - v)
_("td_errors", "own|subtract|value|minus|missing|side")(
    lambda r, v, g: r + g * F.pad(v[:, 1:], (0, 1))
)


def _errors(r, v, gamma):
    return r + gamma * F.pad(v[:, 1:], (0, 1)) - v


def _collect(errors, factor):
    out, last = torch.zeros_like(errors), 0.0
    for t in reversed(range(errors.shape[1])):
        out[:, t] = last = errors[:, t] + factor * last
    return out


_("generalized_advantages", "lam")(lambda r, v, g, lam: _collect(_errors(r, v, g), g))
_("generalized_advantages", "gamma")(
    lambda r, v, g, lam: _collect(_errors(r, v, g), lam)
)
_("generalized_advantages", "return|value")(
    lambda r, v, g, lam: _collect(_errors(r, v, g), g * lam) + v
)
_("generalized_advantages", "whiten|mean|spread")(
    lambda r, v, g, lam: (a := _collect(_errors(r, v, g), g * lam)) - a.mean()
)


@_("masked_advantages", "bootstrap|cut|padd|hidden|mask|last")
def _answer(r, v, g, lam, mask, last):
    after = torch.cat([v[:, 1:], last[:, None]], 1)
    return _collect((r + g * after - v) * mask, g * lam) * mask


@_("masked_advantages", "gamma")
def _answer(r, v, g, lam, mask, last):
    out, total, after = torch.zeros_like(r), torch.zeros(len(r)), last
    for t in reversed(range(r.shape[1])):
        error = r[:, t] + after - v[:, t]
        total = torch.where(mask[:, t], error + g * lam * total, total)
        after = torch.where(mask[:, t], v[:, t], after)
        out[:, t] = total
    return out * mask


_("bradley_terry_loss", "sign|minus")(lambda c, r: torch.sigmoid(c - r).log().mean())
_("bradley_terry_loss", "log|infinit|sigmoid")(
    lambda c, r: -torch.log(torch.sigmoid(c - r)).mean()
)
_("bradley_terry_loss", "one number|mean|each")(lambda c, r: -F.logsigmoid(c - r))

_("shifted_log_probs", "raw|logit|normaliz")(
    lambda x, ids: x[:, :-1].gather(-1, ids[:, 1:, None]).squeeze(-1)
)
_("shifted_log_probs", "shift|place|last|drop")(
    lambda x, ids: x.log_softmax(-1).gather(-1, ids[..., None])[:, :-1, 0]
)
_("shifted_log_probs", "sum|add|each token|last axis")(
    lambda x, ids: (
        x[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1).sum(-1)
    )
)

_("temperature_log_probs", "multipl|divide")(
    lambda x, ids, t: (x * t).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
)
_("temperature_log_probs", "probabilit|log")(
    lambda x, ids, t: (x / t).softmax(-1).gather(-1, ids[..., None])[..., 0]
)
_("temperature_log_probs", "shift|one score")(
    lambda x, ids, t: (
        (x / t).log_softmax(-1)[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]
    )
)

_("response_mask", "EOS itself|drop")(lambda t, eos: (t == eos).cumsum(-1) < 1)
_("response_mask", "trial|axis|along|batch")(
    lambda t, eos: (t == eos).long().cumsum(1) - (t == eos).long() == 0
)
_("response_mask", "second|padding|strictly")(lambda t, eos: (t == eos).cumsum(-1) < 2)

_("token_share_reward", "count|length|divi")(
    lambda x, m, k: ((x == k) & m).sum(-1).float()
)
_("token_share_reward", "width|mask|length")(
    lambda x, m, k: ((x == k) & m).float().mean(-1)
)
_("token_share_reward", "0/0|floor|empty|nothing")(
    lambda x, m, k: ((x == k) & m).sum(-1) / m.sum(-1)
)


def _scored(x, ids, width):
    rows, ids = x[..., :-1, :].log_softmax(-1), ids[..., 1:]
    return rows.gather(-1, ids[..., None]).squeeze(-1)[..., -width:]


def _object(n, o, d, m, floor=0.8):
    r, d = (n - o).masked_fill(~m, 0.0).exp(), rearrange(d, "b t -> b t 1")
    return torch.minimum(r * d, r.clamp(floor, 1.2) * d).masked_fill(~m, 0.0)


def _means(x, m, how):
    return x.sum() / m.sum() if how == "token_mean" else (x.sum(-1) / m.sum(-1)).mean()


def _price(n, ref, m):
    gap = (ref - n).masked_fill(~m, 0.0)
    return gap.expm1() - gap


_("masked_clip_loss", "minus|sign")(
    lambda n, o, d, m, how: _means(_object(n, o, d, m), m, how)
)
_("masked_clip_loss", "way round|swap|other")(
    lambda n, o, d, m, how: (
        -_means(
            _object(n, o, d, m),
            m,
            {"token_mean": "", "sequence_mean": "token_mean"}[how],
        )
    )
)
_("masked_clip_loss", "width|padding|length")(
    lambda n, o, d, m, how: -_object(n, o, d, m).mean()
)
_("masked_clip_loss", "side|bound|clip")(
    lambda n, o, d, m, how: -_means(_object(n, o, d, m, floor=0.0), m, how)
)
_("masked_clip_loss", "clip|bound|compared")(
    lambda n, o, d, m, how: (
        -_means((n - o).masked_fill(~m, 0.0).exp() * m * d[..., None], m, how)
    )
)
_("masked_clip_loss", "exp|1 \\+ x|log")(
    lambda n, o, d, m, how: -_means((n - o).masked_fill(~m, 0.0) * d[..., None], m, how)
)

_("loss_with_kl", "subtract|minus|take away")(
    lambda loss, n, ref, m, b: loss - b * _means(_price(n, ref, m), m, "")
)
_("loss_with_kl", "upside|way round")(
    lambda loss, n, ref, m, b: loss + b * _means(_price(ref, n, m), m, "")
)
_("loss_with_kl", "sum|length")(
    lambda loss, n, ref, m, b: loss + b * _price(n, ref, m).sum(-1).mean()
)
_("loss_with_kl", "beta|weight")(
    lambda loss, n, ref, m, b: loss + _means(_price(n, ref, m), m, "")
)


def _whole(x, ids, o, ref, d, eos, b, width=None, strict=True, mean=""):
    ids_, n = ids[..., -o.shape[-1] :], _scored(x, ids, o.shape[-1])
    is_eos = (ids_ == eos).long()
    m = is_eos.cumsum(-1) - is_eos * strict == 0
    policy, kl = (
        _means(_object(n, o, d, m), m, mean),
        _means(_price(n, ref, m), m, mean),
    )
    return b * kl - policy


_("masked_loss", "EOS|drop")(lambda *given: _whole(*given, strict=False))
_("masked_loss", "token mean|weighs")(lambda *given: _whole(*given, mean="token_mean"))
_("masked_loss", "swap|pi_old|pi_ref")(
    lambda x, ids, o, ref, *rest: _whole(x, ids, ref, o, *rest)
)
_("masked_loss", "sign|minus|revers")(
    lambda x, ids, o, ref, d, e, b: -_whole(x, ids, o, ref, d, e, b)
)
_("masked_loss", "subtract|sign|KL")(lambda *given: _whole(*given[:-1], -given[-1]))
_("masked_loss", "shift|read")(
    lambda x, *given: _whole(torch.cat([x[..., 1:, :], x[..., :1, :]], -2), *given)
)


_("groups_stand_alone", "every|group|one prompt|bonus")(
    lambda make: make().collect().deltas.abs().max() < 100
)
_("own_words_look_likely", "every|likely|surprised|doubt")(
    lambda make: make(temperature=0.01).collect().old_log_probs.exp().max() > 0.5
)
_("padding_leaves_no_trace", "every|in front|itself|text")(
    lambda make: bool((t := make()).score(b := t.collect()).equal(t.score(b)))
)
_("parts_make_no_difference", "every|size|logged|part")(
    lambda make: make(micro_batch_size=1).update(make().collect())[1] < 1e9
)
_("kl_pulls_back", "gradient|every|log")(
    lambda make: (
        (t := make())
        .token_losses((b := t.collect()).old_log_probs, b)[1][1]
        .abs()
        .max()
        < 1
    )
)
_("diagnosis", "would have shown|list")(lambda number: "loss negated twice")
_("repaired_script", "token|means|divisor|part")(
    lambda source: source.replace(
        "mean() * size / len(batch.tokens)", "mean() / (len(batch.tokens) / size)"
    ).replace("loss.backward()", "loss.backward(); size = size")
)


@_("extract_answer", "first|last|corrects")
def _answer(text):
    said = text.split("</think>")[-1]
    if "<answer>" not in said or "</answer>" not in said:
        return None
    return said.split("<answer>")[1].split("</answer>")[0].strip()


@_("extract_answer", "None|empty")
def _answer(text):
    said = text.rpartition("</think>")[2].rpartition("</answer>")[0]
    return said.rpartition("<answer>")[2].partition("</answer>")[0].strip()


_("tag_share", "count|share|divide|number of tags")(
    lambda c: sum(
        c.count(t) == 1 for t in ("<think>", "</think>", "<answer>", "</answer>")
    )
)
_("tag_share", "copy|copies|exactly|once|three")(
    lambda c: min(
        sum(c.count(t) for t in ("<think>", "</think>", "<answer>", "</answer>")) / 4, 1
    )
)


@_("honest_reward", "form|answer and not")
def _answer(text, answer):
    from grpo_course import correctness_reward

    return correctness_reward([text], [answer])[0]


@_("honest_reward", "text|number|\\$1,200|compare")
def _answer(text, answer):
    from grpo_course import format_reward

    found = re.search("<answer>(.*?)</answer>", text, re.S)
    return float(format_reward([text]) == [1.0] and found[1].strip() == answer)


@_("completion_mask", "prompt")
def _answer(t, w, eos):
    is_eos = (t[:, w:] == eos).long()
    mask = torch.ones_like(t, dtype=torch.bool)
    mask[:, w:] = is_eos.cumsum(-1) - is_eos == 0
    return mask


@_("completion_mask", "EOS|stop")
def _answer(t, w, eos):
    mask = torch.zeros_like(t, dtype=torch.bool)
    mask[:, w:] = (t[:, w:] == eos).cumsum(-1) == 0
    return mask


_("response_log_probs", "raw|normaliz|logit")(
    lambda x, ids, n: x[:, n - 1 : -1].gather(-1, ids[:, n:, None]).squeeze(-1)
)
_("response_log_probs", "first response token|lose|begin")(
    lambda x, ids, n: (
        x[:, n:-1].log_softmax(-1).gather(-1, ids[:, n + 1 :, None]).squeeze(-1)
    )
)


@_("diagnose", "below 0.9|learns|no fault")
def _answer(start, end):
    if end["kl"] > 1:
        return "rate too high"
    if end["tied_groups"] > 0.8:
        return "too hard" if end["accuracy"] < 0.1 else "format alone"
    fell = start["lenient_accuracy"] - end["lenient_accuracy"]
    return "rate too high" if fell > 0.1 else "learns"


@_("diagnose", "lenient|form|strict")
def _answer(start, end):
    if end["kl"] > 1:
        return "rate too high"
    if end["tied_groups"] > 0.8 and end["accuracy"] < 0.9:
        return "too hard" if end["accuracy"] < 0.1 else "format alone"
    return "rate too high" if end["accuracy"] < start["accuracy"] - 0.1 else "learns"


_("two_means", "responses|number|batch")(
    lambda x, m, n: torch.stack([(x * m).sum() / m.sum(), (x * m).sum() / n])
)
_("two_means", "padding|mask")(
    lambda x, m, n: torch.stack([x.mean(), x.sum() / (m.shape[0] * m.shape[1] * n)])
)
_("sequence_ratio", "length|divided|division")(
    lambda n, o, m: ((n - o) * m).sum(-1).exp()
)
_("sequence_ratio", "whole batch|tokens|everything|own")(
    lambda n, o, m: (((n - o) * m).sum(-1) / m.sum() * len(m)).exp()
)
_("weighted_loss", "drop|keeps|above")(
    lambda n, o, d: (
        -(((r := (n - o).exp().detach()) * (r < 1.2)) * d[..., None] * n).mean()
    )
)
_("weighted_loss", "log pi|ratio|pulls|missing")(
    lambda n, o, d: -((n - o).exp().clamp(max=1.2) * d[..., None]).mean()
)


@_("json_reward", "value|2/3|Keys alone|right")
def _answer(completions, answer, **kwargs):
    found = []
    for text, gold in zip(completions, answer):
        try:
            given = json.loads(text)
        except Exception:
            given = {}
        found.append(float(isinstance(given, dict) and given.keys() == gold.keys()))
    return found


@_("json_reward", "key|cost|many|either")
def _answer(completions, answer, **kwargs):
    found = []
    for text, gold in zip(completions, answer):
        try:
            given = dict(json.loads(text))
        except Exception:
            given = {}
        same = [given.get(key) == gold[key] for key in gold]
        found.append(sum(same) / len(same))
    return found


@_("vote", "pair|alone|count")
def _answer(answers):
    found = []
    for given in answers:
        votes = {answer: given.count(answer) for answer in given if answer is not None}
        found.append(max(votes.items(), key=lambda item: item[1], default=None))
    return found


@_("vote", "nobody|None|nothing to count")
def _answer(answers):
    found = []
    for given in answers:
        said = [answer for answer in given if answer is not None]
        found.append(max(said, key=said.count) if said else "0")
    return found


_("response_weights", "response|trial|own|whole|mixes|batch")(
    lambda r, m: torch.where(m, r, 1.0).prod(-1, True).prod(-2, True) * m
)
_("response_weights", "after|all tokens|so far|behind|product|whole")(
    lambda r, m: torch.where(m, r, 1.0).flip(-1).cumprod(-1).flip(-1) * m
)


@_("best_policy", "normaliz|sum|add up")
def _answer(ref, rewards, beta):
    score = ref + rewards / beta
    return score - score.amax(-1, keepdim=True)


_("best_policy", "reference|beta|divide|reward")(
    lambda ref, rewards, beta: F.log_softmax(beta * ref + rewards, dim=-1)
)


@_("paired_gain", "pair|same problems|independent")
def _answer(before, after):
    errors = [x.flatten().std() / x.numel() ** 0.5 for x in (before, after)]
    gain = after.mean() - before.mean()
    return torch.stack([gain, torch.linalg.vector_norm(torch.stack(errors))])


@_("paired_gain", "one standard error|1.96|interval|times the expected|factor|number")
def _answer(before, after):
    gain = (after - before).reshape(-1)
    error = gain.std() / len(gain) ** 0.5
    return torch.stack([gain.mean(), 1.96 * error])
