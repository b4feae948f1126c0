"""Answers to the exercises of notebook 10 on losses, deltas, dropout and steps."""

CLIPPED = "clipped = ratio.clamp(1 - epsilon, 1 + epsilon_high)\n"
RATIO = "ratio = (log_probs - old_log_probs).exp()\n"
GATHER = (
    "def score():\n"
    "    scores = torch.log_softmax(model(tokens), dim=-1)\n"
    "    return scores.gather(2, tokens.unsqueeze(-1))[..., 0]\n"
)

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "repaired_ratio_loss": [
        (
            "weight = torch.div(log_probs, old_log_probs)\nreturn -weight * deltas",
            "Still a quotient",
        ),
        (
            "ratio = torch.exp(old_log_probs) / torch.exp(log_probs)\n"
            "return -ratio * deltas",
            "Upside down",
        ),
        ("return (old_log_probs - log_probs) * deltas", "exp is missing"),
        (
            "ratio = log_probs.exp() / old_log_probs.exp()\nreturn ratio * deltas",
            "The minus sign is missing",
        ),
        ("return -log_probs * deltas", "This is the naive loss"),
    ],
    "repaired_clip_loss": [
        (
            RATIO + CLIPPED + "good = torch.min(ratio * deltas, clipped * deltas)\n"
            "bad = torch.max(ratio * deltas, clipped * deltas)\n"
            "return -torch.where(deltas > 0, good, bad)",
            "Still on the wrong side",
        ),
        (
            RATIO + CLIPPED + "return -torch.minimum(ratio, clipped) * deltas",
            "Still on the wrong side",
        ),
        (
            RATIO + CLIPPED + "return -torch.max(ratio * deltas, clipped * deltas)",
            "max for both signs",
        ),
        (RATIO + CLIPPED + "return -clipped * deltas", "Only the clipped product"),
        (RATIO + "return -ratio * deltas", "Nothing is clipped"),
        (
            RATIO + CLIPPED + "return torch.min(ratio * deltas, clipped * deltas)",
            "The minus sign is missing",
        ),
        (
            RATIO + "clipped = ratio.clamp(1 - epsilon, 1 + epsilon)\n"
            "return -torch.min(ratio * deltas, clipped * deltas)",
            "The upper end is 1 + epsilon_high",
        ),
    ],
    "repaired_old_and_new": [
        (
            GATHER + "model.eval()\nold = score().detach()\nmodel.train()\n"
            "return torch.stack([old, score()])",
            "The new scores still come from train mode",
        ),
        (
            GATHER + "model.train()\nold = score().detach()\n"
            "return torch.stack([old, score()])",
            "Both are thinned now",
        ),
        (
            GATHER + "old = score().detach()\nmodel.eval()\n"
            "return torch.stack([old, score()])",
            "Now the old scores are thinned",
        ),
        (
            GATHER + "model.eval()\nreturn torch.stack([score(), score()]).exp()",
            "These are probabilities",
        ),
        (
            GATHER + "model.eval()\nwith torch.no_grad():\n"
            "    return torch.stack([score(), score()])",
            "the new scores carry no gradient either",
        ),
        (
            GATHER + "model.eval()\nreturn torch.stack([score(), score()])",
            "the old scores carry a gradient, too",
        ),
        (
            GATHER + "model.eval()\nold, new = score(), score().detach()\n"
            "return torch.stack([old, new])",
            "the gradient is in the old row",
        ),
    ],
    "repaired_normalize": [
        (
            "m, s = rewards.mean(-1, True), rewards.std(-1, keepdim=True)\n"
            "return (rewards - m) / (s + 1e-8)",
            "Ties are still not zero",
        ),
        (
            "m, s = rewards.mean(-1, True), rewards.std(-1, keepdim=True)\n"
            "return (rewards - m) / (s + 1e-4)",
            "A larger epsilon alone",
        ),
        (
            "shifted = rewards - rewards[:, :1]\n"
            "return shifted / (shifted.std(-1, keepdim=True) + 1e-4)",
            "Shifted, but not centered",
        ),
        (
            "shifted = rewards - rewards[:, :1]\n"
            "centered = shifted - shifted.mean(-1, keepdim=True)\n"
            "return centered / centered.std(-1, keepdim=True)",
            "NaN: a tied group has no spread now",
        ),
        (
            "shifted = rewards - rewards[:, :1]\n"
            "return shifted - shifted.mean(-1, keepdim=True)",
            "do not divide by the spread",
        ),
        (
            "shifted = rewards - rewards.flatten()[0]\n"
            "centered = shifted - shifted.mean(-1, keepdim=True)\n"
            "return centered / (shifted.std(-1, keepdim=True) + 1e-8)",
            "One shift for the whole batch",
        ),
        (
            "shifted = rewards - rewards.flatten()[0]\n"
            "centered = shifted - shifted.mean(-1, keepdim=True)\n"
            "return centered / (shifted.std(-1, keepdim=True) + 1e-4)",
            "One shift for the whole batch",
        ),
        (
            "if rewards.unique().numel() == 1:\n    return torch.zeros_like(rewards)\n"
            "m, s = rewards.mean(-1, True), rewards.std(-1, keepdim=True)\n"
            "return (rewards - m) / (s + 1e-8)",
            "whether the whole batch is tied",
        ),
    ],
    "converted_deltas": [
        (
            "G = deltas.shape[1]\nreturn deltas * (G / (G - 1)) ** 0.5",
            "The other way round",
        ),
        (
            "G = deltas.shape[1]\nreturn deltas * (G - 1) / G",
            "The factor of the squares",
        ),
        (
            "G = len(deltas)\nreturn deltas * ((G - 1) / G) ** 0.5",
            "You count the groups",
        ),
        (
            "n = deltas.numel()\nreturn deltas * ((n - 1) / n) ** 0.5",
            "You count all responses of the batch",
        ),
        ("return deltas / deltas.std(dim=1, keepdim=True)", "only G is needed"),
        (
            "spread = deltas.std(dim=1, keepdim=True)\n"
            "return torch.where(spread > 0, deltas / spread, 0)",
            "Do not divide by the spread of the deltas",
        ),
    ],
    "repaired_penalty": [
        ("return log_probs - ref_log_probs", "Still k1"),
        ("return (log_probs - ref_log_probs).pow(2)", "pulls twice as hard"),
        (
            "d = log_probs - ref_log_probs\nreturn d.detach() * d",
            "If you detached a factor, its slope may be right",
        ),
        (
            "ratio = (log_probs - log_probs.detach()).exp()\n"
            "d = ref_log_probs - log_probs\nreturn ratio * (d.exp() - 1 - d)",
            "If you weigh it by a ratio, the slope may be right",
        ),
        ("return torch.abs(log_probs - ref_log_probs)", "The slope of this is a sign"),
        (
            "d = ref_log_probs - log_probs\nreturn d.exp() - 1 - d",
            "This is the value of k3",
        ),
        (
            "d = (log_probs - ref_log_probs).detach()\nreturn d * log_probs",
            "The gradient is right, the value is not",
        ),
    ],
    "repaired_step": [
        (
            "if rewards is not None:\n    mean = float(rewards.mean())\nreturn mean",
            "Still unbound",
        ),
        (
            "mean = 0.0\nif rewards is not None:\n    mean = rewards.mean().item()\n"
            "return mean",
            "the reward of an inner step is not 0",
        ),
        (
            "mean = float('nan')\nif rewards is not None:\n"
            "    mean = rewards.mean().item()\nreturn mean",
            "NaN is honest",
        ),
        (
            "if last is None:\n    last = rewards.mean().item()\nreturn last",
            "the first rollout's number forever",
        ),
        ("return rewards.mean().item()", "rewards is None on an inner step"),
        (
            "return (rewards.mean().item() if rewards is not None else 0) or last",
            "A mean of 0 is a number",
        ),
    ],
}

