"""Answers to the exercises of notebook 08: planted mistakes, and right ones."""

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "td_errors": [
        (
            "errors = rewards - values\n"
            "errors[:, :-1] += gamma * values[:, 1:]\n"
            "errors[:, -1] += gamma * values[:, -1]\nreturn errors",
            "bootstrap beyond the end",
        ),
        (
            "last = rewards.shape[1]\n"
            "after = [values[:, (t + 1) % last] for t in range(last)]\n"
            "return rewards + gamma * torch.stack(after, dim=1) - values",
            "sees the first value",
        ),
        (
            "errors = rewards - values\nerrors[:, :-1] += values[:, 1:]\nreturn errors",
            "gamma is missing",
        ),
        ("return torch.sub(rewards, values)", "next value is missing"),
        (
            "errors = values - rewards\nerrors[:, :-1] -= gamma * values[:, 1:]\n"
            "return errors",
            "sign is reversed",
        ),
        (
            "errors = gamma * rewards - values\n"
            "errors[:, :-1] += gamma * values[:, 1:]\nreturn errors",
            "the token's own reward too",
        ),
        (
            "errors = rewards - gamma * values\n"
            "errors[:, :-1] += gamma * values[:, 1:]\nreturn errors",
            "the token's own value too",
        ),
        (
            "errors = rewards + gamma * values\nerrors[:, :-1] -= values[:, 1:]\n"
            "return errors",
            "swapped the two values",
        ),
        (
            "before = torch.zeros_like(values)\nbefore[:, 1:] = values[:, :-1]\n"
            "return rewards + gamma * before - values",
            "shifted the wrong way",
        ),
        (
            "errors = rewards - values\nerrors[:, :-1] += 0.9 * values[:, 1:]\n"
            "return errors",
            "written into your function",
        ),
    ],
    "generalized_advantages": [
        (
            "out, total = torch.zeros_like(rewards), 0\n"
            "for t in range(rewards.shape[1]):\n"
            "    error = rewards[:, t] - values[:, t]\n"
            "    if t + 1 < rewards.shape[1]:\n"
            "        error = error + gamma * values[:, t + 1]\n"
            "    total = error + gamma * lam * total\n"
            "    out[:, t] = total\nreturn out",
            "runs forward",
        ),
        (
            "out, total, after = torch.zeros_like(rewards), 0, 0\n"
            "for t in reversed(range(rewards.shape[1])):\n"
            "    error = rewards[:, t] + gamma * after - values[:, t]\n"
            "    total = error + lam * total\n"
            "    out[:, t], after = total, values[:, t]\nreturn out",
            "forgot gamma in the recursion",
        ),
        (
            "out, total, after = torch.zeros_like(rewards), 0, 0\n"
            "for t in reversed(range(rewards.shape[1])):\n"
            "    error = rewards[:, t] + gamma * after - values[:, t]\n"
            "    total = error + gamma * total\n"
            "    out[:, t], after = total, values[:, t]\nreturn out",
            "lam is missing",
        ),
        (
            "out, total, after = torch.zeros_like(rewards), 0, 0\n"
            "for t in reversed(range(rewards.shape[1])):\n"
            "    error = rewards[:, t] + after - values[:, t]\n"
            "    total = error + gamma * lam * total\n"
            "    out[:, t], after = total, values[:, t]\nreturn out",
            "the TD errors in it lack their gamma",
        ),
        (
            "out, total = torch.zeros_like(rewards), 0\n"
            "last = rewards.shape[1] - 1\n"
            "for t in reversed(range(last + 1)):\n"
            "    after = values[:, min(t + 1, last)]\n"
            "    total = rewards[:, t] + gamma * after - values[:, t] "
            "+ gamma * lam * total\n"
            "    out[:, t] = total\nreturn out",
            "bootstrap beyond the end",
        ),
        (
            "out, total, after = torch.zeros_like(rewards), 0, 0\n"
            "for t in reversed(range(rewards.shape[1])):\n"
            "    error = rewards[:, t] + gamma * after - values[:, t]\n"
            "    total = error + gamma * lam * total\n"
            "    out[:, t], after = total, values[:, t]\nreturn out + values",
            "advantage plus value",
        ),
        (
            "errors = rewards - values\nerrors[:, :-1] += gamma * values[:, 1:]\n"
            "return errors",
            "which is lam = 0",
        ),
        (
            "left = rewards.clone()\n"
            "for t in reversed(range(rewards.shape[1] - 1)):\n"
            "    left[:, t] += gamma * left[:, t + 1]\nreturn left - values",
            "return minus value",
        ),
        (
            "found, total, after = [], 0, 0\n"
            "for t in reversed(range(rewards.shape[1])):\n"
            "    error = rewards[:, t] + gamma * after - values[:, t]\n"
            "    total = error + gamma * lam * total\n"
            "    after = values[:, t]\n    found.append(total)\n"
            "return torch.stack(found, dim=1)",
            "Turn them round",
        ),
        (
            "left = rewards.clone()\n"
            "for t in reversed(range(rewards.shape[1] - 1)):\n"
            "    left[:, t] += left[:, t + 1]\nreturn left - values",
            "without a discount",
        ),
        (
            "out, total, after = torch.zeros_like(rewards), 0, 0\n"
            "for t in reversed(range(rewards.shape[1])):\n"
            "    error = rewards[:, t] + gamma * after - values[:, t]\n"
            "    total = error + gamma * lam * total\n"
            "    out[:, t], after = total, values[:, t]\n"
            "return (out - out.mean()) / out.std()",
            "deltas are whitened",
        ),
        (
            "out, total, after = torch.zeros_like(rewards), 0, 0\n"
            "for t in reversed(range(rewards.shape[1])):\n"
            "    error = rewards[:, t] + 0.9 * after - values[:, t]\n"
            "    total = error + 0.9 * 0.6 * total\n"
            "    out[:, t], after = total, values[:, t]\nreturn out",
            "written into your function",
        ),
    ],
    "bradley_terry_loss": [
        (
            "return torch.nn.functional.logsigmoid(chosen - rejected).mean()",
            "sign is missing",
        ),
        (
            "return torch.nn.functional.softplus(chosen - rejected).mean()",
            "swapped the two",
        ),
        (
            "p = 1 / (1 + torch.exp(rejected - chosen))\nreturn -p.mean()",
            "logarithm is missing",
        ),
        (
            "p = torch.sigmoid(chosen - rejected)\nreturn torch.mean(1 - p)",
            "logarithm is missing",
        ),
        (
            "return torch.mean((rejected - chosen) ** 2)",
            "squared the difference",
        ),
        ("return (rejected - chosen).mean()", "minus the difference alone"),
        (
            "return torch.nn.functional.softplus(rejected - chosen).sum()",
            "sum over the pairs",
        ),
        (
            "return torch.nn.functional.softplus(rejected - chosen)",
            "one number for each pair",
        ),
        (
            "return -torch.log(torch.sigmoid(chosen - rejected)).mean()",
            "does both in one",
        ),
    ],
}

# A right answer as a learner may write it: a loop instead of the library's call.
LOOPS = {
    "td_errors": (
        "errors = torch.zeros_like(rewards)\n"
        "for i in range(len(rewards)):\n"
        "    after = 0.0\n"
        "    for t in reversed(range(rewards.shape[1])):\n"
        "        errors[i, t] = rewards[i, t] + gamma * after - values[i, t]\n"
        "        after = values[i, t]\nreturn errors"
    ),
    "generalized_advantages": (
        "out = torch.zeros_like(rewards)\nlast = rewards.shape[1]\n"
        "for t in range(last):\n"
        "    for later in range(t, last):\n"
        "        error = rewards[:, later] - values[:, later]\n"
        "        if later + 1 < last:\n"
        "            error = error + gamma * values[:, later + 1]\n"
        "        out[:, t] += (gamma * lam) ** (later - t) * error\nreturn out"
    ),
    "bradley_terry_loss": (
        "total = 0\nfor good, bad in zip(chosen, rejected):\n"
        "    total = total + torch.logaddexp(torch.zeros(()), bad - good)\n"
        "return total / len(chosen)"
    ),
}
