"""What 05_kl claims."""

from functools import partial

import torch
from torch import Generator, Tensor

from claims.runner import BEST, PLAIN, PROMPT_SETS, Claim, Setting
from grpo_course.formulas import exact_kl, kl_values
from grpo_course.loop import TrainConfig, train
from grpo_course.sort import make_policy, rollout_reward, sort_distance_reward

FROZEN = {"compute_ref_model_period": 10_000}  # epochs: longer than any run
moving = PLAIN | {"num_steps_per_epoch": 5, "kl_penalty": 1.0}
still = moving | FROZEN
short = {"num_epochs": 60}


def distance(setting: Setting, beta=0.0, estimator="k3", epochs=100, **more) -> Tensor:
    """Nats a token between the policy and its start. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    policy = make_policy(prompts, setting.seeds, init_scale=0.1)
    start = policy.model(prompts).log_softmax(dim=-1).detach()
    penalty = {"kl_penalty": beta, "kl_estimator": estimator} | FROZEN | more
    length = round(epochs * setting.length)
    config = TrainConfig(num_epochs=length, num_steps_per_epoch=5, **penalty)
    adam = torch.optim.Adam(policy.model.parameters(), lr=1e-3 * setting.rate)
    train(policy, prompts, rollout_reward(sort_distance_reward), adam, config)
    kl = exact_kl(policy.model(prompts).log_softmax(dim=-1), start)
    return kl.mean(dim=(-2, -1)).detach()


def minimized(setting: Setting, estimator: str) -> Tensor:
    """Exact KL after going down on an estimator alone, from its own samples. [seed]"""
    generator = Generator().manual_seed(setting.seeds.start)
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


def ends(beta: float, estimator: str = "k3", epochs: int = 60, **more) -> partial:
    """How far the policy gets with a penalty."""
    return partial(distance, beta=beta, estimator=estimator, epochs=epochs, **more)


NO_BEST = {BEST: "farther from the start is not better"}
Far = partial(Claim, not_tried=NO_BEST)
# fmt: off
CLAIMS = (
    Claim("05.k1", "Gradient descent on k1 leaves a larger KL than on k3.",
        (partial(minimized, estimator="k1"), partial(minimized, estimator="k3")),
        not_tried=NO_BEST | {"other prompts": "one distribution over five tokens"}),
    Far("05.dial", "A small β keeps the policy nearer to its start than none.",
        (ends(0.0, epochs=100), ends(0.1, epochs=100))),
    Far("05.dial_end", "A large β still turns the dial: 3 keeps it nearer than 1.",
        (ends(1.0, epochs=100), ends(3.0, epochs=100))),
    Far("05.k1_penalty", "As a penalty, k1 holds back next to nothing.",
        (ends(0.0), ends(0.3, "k1")), within=0.3),
    Claim("05.reference",
        "With a frozen reference the policy learns less than with a moving one.",
        (moving | short | {"compute_ref_model_period": 10}, still | short)),
    Far("05.target", "An adapted β brings the KL to its target.",
        (ends(1.0, epochs=100, kl_target=0.3), 0.3), within=0.1),
)
# fmt: on
