"""Answers to the exercises of notebooks 00 to 03: planted mistakes, and right ones."""

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "mean_by_group": [
        ("return torch.mean(rewards)", "over the whole batch"),
        ("return reduce(rewards, 'b t -> t', 'mean')", "over the batch axis"),
        ("return reduce(rewards, 'b t -> b 1', 'mean')", "kept the trial axis"),
        ("return torch.einsum('bt->b', rewards)", "the sum of each group"),
    ],
    "count_matches": [
        ("return float(sum(a == b for a, b in zip(prompt, response)))", "as it stands"),
        (
            "response = sorted(response)\ntruth = sorted(prompt)\n"
            "return sum(truth[i] == response[i] for i in range(len(truth)))",
            "policy's work",
        ),
        (
            "total = 0\nfor a, b in zip(sorted(prompt), response):\n"
            "    total += abs(b - a)\nreturn total",
            "add up differences",
        ),
        (
            "hits = [a == b for a, b in zip(sorted(prompt), response)]\n"
            "return sum(hits) / len(hits)",
            "the fraction",
        ),
        ("return len([x for x in response if x in prompt])", "occur anywhere"),
        ("return 1.0 if response == sorted(prompt) else 0.0", "all or nothing"),
        (
            "return len([1 for a, b in zip(sorted(prompt), response) if a != b])",
            "positions that are wrong",
        ),
        (
            "points = 0\nfor a, b in zip(sorted(prompt), response):\n"
            "    if a != b:\n        break\n    points += 1\nreturn points",
            "stop at the first wrong position",
        ),
    ],
    "duplicate_proof_reward": [
        (
            "score = 0\nfor x in prompt:\n    if x in response:\n        score += 1\n"
            "for i in range(len(response) - 1):\n"
            "    score += response[i] <= response[i + 1]\nreturn score",
            "this is the hack",
        ),
        (
            "left = list(response)\nscore = 0\nfor x in prompt:\n    if x in left:\n"
            "        left.remove(x)\n        score += 1\n"
            "for a, b in zip(response, response[1:]):\n    score += a < b\n"
            "return score",
            "a tie is in order",
        ),
        (
            "both = set(prompt).intersection(response)\n"
            "pairs = zip(response[:-1], response[1:])\n"
            "return len(both) + sum(a <= b for a, b in pairs)",
            "A set forgets",
        ),
        (
            "return sum((Counter(prompt) & Counter(response)).values())",
            "points for order are missing",
        ),
        (
            "score = sum(1 for y in response if y in prompt)\n"
            "return score + sum(a <= b for a, b in zip(response, response[1:]))",
            "so repeating one pays",
        ),
    ],
    "batch_distance": [
        (
            "same = prompts.unsqueeze(1) == responses\nreturn same.float().sum(dim=2)",
            "as they stand",
        ),
        (
            "truth, _ = torch.sort(prompts, dim=1)\n"
            "return (truth.unsqueeze(1) == responses).float().mean(dim=-1)",
            "mean over pos",
        ),
        (
            "truth = rearrange(prompts.sort().values, 'b p -> b 1 p')\n"
            "return reduce((truth == responses).float(), 'b t p -> b p', 'sum')",
            "sum over the trial axis",
        ),
        (
            "truth = prompts.sort(-1)[0][:, None]\n"
            "return (truth == responses).to(torch.int32).sum(-1)",
            "whole numbers",
        ),
        (
            "truth = prompts.sort(-1)[0]\nreturn truth.eq(responses).float().sum(-1)",
            "lack the trial axis",
        ),
    ],
    "gather_log_probs": [
        (
            "return torch.gather(torch.log_softmax(logits, 2), 2, responses)",
            "Without a trial axis",
        ),
        (
            "trial = responses.shape[1]\n"
            "full = logits[:, None].expand(-1, trial, -1, -1)\n"
            "return torch.gather(full, 3, responses[..., None])[..., 0]",
            "raw logits",
        ),
        (
            "logp = torch.log_softmax(logits, dim=1)\n"
            "full = logp[:, None].expand(-1, responses.shape[1], -1, -1)\n"
            "return full.gather(3, responses[..., None])[..., 0]",
            "normalise over pos",
        ),
        (
            "p = logits.exp() / logits.exp().sum(-1, keepdim=True)\n"
            "full = p[:, None].expand(-1, responses.shape[1], -1, -1)\n"
            "return full.gather(3, responses[..., None])[..., 0]",
            "softmax without the log",
        ),
        (
            "p = torch.softmax(logits, dim=2)\n"
            "full = p[:, None].expand(-1, responses.shape[1], -1, -1)\n"
            "return torch.log(full.gather(3, responses[..., None])[..., 0])",
            "use log_softmax, which never leaves",
        ),
        (
            "logp = logits - logits.exp().sum(-1, keepdim=True).log()\n"
            "full = logp[:, None].expand(-1, responses.shape[1], -1, -1)\n"
            "return full.gather(3, responses[..., None])[..., 0]",
            "log_softmax, which never leaves",
        ),
        (
            "logp = torch.log_softmax(logits, dim=-1)\n"
            "full = logp[:, None].expand(-1, responses.shape[1], -1, -1)\n"
            "return full.gather(3, responses[..., None])[..., 0].sum(dim=2)",
            "You sum over pos",
        ),
        (
            "logp = torch.log_softmax(logits, dim=-1).detach()\n"
            "full = logp[:, None].expand(-1, responses.shape[1], -1, -1)\n"
            "return full.gather(3, responses[..., None])[..., 0]",
            "no gradient reaches `logits`",
        ),
    ],
    "expected_reward": [
        ("return torch.matmul(response_probs, rewards.t())", "A matrix product"),
        (
            "return torch.sum(response_probs * rewards, 1, True)",
            "kept the axis",
        ),
        ("return rewards.sum(dim=1) / rewards.shape[1]", "without weights"),
        ("return torch.einsum('br,br->r', response_probs, rewards)", "mixes prompts"),
        (
            "return (rewards * response_probs).sum(1) / rewards.shape[1]",
            "divide by the number of responses",
        ),
        ("return rewards.amax(dim=-1)", "best reward there is"),
        (
            "best = response_probs.argmax(1)\n"
            "return rewards[torch.arange(len(best)), best]",
            "most likely response",
        ),
    ],
    "naive_loss": [
        (
            "deltas = deltas.unsqueeze(-1)\nreturn torch.mean(log_probs * deltas)",
            "minus sign is missing",
        ),
        (
            "return -torch.einsum('bt,btp->', deltas, log_probs)",
            "You sum. The loss is the mean",
        ),
        ("return (-log_probs * deltas).mean()", "wrong axis"),
        (
            "weights = deltas.unsqueeze(1).expand_as(log_probs)\n"
            "return -(weights * log_probs).mean()",
            "wrong axis",
        ),
        (
            "probs = torch.exp(log_probs)\nreturn -(probs * deltas[:, :, None]).mean()",
            "You weight probabilities",
        ),
        (
            "total = torch.tensor(log_probs.tolist())\n"
            "return -(total * deltas[..., None]).mean()",
            "no gradient reaches `log_probs`",
        ),
        (
            "each = (log_probs * deltas[..., None]).sum(dim=2)\nreturn -each.mean()",
            "a long response counts more",
        ),
    ],
    "center_by_group": [
        (
            "mean = rewards.sum() / rewards.numel()\nreturn rewards - mean",
            "whole batch",
        ),
        (
            "return rewards - reduce(rewards, 'b t -> 1 t', 'mean')",
            "across prompts",
        ),
        ("return rewards.mean(1).unsqueeze(1) - rewards", "sign is reversed"),
        (
            "gap = rewards - rewards.mean(1, keepdim=True)\n"
            "return gap / torch.std(rewards, dim=1, keepdim=True)",
            "divide by the spread",
        ),
        ("return rewards - torch.mean(rewards, dim=1)", "lost its axis"),
    ],
    "normalize_by_group": [
        (
            "mean = rewards.mean(1, keepdim=True)\n"
            "return (rewards - mean) / (rewards.std(1, keepdim=True) + 1e-4)",
            "rounding error is larger than your epsilon",
        ),
        (
            "gap = rewards - rewards.mean(1, keepdim=True)\n"
            "std = gap.pow(2).mean(1, keepdim=True).sqrt()\n"
            "return gap / (std + 1e-4)",
            "population spread",
        ),
        (
            "gap = rewards - rewards.mean(1, keepdim=True)\n"
            "return gap / (torch.std(rewards) + 1e-4)",
            "spread of the whole batch",
        ),
        (
            "m, s = rewards.mean(1, keepdim=True), rewards.std(1, keepdim=True)\n"
            "return (rewards - m) / (s + 1e-8)",
            "your epsilon is too small",
        ),
        (
            "m, s = rewards.mean(1, keepdim=True), rewards.std(1, keepdim=True)\n"
            "return (rewards - m) / (s + 1e-6)",
            "your epsilon is too small",
        ),
        (
            "m, s = rewards.mean(1, keepdim=True), rewards.std(1, keepdim=True)\n"
            "return (rewards - m) / s",
            "0/0 is not a number",
        ),
        (
            "s = rewards.std(1, keepdim=True)\n"
            "return rewards / torch.clamp(s, min=1e-4).add(1e-4)",
            "not centered",
        ),
        (
            "gap = rewards - rewards.mean(1, keepdim=True)\n"
            "return gap / (rewards.var(1, keepdim=True) + 1e-4)",
            "divide by the variance",
        ),
    ],
    "leave_one_out": [
        (
            "others = rewards.sum(-1, keepdim=True) - rewards\n"
            "return rewards - others / (len(rewards) - 1)",
            "number of prompts less one",
        ),
        ("return rewards - reduce(rewards, 'b t -> b 1', 'mean')", "own reward"),
        (
            "others = rewards.sum(1)[:, None] - rewards\nreturn rewards - others",
            "the sum of the others",
        ),
        (
            "others = rewards.sum(1)[:, None] - rewards\n"
            "return rewards - others / rewards.size(1)",
            "others by G",
        ),
        (
            "rows = []\nfor row in rewards.tolist():\n"
            "    rows.append([r - max(row[:i] + row[i + 1:]) "
            "for i, r in enumerate(row)])\nreturn torch.tensor(rows)",
            "best of the others",
        ),
    ],
    "softmax_minus_uniform": [
        ("e = rewards.exp()\nreturn e / e.sum(1, keepdim=True)", "all positive"),
        (
            "return torch.softmax(rewards, dim=0) - 1 / rewards.shape[1]",
            "runs over the batch",
        ),
        (
            "weights = torch.softmax(rewards, dim=1)\n"
            "return weights - rewards.mean(dim=1, keepdim=True)",
            "subtract the mean reward",
        ),
        ("return torch.log_softmax(rewards, dim=1)", "You used log_softmax"),
        (
            "e = rewards.exp()\nw = e / e.sum(1, keepdim=True)\n"
            "return w - 1 / w.shape[1]",
            "exp(200) is infinite",
        ),
    ],
}

