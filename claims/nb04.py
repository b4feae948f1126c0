"""What 04_losses claims."""

from collections.abc import Callable, Iterator
from functools import partial
from unittest.mock import patch

import torch
from torch import Tensor

from claims.runner import (
    BEST,
    NORMALIZED,
    PROMPT_SETS,
    Claim,
    Setting,
    mean_of,
    minus,
    repeated,
    sort_after,
)
from grpo_course.formulas import LOSS_MODES, compute_deltas, compute_loss
from grpo_course.lessons.four_kinds import Weight, without
from grpo_course.sort import (
    SortModel,
    all_responses,
    all_rewards,
    compute_log_probs,
    compute_reward,
    generate_responses,
    sort_distance_reward,
    sort_exact_reward,
)

gentle = {"num_epochs": 30, "deltas_mode": "centered_rewards", "loss_mode": "naive"}
START = {"measure": "expected_reward", "num_epochs": 1, "learning_rate": 1e-12}
large = NORMALIZED | {"num_responses": 16, "learning_rate": 0.01}
many = large | {"num_epochs": 60, "num_steps_per_epoch": 10}
clipped = many | {"loss_mode": "clipped"}
few = large | {"num_epochs": 5, "loss_mode": "clipped"}
long = few | {"num_epochs": 30}


def steps(count: int, rate: float = 1e-3) -> dict:
    return {"num_steps_per_epoch": count, "learning_rate": rate}


def quotient_loss(ratio: Tensor, deltas: Tensor, *, log_probs, old_log_probs, **_):
    """A slip: the quotient of log-probabilities in place of the ratio."""
    return -log_probs / old_log_probs * deltas


@patch.dict(LOSS_MODES, quotient=quotient_loss)
def with_quotient(setting: Setting) -> Tensor:
    """The exact expected reward after training on it. -> [seed]"""
    knobs = gentle | steps(4) | {"loss_mode": "quotient"}
    return sort_after(setting, "expected_reward", **knobs)


def pushed_by(weight: Weight) -> Callable[[Setting], Tensor]:
    """Ten large steps that push each token along its delta, `weight` times as hard."""

    def loss(ratio: Tensor, deltas: Tensor, *, log_probs: Tensor, **_) -> Tensor:
        push = weight(ratio.detach(), deltas.expand_as(ratio) > 0)
        return -push * deltas * log_probs

    def arm(setting: Setting) -> Tensor:
        with patch.dict(LOSS_MODES, weighted=loss):
            return sort_after(
                setting, **few | steps(10, 0.01) | {"loss_mode": "weighted"}
            )

    return arm


def naive(ratio: Tensor, good: Tensor) -> Tensor:
    return torch.ones_like(ratio)


def unclipped(ratio: Tensor, good: Tensor) -> Tensor:
    return ratio


def clipped_alone(ratio: Tensor, deltas: Tensor, **_) -> Tensor:
    """The clipped product without the minimum, which lets go of all tokens outside."""
    return -ratio.clamp(0.8, 1.2) * deltas


@patch.dict(LOSS_MODES, no_minimum=clipped_alone)
def no_minimum(setting: Setting) -> Tensor:
    """Ten steps with the clipped product alone. -> [seed]"""
    return sort_after(setting, **few | steps(10, 0.02) | {"loss_mode": "no_minimum"})


def sampled(
    setting: Setting, num_responses: int, deltas_mode: str
) -> Iterator[tuple[SortModel, Tensor, Tensor]]:
    """For each seed: a fresh policy, its responses, their deltas by distance."""
    prompts = PROMPT_SETS[setting.prompts]
    for seed in setting.seeds:
        torch.manual_seed(seed)
        model = SortModel(5, 10, 3, 3, init_scale=0.1)
        responses = generate_responses(prompts, model, num_responses)
        earned = compute_reward(prompts, responses, sort_distance_reward)
        yield model, responses, compute_deltas(earned, deltas_mode)


def degrees_off(setting: Setting, reward_fn: Callable, token_ratio: bool) -> Tensor:
    """Between a gradient on old samples, all of them, and the exact one. -> [seed]

    The policy has taken ten small steps, paid for each number.
    """
    prompts = PROMPT_SETS[setting.prompts]
    every = all_responses(5, 3).expand(3, 125, 3)  # [batch all pos]
    rewards = all_rewards(prompts, 5, reward_fn)  # [batch all]
    ends = []
    for model, responses, deltas in sampled(setting, 8, "centered_rewards"):
        old = compute_log_probs(prompts, every, model).detach()  # [batch all pos]
        optimizer = torch.optim.Adam(model.parameters(), lr=0.001 * setting.rate)
        for _ in range(round(10 * setting.length)):
            log_probs = compute_log_probs(prompts, responses, model)
            optimizer.zero_grad()
            compute_loss(log_probs, deltas, "naive").backward()
            optimizer.step()
        new = compute_log_probs(prompts, every, model)
        chance = old.sum(dim=-1).exp()
        above = rewards - (chance * rewards).sum(dim=-1, keepdim=True)
        push = (new - old).exp() if token_ratio else new
        objectives = (
            (new.sum(dim=-1).exp() * rewards).sum(),
            ((chance * above)[..., None] * push).sum(),
        )
        weights = tuple(model.parameters())
        exact, tried = (
            torch.cat(
                [
                    part.flatten()
                    for part in torch.autograd.grad(each, weights, retain_graph=True)
                ]
            )
            for each in objectives
        )
        cosine = torch.cosine_similarity(exact, tried, dim=0).clamp(max=1)
        ends.append(cosine.arccos().rad2deg())
    return torch.stack(ends)


