"""Answers to the exercises of notebook 10: planted mistakes, and right ones."""

FORMAT = (
    "import re\n"
    "tags = ['<think>', '</think>', '<answer>', '</answer>']\n"
    "number = re.search(r'{}', completion)\n"
    "once = sum(completion.count(t) == 1 for t in tags)\n"
    "return (once + bool(number)) / 10"
)
CAUSES = (
    "causes = dict(A='quotient ratio', B='clip on the wrong side',\n"
    "    C='old log-probabilities shifted by one', E='groups that mix prompts',\n"
    "    D='dropout between old and new', F='epsilon below rounding',\n"
    "    G='k1 as a loss')\n"
)

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "diagnosis": [
        (
            CAUSES + "causes['A'] = 'clip on the wrong side'\nreturn causes[run]",
            "'clip on the wrong side' shows otherwise: learns, and stays behind",
        ),
        (
            CAUSES + "causes['C'] = 'dropout between old and new'\nreturn causes[run]",
            "noise in the ratio. Of run C you saw",
        ),
        (
            CAUSES + "causes['G'] = 'k3 upside down'\nreturn causes[run]",
            "'k3 upside down' shows otherwise: the KL in the log is wrong",
        ),
        (  # two wrong picks: the first one is named
            CAUSES + "causes['E'] = 'mean of means'\n"
            "causes['F'] = 'one regex for everything'\nreturn causes[run]",
            "'mean of means' shows otherwise: the loss changes with the size",
        ),
        (
            CAUSES + "causes['D'] = 'drop-out'\nreturn causes[run]",
            "No bug of the list has this name. Of run D you saw",
        ),
    ],
    "repaired_scores": [
        (
            "log_probs = torch.log_softmax(logits, dim=-1)[:, 1:, :]\n"
            "index = tokens[:, 1:].unsqueeze(-1)\n"
            "return torch.gather(log_probs, 2, index)[..., 0]",
            "Not shifted",
        ),
        (
            "log_probs = logits[:, 1:].log_softmax(-1)\n"
            "return log_probs.gather(-1, tokens[:, :-1, None])[..., 0]",
            "Shifted the other way",
        ),
        (
            "return logits[:, :-1].gather(-1, tokens[:, 1:, None])[..., 0]",
            "These are logits",
        ),
        (
            "p = torch.softmax(logits[:, :-1], dim=-1)\n"
            "return p.gather(-1, tokens[:, 1:, None])[..., 0]",
            "These are probabilities",
        ),
        (
            "log_probs = logits.log_softmax(-1)\n"
            "return log_probs.gather(-1, tokens[..., None])[..., 0]",
            "One score too many",
        ),
        (
            "log_probs = logits[:, :-1].log_softmax(-1)\n"
            "return log_probs.gather(-1, tokens[:, 1:, None])",
            "an axis of size 1 is left: squeeze(-1)",
        ),
    ],
    "repaired_mask": [
        (
            "seen = torch.cumsum((tokens == eos).int(), dim=1)\nreturn seen <= 1",
            "The padding is still in",
        ),
        (
            "seen = torch.cumsum((tokens == eos).int(), dim=1)\nreturn seen < 1",
            "The EOS itself is lost",
        ),
        ("return ~(tokens == eos)", "You drop EOS and keep what follows"),
        ("return tokens > 0", "You take 0 for padding"),
        (
            "is_eos = (tokens == eos).int()\n"
            "return (is_eos.cumsum(-1) - is_eos == 0).int()",
            "dtype must be bool",
        ),
    ],
    "repaired_rows": [
        ("return torch.cat([prompts] * num_responses)", "Still ABCABC"),
        (
            "return repeat(prompts, 'b p -> b (p t)', t=num_responses)",
            "repeat the numbers inside a prompt",
        ),
        (
            "return torch.repeat_interleave(prompts, num_responses)",
            "Without dim",
        ),
        (
            "return repeat(prompts, 'b p -> b t p', t=num_responses)",
            "Flatten batch and trial",
        ),
        (
            "rows = prompts.tolist() * num_responses\n"
            "return torch.tensor(sorted(rows))",
            "You sort the rows",
        ),
    ],
    "repaired_format_reward": [
        (
            "import re\n"
            "form = r'<think>.*</think>\\s*<answer>\\s*-?\\d+\\s*</answer>'\n"
            "return 0.5 if re.fullmatch(form, completion) else 0.0",
            "Still all or nothing",
        ),
        (
            "import re\n"
            "tags = ['<think>', '</think>', '<answer>', '</answer>']\n"
            "number = re.search(r'<answer>\\s*-?\\d+\\s*</answer>', completion)\n"
            "return 0.1 * sum(t in completion for t in tags) + 0.1 * bool(number)",
            "A tag that occurs twice still pays",
        ),
        (
            "tags = ['<think>', '</think>', '<answer>', '</answer>']\n"
            "total = sum(0.1 for t in tags if completion.count(t) == 1)\n"
            "return total + 0.1 * any(c.isdigit() for c in completion)",
            "a number anywhere",
        ),
        (
            "tags = ['<think>', '</think>', '<answer>', '</answer>']\n"
            "return sum(0.1 for t in tags if completion.count(t) == 1)",
            "The number is not paid for",
        ),
        (
            "import re\n"
            "tags = ['<think>', '</think>', '<answer>', '</answer>']\n"
            "number = re.search(r'<answer>\\s*\\d+\\s*</answer>', completion)\n"
            "once = sum(completion.count(t) == 1 for t in tags)\n"
            "return 0.1 * once + (0.1 if number else 0)",
            "A minus sign makes your expression fail",
        ),
        (FORMAT.format(r"<answer>.*\d.*</answer>"), "Any digit between the tags pays"),
        (FORMAT.format(r"<answer>\s*-?[\d.]+\s*</answer>"), "A decimal pays, too"),
        (FORMAT.format(r"<answer>\s*-?\d\s*</answer>"), "Only one digit is allowed"),
        (FORMAT.format(r"-?\d+\s*</answer>"), "Nothing has to open the answer"),
        (
            FORMAT.format(r"<answer>\s*-?\d+\s*</answer>$"),
            "not at the end only",
        ),
        (
            FORMAT.format(r"<answer>\s*-?\d+\s*</answer>").replace(
                "once = sum(completion.count(t) == 1 for t in tags)",
                "once = sum(t in completion for t in tags[1:])\n"
                "once += completion.count(tags[0]) == 1",
            ),
            "Each of the four tags pays only if it occurs exactly once",
        ),
    ],
    "repaired_k3": [
        (
            "ratio = (log_probs - ref_log_probs).exp()\nreturn ratio - 1 - ratio.log()",
            "Still upside down",
        ),
        (
            "ratio = (ref_log_probs - log_probs).exp()\nreturn ratio - ratio.log()",
            "The -1 is missing",
        ),
        (
            "d = log_probs - ref_log_probs\nreturn torch.exp(-d) - 1 - d",
            "Only the exp is turned",
        ),
        ("return -(ref_log_probs - log_probs)", "This is k1"),
        ("return 0.5 * (ref_log_probs - log_probs).pow(2)", "This is k2"),
    ],
    "repaired_token_mean": [
        (
            "parts = range(0, len(mask), size)\nmeans = []\nfor i in parts:\n"
            "    p, k = per_token[i:i + size], mask[i:i + size]\n"
            "    means.append(p[k].mean())\nreturn sum(means) / len(means)",
            "Still a mean of means",
        ),
        (
            "total = 0.0\nfor i in range(0, len(mask), size):\n"
            "    p, k = per_token[i:i + size], mask[i:i + size]\n"
            "    total = total + p[k].mean() * len(k)\nreturn total / len(mask)",
            "You weigh by responses",
        ),
        (
            "total = 0.0\nfor i in range(0, len(mask), size):\n"
            "    total = total + per_token[i:i + size][mask[i:i + size]].mean()\n"
            "return total",
            "The means are added",
        ),
        (
            "total = 0.0\nfor p, k in zip(per_token.split(size), mask.split(size)):\n"
            "    total = total + (p * k).sum() / mask.numel()\nreturn total",
            "Padding is counted",
        ),
        (
            "rows = [p[k].sum() / max(int(k.sum()), 1)\n"
            "        for p, k in zip(per_token, mask)]\n"
            "return torch.stack(rows).mean()",
            "This is the sequence mean",
        ),
        (
            "total = 0.0\nfor p, k in zip(per_token.split(size), mask.split(size)):\n"
            "    total = total + p[k].mean() * k.sum() / mask.sum()\nreturn total",
            "0/0: this piece has no token",
        ),
    ],
}

