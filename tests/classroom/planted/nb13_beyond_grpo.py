"""Answers to the exercises of 13_beyond_grpo, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import torch


def two_means():
    def answer(per_token, mask, max_length):
        kept = torch.where(mask, per_token, 0.0)
        first = (kept.sum(-1) / mask.sum(-1)).mean()
        second = kept.sum() / (mask[..., 0].numel() * max_length)
        return torch.stack([first, second])

    yield "sequence mean of GRPO", answer

    def answer(per_token, mask, max_length):
        total = (per_token * mask).sum()
        return torch.stack([total / mask.sum(), total / mask.numel()])

    yield "width of the tensor", answer

    def answer(per_token, mask, max_length):
        total = (per_token * mask).sum()
        return torch.stack([total / mask.sum(), total / max_length])

    yield "not by the number of responses", answer

    def answer(per_token, mask, max_length):
        total, rows = (per_token * mask).sum(), mask.shape[0] * mask.shape[1]
        both = [total / (rows * max_length), total / mask.sum()]
        return torch.stack(both)

    yield "wrong order", answer

    def answer(per_token, mask, max_length):
        total, rows = per_token.sum(), mask[..., 0].numel()
        return torch.stack([total / mask.sum(), total / (rows * max_length)])

    yield "Padding is counted", answer

    def answer(per_token, mask, max_length):
        total, rows = (per_token * mask).sum(), mask[..., 0].numel()
        both = [total / mask.numel(), total / (rows * max_length)]
        return torch.stack(both)

    yield "padding too", answer

    def answer(per_token, mask, max_length):
        kept, rows = per_token * mask, mask[..., 0].numel()
        each = kept.flatten(1).sum(1) / mask.flatten(1).sum(1)
        return torch.stack([each.mean(), kept.sum() / (rows * max_length)])

    yield "averages each prompt for itself", answer

    def answer(per_token, mask, max_length):
        total, rows = (per_token * mask).sum(), mask.shape[1]
        return torch.stack([total / mask.sum(), total / (rows * max_length)])

    yield "responses of one prompt only", answer

    def answer(per_token, mask, max_length):
        total, tokens, rows = 0.0, 0, 0
        for group, keep in zip(per_token, mask):
            for values, chosen in zip(group, keep):
                rows = rows + 1
                for value, yes in zip(values, chosen):
                    if yes:
                        total, tokens = total + value, tokens + 1
        return torch.stack([total / tokens, total / (rows * max_length)])

    yield "is right", answer


def sequence_ratio():
    yield "without the length", lambda new, old, m: ((new - old) * m).sum(-1).exp()

    def answer(log_probs, old_log_probs, mask):
        ratio = (log_probs - old_log_probs).exp() * mask
        return ratio.sum(-1) / mask.sum(-1)

    yield "arithmetic mean", answer
    yield (
        "mask is forgotten",
        lambda new, old, m: torch.exp(new.mean(-1) - old.mean(-1)),
    )

    def answer(log_probs, old_log_probs, mask):
        total = ((old_log_probs - log_probs) * mask).sum(-1)
        return torch.exp(total / mask.sum(-1))

    yield "Upside down", answer
    yield "exp is missing", lambda new, old, m: ((new - old) * m).sum(-1) / m.sum(-1)
    yield "width of the tensor", lambda new, old, m: ((new - old) * m).mean(-1).exp()

    def answer(log_probs, old_log_probs, mask):
        difference = (log_probs - old_log_probs) * mask
        return (difference.sum(-1) / mask.sum((0, -1))).exp()

    yield "mixes what stands along batch", answer

    def answer(log_probs, old_log_probs, mask):
        difference = (log_probs - old_log_probs) * mask
        return torch.exp(difference.sum(-1) / mask.sum())

    yield "tokens of the whole batch", answer

    def answer(log_probs, old_log_probs, mask):
        groups = []
        for new, old, keep in zip(log_probs, old_log_probs, mask):
            groups.append(
                torch.stack(
                    [(a[k] - b[k]).mean().exp() for a, b, k in zip(new, old, keep)]
                )
            )
        return torch.stack(groups)

    yield "is right", answer


def weighted_loss():
    def ratio(log_probs, old_log_probs):
        return torch.exp(log_probs - old_log_probs)

    def bounded(log_probs, old_log_probs):
        return ratio(log_probs, old_log_probs).detach().clamp(max=1.2)

    def pulled(weight, deltas, log_probs):
        return -weight * deltas[..., None] * log_probs

    def answer(log_probs, old_log_probs, deltas):
        r = torch.minimum(ratio(log_probs, old_log_probs), torch.tensor(1.2))
        return pulled(r, deltas, log_probs).mean()

    yield "weight is not frozen", answer

    def answer(log_probs, old_log_probs, deltas):
        r = ratio(log_probs, old_log_probs).clamp(max=1.2)
        return -(r * deltas.unsqueeze(-1)).mean()

    yield "without log pi", answer

    def answer(log_probs, old_log_probs, deltas):
        with torch.no_grad():
            r = ratio(log_probs, old_log_probs)
        return pulled(r, deltas, log_probs).mean()

    yield "has no bound", answer
    yield (
        "from below too",
        lambda new, old, d: pulled(
            ratio(new, old).detach().clamp(0.8, 1.2), d, new
        ).mean(),
    )
    yield (
        "minus sign is missing",
        lambda new, old, d: (bounded(new, old) * d[..., None] * new).mean(),
    )

    def answer(log_probs, old_log_probs, deltas):
        r, d = ratio(log_probs, old_log_probs), deltas[..., None]
        return -torch.minimum(r * d, r.clamp(0.8, 1.2) * d).mean()

    yield "PPO's clipped loss", answer
    yield (
        "sum over all tokens",
        lambda new, old, d: pulled(bounded(new, old), d, new).sum(),
    )
    yield "upside down", lambda new, old, d: pulled(bounded(old, new), d, new).mean()
    yield (
        "bounds from below",
        lambda new, old, d: pulled(
            ratio(new, old).detach().clamp(min=1.2), d, new
        ).mean(),
    )

    def answer(log_probs, old_log_probs, deltas):
        r = ratio(log_probs, old_log_probs).detach()
        return pulled(torch.where(r > 1.2, 0.0, r), deltas, log_probs).mean()

    yield "above the bound are dropped", answer

    def answer(log_probs, old_log_probs, deltas):
        r = ratio(log_probs, old_log_probs).clamp(max=1.2)
        return pulled(r, deltas, log_probs.detach()).mean()

    yield "log pi is detached", answer
    yield (
        "tokens of one prompt",
        lambda new, old, d: pulled(bounded(new, old), d, new).sum() / new[0].numel(),
    )
    yield (
        "fits by accident",
        lambda new, old, d: -(bounded(new, old) * d.T * new).mean(),
    )
    yield (
        "the first row of `deltas` only",
        lambda new, old, d: -(bounded(new, old) * d[0][:, None] * new).mean(),
    )

    def answer(log_probs, old_log_probs, deltas):
        total, count = 0.0, 0
        new, old = log_probs.flatten(0, 1), old_log_probs.flatten(0, 1)
        for new_row, old_row, d in zip(new, old, deltas.flatten()):
            for a, b in zip(new_row, old_row):
                weight = min((a - b).exp().item(), 1.2)
                total, count = total - weight * d * a, count + 1
        return total / count

    yield "is right", answer


def response_weights():
    def filled(ratio, mask):
        return ratio.masked_fill(~mask, 1.0)

    yield "padding are multiplied in", lambda r, m: r.prod(-1, keepdim=True) * m
    yield (
        "A place that does not count is a 1",
        lambda r, m: (r * m).prod(dim=-1, keepdim=True).expand_as(r),
    )
    yield "only the tokens so far", lambda r, m: filled(r, m).log().cumsum(-1).exp() * m

    def answer(ratio, mask):
        log_ratio = torch.where(mask, ratio.log(), 0.0).sum(-1) / mask.sum(-1)
        return log_ratio.exp()[..., None] * mask

    yield "geometric mean", answer

    def answer(ratio, mask):
        mean = (ratio * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True)
        return mean * mask

    yield "mean of the ratios", answer
    yield "sum of the ratios", lambda r, m: (r * m).sum(-1, keepdim=True) * m
    yield "one number for each response", lambda r, m: filled(r, m).prod(-1)
    yield "Spread it over the tokens", lambda r, m: filled(r, m).prod(-1, keepdim=True)

    def answer(ratio, mask):
        product = filled(ratio, mask).prod(-1, keepdim=True)
        return product.repeat(1, 1, 1, ratio.shape[-1])

    yield "stands at the padding too", answer
    yield (
        "the padding has weight 1",
        lambda r, m: filled(filled(r, m).prod(-1, keepdim=True).expand_as(r), m),
    )
    yield "tokens' own ratios", lambda r, m: r * m

    def answer(ratio, mask):
        weights = torch.zeros_like(ratio)
        for s, seed in enumerate(ratio):
            for b, group in enumerate(seed):
                for t, response in enumerate(group):
                    kept, product = mask[s, b, t], 1.0
                    for value in response[kept]:
                        product = product * value
                    weights[s, b, t, kept] = product
        return weights

    yield "is right", answer
    yield "is right", lambda r, m: (r**m).prod(-1, keepdim=True).masked_fill(~m, 0.0)
