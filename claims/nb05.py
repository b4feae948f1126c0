"""The claims of 05_kl."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from claims.claim import Claim, Setting
from claims.experiments import PROMPT_SETS, sort_after
from grpo_course.formulas import KL_ESTIMATORS, exact_kl, kl_values
from grpo_course.loop import TrainConfig, train
from grpo_course.sort import make_policy, rollout_reward, sort_distance_reward

FROZEN = 10_000  # epochs: longer than any run
STEPS: dict[str, Any] = {"num_steps_per_epoch": 5, "deltas_mode": "normalized_rewards"}
held = partial(sort_after, loss_mode="clipped", **STEPS)
still = partial(held, compute_ref_model_period=FROZEN)
aimed = partial(still, kl_penalty=1.0)


def upside_down_k3(log_probs: Tensor, ref_log_probs: Tensor, **_) -> Tensor:
    """k3 with its difference the wrong way round. [...] each -> the same"""
    d = log_probs - ref_log_probs
    return d.exp() - 1 - d


def distance(
    setting: Setting, num_epochs: int = 100, logged: bool = False, **knobs
) -> Tensor:
    """Nats a token between the policy and its start, exact or as logged. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    policy = make_policy(prompts, setting.seeds, init_scale=0.1)
    start = policy.model(prompts).log_softmax(dim=-1).detach()
    config = TrainConfig(
        num_epochs=round(num_epochs * setting.length),
        num_steps_per_epoch=5,
        compute_ref_model_period=FROZEN,
        **knobs,
    )
    adam = torch.optim.Adam(policy.model.parameters(), lr=1e-3 * setting.rate)
    run = train(policy, prompts, rollout_reward(sort_distance_reward), adam, config)
    kl = exact_kl(policy.model(prompts).log_softmax(dim=-1), start)
    return run.final("kl") if logged else kl.mean(dim=(-2, -1)).detach()


def with_the_slip(setting: Setting, **knobs) -> Tensor:
    """The same with k3 upside down as the penalty. -> [seed]"""
    KL_ESTIMATORS["upside_down"] = upside_down_k3
    try:
        return distance(setting, kl_penalty=0.3, kl_estimator="upside_down", **knobs)
    finally:
        del KL_ESTIMATORS["upside_down"]


def minimized(setting: Setting, estimator: str) -> Tensor:
    """Exact KL after going down on an estimator alone, from its own samples. [seed]"""
    generator = torch.Generator().manual_seed(setting.seeds.start)
    rows = torch.tensor([[0.6, 0.2, 0.1, 0.05, 0.05], [0.2, 0.3, 0.2, 0.2, 0.1]])
    logits, ref = rows.log()[:, None].repeat(1, len(setting.seeds), 1)
    for _ in range(round(400 * setting.length)):
        logits.requires_grad_()
        now = logits.log_softmax(dim=-1)
        tokens = torch.multinomial(now.detach().exp(), 8, True, generator=generator)
        picked = now.gather(-1, tokens), ref.gather(-1, tokens)
        loss = kl_values(*picked, estimator).mean(dim=-1).sum()
        (gradient,) = torch.autograd.grad(loss, logits)
        logits = (logits - 0.1 * setting.rate * gradient).detach()
    return exact_kl(logits.log_softmax(dim=-1), ref)


def ends_at(beta: float, estimator: str = "k3", num_epochs: int = 100) -> partial:
    """How far the policy gets with a penalty."""
    knobs: dict[str, Any] = {"kl_penalty": beta, "kl_estimator": estimator}
    return partial(distance, num_epochs=num_epochs, **knobs)


NO_BEST = {"each at its best rate": "farther from the start is not better"}
NO_PROMPTS = {"other prompts": "one distribution over five tokens, no prompts"}
PRICE = "the tighter the target, the less the policy learns to sort."
DIAL = "a larger β, a smaller KL, at every step of the dial."
K1 = "k1 holds back next to nothing"
CLAIMS = (
    Claim(
        "05.k1",
        "What to see: k2 and k3 bring the KL to zero. With k1 it wanders,",
        partial(minimized, estimator="k1"),
        partial(minimized, estimator="k3"),
        leave_out=NO_BEST | NO_PROMPTS,
    ),
    Claim("05.dial", DIAL, ends_at(0.0), ends_at(0.1), leave_out=NO_BEST),
    Claim(
        "05.dial_end",
        "β works like a dial, but how strongly depends on the estimator it weighs.",
        ends_at(1.0),
        ends_at(3.0),
        leave_out=NO_BEST,
    ),
    Claim(
        "05.estimator",
        "At β = 0.1 and 0.3, k3 holds the policy much closer than k2;",
        ends_at(0.3, "k2", 60),
        ends_at(0.3, "k3", 60),
        leave_out=NO_BEST,
    ),
    Claim(
        "05.reversed",
        "at 1 and 3 the order is reversed.",
        ends_at(1.0, "k3", 60),
        ends_at(1.0, "k2", 60),
        leave_out=NO_BEST,
    ),
    Claim(
        "05.k1_penalty",
        K1,
        ends_at(0.0, "k3", 60),
        ends_at(0.3, "k1", 60),
        within=0.3,
        leave_out=NO_BEST,
    ),
    Claim(
        "05.reference",
        "A frozen reference holds back, a moving one follows",
        partial(held, kl_penalty=1.0, num_epochs=60, compute_ref_model_period=10),
        partial(still, kl_penalty=1.0, num_epochs=60),
    ),
    Claim(
        "05.slip",
        "where k3 logs the exact KL, the slip logs half as much again.",
        partial(with_the_slip, logged=True),
        with_the_slip,
        leave_out=NO_BEST,
    ),
    Claim(
        "05.price",
        PRICE,
        partial(aimed, kl_target=1.0),
        partial(aimed, kl_target=0.3),
    ),
    Claim(
        "05.price_tight",
        PRICE,
        partial(aimed, kl_target=0.3),
        partial(aimed, kl_target=0.1),
        leave_out={"each at its best rate": "tuned for the other two targets"},
    ),
    Claim(
        "05.target",
        "each KL comes to its target (grey).",
        partial(distance, kl_penalty=1.0, kl_target=0.3),
        lambda setting: 0.3,
        within=0.1,
        leave_out=NO_BEST,
    ),
)
