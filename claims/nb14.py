"""What 14_exact_answers claims.

First what is exact, where a seed is a policy and nothing is sampled; then runs that
begin with a sort policy which knows something.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from claims.runner import BEST, Claim, Setting
from grpo_course.formulas import compute_deltas
from grpo_course.lessons.answer_tree import AnswerTree
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

OLD = 3  # the prompts that begin below it are the old ones
STRONG = {"steps": 30}
WEAK = {"steps": 0, "init_scale": 0.1}
TO_THE_START: dict[str, Any] = {
    "deltas_mode": "leave_one_out",
    "compute_ref_model_period": 10_000,
}
ANCHORED = TO_THE_START | {"kl_estimator": "k2", "steps": 60}


def all_prompts(setting: Setting) -> Tensor:
    """Every prompt of three numbers below 5; the other set is of numbers below 4."""
    return torch.cartesian_prod(*[torch.arange(5 - setting.prompts)] * 3)


def ascending(prompts: Tensor, descending: bool = False) -> Tensor:
    return prompts.sort(-1, descending).values


def right_places(rollout: Rollout) -> Tensor:
    """The share of places in order."""
    return (rollout.responses == ascending(rollout.prompts)[:, None]).float().mean(-1)


def right_answer(rollout: Rollout) -> Tensor:
    return (right_places(rollout) == 1).float()


def second_skill(rollout: Rollout) -> Tensor:
    """A point for each place in descending order; none for an old prompt."""
    right = rollout.responses == ascending(rollout.prompts, descending=True)[:, None]
    return right.float().sum(-1) * (rollout.prompts[:, :1] >= OLD)


def start(setting: Setting, steps: int, init_scale: float = 0.3) -> SortPolicy:
    """A policy for each seed, after some steps of supervised learning."""
    prompts = all_prompts(setting)
    policy = make_policy(prompts, setting.seeds, init_scale)
    adam = torch.optim.Adam(policy.model.parameters(), lr=0.01)
    wanted = ascending(prompts)[..., None].expand(len(setting.seeds), -1, -1, 1)
    for _ in range(steps):
        loss = -policy.model(prompts).log_softmax(-1).gather(-1, wanted)
        adam.zero_grad()
        loss.mean((1, 2, 3)).sum().backward()
        adam.step()
    return policy


@cache
def trained(
    setting: Setting,
    reward_fn: Callable[[Rollout], Tensor],
    steps: int,
    init_scale: float = 0.3,
    num_epochs: int = 50,
    new_prompts_only: bool = False,
    **knobs,
) -> SortPolicy:
    """Some supervised steps, then GRPO. Claims share the runs."""
    policy, prompts = start(setting, steps, init_scale), all_prompts(setting)
    if new_prompts_only:
        prompts = prompts[prompts[:, 0] >= OLD]
    settings = {"num_steps_per_epoch": 4, "num_responses": 8} | knobs
    config = TrainConfig(num_epochs=round(num_epochs * setting.length), **settings)
    adam = torch.optim.Adam(policy.model.parameters(), lr=0.003 * setting.rate)
    train(policy, prompts, reward_fn, adam, config)
    return policy


def solved(policy: SortPolicy, prompts: Tensor, descending: bool = False) -> Tensor:
    """The exact chance of each prompt's answer. -> float64 [seed prompt]"""
    with torch.no_grad():
        log_probs = policy.model(prompts).double().log_softmax(-1)
    answers = ascending(prompts, descending)[..., None]
    wanted = answers.expand(*log_probs.shape[:-1], 1)
    return log_probs.gather(-1, wanted).squeeze(-1).sum(-1).exp()


def passed(setting: Setting, k: int, how: dict, reward_fn=None, **knobs) -> Tensor:
    """pass@k after training, or of the start where no reward is given. -> [seed]"""
    ready = trained(setting, reward_fn, **how, **knobs) if reward_fn else None
    rates = solved(ready or start(setting, **how), all_prompts(setting))
    return (1 - (1 - rates) ** k).mean(-1)


def remembers(setting: Setting, beta: float, **knobs) -> Tensor:
    """P(sorted) on the prompts that a second skill leaves alone. -> [seed]"""
    policy = trained(setting, second_skill, kl_penalty=beta, **ANCHORED, **knobs)
    prompts = all_prompts(setting)
    return solved(policy, prompts[prompts[:, 0] < OLD]).mean(-1)


def descends(setting: Setting, beta: float) -> Tensor:
    """P(descending) on the prompts of the second skill. -> [seed]"""
    knobs = {"kl_penalty": beta, "new_prompts_only": True} | ANCHORED
    policy, prompts = trained(setting, second_skill, **knobs), all_prompts(setting)
    return solved(policy, prompts[prompts[:, 0] >= OLD], descending=True).mean(-1)


untrained = partial(passed, how=STRONG)
after = partial(passed, reward_fn=right_answer, num_epochs=100)
forgets = partial(remembers, new_prompts_only=True)

NOT_TRAINED = dict.fromkeys(
    ("a third of the rate", "three times the rate", BEST), "nothing is trained"
)
RARE = NOT_TRAINED | {"other prompts": "the least likely is rare"}
KEPT = {BEST: "a start is kept best by no training"}
START = {BEST: "one arm is the start"}
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
    Claim("14.coverage", "From a strong start, GRPO loses pass@k at a large k.",
        (partial(untrained, k=300), partial(after, k=300, how=STRONG)), not_tried=KEPT),
    Claim("14.weak", "From a weak start, GRPO leads in pass@100.",
        (partial(after, k=100, how=WEAK), partial(passed, k=100, how=WEAK)),
        not_tried=START),
    Claim("14.forget", "Against forgetting, β keeps the first skill.",
        (partial(forgets, beta=0.1), partial(forgets, beta=0.0)), not_tried=KEPT),
    Claim("14.price", "Against forgetting, β gives up the second skill.",
        (partial(descends, beta=0.0), partial(descends, beta=0.1)), not_tried=KEPT),
    Claim("14.old", "A KL on the old prompts keeps more of the first skill.",
        (partial(remembers, beta=0.03), partial(forgets, beta=0.03)), not_tried=KEPT),
)
# fmt: on