# Right answers written in another way than the course's.
LOOPS = {
    "diagnosis": (
        "from grpo_course.classroom.bugs.sheet import BUGS\n"
        "place = {letter: n for letter, n in zip('ABCDEFG', (0, 1, 2, 3, 5, 7, 10))}\n"
        "return BUGS[place[run]].name"
    ),
    "repaired_scores": (
        "rows = []\nfor row, ids in zip(logits, tokens.tolist()):\n"
        "    total = torch.logsumexp(row, dim=-1)\n"
        "    rows.append(torch.stack([row[t, i] - total[t]\n"
        "                             for t, i in enumerate(ids[1:])]))\n"
        "return torch.stack(rows)"
    ),
    "repaired_mask": (
        "rows = []\nfor ids in tokens.tolist():\n"
        "    length = ids.index(eos) + 1 if eos in ids else len(ids)\n"
        "    rows.append([t < length for t in range(len(ids))])\n"
        "return torch.tensor(rows)"
    ),
    "repaired_rows": "return torch.stack([p for p in prompts "
    "for _ in range(num_responses)])",
    "repaired_format_reward": (
        "points = 0\n"
        "for tag in ('<think>', '</think>', '<answer>', '</answer>'):\n"
        "    if len(completion.split(tag)) == 2:\n        points += 1\n"
        "inside = completion.partition('<answer>')[2].partition('</answer>')\n"
        "if inside[1]:\n    try:\n        int(inside[0])\n        points += 1\n"
        "    except ValueError:\n        pass\nreturn points / 10"
    ),
    "repaired_k3": (
        "flat = []\nfor new, ref in zip(log_probs.flatten(), "
        "ref_log_probs.flatten().tolist()):\n"
        "    ratio = 2.718281828459045 ** (ref - new)\n"
        "    flat.append(ratio - 1 - (ref - new))\n"
        "return torch.stack(flat).reshape(log_probs.shape)"
    ),
    "repaired_token_mean": (
        "total, count = 0.0, 0\nfor row, keep in zip(per_token, mask):\n"
        "    for value, kept in zip(row, keep.tolist()):\n        if kept:\n"
        "            total, count = total + value, count + 1\n"
        "return total / count"
    ),
}
