"""Answers to the exercises of notebook 06: planted mistakes, and right ones."""

RATIO = "r = torch.exp(log_probs - old_log_probs)\nd = deltas.unsqueeze(2)\n"
POLICY = RATIO + "p = -torch.min(r * d, r.clip(0.8, 1.2) * d).mean()\n"
TOTAL = "return p + beta * k3.mean()"
K3 = "gap = ref_log_probs - log_probs\nk3 = gap.exp() - gap - 1\n"

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "refresh_epochs": [
        ("return [e for e in range(1, num_epochs) if e % period == 0]", "Epoch 0 is"),
        (
            "found, e = [], 0\nwhile e <= num_epochs:\n    found.append(e)\n"
            "    e += period\nreturn found",
            "up to num_epochs",
        ),
        ("return [e for e in range(num_epochs) if e % period == period - 1]", "Off by"),
        ("return [e for e in range(num_epochs)]", "the period is not used"),
        ("return [not e % period for e in range(num_epochs)]", "These are flags"),
        ("return [period * e for e in range(num_epochs)]", "num_epochs copies"),
    ],
    "inner_step_loss": [
        (POLICY + K3 + "return p - beta * k3.mean()", "You subtract the KL"),
        (
            POLICY + K3 + "return p + beta * k3.sum(dim=-1).mean()",
            "sum the KL over",
        ),
        (
            POLICY + "gap = old_log_probs - log_probs\n"
            "return p + beta * (gap.exp() - gap - 1).mean()",
            "compares with pi_old",
        ),
        (
            "old_log_probs = ref_log_probs\n" + POLICY + K3 + TOTAL,
            "divides by pi_ref",
        ),
        (
            "old_log_probs, ref_log_probs = ref_log_probs, old_log_probs\n"
            + POLICY
            + K3
            + TOTAL,
            "are swapped",
        ),
        (
            "old_log_probs = log_probs.detach()\n" + POLICY + K3 + TOTAL,
            "pi itself as pi_old",
        ),
        (RATIO + K3 + "return (beta * k3 - r * d).mean()", "Nothing is clipped"),
        (
            POLICY + "gap = log_probs - ref_log_probs\n"
            "return p + beta * (gap.exp() - gap - 1).mean()",
            "upside down",
        ),
        (
            POLICY + "return p + beta * torch.mean(log_probs - ref_log_probs)",
            "This KL is k1",
        ),
        (POLICY + K3 + "return p + k3.mean()", "beta is not used"),
        (POLICY + "return p", "The KL is missing"),
        (
            POLICY + "with torch.no_grad():\n    gap = ref_log_probs - log_probs\n"
            "    kl = (gap.exp() - gap - 1).mean()\nreturn p + beta * kl",
            "the KL is cut off",
        ),
    ],
    "bytes_kept": [
        (
            "one = num_parameters * 2 + num_parameters * 8\n"
            "return one * (1 + with_critic) + 2 * num_parameters * with_reference",
            "The gradient is missing",
        ),
        (
            "one = num_parameters * (2 + 2 + 2 * 2)\n"
            "return one * (1 + with_critic) + 2 * num_parameters * with_reference",
            "two moments, each in 4",
        ),
        (
            "one = num_parameters * 4\n"
            "return one * (1 + with_critic) + 2 * num_parameters * with_reference",
            "Adam is missing",
        ),
        (
            "models = 1 + with_reference + with_critic\n"
            "return 12 * models * num_parameters",
            "optimizer for the reference",
        ),
        (
            "total = 12 * num_parameters\nif with_reference:\n"
            "    total += 2 * num_parameters\nif with_critic:\n    total *= 2\n"
            "total += 2 * num_parameters\nreturn total",
            "full copy for pi_old",
        ),
        (
            "total = 12 * num_parameters\nif with_reference:\n"
            "    total += 2 * num_parameters\nif with_critic:\n"
            "    total += 2 * num_parameters\nreturn total",
            "only weights for the critic",
        ),
        (
            "return 12 * num_parameters * (2 if with_critic else 1)",
            "The reference is missing",
        ),
        ("return 26 * num_parameters", "always"),
    ],
}

# Right answers written in another way than the course's.
LOOPS = {
    "refresh_epochs": (
        "epochs = []\nfor epoch in range(num_epochs):\n"
        "    if epoch % period == 0:\n        epochs.append(epoch)\nreturn epochs"
    ),
    "inner_step_loss": (
        "total, count = 0.0, 0\nfor b in range(log_probs.shape[0]):\n"
        "    for t in range(log_probs.shape[1]):\n"
        "        for p in range(log_probs.shape[2]):\n"
        "            r = (log_probs[b, t, p] - old_log_probs[b, t, p]).exp()\n"
        "            d = deltas[b, t]\n"
        "            kept = torch.minimum(r * d, r.clamp(0.8, 1.2) * d)\n"
        "            gap = ref_log_probs[b, t, p] - log_probs[b, t, p]\n"
        "            total = total - kept + beta * (gap.exp() - 1 - gap)\n"
        "            count += 1\nreturn total / count"
    ),
    "bytes_kept": (
        "per_weight = {'weight': 2, 'gradient': 2, 'first': 4, 'second': 4}\n"
        "total = sum(per_weight.values()) * num_parameters\nif with_critic:\n"
        "    total += sum(per_weight.values()) * num_parameters\n"
        "if with_reference:\n    total += per_weight['weight'] * num_parameters\n"
        "return total"
    ),
}
