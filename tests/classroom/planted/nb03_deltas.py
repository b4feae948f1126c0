"""Answers to the exercises of 03_deltas, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import torch
from einops import reduce


def center_by_group():
    yield "whole batch", lambda r: r - r.sum() / r.numel()
    yield "across prompts", lambda r: r - reduce(r, "b t -> 1 t", "mean")
    yield "sign is reversed", lambda r: r.mean(1).unsqueeze(1) - r
    yield "return the mean itself", lambda r: reduce(r, "b t -> b 1", "mean")

    def answer(rewards):
        gap = rewards - rewards.mean(1, keepdim=True)
        return gap / torch.std(rewards, dim=1, keepdim=True)

    yield "divide by the spread", answer
    yield "lost its axis", lambda r: r - torch.mean(r, dim=1)

    def answer(rewards):
        rows = []
        for row in rewards.tolist():
            mean = sum(row) / len(row)
            rows.append([r - mean for r in row])
        return torch.tensor(rows)

    yield "is right", answer


def leave_one_out():
    def answer(rewards):
        others = rewards.sum(-1, keepdim=True) - rewards
        return rewards - others / (len(rewards) - 1)

    yield "number of prompts less one", answer
    yield "own reward", lambda r: r - reduce(r, "b t -> b 1", "mean")
    yield "the sum of the others", lambda r: r - (r.sum(1)[:, None] - r)
    yield "others by G", lambda r: r - (r.sum(1)[:, None] - r) / r.size(1)

    def answer(rewards):
        rows = []
        for row in rewards.tolist():
            rows.append([r - max(row[:i] + row[i + 1 :]) for i, r in enumerate(row)])
        return torch.tensor(rows)

    yield "best of the others", answer
    yield (
        "sum is that of the whole group",
        lambda r: r - r.sum(1, keepdim=True) / (r.shape[1] - 1),
    )
    yield "reward of one neighbour", lambda r: r - torch.roll(r, 1, dims=1)
    yield "leave the first response out", lambda r: r - r[:, 1:].mean(1, keepdim=True)

    def answer(rewards):
        g = rewards.size(1)
        gap = rewards - rewards.mean(1, keepdim=True)
        return gap / g * (g - 1)

    yield "factor is upside down", answer

    def answer(rewards):
        g = rewards.shape[1]
        out = torch.empty_like(rewards)
        for i in range(g):
            others = [j for j in range(g) if j != i]
            out[:, i] = rewards[:, i] - rewards[:, others].mean(1)
        return out

    yield "is right", answer


def normalize_by_group():
    def answer(rewards):
        mean = rewards.mean(1, keepdim=True)
        return (rewards - mean) / (rewards.std(1, keepdim=True) + 1e-4)

    yield "rounding error is larger than your epsilon", answer

    def answer(rewards):
        gap = rewards - rewards.mean(1, keepdim=True)
        std = gap.pow(2).mean(1, keepdim=True).sqrt()
        return gap / (std + 1e-4)

    yield "divide the squares by G", answer

    def answer(rewards):
        gap = rewards - rewards.mean(1, keepdim=True)
        return gap / (torch.std(rewards) + 1e-4)

    yield "mixes what stands along batch", answer

    def answer(rewards):
        m, s = rewards.mean(1, keepdim=True), rewards.std(1, keepdim=True)
        return (rewards - m) / (s + 1e-8)

    yield "your epsilon is too small", answer

    def answer(rewards):
        m, s = rewards.mean(1, keepdim=True), rewards.std(1, keepdim=True)
        return (rewards - m) / (s + 1e-6)

    yield "your epsilon is too small", answer

    def answer(rewards):
        m, s = rewards.mean(1, keepdim=True), rewards.std(1, keepdim=True)
        return (rewards - m) / s

    yield "0/0 is not a number", answer

    def answer(rewards):
        gap = rewards - rewards.mean(1, keepdim=True)
        return (gap / rewards.std(1, keepdim=True)).nan_to_num()

    yield "over a rounding error", answer

    def answer(rewards):
        gap = rewards - rewards.mean(1, keepdim=True)
        return gap / rewards.std(1, keepdim=True).clamp(min=1e-4)

    yield "rounding error is larger than your epsilon", answer

    def answer(rewards):
        gap = rewards - rewards[:, 0].unsqueeze(1)
        return gap / (gap.std(1, keepdim=True) + 1e-4)

    yield "not centered", answer

    def answer(rewards):
        s = rewards.std(1, keepdim=True)
        return rewards / s.add(1e-4)

    yield "not centered", answer

    def answer(rewards):
        gap = rewards - rewards.mean(1, keepdim=True)
        return gap / (rewards.var(1, keepdim=True) + 1e-4)

    yield "divide by the variance", answer

    def answer(rewards):
        rows = []
        for row in rewards.double():
            if row.max() == row.min():
                rows.append(torch.zeros_like(row))
            else:
                rows.append((row - row.mean()) / row.std())
        return torch.stack(rows).float()

    yield "is right", answer


def softmax_minus_uniform():
    yield "all positive", lambda r: r.exp() / r.exp().sum(1, keepdim=True)
    yield "runs over the batch", lambda r: torch.softmax(r, dim=0) - 1 / r.shape[1]

    def answer(rewards):
        weights = torch.softmax(rewards, dim=1)
        return weights - rewards.mean(dim=1, keepdim=True)

    yield "subtract the mean reward", answer
    yield "groups of four only", lambda r: torch.softmax(r, dim=1) - 1 / 4
    yield "You used log_softmax", lambda r: torch.log_softmax(r, dim=1)

    def answer(rewards):
        e = rewards.exp()
        w = e / e.sum(1, keepdim=True)
        return w - 1 / w.shape[1]

    yield "exp(200) is infinite", answer

    def answer(rewards):
        e = (rewards.double() - rewards.max(1, keepdim=True).values).exp()
        w = e / reduce(e, "b t -> b 1", "sum")
        return w - w.mean(1, keepdim=True)

    yield "is right", answer
