"""What 14_exact_answers claims.

First what is exact, where a seed is a policy and nothing is sampled; then runs that
begin with a sort policy which knows something.
"""

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor

from claims.runner import BEST, Claim, Setting
from grpo_course.formulas import compute_deltas
from grpo_course.lessons.answer_tree import AnswerTree
from grpo_course.lessons.pictures.nb14 import LOST
from grpo_course.loop import Rollout, TrainConfig, train
from grpo_course.sort import (
    SortPolicy,
    make_policy,
)


class World(AnswerTree):
    """The 31 responses of up to four tokens, one of them right; or 15, or 127.

    A longer variation has longer responses, other prompts have another right answer.
    """

    def __init__(self, setting: Setting):
        super().__init__(num_words=2, longest=round(2 + 2 * setting.length))
        words = ([0, 1], [1])[setting.prompts]  # and then the end
        right = torch.tensor([*words, self.end])
        start = self.responses[:, : len(right)]
        self.reward = (start == right).all(-1).double()

    def ascend(self, logits: Tensor) -> Tensor:
        """The true gradient of the expected reward. -> [seed weight]"""
        logits = logits.detach().requires_grad_()
        return gradient(self.chances(logits) @ self.reward, logits)


def gradient(values: Tensor, logits: Tensor) -> Tensor:
    """Of each seed's value by its own logits. -> [seed weight]"""
    return torch.autograd.grad(values.sum(), logits)[0].flatten(1)


MEANS: dict[str, Callable] = {  # what a token weighs, from the lengths [group trial]
    "per response": lambda length: 1 / length,
    "token": lambda length: 1 / length.sum(-1, keepdim=True),
    "constant": torch.ones_like,
}


def cosine(setting: Setting, mean: str, size: int = 2) -> Tensor:
    """Of the average update with the true gradient. -> [seed]"""
    world = World(setting)
    policies = world.random_logits(setting.seeds).requires_grad_()
    update = world.expected_update(policies, world.reward, MEANS[mean], size)
    return torch.cosine_similarity(update.flatten(1), world.ascend(policies), dim=1)


def weight(setting: Setting, kind: str) -> Tensor:
    """Of a prompt whose right answer is the least likely one, by its centered weight.

    Groups of 2, 4 or 8: every outcome, its deltas from the package. -> [seed]
    """
    world, size = World(Setting()), round(4 * setting.length)
    logits = world.random_logits(setting.seeds)
    rate = world.chances(logits).min(-1).values.requires_grad_()  # its solve rate
    outcomes = torch.cartesian_prod(*[torch.tensor([0.0, 1.0]).double()] * size)
    log_probs = torch.where(outcomes > 0, rate.log()[:, None, None], 0)
    log_probs = log_probs + torch.where(outcomes > 0, 0, (-rate).log1p()[:, None, None])
    chance = log_probs.detach().sum(-1).exp()
    mode = "normalized_rewards" if kind == "normalized" else "centered_rewards"
    pull = (chance * (compute_deltas(outcomes, mode) * log_probs).mean(-1)).sum(-1)
    push = torch.autograd.grad(pull.sum(), rate)[0] / (1 - 1 / size)
    mixed = 1 - rate**size - (1 - rate) ** size
    return (push / mixed if kind == "redrawn" else push).detach()


# Runs from a policy that knows something.


def all_prompts(setting: Setting) -> Tensor:
    """Every prompt of three numbers below 5; the other set is of numbers below 4."""
    return torch.cartesian_prod(*[torch.arange(5 - setting.prompts)] * 3)


def right_answer(rollout: Rollout) -> Tensor:
    sorted_prompts = rollout.prompts.sort(-1).values
    return (rollout.responses == sorted_prompts[:, None]).all(-1).float()


def log_p(policy: SortPolicy, prompts: Tensor) -> Tensor:
    """Of each prompt's right answer. -> float64 [seed prompt]"""
    log_probs = policy.model(prompts).double().log_softmax(-1)
    answers = prompts.sort(-1).values.expand(len(log_probs), -1, -1)
    return log_probs.gather(-1, answers[..., None]).sum((-2, -1))


def start(setting: Setting) -> SortPolicy:
    """A policy for each seed, after some steps of supervised learning."""
    prompts = all_prompts(setting)
    policy = make_policy(prompts, setting.seeds, init_scale=0.3)
    adam = torch.optim.Adam(policy.model.parameters(), lr=0.01)
    wanted = prompts.sort(-1).values[..., None].expand(len(setting.seeds), -1, -1, 1)
    for _ in range(30):
        loss = -policy.model(prompts).log_softmax(-1).gather(-1, wanted)
        adam.zero_grad()
        loss.mean((1, 2, 3)).sum().backward()
        adam.step()
    return policy


