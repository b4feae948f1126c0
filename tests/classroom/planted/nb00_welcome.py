"""Answers to the exercises of 00_welcome, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import torch
from einops import reduce


def mean_by_group():
    yield "over the whole batch", lambda r: torch.mean(r)
    yield "over the batch axis", lambda r: reduce(r, "b t -> t", "mean")
    yield "keeps an axis of size 1", lambda r: reduce(r, "b t -> b 1", "mean")
    yield "the sum of each group", lambda r: torch.einsum("bt->b", r)

    def answer(rewards):
        means = []
        for row in rewards.tolist():
            means.append(sum(row) / len(row))
        return torch.tensor(means)

    yield "is right", answer