# Right answers written in another way than the course's.
LOOPS = {
    "repaired_ratio_loss": (
        "rows = []\nfor new, old, d in zip(log_probs.flatten(), "
        "old_log_probs.flatten(), deltas.flatten()):\n"
        "    rows.append(-(new.exp() / old.exp()) * d)\n"
        "return torch.stack(rows).reshape(log_probs.shape)"
    ),
    "repaired_clip_loss": (
        "ratio = log_probs.exp() / old_log_probs.exp()\n"
        "gone_up = (ratio > 1 + epsilon_high) & (deltas > 0)\n"
        "gone_down = (ratio < 1 - epsilon) & (deltas < 0)\n"
        "kept = torch.where(gone_up, 1.0 + epsilon_high, ratio)\n"
        "kept = torch.where(gone_down, 1.0 - epsilon, kept)\n"
        "return -kept * deltas"
    ),
    "repaired_old_and_new": (
        "for part in model.modules():\n"
        "    if isinstance(part, torch.nn.Dropout):\n        part.p = 0.0\n"
        "rows = []\nfor is_new in (False, True):\n"
        "    row, logits = tokens, model(tokens)\n"
        "    logits = logits if is_new else logits.detach()\n"
        "    scores = logits - logits.logsumexp(dim=-1, keepdim=True)\n"
        "    rows.append(torch.stack([torch.stack([s[t] for s, t in zip(a, b)])\n"
        "                             for a, b in zip(scores, row)]))\n"
        "return torch.stack(rows)"
    ),
    "repaired_normalize": (
        "rows = []\nfor group in rewards.tolist():\n"
        "    if len(set(group)) == 1:\n        rows.append([0.0] * len(group))\n"
        "        continue\n"
        "    mean = sum(group) / len(group)\n"
        "    var = sum((r - mean) ** 2 for r in group) / (len(group) - 1)\n"
        "    rows.append([(r - mean) / var ** 0.5 for r in group])\n"
        "return torch.tensor(rows)"
    ),
    "converted_deltas": (
        "rows = []\nfor group in deltas.tolist():\n"
        "    squares = len(group) / (len(group) - 1)\n"
        "    rows.append([d / squares ** 0.5 for d in group])\n"
        "return torch.tensor(rows)"
    ),
    "repaired_penalty": (
        "flat = []\nfor new, ref in zip(log_probs.flatten(), "
        "ref_log_probs.flatten().tolist()):\n"
        "    flat.append(0.5 * (ref - new) * (ref - new))\n"
        "return torch.stack(flat).reshape(log_probs.shape)"
    ),
    "repaired_step": (
        "if rewards is None:\n    return last\n"
        "flat = rewards.flatten().tolist()\nreturn sum(flat) / len(flat)"
    ),
}
