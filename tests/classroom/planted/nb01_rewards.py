"""Answers to the exercises of 01_rewards, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

from collections import Counter

import torch
from einops import rearrange, reduce


def count_matches():
    yield "as it stands", lambda p, r: float(sum(a == b for a, b in zip(p, r)))

    def answer(prompt, response):
        response = sorted(response)
        truth = sorted(prompt)
        return sum(truth[i] == response[i] for i in range(len(truth)))

    yield "policy's work", answer

    def answer(prompt, response):
        total = 0
        for a, b in zip(sorted(prompt), response):
            total += abs(b - a)
        return total

    yield "add up differences", answer

    def answer(prompt, response):
        hits = [a == b for a, b in zip(sorted(prompt), response)]
        return sum(hits) / len(hits)

    yield "the fraction", answer
    yield "occur anywhere", lambda p, r: len([x for x in r if x in p])
    yield "all or nothing", lambda p, r: 1.0 if r == sorted(p) else 0.0
    yield (
        "positions that are wrong",
        lambda p, r: len([1 for a, b in zip(sorted(p), r) if a != b]),
    )

    def answer(prompt, response):
        points = 0
        for a, b in zip(sorted(prompt), response):
            if a != b:
                break
            points += 1
        return points

    yield "stop at the first wrong position", answer

    def answer(prompt, response):
        score = 0
        for i, token in enumerate(sorted(prompt)):
            if response[i] == token:
                score += 1
        return score

    yield "is right", answer


def batch_distance():
    yield "as they stand", lambda p, ids: (p.unsqueeze(1) == ids).float().sum(dim=2)

    def answer(prompts, responses):
        truth, _ = torch.sort(prompts, dim=1)
        return (truth.unsqueeze(1) == responses).float().mean(dim=-1)

    yield "mean over pos", answer

    def answer(prompts, responses):
        truth = rearrange(prompts.sort().values, "b p -> b 1 p")
        return reduce((truth == responses).float(), "b t p -> b p", "sum")

    yield "sum over the trial axis", answer

    def answer(prompts, responses):
        truth = prompts.sort(-1)[0][:, None]
        return (truth == responses).to(torch.int32).sum(-1)

    yield "whole numbers", answer
    yield "lack the trial axis", lambda p, ids: p.sort(-1)[0].eq(ids).float().sum(-1)

    def answer(prompts, responses):
        out = torch.zeros(responses.shape[:2])
        for b in range(len(prompts)):
            truth = sorted(prompts[b].tolist())
            for t in range(responses.shape[1]):
                for p, token in enumerate(responses[b, t].tolist()):
                    out[b, t] += truth[p] == token
        return out

    yield "is right", answer


def duplicate_proof_reward():
    def answer(prompt, response):
        score = 0
        for x in prompt:
            if x in response:
                score += 1
        for i in range(len(response) - 1):
            score += response[i] <= response[i + 1]
        return score

    yield "this is the hack", answer

    def answer(prompt, response):
        left = list(response)
        score = 0
        for x in prompt:
            if x in left:
                left.remove(x)
                score += 1
        for a, b in zip(response, response[1:]):
            score += a < b
        return score

    yield "a tie is in order", answer

    def answer(prompt, response):
        both = set(prompt).intersection(response)
        pairs = zip(response[:-1], response[1:])
        return len(both) + sum(a <= b for a, b in pairs)

    yield "A set forgets", answer
    yield (
        "points for order are missing",
        lambda p, r: sum((Counter(p) & Counter(r)).values()),
    )

    def answer(prompt, response):
        score = sum(1 for y in response if y in prompt)
        return score + sum(a <= b for a, b in zip(response, response[1:]))

    yield "so repeating one pays", answer

    def shared(p, r):
        return sum(min(p.count(x), r.count(x)) for x in set(p))

    def answer(prompt, response):
        score = shared(prompt, response)
        for i in range(len(response) - 2):
            score += response[i] <= response[i + 1]
        return score

    yield "The last pair is missing", answer
    yield (
        "in descending order",
        lambda p, r: shared(p, r) + sum(not a < b for a, b in zip(r, r[1:])),
    )
    yield "if the whole response", lambda p, r: shared(p, r) + int(sorted(r) == r)

    def answer(prompt, response):
        score = shared(prompt, response)
        for x, y in zip(response, sorted(response)):
            if x == y:
                score += 1
        return score

    yield "agrees with itself sorted", answer
    yield (
        "You use `prompt` where",
        lambda p, r: shared(p, r) + sum(a <= b for a, b in zip(p, p[1:])),
    )

    def answer(prompt, response):
        left = list(response)
        score = 0
        for x in prompt:
            if x in left:
                left.remove(x)
                score += 1
        for i in range(1, len(response)):
            score += 0 if response[i] < response[i - 1] else 1
        return score

    yield "is right", answer
