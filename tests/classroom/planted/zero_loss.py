"""Answers to the exercises of notebook 07: planted mistakes, and right ones."""

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "gradient_by_log_probs": [
        ("return torch.zeros_like(mask.float())", "zero everywhere"),
        (
            "n = mask.sum(2, keepdim=True).clamp(min=1)\n"
            "return deltas[:, :, None] * mask / n / deltas.numel()",
            "sign is reversed",
        ),
        (
            "batch, trial = deltas.shape\n"
            "return -deltas.unsqueeze(-1) * mask.float() / (batch * trial)",
            "length is missing",
        ),
        (
            "n = mask.sum(dim=2).clamp(min=1)\n"
            "return torch.einsum('bt,btp->btp', -deltas / n, mask.float())",
            "mean over responses is missing",
        ),
        (
            "n = mask.sum(dim=2).clamp(min=1) * deltas.shape[1]\n"
            "return torch.einsum('bt,btp->btp', -deltas / n, mask.float())",
            "divide by G alone",
        ),
        (
            "n = mask.sum(-1).clamp(min=1) * deltas.numel()\n"
            "return repeat(-deltas / n, 'b t -> b t p', p=mask.shape[-1])",
            "Padding gets a gradient",
        ),
        (
            "weights = mask / mask.sum()\nreturn -weights * deltas[..., None]",
            "belongs to the token mean",
        ),
        (
            "b, t, p = mask.shape\nreturn -deltas[..., None] * mask / (b * t * p)",
            "width of the tensor",
        ),
        (
            "weights = mask / mask.sum(-1, keepdim=True)\n"
            "return -weights * deltas[..., None] / deltas.numel()",
            "makes 0/0",
        ),
    ],
    "find_tied_groups": [
        ("return rewards.abs().sum(dim=1) == 0", "all are wrong"),
        ("return rewards.eq(1).all(dim=1)", "all are right"),
        (
            "return (rewards != rewards[:, :1]).any(dim=1)",
            "other way round",
        ),
        ("return (rewards == rewards[:1]).all(dim=0)", "across prompts"),
        ("return (rewards == rewards[:, :1]).all()", "One answer"),
        ("return rewards[:, 0].eq(rewards[:, -1])", "first and the last"),
        ("return torch.std(rewards, dim=1).eq(0)", "Eight rewards of 0.1"),
        (
            "gap = rewards - rewards.mean(dim=1, keepdim=True)\n"
            "return (gap == 0).all(dim=1)",
            "Eight rewards of 0.1",
        ),
        (
            "return (rewards.max(1).values - rewards.min(1).values) < 1e-2",
            "A small difference",
        ),
    ],
    "token_mean_loss_at_ratio_one": [
        (
            "return torch.einsum('bt,bt->', deltas, lengths.float()) / lengths.sum()",
            "minus sign is missing",
        ),
        ("return -deltas.sum() / deltas.numel()", "sequence mean"),
        (
            "return -(deltas * lengths).sum() / deltas.numel()",
            "number of responses",
        ),
        ("return (-deltas * lengths).sum()", "You sum"),
        (
            "batch, trial = deltas.shape\n"
            "return -(deltas * lengths).sum() / (batch * trial * lengths.max())",
            "padded size",
        ),
        (
            "weights = lengths / lengths.sum(1, keepdim=True)\n"
            "return -(weights * deltas).sum(1).mean()",
            "in each group",
        ),
        (
            "weights = 1 / lengths\nreturn -(weights * deltas).sum() / weights.sum()",
            "divide by the length",
        ),
    ],
    "length_covariance": [
        (
            "both = torch.stack([deltas.flatten(), lengths.flatten().float()])\n"
            "return torch.cov(both)[0, 1]",
            "N - 1",
        ),
        (
            "both = torch.stack([deltas.flatten(), lengths.flatten().float()])\n"
            "return torch.corrcoef(both)[0, 1]",
            "correlation",
        ),
        (
            "n = lengths.float()\n"
            "return -((n - n.mean()) * (deltas - deltas.mean())).mean()",
            "sign is reversed",
        ),
        (
            "n = lengths.float()\n"
            "return ((n - n.mean()) * (deltas - deltas.mean())).sum()",
            "You sum the products",
        ),
        (
            "n, d = lengths.float(), deltas\nn = n - n.mean(1, keepdim=True)\n"
            "return (n * (d - d.mean(1, keepdim=True))).mean()",
            "within each group",
        ),
        ("return (lengths * deltas).mean()", "deltas average zero"),
    ],
}

# Right answers written in another way than the course's.
LOOPS = {
    "gradient_by_log_probs": (
        "out = torch.zeros(mask.shape)\nbatch, trial = deltas.shape\n"
        "for b in range(batch):\n    for t in range(trial):\n"
        "        tokens = mask[b, t].nonzero().flatten()\n"
        "        for p in tokens:\n"
        "            out[b, t, p] = -deltas[b, t] / len(tokens) / (batch * trial)\n"
        "return out"
    ),
    "find_tied_groups": (
        "return torch.tensor([len(set(row)) == 1 for row in rewards.tolist()])"
    ),
    "token_mean_loss_at_ratio_one": (
        "total, tokens = 0.0, 0\n"
        "for d, n in zip(deltas.flatten().tolist(), lengths.flatten().tolist()):\n"
        "    total, tokens = total - n * d, tokens + n\n"
        "return torch.tensor(total / tokens)"
    ),
    "length_covariance": (
        "d, n = deltas.flatten().tolist(), lengths.flatten().tolist()\n"
        "mean = sum(n) / len(n)\n"
        "total = sum((x - mean) * y for x, y in zip(n, d))\n"
        "return torch.tensor(total / len(n))"
    ),
}
