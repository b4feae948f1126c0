"""Rewards learned from preferences: of two responses, the first was preferred.

A reward model is fitted to pairs of responses. In the sort world, where everything can
be enumerated, there are two ways to train on such pairs: by a learned reward, and by
DPO.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from einops import einsum
from torch import Tensor, nn

from grpo_course.checks import require_same_shape
from grpo_course.formulas import as_floats, exact_kl
from grpo_course.loop import History, Rollout, TrainConfig, mean_and_error, train
from grpo_course.ppo import Reader
from grpo_course.sampling import Draw
from grpo_course.sort import (
    SORT_PROMPTS,
    SortPolicy,
    all_log_probs,
    all_responses,
    all_rewards,
    make_policy,
    rollout_reward,
    sort_distance_reward,
)


class RewardModel(Reader):
    """One number for a whole response. No bias: pairs cannot tell a constant."""

    def start_readout(self, draw: Draw) -> None:
        dim = self.weights["embedding"].shape[-1]
        self.readout = nn.Parameter(draw(dim) / dim)

    def forward(self, prompts: Tensor, responses: Tensor) -> Tensor:
        """int [batch pos], [... batch trial pos] -> rewards [... batch trial]"""
        read = self.read(prompts, responses)[..., -1, :]
        pattern = "... batch trial dim, ... dim -> ... batch trial"
        return einsum(read, self.readout, pattern)


def bradley_terry_loss(chosen: Tensor, rejected: Tensor) -> Tensor:
    """-log sigmoid(chosen - rejected), mean over the pairs: [... pair] -> [...].

    Both are rewards that a model gives. sigmoid(difference) is the probability that
    the first response wins: Bradley and Terry 1952, Biometrika 39; as a loss for a
    reward model Christiano et al. 2017, arXiv 1706.03741. logsigmoid, because
    log(sigmoid(x)) is -inf where x is very negative.
    """
    require_same_shape("rejected", rejected, "chosen", chosen)
    return -F.logsigmoid(as_floats(chosen) - as_floats(rejected)).mean(-1)


def fit_reward_model(
    model: RewardModel,
    prompts: Tensor,
    chosen: Tensor,
    rejected: Tensor,
    num_steps: int = 300,
    learning_rate: float = 0.01,
) -> Tensor:
    """Train on pairs of responses; returns the loss of each step, [step ...].

    prompts int [batch pos], chosen and rejected int [... batch pair pos]: pair by
    pair, the first was preferred. All pairs in every step, with Adam.
    """

    def loss() -> Tensor:
        scores = (model(prompts, responses) for responses in (chosen, rejected))
        return bradley_terry_loss(*(score.flatten(-2) for score in scores))

    return descend(loss, model, num_steps, learning_rate)


def descend(
    loss_of: Callable[[], Tensor],
    model: nn.Module,
    num_steps: int,
    learning_rate: float,
) -> Tensor:
    """So many steps of Adam down a loss [...]; returns that of each, [step ...]."""
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=learning_rate), []
    for _ in range(num_steps):
        loss = loss_of()
        optimizer.zero_grad()
        loss.sum().backward()  # seeds are independent: their losses are added
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


# Preferences in the sort world: pairs int [seed batch pair 2], the chosen one first;
# the numbers count `EVERY`. What comes of them is computed exactly.

EVERY = all_responses(vocab_size=5, length=3)  # [all pos]


def true_rewards(prompts: Tensor = SORT_PROMPTS) -> Tensor:
    """What every response is worth. int [batch pos] -> [batch all]"""
    return all_rewards(prompts, 5, sort_distance_reward)


def draw_pairs(
    num_pairs: int,
    seeds: Sequence[int] = range(16),
    prompts: Tensor = SORT_PROMPTS,
    draw: int = 0,
    chances: Tensor | None = None,
) -> Tensor:
    """Pairs of random responses, the chosen one first: int [seed batch pair 2].

    The better response wins with Bradley and Terry's probability. Another `draw` gives
    new pairs. Of all responses each is as likely as another. Or `chances` say how
    likely, [seed batch all], and the two of a pair differ.
    """
    generator = torch.Generator().manual_seed(1000 * seeds[0] + draw)
    batch = torch.arange(len(prompts))
    shape = (len(seeds), len(prompts), num_pairs, 2)
    if chances is None:
        index = torch.randint(len(EVERY), shape, generator=generator)
    else:
        rows = chances.flatten(0, 1).repeat_interleave(num_pairs, dim=0)
        index = rows.multinomial(2, generator=generator).reshape(shape)
    worth = true_rewards(prompts)[batch[:, None, None], index]
    wins = (worth[..., 0] - worth[..., 1]).sigmoid()
    lost = torch.rand(wins.shape, generator=generator) > wins
    return torch.where(lost[..., None], index.flip(-1), index)


def of_pairs(scores: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
    """What the chosen and what the rejected score. [... all] -> two of [... pair]"""
    chosen, rejected = pairs.unbind(-1)
    return scores.gather(-1, chosen), scores.gather(-1, rejected)


def record_of(pairs: Tensor) -> tuple[Tensor, Tensor]:
    """How often each response won, and how often it lost: int [seed batch all]"""
    none = torch.zeros(*pairs.shape[:2], len(EVERY), dtype=torch.long)
    chosen, rejected = pairs.unbind(-1)
    once = torch.ones_like(chosen)
    return none.scatter_add(-1, chosen, once), none.scatter_add(-1, rejected, once)


def by_record(
    chances: Tensor, pairs: Tensor, prompts: Tensor = SORT_PROMPTS
) -> dict[str, Tensor]:
    """How much of pi [... seed batch all] is what, by the pairs. [... seed] each"""
    worth = true_rewards(prompts)
    right = worth == worth.amax(-1, keepdim=True)
    won, lost = record_of(pairs)
    kinds = {
        "right": right,
        "wrong, won more than it lost": ~right & (won > lost),
        "wrong, lost as often or more": ~right & (won <= lost) & (lost > 0),
        "wrong, in no pair": ~right & (won + lost == 0),
    }
    return {name: (chances * kind).sum(-1).mean(-1) for name, kind in kinds.items()}


@torch.no_grad()
def scores_of(model: RewardModel, prompts: Tensor = SORT_PROMPTS) -> Tensor:
    """What a model says of every response, in spreads from its mean: [seed batch all].

    A learned reward has no zero and no unit of its own.
    """
    num_seeds = len(model.readout)
    scores = model(prompts, EVERY.expand(num_seeds, len(prompts), *EVERY.shape))
    return (scores - scores.mean(-1, True)) / scores.std(-1, keepdim=True)


def share_right(scores: Tensor, pairs: Tensor) -> Tensor:
    """The share of pairs whose chosen one scores higher; a tie is half. [seed]"""
    chosen, rejected = of_pairs(scores, pairs)
    wins = (chosen - rejected).sign()
    return (wins + 1).div(2).mean(dim=(-2, -1))


def warm_start(
    seeds: Sequence[int] = range(16),
    prompts: Tensor = SORT_PROMPTS,
    num_epochs: int = 10,
) -> SortPolicy:
    """A policy for each seed, after some epochs on the true reward."""
    policy = make_policy(prompts, seeds, init_scale=0.1)
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=1e-3)
    config = TrainConfig(num_epochs=num_epochs)
    train(policy, prompts, rollout_reward(sort_distance_reward), optimizer, config)
    return policy


def climb(
    marks: Tensor,
    policy: SortPolicy,
    prompts: Tensor = SORT_PROMPTS,
    beta: float = 0.0,
    num_epochs: int = 60,
    learning_rate: float = 1e-3,
) -> History:
    """GRPO on the marks of a judge, [seed batch all]: of each of the 125 responses.

    Noted before each epoch and at the end, exact, [seed]: `model` and `true`, the
    expected marks and rewards, and `exact_kl` to the start in nats. In the loss it is
    k2, whose gradient is that of the exact KL, on average.
    """
    watch = watch_both(marks, policy, prompts)
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=learning_rate)
    config = TrainConfig(
        num_epochs=num_epochs,
        kl_penalty=beta,
        kl_estimator="k2",
        compute_ref_model_period=num_epochs + 1,
    )
    history = train(policy, prompts, judged_by(marks), optimizer, config, watch)
    history.records.append({"epoch": num_epochs} | watch(policy))
    return history


@dataclass(frozen=True)
class Climb:
    """What 16 policies came to that climbed some marks."""

    score: Tensor  # the expected marks, [epoch seed]
    true: Tensor  # the expected true reward, [epoch seed]
    kl: Tensor  # to the start, in nats, [epoch seed]
    chances: Tensor  # pi of every response at the end, [seed batch all]

    @property
    def gain(self) -> Tensor:
        """The change of the true reward, [seed]"""
        return self.path[1][-1]

    @property
    def path(self) -> tuple[Tensor, Tensor]:
        """The KL to the start and the change of the true reward, [epoch seed] each"""
        return self.kl, self.true - self.true[0]


def climb_each(
    start: SortPolicy, marks: Mapping[str, Tensor], **how: Any
) -> dict[str, Climb]:
    """`climb` by copies of a policy on each table of marks, all of them side by side.

    As one by one, to a rounding error, but in little more than the time of one.
    """
    policy = side_by_side([start] * len(marks))
    history = climb(torch.cat([*marks.values()]), policy, **how)
    ends = all_log_probs(policy.model, SORT_PROMPTS).exp().detach()
    count = len(marks)
    names = "model", "true", "exact_kl"
    noted = [history.epochs(name).chunk(count, dim=1) for name in names]
    parts = zip(marks, *noted, ends.chunk(count), strict=True)
    return {name: Climb(*seen) for name, *seen in parts}


def side_by_side(policies: Sequence[SortPolicy]) -> SortPolicy:
    """Copies of policies that have a seed axis, joined along it."""
    joined = copy.deepcopy(policies[0])
    joined.generator = []
    for each in policies:
        assert isinstance(each.generator, Sequence), "one generator for each seed"
        joined.generator += copy.deepcopy(each.generator)
    of_each = zip(*(each.model.parameters() for each in policies), strict=True)
    for weight, own in zip(joined.model.parameters(), of_each, strict=True):
        weight.data = torch.cat(own).detach()
    return joined


def plus_minus(changes: Tensor) -> str:
    """A mean over seeds and its standard error, to print. [seed]"""
    mean, error = mean_and_error(changes)
    return f"{mean:+.2f} ± {error:.2f}"


def marks_of(marks: Tensor, responses: Tensor) -> Tensor:
    """What responses earn by a table. [... batch all], int [... batch trial pos]"""
    places = 5 ** torch.arange(2, -1, -1)  # a response as a number in base 5
    return marks.gather(-1, (responses * places).sum(-1))


def judged_by(marks: Tensor) -> Callable[[Rollout], Tensor]:
    """A table of marks as the loop wants a reward: rollout -> [seed batch trial]"""
    return lambda rollout: marks_of(marks, rollout.responses)


def watch_both(
    scores: Tensor, start: SortPolicy, prompts: Tensor
) -> Callable[[SortPolicy], dict]:
    """What is noted in each epoch, all by enumeration: [seed] each."""
    ref = all_log_probs(start.model, prompts).detach()
    true = true_rewards(prompts)

    @torch.no_grad()
    def observe(policy: SortPolicy) -> dict:
        log_probs = all_log_probs(policy.model, prompts)  # [seed batch all]
        seen = {"model": scores, "true": true, "exact_kl": log_probs - ref}
        return {k: (log_probs.exp() * v).sum(-1).mean(-1) for k, v in seen.items()}

    return observe


def what_moved(
    change: Tensor, pairs: Tensor, prompts: Tensor = SORT_PROMPTS
) -> list[Tensor]:
    """Means over the pairs whose better response was chosen. change [seed batch all]

    -> of the chosen and of the rejected responses, [seed] each
    """
    better, worse = of_pairs(true_rewards(prompts).expand_as(change), pairs)
    right = better > worse
    sides = of_pairs(change, pairs)
    return [(side * right).sum((-2, -1)) / right.sum((-2, -1)) for side in sides]


def path_of(log_probs: Tensor) -> tuple[Tensor, Tensor]:
    """How far policies went, and what they gained: log pi [step seed batch all].

    -> the exact KL to the start in nats, and the change of the true reward, [step seed]
    """
    chances = log_probs.exp()
    kl = exact_kl(log_probs, log_probs[:1].expand_as(log_probs)).mean(-1)
    true = (chances * true_rewards()).sum(-1).mean(-1)
    return kl, true - true[0]


def dpo(
    pairs: Tensor,
    policy: SortPolicy,
    prompts: Tensor = SORT_PROMPTS,
    beta: float = 0.1,
    num_steps: int = 200,
    learning_rate: float = 1e-3,
) -> Tensor:
    """Direct preference optimization: the loss of each step, [step seed].

    Bradley and Terry's loss, with beta log(pi / pi_ref) of a whole response as its
    reward; pi_ref is the policy at the start. Rafailov et al. 2023, arXiv 2305.18290.
    """
    ref = all_log_probs(policy.model, prompts).detach()  # [seed batch all]

    def loss() -> Tensor:
        log_probs = all_log_probs(policy.model, prompts)
        chosen, rejected = of_pairs(beta * (log_probs - ref), pairs)
        return bradley_terry_loss(chosen.flatten(1), rejected.flatten(1))

    return descend(loss, policy.model, num_steps, learning_rate)
