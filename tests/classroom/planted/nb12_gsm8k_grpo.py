"""Answers to the exercises of 12_gsm8k_grpo, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import statistics
from collections import Counter

import torch


def response_log_probs():
    def pick(scores, tokens):
        return scores.gather(-1, tokens[..., None]).squeeze(-1)

    def logp(logits):
        return logits.log_softmax(-1)

    yield "have read it already", lambda x, ids, n: pick(logp(x[:, n:]), ids[:, n:])
    yield (
        "lose the first response token",
        lambda x, ids, n: pick(logp(x[:, n:-1]), ids[:, n + 1 :]),
    )
    yield (
        "score the prompt as well",
        lambda x, ids, n: pick(logp(x[:, :-1]), ids[:, 1:]),
    )
    yield (
        "sum over pos",
        lambda x, ids, n: pick(logp(x[:, n - 1 : -1]), ids[:, n:]).sum(1),
    )
    yield "raw logits", lambda x, ids, n: pick(x[:, n - 1 : -1], ids[:, n:])
    yield (
        "shift the logits and the tokens",
        lambda x, ids, n: pick(logp(x[:, n - 1 : -1]), ids[:, n - 1 : -1]),
    )
    yield (
        "also drops a batch, trial or pos axis",
        lambda x, ids, n: logp(x[:, n - 1 : -1]).gather(-1, ids[:, n:, None]).squeeze(),
    )

    def answer(logits, tokens, prompt_length):
        rows = []
        for row, text in zip(logits, tokens):
            places = range(prompt_length, len(text))
            scores = [row[t - 1].log_softmax(0)[text[t]] for t in places]
            rows.append(torch.stack(scores))
        return torch.stack(rows)

    yield "is right", answer


def vote():
    def each(winner):
        return lambda answers: [winner(given) for given in answers]

    def said(given):
        return [answer for answer in given if answer is not None]

    yield "None is a response", each(lambda given: max(given, key=given.count))
    yield (
        "The one that came first wins",
        each(lambda x: max(reversed(said(x)), key=x.count) if said(x) else None),
    )
    yield "take the first answer", each(lambda given: given[0])
    yield (
        "nothing to count",
        each(lambda x: max(said(x), key=x.count) if said(x) else ""),
    )
    yield (
        "pairs of an answer and its count",
        each(lambda x: Counter(said(x)).most_common(1)[0] if said(x) else None),
    )
    yield (
        "the largest of the answers",
        each(lambda given: max(said(given), default=None)),
    )
    yield (
        "is right",
        each(lambda x: max(said(x), key=x.count) if said(x) else None),
    )
    yield "is right", each(lambda x: statistics.mode(said(x)) if said(x) else None)


def paired_gain():
    def both(mean, error):
        return torch.stack([mean, error])

    def gains(before, after):
        return (after - before).reshape(-1)

    def answer(before, after):
        n = before.numel()
        return both(
            after.mean() - before.mean(), ((before.var() + after.var()) / n) ** 0.5
        )

    yield "samples of their own", answer

    def answer(before, after):
        errors = [each.std() / each.numel() ** 0.5 for each in (before, after)]
        return both((after - before).mean(), sum(errors))

    yield "samples of their own", answer
    yield (
        "the spread of single problems",
        lambda b, a: both((a - b).mean(), (a - b).std()),
    )
    yield (
        "divides them by n - 1",
        lambda b, a: both(
            (g := gains(b, a)).mean(), g.var(correction=0).sqrt() / len(g) ** 0.5
        ),
    )

    def answer(before, after):
        seeds = after.mean(-1) - before.mean(-1)
        return both(seeds.mean(), seeds.std() / len(seeds) ** 0.5)

    yield "the seeds' means", answer
    yield (
        "The sign is turned",
        lambda b, a: both((b - a).mean(), (b - a).std() / b.numel() ** 0.5),
    )
    yield (
        "in the wrong order",
        lambda b, a: both(gains(b, a).std() / b.numel() ** 0.5, gains(b, a).mean()),
    )
    yield (
        "falls with its square root",
        lambda b, a: both((a - b).mean(), (a - b).std() / a.numel()),
    )
    yield (
        "two standard errors",
        lambda b, a: both((a - b).mean(), 2 * (a - b).std() / a.numel() ** 0.5),
    )
    yield (
        "problems of one seed",
        lambda b, a: both((a - b).mean(), (a - b).std() / a.shape[1] ** 0.5),
    )

    def answer(before, after):
        pairs = zip(before.flatten().tolist(), after.flatten().tolist())
        gained = [now - was for was, now in pairs]
        error = statistics.stdev(gained) / len(gained) ** 0.5
        return torch.tensor([statistics.mean(gained), error])

    yield "is right", answer
