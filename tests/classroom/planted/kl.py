"""Answers to the exercises of notebook 05: planted mistakes, and right ones."""

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "exact_kl_of": [
        (
            "ref = torch.exp(ref_log_probs)\n"
            "return torch.sum(ref * (ref_log_probs - log_probs), dim=-1)",
            "the other direction",
        ),
        (
            "import torch.nn.functional as F\n"
            "kl = F.kl_div(log_probs, ref_log_probs, reduction='none', log_target=True)"
            "\nreturn kl.sum(dim=1)",
            "the other direction",
        ),
        (
            "ratio = log_probs - ref_log_probs\n"
            "return torch.einsum('bv,bv->b', ref_log_probs.exp(), ratio)",
            "weigh with the reference",
        ),
        ("return torch.sum(log_probs - ref_log_probs, dim=1)", "weights are missing"),
        (
            "probs = log_probs.exp()\n"
            "return torch.mean(probs * (log_probs - ref_log_probs), dim=1)",
            "the size of the vocabulary",
        ),
        (
            "ratio = log_probs.exp() / ref_log_probs.exp()\n"
            "return (log_probs * ratio.log()).sum(1)",
            "weigh with log-probabilities",
        ),
        (
            "probs, ref = log_probs.exp(), ref_log_probs.exp()\n"
            "return torch.sum(probs * torch.log(ref / probs), dim=-1)",
            "minus the KL",
        ),
        (
            "terms = torch.exp(log_probs) * (log_probs - ref_log_probs)\n"
            "return terms.sum()",
            "sum over the batch too",
        ),
        (
            "return -torch.einsum('bv,bv->b', log_probs.exp(), ref_log_probs)",
            "the cross-entropy",
        ),
        (
            "with torch.no_grad():\n    weights = log_probs.exp()\n"
            "return torch.einsum('bv,bv->b', weights, log_probs - ref_log_probs)",
            "froze the weights",
        ),
    ],
    "k3_estimate": [
        (
            "d = log_probs - ref_log_probs\nreturn torch.exp(d) - d - 1",
            "k3 is upside down",
        ),
        (
            "ratio = log_probs.exp() / ref_log_probs.exp()\n"
            "return ratio - 1 + ratio.log()",
            "Only half of it",
        ),
        ("return 0.5 * (ref_log_probs - log_probs).square()", "That is k2"),
        ("return torch.sub(log_probs, ref_log_probs)", "That is k1"),
        (
            "r = (ref_log_probs - log_probs).exp()\nreturn r - torch.log(r)",
            "-1 is missing",
        ),
        (
            "ratio = ref_log_probs.exp() / log_probs.exp()\n"
            "return ratio - 1 + ratio.log()",
            "sign of the logarithm",
        ),
        (
            "d = ref_log_probs - log_probs\nreturn -(torch.expm1(d) - d)",
            "never negative",
        ),
        (
            "ratio = ref_log_probs / log_probs\nreturn ratio - torch.log(ratio) - 1",
            "quotient of log-probabilities",
        ),
        (
            "d = (ref_log_probs - log_probs).detach()\nreturn torch.expm1(d) - d",
            "no gradient reaches `log_probs`",
        ),
        (
            "d = ref_log_probs - log_probs\nreturn torch.mean(d.exp() - d - 1)",
            "average already",
        ),
    ],
    "penalised_reward": [
        (
            "gap = log_probs.detach() - ref_log_probs\n"
            "return rewards + kl_penalty * gap.sum(dim=2)",
            "sign is wrong",
        ),
        (
            "gap = (log_probs - ref_log_probs).detach()\n"
            "return rewards - kl_penalty * reduce(gap, 'b t p -> b t', 'mean')",
            "average over pos",
        ),
        (
            "d = (ref_log_probs - log_probs).detach()\n"
            "return rewards - kl_penalty * (d.exp() - d - 1).sum(dim=2)",
            "put k3 into the reward",
        ),
        (
            "d = log_probs.detach() - ref_log_probs\n"
            "return rewards - kl_penalty * d.square().div(2).sum(dim=-1)",
            "put k2 into the reward",
        ),
        (
            "with torch.no_grad():\n"
            "    kl = log_probs.exp() * (log_probs - ref_log_probs)\n"
            "    return rewards - kl_penalty * kl.sum(dim=2)",
            "weigh by probability",
        ),
        (
            "with torch.no_grad():\n"
            "    return rewards - (log_probs - ref_log_probs).sum(dim=2)",
            "beta is missing",
        ),
        (
            "kl = torch.einsum('btp->bt', log_probs - ref_log_probs)\n"
            "return rewards - kl_penalty * kl",
            "a gradient flows through the reward",
        ),
    ],
}

# A right answer as a learner may write it: a loop instead of the library's call.
LOOPS = {
    "exact_kl_of": (
        "totals = []\nfor p, q in zip(log_probs, ref_log_probs):\n"
        "    total = 0\n    for x, y in zip(p, q):\n"
        "        total = total + x.exp() * (x - y)\n"
        "    totals.append(total)\nreturn torch.stack(totals)"
    ),
    "k3_estimate": (
        "ratio = ref_log_probs.exp() / log_probs.exp()\nreturn ratio - 1 - ratio.log()"
    ),
    "penalised_reward": (
        "judged = rewards.clone()\nbatch, trial, pos = log_probs.shape\n"
        "for b in range(batch):\n    for t in range(trial):\n"
        "        for p in range(pos):\n"
        "            gap = log_probs[b, t, p] - ref_log_probs[b, t, p]\n"
        "            judged[b, t] -= kl_penalty * gap.item()\nreturn judged"
    ),
}
