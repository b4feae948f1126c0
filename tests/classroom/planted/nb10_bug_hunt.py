"""Answers to the exercises of 10_bug_hunt, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import re
from functools import partial

import torch
from einops import repeat

from grpo_course.classroom.bugs.sheet import BUGS


def diagnosis():
    causes = {
        "A": "quotient ratio",
        "B": "clip on the wrong side",
        "C": "old log-probabilities shifted by one",
        "D": "dropout between old and new",
        "E": "groups that mix prompts",
        "F": "epsilon below rounding",
        "G": "k1 as a loss",
    }

    def but(**wrong):
        return lambda run: (causes | wrong)[run]

    yield (
        "'clip on the wrong side' shows otherwise: learns, and stays behind",
        but(A="clip on the wrong side"),
    )
    yield (
        "noise in the ratio. Of run C you saw",
        but(C="dropout between old and new"),
    )
    yield (
        "'k3 upside down' shows otherwise: the KL in the log is wrong",
        but(G="k3 upside down"),
    )
    yield (  # two wrong picks: the first one is named
        "'mean of means' shows otherwise: the loss changes with the size",
        but(E="mean of means", F="one regex for everything"),
    )
    yield (
        "No bug of the list has this name. Of run D you saw",
        but(D="drop-out"),
    )

    def answer(run):
        place = dict(zip("ABCDEFG", (0, 1, 2, 3, 5, 7, 10)))
        return BUGS[place[run]].name

    yield "is right", answer


def repaired_ratio_loss():
    yield "Still a quotient", lambda new, d, old: -torch.div(new, old) * d
    yield "Upside down", lambda new, d, old: -(torch.exp(old) / torch.exp(new)) * d
    yield "exp is missing", lambda new, d, old: (old - new) * d
    yield "The minus sign is missing", lambda new, d, old: new.exp() / old.exp() * d
    yield "This is the naive loss", lambda new, d, old: -new * d

    def answer(log_probs, deltas, old_log_probs):
        rows = []
        for new, old, d in zip(
            log_probs.flatten(), old_log_probs.flatten(), deltas.flatten()
        ):
            rows.append(-(new - old).exp() * d)
        return torch.stack(rows).reshape(log_probs.shape)

    yield "is right", answer
    yield "exp comes last", lambda new, d, old: -new.exp() / old.exp() * d


def repaired_clip_loss():
    def both(log_probs, deltas, old_log_probs, low, high):
        ratio = (log_probs - old_log_probs).exp()
        return ratio * deltas, ratio.clamp(1 - low, 1 + high) * deltas

    def answer(log_probs, deltas, old_log_probs, epsilon, epsilon_high):
        free, clipped = both(log_probs, deltas, old_log_probs, epsilon, epsilon_high)
        good, bad = torch.min(free, clipped), torch.max(free, clipped)
        return -torch.where(deltas > 0, good, bad)

    yield "Still on the wrong side", answer

    def answer(log_probs, deltas, old_log_probs, epsilon, epsilon_high):
        ratio = (log_probs - old_log_probs).exp()
        clipped = ratio.clamp(1 - epsilon, 1 + epsilon_high)
        return -torch.minimum(ratio, clipped) * deltas

    yield "Still on the wrong side", answer
    yield "max for both signs", lambda *args: -torch.max(*both(*args))
    yield "Only the clipped product", lambda *args: -both(*args)[1]
    yield "Nothing is clipped", lambda *args: -both(*args)[0]
    yield "The minus sign is missing", lambda *args: torch.min(*both(*args))
    yield (
        "The upper end is 1 + epsilon_high",
        lambda new, d, old, low, high: -torch.min(*both(new, d, old, low, low)),
    )

    def answer(log_probs, deltas, old_log_probs, epsilon, epsilon_high):
        ratio = log_probs.sub(old_log_probs).exp()
        gone_up = (ratio > 1 + epsilon_high) & (deltas > 0)
        gone_down = (ratio < 1 - epsilon) & (deltas < 0)
        kept = torch.where(gone_up, 1.0 + epsilon_high, ratio)
        kept = torch.where(gone_down, 1.0 - epsilon, kept)
        return -kept * deltas

    yield "is right", answer


def repaired_scores():
    def pick(scores, tokens):
        return torch.gather(scores, 2, tokens.unsqueeze(-1))[..., 0]

    def logp(logits):
        return torch.log_softmax(logits, dim=-1)

    yield "Not shifted", lambda x, ids: pick(logp(x)[:, 1:, :], ids[:, 1:])
    yield "Shifted the other way", lambda x, ids: pick(logp(x[:, 1:]), ids[:, :-1])
    yield "These are logits", lambda x, ids: pick(x[:, :-1], ids[:, 1:])
    yield (
        "These are probabilities",
        lambda x, ids: pick(torch.softmax(x[:, :-1], dim=-1), ids[:, 1:]),
    )
    yield "One score too many", lambda x, ids: pick(logp(x), ids)
    yield (
        "an axis of size 1 is left: squeeze(-1)",
        lambda x, ids: logp(x[:, :-1]).gather(-1, ids[:, 1:, None]),
    )

    def answer(logits, tokens):
        rows = []
        for row, ids in zip(logits, tokens.tolist()):
            total = torch.logsumexp(row, dim=-1)
            row = [row[t, i] - total[t] for t, i in enumerate(ids[1:])]
            rows.append(torch.stack(row))
        return torch.stack(rows)

    yield "is right", answer


def repaired_old_and_new():
    def score(model, tokens):
        scores = torch.log_softmax(model(tokens), dim=-1)
        return scores.gather(2, tokens.unsqueeze(-1))[..., 0]

    def answer(model, tokens):
        model.eval()
        old = score(model, tokens).detach()
        model.train()
        return torch.stack([old, score(model, tokens)])

    yield "The new scores still come from train mode", answer

    def answer(model, tokens):
        model.train()
        old = score(model, tokens).detach()
        return torch.stack([old, score(model, tokens)])

    yield "Both are thinned now", answer

    def answer(model, tokens):
        old = score(model, tokens).detach()
        model.eval()
        return torch.stack([old, score(model, tokens)])

    yield "Now the old scores are thinned", answer

    def answer(model, tokens):
        model.eval()
        return torch.stack([score(model, tokens), score(model, tokens)]).exp()

    yield "These are probabilities", answer

    def answer(model, tokens):
        model.eval()
        with torch.no_grad():
            return torch.stack([score(model, tokens), score(model, tokens)])

    yield "the new scores carry no gradient either", answer

    def answer(model, tokens):
        model.eval()
        return torch.stack([score(model, tokens), score(model, tokens)])

    yield "the old scores carry a gradient, too", answer

    def answer(model, tokens):
        model.eval()
        old, new = score(model, tokens), score(model, tokens).detach()
        return torch.stack([old, new])

    yield "the gradient is in the old row", answer

    def answer(model, tokens):
        for part in model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
        rows = []
        for is_new in (False, True):
            logits = model(tokens) if is_new else model(tokens).detach()
            scores = logits - logits.logsumexp(dim=-1, keepdim=True)
            for text, row in zip(tokens, scores):
                rows += [row[place, token] for place, token in enumerate(text)]
        return torch.stack(rows).reshape(2, *tokens.shape)

    yield "is right", answer


def repaired_mask():
    def answer(tokens, eos):
        seen = torch.cumsum((tokens == eos).int(), dim=1)
        return seen <= 1

    yield "The padding is still in", answer

    def answer(tokens, eos):
        seen = torch.cumsum((tokens == eos).int(), dim=1)
        return seen < 1

    yield "The EOS itself is lost", answer
    yield "You drop EOS and keep what follows", lambda ids, eos: ~(ids == eos)
    yield "You take 0 for padding", lambda ids, eos: ids > 0

    def answer(tokens, eos):
        is_eos = (tokens == eos).int()
        return (is_eos.cumsum(-1) - is_eos == 0).int()

    yield "dtype must be bool", answer

    def answer(tokens, eos):
        rows = []
        for ids in tokens.tolist():
            length = ids.index(eos) + 1 if eos in ids else len(ids)
            rows.append([t < length for t in range(len(ids))])
        return torch.tensor(rows)

    yield "is right", answer


def repaired_rows():
    yield "Still ABCABC", lambda p, n: torch.cat([p] * n)
    yield (
        "repeat the numbers inside a prompt",
        lambda p, n: repeat(p, "b p -> b (p t)", t=n),
    )
    yield "Without dim", lambda p, n: torch.repeat_interleave(p, n)
    yield "Flatten batch and trial", lambda p, n: repeat(p, "b p -> b t p", t=n)
    yield "You sort the rows", lambda p, n: torch.tensor(sorted(p.tolist() * n))
    yield (
        "is right",
        lambda prompts, n: torch.stack([p for p in prompts for _ in range(n)]),
    )


def repaired_format_reward():
    tags = ["<think>", "</think>", "<answer>", "</answer>"]

    def paid(completion, pattern):
        once = sum(completion.count(t) == 1 for t in tags)
        return (once + bool(re.search(pattern, completion))) / 10

    def answer(completion):
        form = r"<think>.*</think>\s*<answer>\s*-?\d+\s*</answer>"
        return 0.5 if re.fullmatch(form, completion) else 0.0

    yield "Still all or nothing", answer

    def answer(completion):
        number = re.search(r"<answer>\s*-?\d+\s*</answer>", completion)
        return 0.1 * sum(t in completion for t in tags) + 0.1 * bool(number)

    yield "A tag that occurs twice still pays", answer

    def answer(completion):
        total = sum(0.1 for t in tags if completion.count(t) == 1)
        return total + 0.1 * any(c.isdigit() for c in completion)

    yield "a number anywhere", answer
    yield (
        "The number is not paid for",
        lambda text: sum(0.1 for t in tags if text.count(t) == 1),
    )

    def answer(completion):
        number = re.search(r"<answer>\s*\d+\s*</answer>", completion)
        once = sum(completion.count(t) == 1 for t in tags)
        return 0.1 * once + (0.1 if number else 0)

    yield "A minus sign makes your expression fail", answer
    for words, pattern in {
        "Any digit between the tags pays": r"<answer>.*\d.*</answer>",
        "A decimal pays, too": r"<answer>\s*-?[\d.]+\s*</answer>",
        "Only one digit is allowed": r"<answer>\s*-?\d\s*</answer>",
        "Nothing has to open the answer": r"-?\d+\s*</answer>",
        "not at the end only": r"<answer>\s*-?\d+\s*</answer>$",
    }.items():
        yield words, partial(paid, pattern=pattern)

    def answer(completion):
        number = re.search(r"<answer>\s*-?\d+\s*</answer>", completion)
        once = sum(t in completion for t in tags[1:])
        once += completion.count(tags[0]) == 1
        return (once + bool(number)) / 10

    yield "count, and pay for exactly one", answer

    def answer(completion):
        points = 0
        for tag in tags:
            if len(completion.split(tag)) == 2:
                points += 1
        inside = completion.rpartition("<answer>")[2].partition("</answer>")
        if inside[1]:
            try:
                int(inside[0])
                points += 1
            except ValueError:
                pass
        return points / 10

    yield "is right", answer


def repaired_normalize():
    def mean(rewards):
        return rewards.mean(-1, keepdim=True)

    def std(rewards):
        return rewards.std(-1, keepdim=True)

    yield "Ties are still not zero", lambda r: (r - mean(r)) / (std(r) + 1e-8)
    yield "A larger epsilon alone", lambda r: (r - mean(r)) / (std(r) + 1e-4)

    def answer(rewards):
        shifted = rewards - rewards[:, :1]
        return shifted / (std(shifted) + 1e-4)

    yield "Shifted, but not centered", answer

    def answer(rewards):
        shifted = rewards - rewards[:, :1]
        centered = shifted - mean(shifted)
        return centered / std(centered)

    yield "NaN: a tied group has no spread now", answer

    def answer(rewards):
        shifted = rewards - rewards[:, :1]
        return shifted - mean(shifted)

    yield "do not divide by the spread", answer

    def answer(rewards):
        shifted = rewards - rewards.flatten()[0]
        return (shifted - mean(shifted)) / (std(shifted) + 1e-8)

    yield "a shift of its own", answer

    def answer(rewards):
        shifted = rewards - rewards.flatten()[0]
        return (shifted - mean(shifted)) / (std(shifted) + 1e-4)

    yield "One shift for the whole batch", answer

    def answer(rewards):
        if rewards.unique().numel() == 1:
            return torch.zeros_like(rewards)
        return (rewards - mean(rewards)) / (std(rewards) + 1e-8)

    yield "whether the whole batch is tied", answer

    def answer(rewards):
        rows = []
        for group in rewards.tolist():
            if len(set(group)) == 1:
                rows.append([0.0] * len(group))
                continue
            mean = sum(group) / len(group)
            var = sum((r - mean) ** 2 for r in group) / (len(group) - 1)
            rows.append([(r - mean) / var**0.5 for r in group])
        return torch.tensor(rows)

    yield "is right", answer


def converted_deltas():
    yield "The other way round", lambda d: d * (d.shape[1] / (d.shape[1] - 1)) ** 0.5
    yield "The factor of the squares", lambda d: d * (d.shape[1] - 1) / d.shape[1]
    yield "You count the groups", lambda d: d * ((len(d) - 1) / len(d)) ** 0.5

    def answer(deltas):
        n = deltas.numel()
        return deltas * ((n - 1) / n) ** 0.5

    yield "You count all responses of the batch", answer
    yield "tied group has no spread", lambda d: d / d.std(dim=1, keepdim=True)

    def answer(deltas):
        spread = deltas.std(dim=1, keepdim=True)
        return torch.where(spread > 0, deltas / spread, 0)

    yield "is right", answer

    def answer(deltas):
        rows = []
        for group in deltas.tolist():
            squares = len(group) / (len(group) - 1)
            rows.append([d / squares**0.5 for d in group])
        return torch.tensor(rows)

    yield "is right", answer


def repaired_k3():
    def answer(log_probs, ref_log_probs):
        ratio = (log_probs - ref_log_probs).exp()
        return ratio - 1 - ratio.log()

    yield "Still upside down", answer

    def answer(log_probs, ref_log_probs):
        ratio = (ref_log_probs - log_probs).exp()
        return ratio - ratio.log()

    yield "The -1 is missing", answer

    def answer(log_probs, ref_log_probs):
        d = log_probs - ref_log_probs
        return torch.exp(-d) - 1 - d

    yield "Only the exp is turned", answer
    yield "This is k1", lambda new, ref: -(ref - new)
    yield "This is k2", lambda new, ref: 0.5 * (ref - new).pow(2)

    def answer(log_probs, ref_log_probs):
        flat = []
        for new, ref in zip(log_probs.flatten(), ref_log_probs.flatten().tolist()):
            ratio = 2.718281828459045 ** (ref - new)
            flat.append(ratio - 1 - (ref - new))
        return torch.stack(flat).reshape(log_probs.shape)

    yield "is right", answer


def repaired_penalty():
    yield "Still k1", lambda new, ref: new - ref
    yield "pulls twice as hard", lambda new, ref: (new - ref).pow(2)

    def answer(log_probs, ref_log_probs):
        d = log_probs - ref_log_probs
        return d.detach() * d

    yield "If you detached a factor, the slope may be right", answer

    def answer(log_probs, ref_log_probs):
        ratio = (log_probs - log_probs.detach()).exp()
        d = ref_log_probs - log_probs
        return ratio * (d.exp() - 1 - d)

    yield "If you weigh it by a ratio, the slope may be right", answer
    yield "The slope of this is a sign", lambda new, ref: torch.abs(new - ref)

    def answer(log_probs, ref_log_probs):
        d = ref_log_probs - log_probs
        return d.exp() - 1 - d

    yield "This is the value of k3", answer

    def answer(log_probs, ref_log_probs):
        d = (log_probs - ref_log_probs).detach()
        return d * log_probs

    yield "The gradient is right, the value is not", answer

    def answer(log_probs, ref_log_probs):
        flat = []
        for new, ref in zip(log_probs.flatten(), ref_log_probs.flatten().tolist()):
            flat.append(0.5 * (ref - new) * (ref - new))
        return torch.stack(flat).reshape(log_probs.shape)

    yield "is right", answer


def repaired_token_mean():
    def answer(per_token, mask, size):
        parts = range(0, len(mask), size)
        means = []
        for i in parts:
            p, k = per_token[i : i + size], mask[i : i + size]
            means.append(p[k].mean())
        return sum(means) / len(means)

    yield "Still a mean of means", answer

    def answer(per_token, mask, size):
        total = 0.0
        for i in range(0, len(mask), size):
            p, k = per_token[i : i + size], mask[i : i + size]
            total = total + p[k].mean() * len(k)
        return total / len(mask)

    yield "You weigh by responses", answer

    def answer(per_token, mask, size):
        total = 0.0
        for i in range(0, len(mask), size):
            total = total + per_token[i : i + size][mask[i : i + size]].mean()
        return total

    yield "The means are added", answer

    def answer(per_token, mask, size):
        total = 0.0
        for p, k in zip(per_token.split(size), mask.split(size)):
            total = total + (p * k).sum() / mask.numel()
        return total

    yield "Padding is counted", answer

    def answer(per_token, mask, size):
        rows = [p[k].sum() / max(int(k.sum()), 1) for p, k in zip(per_token, mask)]
        return torch.stack(rows).mean()

    yield "This is the sequence mean", answer

    def answer(per_token, mask, size):
        total = 0.0
        for p, k in zip(per_token.split(size), mask.split(size)):
            total = total + p[k].mean() * k.sum() / mask.sum()
        return total

    yield "0/0: this piece has no token", answer

    def answer(per_token, mask, size):
        total, count = 0.0, 0
        for row, keep in zip(per_token, mask):
            for value, kept in zip(row, keep.tolist()):
                if kept:
                    total, count = total + value, count + 1
        return total / count

    yield "is right", answer


def repaired_step():
    def answer(rewards, last):
        if rewards is not None:
            mean = float(rewards.mean())
        return mean

    yield "Still unbound", answer

    def answer(rewards, last):
        mean = 0.0
        if rewards is not None:
            mean = rewards.mean().item()
        return mean

    yield "the reward of an inner step is not 0", answer

    def answer(rewards, last):
        mean = float("nan")
        if rewards is not None:
            mean = rewards.mean().item()
        return mean

    yield "NaN is honest", answer

    def answer(rewards, last):
        if last is None:
            last = rewards.mean().item()
        return last

    yield "the first rollout's number forever", answer
    yield "rewards is None on an inner step", lambda r, last: r.mean().item()
    yield (
        "A mean of 0 is a number",
        lambda r, last: (r.mean().item() if r is not None else 0) or last,
    )

    def answer(rewards, last):
        if rewards is None:
            return last
        flat = rewards.flatten().tolist()
        return sum(flat) / len(flat)

    yield "is right", answer