@cache
def trained(
    setting: Setting,
    reward_fn: Callable[[Rollout], Tensor],
    **knobs,
) -> SortPolicy:
    """Some supervised steps, then GRPO. Claims share the runs."""
    policy, prompts = start(setting), all_prompts(setting)
    settings = {"num_steps_per_epoch": 4, "num_responses": 8} | knobs
    config = TrainConfig(num_epochs=round(50 * setting.length), **settings)
    adam = torch.optim.Adam(policy.model.parameters(), lr=0.01 * setting.rate)
    train(policy, prompts, reward_fn, adam, config)
    return policy


def passed(setting: Setting, k: int, reward_fn=None) -> Tensor:
    """pass@k after training, or of the start where no reward is given. -> [seed]"""
    policy = trained(setting, reward_fn) if reward_fn else start(setting)
    with torch.no_grad():
        rates = log_p(policy, all_prompts(setting)).exp()
    return (1 - (1 - rates) ** k).mean(-1)


def kept(policy: SortPolicy, prompts: Tensor) -> Tensor:
    """The share of prompts that are not lost. -> [seed]"""
    with torch.no_grad():
        return (log_p(policy, prompts).exp() >= LOST).double().mean(-1)


def over_mean(rollout: Rollout) -> Tensor:
    """Rewards that, once they are centered, are deltas divided by the group's mean."""
    rewards = right_answer(rollout)
    return rewards / rewards.mean(-1, keepdim=True).clamp(min=1e-8)


def kept_by_grpo(setting: Setting, reward_fn: Callable, **knobs) -> Tensor:
    """In groups of 32. -> [seed]"""
    policy = trained(setting, reward_fn, num_responses=32, **knobs)
    return kept(policy, all_prompts(setting))


def kept_exactly(setting: Setting, weigh: Callable) -> Tensor:
    """By plain gradient steps on weighed solve rates; of smaller steps, more."""
    policy, prompts = start(setting), all_prompts(setting)
    plain = torch.optim.SGD(policy.model.parameters(), lr=0.1 * setting.rate)
    for _ in range(round(300 * setting.length / setting.rate)):
        p = log_p(policy, prompts).exp()
        plain.zero_grad()
        (-weigh(p.detach().clamp(1e-9, 1 - 1e-9)) * p).mean(-1).sum().backward()
        plain.step()
    return kept(policy, prompts)


NOT_TRAINED = dict.fromkeys(
    ("a third of the rate", "three times the rate", BEST), "nothing is trained"
)
RARE = NOT_TRAINED | {"other prompts": "the least likely is rare"}
KEPT = {BEST: "a start is kept best by no training"}
# fmt: off
CLAIMS = (
    Claim("14.constant",
        "A constant divisor gives the direction of the policy gradient exactly.",
        (partial(cosine, mean="constant"), 1.0), within=1e-6, not_tried=NOT_TRAINED),
    Claim("14.token",
        "The token mean is nearer to the policy gradient than the mean per response.",
        (partial(cosine, mean="token"), partial(cosine, mean="per response")),
        not_tried=NOT_TRAINED),
    Claim("14.groups",
        "The token mean is nearer to the policy gradient in eights than in pairs.",
        (partial(cosine, mean="token", size=8), partial(cosine, mean="token")),
        not_tried=NOT_TRAINED),
    Claim("14.difficulty",
        "Dividing by the spread gives a prompt hardly ever solved √G times its weight.",
        (partial(weight, kind="normalized"),
         lambda setting: round(4 * setting.length) ** 0.5),
        within=0.02, not_tried=RARE),
    Claim("14.redrawn",
        "In small groups, redrawing tied groups favours rarely solved prompts more.",
        (partial(weight, kind="redrawn"), partial(weight, kind="normalized")),
        not_tried=RARE),
    Claim("14.coverage", "After sorts were shown, GRPO loses pass@k at a large k.",
        (partial(passed, k=300), partial(passed, k=300, reward_fn=right_answer)),
        not_tried=KEPT),
    Claim("14.exact",
        "Exact steps with the weight 1/p keep prompts that the weight 1 loses.",
        (partial(kept_exactly, weigh=torch.reciprocal),
         partial(kept_exactly, weigh=torch.ones_like))),
    Claim("14.mean",
        "In groups of 32, division by the mean keeps prompts that the spread loses.",
        (partial(kept_by_grpo, reward_fn=over_mean, deltas_mode="centered_rewards"),
         partial(kept_by_grpo, reward_fn=right_answer)),
        seeds=range(32), not_tried=KEPT),
)
# fmt: on
