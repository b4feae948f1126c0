"""Answers to the exercises of notebook 04: planted mistakes, and right ones."""

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "compute_ratio_from_logs": [
        ("return log_probs / old_log_probs.detach()", "You divide log-probabilities"),
        (
            "with torch.no_grad():\n    old = old_log_probs.clone()\n"
            "return log_probs - old",
            "the exp is missing",
        ),
        ("return torch.exp(old_log_probs.detach() - log_probs)", "Upside down"),
        (
            "p, p_old = log_probs.exp(), old_log_probs.detach().exp()\n"
            "return p / p_old",
            "Subtract first",
        ),
        ("return torch.exp(log_probs - old_log_probs)", "pi_old is not frozen"),
        (
            "ratio = log_probs - old_log_probs\nreturn ratio.exp().detach()",
            "no gradient reaches `log_probs`",
        ),
    ],
    "clipped_surrogate_loss": [
        (
            "r = torch.exp(log_probs - old_log_probs)\nd = deltas.unsqueeze(-1)\n"
            "return -torch.max(r * d, torch.clamp(r, 0.8, 1.2) * d).mean()",
            "max for min",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs)\nd = deltas.unsqueeze(-1)\n"
            "good = torch.min(r * d, r.clamp(0.8, 1.2) * d)\n"
            "bad = torch.max(r * d, r.clamp(0.8, 1.2) * d)\n"
            "return -torch.where(d >= 0, good, bad).mean()",
            "you clip the wrong side",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs)\n"
            "r = torch.min(r, r.clamp(0.8, 1.2))\n"
            "return -(r * deltas[..., None]).mean()",
            "you clip the wrong side",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs)\n"
            "return -(torch.clamp(r, 0.8, 1.2) * deltas[..., None]).mean()",
            "Only the clipped product is left",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs)\n"
            "return -torch.einsum('btp,bt->btp', r, deltas).mean()",
            "Nothing is clipped",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs)\nd = deltas[..., None]\n"
            "return torch.min(r * d, r.clamp(0.8, 1.2) * d).mean()",
            "minus sign is missing",
        ),
        (
            "r = log_probs / old_log_probs\nd = deltas[:, :, None]\n"
            "return -torch.min(r * d, r.clamp(0.8, 1.2) * d).mean()",
            "You divide log-probabilities",
        ),
        (
            "gap = reduce(log_probs - old_log_probs, 'b t p -> b t', 'mean')\n"
            "r = gap.exp()\n"
            "return -torch.min(r * deltas, r.clamp(0.8, 1.2) * deltas).mean()",
            "one ratio for each response",
        ),
    ],
    "clip_fraction": [
        (
            "d = deltas.unsqueeze(-1)\n"
            "gone = ((ratio > 1.2) & (d > 0)) | ((ratio < 0.8) & (d < 0))\n"
            "return gone.float().mean()",
            "Its width is the argument epsilon",
        ),
        (
            "outside = (ratio - 1).abs() > epsilon\nreturn outside.float().mean()",
            "every token outside the range",
        ),
        (
            "good = deltas.unsqueeze(-1) > 0\nbad = deltas.unsqueeze(-1) < 0\n"
            "low, high = ratio < 1 - epsilon, ratio > 1 + epsilon\n"
            "return ((low * good) + (high * bad)).float().mean()",
            "The sides are swapped",
        ),
        (
            "good = deltas.unsqueeze(-1) > 0\n"
            "return ((ratio > 1 + epsilon) & good).float().mean()",
            "only good tokens above the range",
        ),
        (
            "good = (deltas >= 0)[..., None].expand_as(ratio)\n"
            "bad = (deltas <= 0)[..., None].expand_as(ratio)\n"
            "low, high = ratio < 1 - epsilon, ratio > 1 + epsilon\n"
            "return torch.logical_or(good & high, bad & low).float().mean()",
            "tokens whose delta is zero",
        ),
        (
            "d = deltas[..., None]\n"
            "low = (ratio < 1 - epsilon) & (d < 0)\n"
            "high = (ratio > 1 + epsilon) & (d > 0)\n"
            "return (low.float() + high.float()).mean().item()",
            "The result must be a tensor",
        ),
    ],
    "masked_sequence_mean": [
        ("return per_token[mask].mean()", "This is the token mean"),
        (
            "kept = per_token.masked_fill(~mask, 0.0)\nreturn kept.mean(-1).mean()",
            "forgotten in the denominator",
        ),
        (
            "lengths = mask.sum(-1).clamp(min=1)\n"
            "return torch.mean(per_token.sum(-1) / lengths)",
            "forgotten in the numerator",
        ),
        (
            "kept = torch.where(mask, per_token, 0.0)\n"
            "return (kept.sum(-1) / mask.sum(-1)).mean()",
            "A response without tokens makes 0/0",
        ),
        (
            "kept = per_token * mask.float()\n"
            "return (kept.sum(-1) / mask.sum(-1).clamp(min=1)).mean()",
            "0 * inf is not a number",
        ),
    ],
}

# Right answers written in another way than the course's.
LOOPS = {
    "compute_ratio_from_logs": (
        "flat = []\nfor new, old in zip(log_probs.flatten(), old_log_probs"
        ".flatten().tolist()):\n    flat.append(2.718281828459045 "
        "** (new - old))\nreturn torch.stack(flat).reshape(log_probs.shape)"
    ),
    "clipped_surrogate_loss": (
        "total, count = 0.0, 0\n"
        "for new, old, d in zip(log_probs.flatten(0, 1), "
        "old_log_probs.flatten(0, 1), deltas.flatten()):\n"
        "    for a, b in zip(new, old):\n"
        "        r, count = (a - b).exp(), count + 1\n"
        "        gone = r > 1.2 if d > 0 else r < 0.8\n"
        "        edge = 1.2 if d > 0 else 0.8\n"
        "        total = total - d * (edge if gone else r)\nreturn total / count"
    ),
    "clip_fraction": (
        "hits = []\nfor group, ds in zip(ratio.tolist(), deltas.tolist()):\n"
        "    for row, d in zip(group, ds):\n        for r in row:\n"
        "            up = d > 0 and r > 1 + epsilon\n"
        "            down = d < 0 and r < 1 - epsilon\n"
        "            hits.append(float(up or down))\n"
        "return torch.tensor(hits).mean()"
    ),
    "masked_sequence_mean": (
        "means = []\nfor group, rows in zip(per_token, mask):\n"
        "    for values, keep in zip(group, rows):\n        kept = values[keep]\n"
        "        means.append(kept.mean() if len(kept) else kept.sum())\n"
        "return torch.stack(means).mean()"
    ),
}
