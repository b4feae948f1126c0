"""Every response of up to a few tokens: a world of text whose truth is exact."""

import math
from collections.abc import Callable
from itertools import combinations_with_replacement, product

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from grpo_course.checks import require_inside, require_sizes
from grpo_course.formulas import compute_deltas
from grpo_course.sampling import response_mask

MAX_ANSWERS = 10_000  # enumerating more would take too long on a laptop


class AnswerTree:
    """Every response of up to `longest` tokens over some words and an end.

    The words are 0, 1, ...; `end` is the number after the last of them, and pads what
    comes after it. A response of `longest` words is cut off without an end.

    responses int [all pos], mask bool [all pos] and lengths float64 [all] list them.
    A policy is a table of logits [... state token]: a state is what was written so far.
    """

    def __init__(self, num_words: int = 2, longest: int = 4):
        require_sizes(num_words=num_words, longest=longest)
        count = sum(num_words**length for length in range(longest + 1))
        require_inside("number of responses", count, {"at most": MAX_ANSWERS})
        self.end = num_words
        rows = [
            words + (self.end,) * (longest - length)
            for length in range(longest + 1)
            for words in product(range(num_words), repeat=length)
        ]
        self.responses = torch.tensor(rows)
        self.mask = response_mask(self.responses, self.end)
        self.lengths = self.mask.sum(-1).double()
        self.states = self._number_states()

    def _number_states(self) -> Tensor:
        """What was written before each token, numbered from 0. -> int [all pos]"""
        places = (self.end + 2) ** torch.arange(self.responses.shape[-1])
        upto = ((self.responses + 1) * places).cumsum(-1)
        before = upto.roll(1, -1).index_fill(-1, torch.tensor(0), 0)
        return torch.unique(before * self.mask, return_inverse=True)[1]

    def random_logits(self, seeds: range) -> Tensor:
        """A random policy for each seed. -> float64 [seed state token]"""
        shape = (int(self.states.max()) + 1, self.end + 1)
        own = (Generator().manual_seed(seed) for seed in seeds)
        return torch.stack([torch.randn(shape, generator=g).double() for g in own])

    def log_probs(self, logits: Tensor) -> Tensor:
        """Of every token of every response, 0 in the padding.

        [... state token] -> [... all pos]
        """
        chosen = logits.log_softmax(-1)[..., self.states, self.responses]
        return torch.where(self.mask, chosen, 0.0)

    def chances(self, logits: Tensor) -> Tensor:
        """The probability of every response. [... state token] -> [... all]"""
        return self.log_probs(logits).sum(-1).exp()

    def expected_update(
        self, logits: Tensor, reward: Tensor, weigh: Callable, size: int
    ) -> Tensor:
        """What a group of a size adds to the gradient, averaged over all groups.

        float64 [seed state token], [all] -> [seed state token]. `weigh` gives what each
        token of a response weighs, from the lengths of the group [group trial].

        Responses with the same reward and length are of one kind. All groups with as
        many of each kind weigh alike, so they are taken together; the gradients of the
        responses of a kind, on average, are that of the kind's log-probability.
        """
        kinds = torch.stack([reward, self.lengths])
        (rewards, lengths), kind = kinds.unique(dim=1, return_inverse=True)
        combinations = combinations_with_replacement(range(len(rewards)), size)
        groups = torch.tensor([*combinations])  # [group trial]
        counts = F.one_hot(groups).sum(1)  # [group kind]
        orders = math.factorial(size) / (counts + 1).double().lgamma().exp().prod(-1)
        log_chance = (self.chances(logits) @ F.one_hot(kind).double()).log()[:, groups]
        deltas = compute_deltas(rewards[groups], "centered_rewards")
        steps = (deltas * weigh(lengths[groups]) * log_chance).sum(-1)
        average = (orders * log_chance.detach().sum(-1).exp() * steps).sum()
        return torch.autograd.grad(average, logits)[0]
