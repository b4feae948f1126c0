"""Answers to the exercises of notebook 13: planted mistakes, and right ones."""

PLANTED = {
    "two_means": [
        (
            "kept = torch.where(mask, per_token, 0.0)\n"
            "first = (kept.sum(-1) / mask.sum(-1)).mean()\n"
            "second = kept.sum() / (mask[..., 0].numel() * max_length)\n"
            "return torch.stack([first, second])",
            "sequence mean of GRPO",
        ),
        (
            "total = (per_token * mask).sum()\n"
            "return torch.stack([total / mask.sum(), total / mask.numel()])",
            "width of the tensor",
        ),
        (
            "total = (per_token * mask).sum()\n"
            "return torch.stack([total / mask.sum(), total / max_length])",
            "not by the number of responses",
        ),
        (
            "total, rows = (per_token * mask).sum(), mask.shape[0] * mask.shape[1]\n"
            "both = [total / (rows * max_length), total / mask.sum()]\n"
            "return torch.stack(both)",
            "wrong order",
        ),
    ],
    "sequence_ratio": [
        (
            "return ((log_probs - old_log_probs) * mask).sum(-1).exp()",
            "without the length",
        ),
        (
            "ratio = (log_probs - old_log_probs).exp() * mask\n"
            "return ratio.sum(-1) / mask.sum(-1)",
            "arithmetic mean",
        ),
        (
            "return torch.exp(log_probs.mean(-1) - old_log_probs.mean(-1))",
            "mask is forgotten",
        ),
        (
            "total = ((old_log_probs - log_probs) * mask).sum(-1)\n"
            "return torch.exp(total / mask.sum(-1))",
            "Upside down",
        ),
        (
            "return ((log_probs - old_log_probs) * mask).sum(-1) / mask.sum(-1)",
            "exp is missing",
        ),
    ],
    "weighted_loss": [
        (
            "r = torch.exp(log_probs - old_log_probs)\n"
            "r = torch.minimum(r, torch.tensor(1.2))\n"
            "return -(r * deltas[..., None] * log_probs).mean()",
            "weight is not frozen",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs).clamp(max=1.2)\n"
            "return -(r * deltas.unsqueeze(-1)).mean()",
            "without log pi",
        ),
        (
            "with torch.no_grad():\n    r = (log_probs - old_log_probs).exp()\n"
            "return -(r * deltas[..., None] * log_probs).mean()",
            "has no bound",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs).detach().clamp(0.8, 1.2)\n"
            "return -(r * deltas[..., None] * log_probs).mean()",
            "from below too",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs).detach().clamp(max=1.2)\n"
            "return (r * deltas[..., None] * log_probs).mean()",
            "minus sign is missing",
        ),
    ],
}

LOOPS = {
    "two_means": (
        "total, tokens, rows = 0.0, 0, 0\n"
        "for group, keep in zip(per_token, mask):\n"
        "    for values, chosen in zip(group, keep):\n"
        "        rows = rows + 1\n"
        "        for value, yes in zip(values, chosen):\n"
        "            if yes:\n"
        "                total, tokens = total + value, tokens + 1\n"
        "return torch.stack([total / tokens, total / (rows * max_length)])"
    ),
    "sequence_ratio": (
        "groups = []\n"
        "for new, old, keep in zip(log_probs, old_log_probs, mask):\n"
        "    groups.append(torch.stack([(a[k] - b[k]).mean().exp()"
        " for a, b, k in zip(new, old, keep)]))\n"
        "return torch.stack(groups)"
    ),
    "weighted_loss": (
        "total, count = 0.0, 0\n"
        "for new, old, d in zip(log_probs.flatten(0, 1), "
        "old_log_probs.flatten(0, 1), deltas.flatten()):\n"
        "    for a, b in zip(new, old):\n"
        "        weight = min((a - b).exp().item(), 1.2)\n"
        "        total, count = total - weight * d * a, count + 1\n"
        "return total / count"
    ),
}
