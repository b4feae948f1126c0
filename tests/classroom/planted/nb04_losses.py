"""Answers to the exercises of 04_losses, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import torch
from einops import reduce


def compute_ratio_from_logs():
    yield "You divide log-probabilities", lambda new, old: new / old.detach()

    def answer(log_probs, old_log_probs):
        with torch.no_grad():
            old = old_log_probs.clone()
        return log_probs - old

    yield "the exp is missing", answer
    yield "Upside down", lambda new, old: torch.exp(old.detach() - new)

    def answer(log_probs, old_log_probs):
        p, p_old = log_probs.exp(), old_log_probs.detach().exp()
        return p / p_old

    yield "Subtract first", answer
    yield "pi_old is not frozen", lambda new, old: torch.exp(new - old)
    yield "no gradient reaches `log_probs`", lambda new, old: (new - old).exp().detach()

    def bounded(log_probs, old_log_probs):
        return (log_probs - old_log_probs.detach()).clamp(-1, 1).exp()

    yield "Nothing bounds a ratio here", bounded
    yield (
        "You clip the ratio",
        lambda new, old: torch.exp(new - old.detach()).clip(0.8, 1.2),
    )

    def answer(log_probs, old_log_probs):
        flat = []
        for new, old in zip(log_probs.flatten(), old_log_probs.flatten().tolist()):
            flat.append(2.718281828459045 ** (new - old))
        return torch.stack(flat).reshape(log_probs.shape)

    yield "is right", answer


def clipped_surrogate_loss():
    def ratio(log_probs, old_log_probs):
        return torch.exp(log_probs - old_log_probs)

    def both(r, d):
        return r * d, torch.clamp(r, 0.8, 1.2) * d

    def answer(log_probs, old_log_probs, deltas):
        r, d = ratio(log_probs, old_log_probs), deltas.unsqueeze(-1)
        return -torch.max(*both(r, d)).mean()

    yield "max for min", answer

    def answer(log_probs, old_log_probs, deltas):
        r, d = ratio(log_probs, old_log_probs), deltas.unsqueeze(-1)
        good, bad = torch.min(*both(r, d)), torch.max(*both(r, d))
        return -torch.where(d >= 0, good, bad).mean()

    yield "you clip the wrong side", answer

    def answer(log_probs, old_log_probs, deltas):
        r = ratio(log_probs, old_log_probs)
        r = torch.min(r, r.clamp(0.8, 1.2))
        return -(r * deltas[..., None]).mean()

    yield "you clip the wrong side", answer

    def answer(log_probs, old_log_probs, deltas):
        r = ratio(log_probs, old_log_probs)
        return -(torch.clamp(r, 0.8, 1.2) * deltas[..., None]).mean()

    yield "Only the clipped product is left", answer

    def answer(log_probs, old_log_probs, deltas):
        r = ratio(log_probs, old_log_probs)
        return -torch.einsum("btp,bt->btp", r, deltas).mean()

    yield "Nothing is clipped", answer

    def answer(log_probs, old_log_probs, deltas):
        r, d = ratio(log_probs, old_log_probs), deltas[..., None]
        return torch.min(*both(r, d)).mean()

    yield "minus sign is missing", answer

    def answer(log_probs, old_log_probs, deltas):
        r, d = log_probs / old_log_probs, deltas[:, :, None]
        return -torch.min(*both(r, d)).mean()

    yield "You divide log-probabilities", answer

    def answer(log_probs, old_log_probs, deltas):
        gap = reduce(log_probs - old_log_probs, "b t p -> b t", "mean")
        return -torch.min(*both(gap.exp(), deltas)).mean()

    yield "one ratio for each response", answer

    def answer(log_probs, old_log_probs, deltas):
        r = (log_probs - old_log_probs).sum(-1).exp()
        return -torch.min(*both(r, deltas)).mean()

    yield "one ratio for the whole response", answer

    def answer(log_probs, old_log_probs, deltas):
        r = torch.exp((log_probs - old_log_probs).sum(2, keepdim=True))
        return -torch.min(*both(r, deltas[..., None])).mean()

    yield "one ratio for the whole response", answer

    def answer(log_probs, old_log_probs, deltas):
        total, count = 0.0, 0
        new, old = log_probs.flatten(0, 1), old_log_probs.flatten(0, 1)
        for new_row, old_row, d in zip(new, old, deltas.flatten()):
            for a, b in zip(new_row, old_row):
                r, count = (a - b).exp(), count + 1
                gone = r > 1.2 if d > 0 else r < 0.8
                edge = 1.2 if d > 0 else 0.8
                total = total - d * (edge if gone else r)
        return total / count

    yield "is right", answer


def clip_fraction():
    def answer(ratio, deltas, epsilon):
        d = deltas.unsqueeze(-1)
        gone = ((ratio > 1.2) & (d > 0)) | ((ratio < 0.8) & (d < 0))
        return gone.float().mean()

    yield "Its width is the argument epsilon", answer

    def answer(ratio, deltas, epsilon):
        outside = (ratio - 1).abs() > epsilon
        return outside.float().mean()

    yield "every token outside the range", answer

    def answer(ratio, deltas, epsilon):
        good = deltas.unsqueeze(-1) > 0
        bad = deltas.unsqueeze(-1) < 0
        low, high = ratio < 1 - epsilon, ratio > 1 + epsilon
        return ((low * good) + (high * bad)).float().mean()

    yield "The sides are swapped", answer

    def answer(ratio, deltas, epsilon):
        good = deltas.unsqueeze(-1) > 0
        return ((ratio > 1 + epsilon) & good).float().mean()

    yield "only good tokens above the range", answer

    def answer(ratio, deltas, epsilon):
        good = (deltas >= 0)[..., None].expand_as(ratio)
        bad = (deltas <= 0)[..., None].expand_as(ratio)
        low, high = ratio < 1 - epsilon, ratio > 1 + epsilon
        return torch.logical_or(good & high, bad & low).float().mean()

    yield "tokens whose delta is zero", answer

    def answer(ratio, deltas, epsilon):
        d = deltas[..., None]
        low = (ratio < 1 - epsilon) & (d < 0)
        high = (ratio > 1 + epsilon) & (d > 0)
        return (low.float() + high.float()).mean().item()

    yield "The result must be a tensor", answer

    def answer(ratio, deltas, epsilon):
        hits = []
        for group, ds in zip(ratio.tolist(), deltas.tolist()):
            for row, d in zip(group, ds):
                for r in row:
                    up = d > 0 and r > 1 + epsilon
                    down = d < 0 and r < 1 - epsilon
                    hits.append(float(up or down))
        return torch.tensor(hits).mean()

    yield "is right", answer


def masked_sequence_mean():
    yield "This is the token mean", lambda x, m: x[m].mean()

    def answer(per_token, mask):
        kept = per_token.masked_fill(~mask, 0.0)
        return kept.mean(-1).mean()

    yield "forgotten in the denominator", answer

    def answer(per_token, mask):
        lengths = mask.sum(-1).clamp(min=1)
        return torch.mean(per_token.sum(-1) / lengths)

    yield "forgotten in the numerator", answer

    def answer(per_token, mask):
        kept = torch.where(mask, per_token, 0.0)
        return (kept.sum(-1) / mask.sum(-1)).mean()

    yield "A response without tokens makes 0/0", answer

    def answer(per_token, mask):
        kept = per_token * mask.float()
        return (kept.sum(-1) / mask.sum(-1).clamp(min=1)).mean()

    yield "0 times infinity is not a number", answer

    def answer(per_token, mask):
        kept = per_token.masked_fill(~mask, 0)
        return (kept.sum(-1) / mask.sum(-1)).nan_to_num(0).mean()

    yield "This NaN is no padding", answer

    def answer(per_token, mask):
        means = []
        for group, rows in zip(per_token, mask):
            for values, keep in zip(group, rows):
                kept = values[keep]
                means.append(kept.mean() if len(kept) else kept.sum())
        return torch.stack(means).mean()

    yield "is right", answer