# Right answers written in another way than the course's.
LOOPS = {
    "mean_by_group": (
        "means = []\nfor row in rewards.tolist():\n"
        "    means.append(sum(row) / len(row))\nreturn torch.tensor(means)"
    ),
    "count_matches": (
        "score = 0\nfor i, token in enumerate(sorted(prompt)):\n"
        "    if response[i] == token:\n        score += 1\nreturn score"
    ),
    "duplicate_proof_reward": (
        "left = list(response)\nscore = 0\nfor x in prompt:\n    if x in left:\n"
        "        left.remove(x)\n        score += 1\n"
        "for i in range(1, len(response)):\n"
        "    score += 0 if response[i] < response[i - 1] else 1\nreturn score"
    ),
    "batch_distance": (
        "out = torch.zeros(responses.shape[:2])\nfor b in range(len(prompts)):\n"
        "    truth = sorted(prompts[b].tolist())\n"
        "    for t in range(responses.shape[1]):\n"
        "        for p, token in enumerate(responses[b, t].tolist()):\n"
        "            out[b, t] += truth[p] == token\nreturn out"
    ),
    "gather_log_probs": (
        "logp = logits - logits.logsumexp(-1, keepdim=True)\nrows = []\n"
        "for b in range(len(logits)):\n"
        "    rows.append(torch.stack([logp[b][torch.arange(len(r)), r] "
        "for r in responses[b]]))\nreturn torch.stack(rows)"
    ),
    "expected_reward": (
        "return torch.stack([sum(p * r for p, r in zip(ps, rs)) "
        "for ps, rs in zip(response_probs, rewards)])"
    ),
    "naive_loss": (
        "total, count = 0.0, 0\nfor group, ds in zip(log_probs, deltas):\n"
        "    for row, d in zip(group, ds):\n        for logp in row:\n"
        "            total, count = total - d * logp, count + 1\nreturn total / count"
    ),
    "center_by_group": (
        "rows = []\nfor row in rewards.tolist():\n    mean = sum(row) / len(row)\n"
        "    rows.append([r - mean for r in row])\nreturn torch.tensor(rows)"
    ),
    "normalize_by_group": (
        "rows = []\nfor row in rewards.double():\n"
        "    if row.max() == row.min():\n        rows.append(torch.zeros_like(row))\n"
        "    else:\n        rows.append((row - row.mean()) / row.std())\n"
        "return torch.stack(rows).float()"
    ),
    "leave_one_out": (
        "g = rewards.shape[1]\nout = torch.empty_like(rewards)\nfor i in range(g):\n"
        "    others = [j for j in range(g) if j != i]\n"
        "    out[:, i] = rewards[:, i] - rewards[:, others].mean(1)\nreturn out"
    ),
    "softmax_minus_uniform": (
        "e = (rewards.double() - rewards.max(1, keepdim=True).values).exp()\n"
        "w = e / reduce(e, 'b t -> b 1', 'sum')\nreturn w - w.mean(1, keepdim=True)"
    ),
}