def moved_outward(setting: Setting, memory: float) -> Tensor:
    """How far the second step moves what the first step let go of. -> [seed]

    In log r, away from 1; `memory` is Adam's decay of past gradients.
    """
    prompts, rate = PROMPT_SETS[setting.prompts], 0.01 * setting.rate
    ends = []
    for model, responses, deltas in sampled(setting, 16, "normalized_rewards"):
        optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(memory, 0.999))
        seen = [compute_log_probs(prompts, responses, model).detach()]
        for _ in range(2):
            log_probs = compute_log_probs(prompts, responses, model)
            optimizer.zero_grad()
            compute_loss(log_probs, deltas, "clipped", seen[0]).backward()
            optimizer.step()
            seen.append(compute_log_probs(prompts, responses, model).detach())
        outward = deltas[..., None].sign()
        let_go = ((seen[1] - seen[0]).exp() - 1) * outward > 0.2
        ends.append(((seen[2] - seen[1]) * outward)[let_go].mean())
    return torch.stack(ends)


# fmt: off
CLAIMS = (
    Claim("04.steps", "At a small rate, ten steps on each rollout learn more than one.",
        (gentle | steps(10), gentle | steps(1))),
    Claim("04.rate",
        "At ten times the rate, one step makes up more than half of the difference.",
        (gentle | steps(1, rate=0.01),
         mean_of([gentle | steps(1), gentle | steps(10)]))),
    Claim("04.tokens",
        "Where each number is drawn and paid by itself, a ratio for every token makes "
        "the gradient on old samples exact, and it is not exact without.",
        (partial(degrees_off, reward_fn=sort_distance_reward, token_ratio=False),
         partial(degrees_off, reward_fn=sort_distance_reward, token_ratio=True)),
        not_tried={BEST: "no rate is best for an angle"}),
    Claim("04.whole",
        "Paid for whole answers, a ratio for every token brings the gradient on old "
        "samples nearer to the exact one than none does.",
        (partial(degrees_off, reward_fn=sort_exact_reward, token_ratio=False),
         partial(degrees_off, reward_fn=sort_exact_reward, token_ratio=True)),
        not_tried={BEST: "no rate is best for an angle"}),
    Claim("04.quotient", "The quotient of log-probabilities trains backwards.",
        (gentle | START, with_quotient),
        not_tried={BEST: "no rate is best for a loss that trains backwards"}),
    Claim("04.fallen",
        "Many naive steps learn more without a push on bad tokens that have fallen.",
        (pushed_by(without(naive, "bad, fallen")), pushed_by(naive))),
    Claim("04.risen",
        "With the ratio, they do without a push on good tokens that have risen.",
        (pushed_by(without(unclipped, "good, risen")), pushed_by(unclipped))),
    Claim("04.minimum",
        "With large steps, the smaller of two products beats the clipped one alone.",
        (few | steps(10, rate=0.02), no_minimum)),
    Claim("04.clip",
        "With many large steps, the clipped loss learns more than the unclipped one.",
        (clipped, many | {"loss_mode": "unclipped"})),
    Claim("04.naive",
        "With many large steps, the clipped loss learns more than the naive one.",
        (clipped, many | {"loss_mode": "naive"})),
    Claim("04.memory",
        "The memory of Adam moves tokens that the clip has let go of further out, "
        "where pushes on other tokens alone move them back.",
        (partial(moved_outward, memory=0.9), partial(moved_outward, memory=0.0)),
        not_tried={"half as long": "it is about the second step",
                   "twice as long": "it is about the second step",
                   BEST: "no rate is best for a distance"}),
    Claim("04.tuned",
        "With rates tuned for both, ten clipped steps lead one after a few rollouts.",
        (repeated(few | steps(10, rate=0.02), 4),
         repeated(few | steps(1, rate=0.03), 4))),
    Claim("04.fades",
        "The lead is larger after five rollouts than after thirty, with rates tuned "
        "for each.",
        (repeated(minus(few | steps(10, rate=0.01), few | steps(1, rate=0.03)), 4),
         repeated(minus(long | steps(10, rate=0.005), long | steps(1, rate=0.005)), 4)),
        not_tried={BEST: "the rates are tuned for each length"}),
)
# fmt: on
