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
        (
            "total, rows = per_token.sum(), mask[..., 0].numel()\n"
            "return torch.stack([total / mask.sum(), total / (rows * max_length)])",
            "Padding is counted",
        ),
        (
            "total, rows = (per_token * mask).sum(), mask[..., 0].numel()\n"
            "both = [total / mask.numel(), total / (rows * max_length)]\n"
            "return torch.stack(both)",
            "padding too",
        ),
        (
            "kept, rows = per_token * mask, mask[..., 0].numel()\n"
            "each = kept.flatten(1).sum(1) / mask.flatten(1).sum(1)\n"
            "return torch.stack([each.mean(), kept.sum() / (rows * max_length)])",
            "averages each prompt for itself",
        ),
        (
            "total, rows = (per_token * mask).sum(), mask.shape[1]\n"
            "return torch.stack([total / mask.sum(), total / (rows * max_length)])",
            "responses of one prompt only",
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
        (
            "difference = (log_probs - old_log_probs) * mask\n"
            "return difference.mean(-1).exp()",
            "width of the tensor",
        ),
        (
            "difference = (log_probs - old_log_probs) * mask\n"
            "return (difference.sum(-1) / mask.sum((0, -1))).exp()",
            "tokens of all prompts",
        ),
        (
            "difference = (log_probs - old_log_probs) * mask\n"
            "return torch.exp(difference.sum(-1) / mask.sum())",
            "tokens of the whole batch",
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
        (
            "r, d = torch.exp(log_probs - old_log_probs), deltas[..., None]\n"
            "return -torch.minimum(r * d, r.clamp(0.8, 1.2) * d).mean()",
            "PPO's clipped loss",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs).detach().clamp(max=1.2)\n"
            "return -(r * deltas[..., None] * log_probs).sum()",
            "sum over all tokens",
        ),
        (
            "r = torch.exp(old_log_probs - log_probs).detach().clamp(max=1.2)\n"
            "return -(r * deltas[..., None] * log_probs).mean()",
            "upside down",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs).detach().clamp(min=1.2)\n"
            "return -(r * deltas[..., None] * log_probs).mean()",
            "bounds from below",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs).detach()\n"
            "r = torch.where(r > 1.2, 0.0, r)\n"
            "return -(r * deltas[..., None] * log_probs).mean()",
            "above the bound are dropped",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs).clamp(max=1.2)\n"
            "return -(r * deltas[..., None] * log_probs.detach()).mean()",
            "log pi is detached",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs).detach().clamp(max=1.2)\n"
            "return -(r * deltas[..., None] * log_probs).sum() / log_probs[0].numel()",
            "tokens of one prompt",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs).detach().clamp(max=1.2)\n"
            "return -(r * deltas.T * log_probs).mean()",
            "fits by accident",
        ),
        (
            "r = torch.exp(log_probs - old_log_probs).detach().clamp(max=1.2)\n"
            "return -(r * deltas[0][:, None] * log_probs).mean()",
            "first prompt only",
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
