"""Answers to the exercises of 14_exact_answers, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import math

import torch


def prompt_weight():
    def answer(solve_rate, chance):
        count = chance.shape[1] - 1
        k = torch.arange(count + 1.0)
        push = torch.sqrt(k * (count - k)) / count
        return (chance * push).sum(1) / solve_rate / (1 - solve_rate)

    yield "divides by G - 1", answer

    def answer(solve_rate, chance):
        count = chance.shape[1] - 1
        k = torch.arange(count + 1.0)
        push = k * (count - k) / count / count
        return (chance * push).sum(1) / solve_rate / (1 - solve_rate)

    yield "the spread is missing", answer

    def answer(solve_rate, chance):
        count = chance.shape[1] - 1
        k = torch.arange(count + 1.0)
        push = torch.sqrt(k * (count - k) * (count - 1)) / count**1.5
        return (chance * push).sum(1)

    yield "This is the push", answer

    def answer(solve_rate, chance):
        count = chance.shape[1] - 1
        k = torch.arange(count + 1.0)
        push = torch.sqrt(k * (count - k) * (count - 1)) / count**1.5
        mixed = chance[:, 1:count].sum(1)
        return (chance * push).sum(1) / mixed / solve_rate / (1 - solve_rate)

    yield "mixed groups only", answer

    def answer(solve_rate, chance):
        weights, count = [], chance.shape[1] - 1
        for p, row in zip(solve_rate.tolist(), chance.tolist()):
            total = 0.0
            for k, c in enumerate(row):
                rewards = torch.zeros(count)
                rewards[:k] = 1
                spread = rewards.std().item() or 1.0
                deltas = (rewards - rewards.mean()) / spread
                good, bad = deltas[:k].sum().item(), deltas[k:].sum().item()
                total += c * (good / p - bad / (1 - p)) / count
            weights.append(total)
        return torch.tensor(weights)

    yield "is right", answer


def pass_at_k():
    def answer(num_right, num_samples, k):
        return 1 - (1 - num_right / num_samples).pow(k)

    yield "with replacement", answer
    yield "This is pass@1", lambda num_right, n, k: num_right / n

    def answer(num_right, num_samples, k):
        i = torch.arange(k)
        left = num_samples - num_right.unsqueeze(1)
        return ((left - i) / (num_samples - i)).prod(dim=1)

    yield "all k are wrong", answer
    yield "any of all samples", lambda num_right, n, k: (num_right > 0).float()

    def answer(num_right, num_samples, k):
        all_ways = math.comb(num_samples, k)
        each = [
            1 - math.comb(num_samples - c, k) / all_ways for c in num_right.tolist()
        ]
        return torch.tensor(each)

    yield "is right", answer


def best_policy():
    def shares(weights):
        return weights / weights.sum(-1, keepdim=True)

    yield (
        "the more a reward counts",
        lambda ref, r, beta: torch.log_softmax(ref + beta * r, -1),
    )
    yield "not normalized", lambda ref, r, beta: ref + r / beta
    yield "logarithms are asked for", lambda ref, r, beta: (ref + r / beta).softmax(-1)
    yield (
        "more than a float holds",
        lambda ref, r, beta: shares(ref.exp() * torch.exp(r / beta)).log(),
    )
    yield (
        "more than a float holds",
        lambda ref, r, beta: torch.softmax(ref + r / beta, dim=-1).log(),
    )

    def answer(ref_log_probs, rewards, beta):
        weights = ref_log_probs.exp() + rewards / beta
        return (weights / weights.sum(-1, keepdim=True)).log()

    yield "You add the reward to probabilities", answer
    yield (
        "takes them for",
        lambda ref, r, beta: torch.log_softmax(ref.exp() + r / beta, dim=-1),
    )
    yield "The reference is missing", lambda ref, r, beta: (r / beta).log_softmax(-1)
    yield (
        "wrong axis",
        lambda ref, r, beta: torch.nn.functional.log_softmax(ref + r / beta, dim=0),
    )
    yield (
        "worst tokens become likely",
        lambda ref, r, beta: (ref - r / beta).log_softmax(-1),
    )
    yield "β is not used", lambda ref, r, beta: (ref + r).log_softmax(-1)
    yield "The factor is e", lambda ref, r, beta: shares(ref.exp() * r / beta).log()

    def answer(ref_log_probs, rewards, beta):
        tilted = ref_log_probs + rewards / beta
        return tilted - tilted.logsumexp(-1, keepdim=True)

    yield "is right", answer
