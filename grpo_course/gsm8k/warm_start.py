"""Supervised training on demonstrations, so that GRPO finds something to reward.

A demonstration is scored as a response is: the loss is minus the mean log-probability
of its tokens. So the policy's own `log_probs` does both, prompt and padding included.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedTokenizerBase

from grpo_course.algorithm.aggregation import aggregate
from grpo_course.algorithm.gradient import require_finite_loss, take_step
from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.validation import require_at_least
from grpo_course.gsm8k.encoding import as_rollout
from grpo_course.gsm8k.policy import CausalPolicy
from grpo_course.gsm8k.problems import Problem
from grpo_course.gsm8k.prompts import (
    FORM_WEIGHTS,
    SHORT_SYSTEM_PROMPT,
    demonstration,
    draw_form,
)
from grpo_course.gsm8k.slips import with_slip

# AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101) that remembers squares of gradients
# for about 20 steps, not 1000: the run is short, and gradients shrink fast in it.
BETAS = (0.9, 0.95)


@dataclass(frozen=True)
class WarmStartConfig:
    """How the demonstrations are learned."""

    num_steps: int = 400
    batch_size: int = 32  # demonstrations a step
    learning_rate: float = 2.5e-3
    warmup_steps: int = 20
    final_share: float = 0.1  # of the learning rate, after the last step
    weight_decay: float = 0.01
    max_gradient_norm: float = 1.0
    form_weights: Mapping[str, float] = field(
        default_factory=lambda: dict(FORM_WEIGHTS)
    )
    slip_share: float = 0.0  # of the demonstrations with a wrong result
    seed: int = 0  # of the order, and of the form and the slips of demonstrations

    def __post_init__(self) -> None:
        for name in ("num_steps", "batch_size"):
            require_at_least(name, getattr(self, name), 1)
        if not 0 <= self.slip_share <= 1:
            raise ValueError(
                f"slip_share={self.slip_share} is out of range: it is a share of the "
                "demonstrations, from 0 to 1."
            )


def warm_start(
    policy: CausalPolicy,
    tokenizer: PreTrainedTokenizerBase,
    problems: Sequence[Problem],
    config: WarmStartConfig,
    system_prompt: str | None = SHORT_SYSTEM_PROMPT,
    watch: Callable[[list[float]], None] | None = None,
) -> list[float]:
    """Train on demonstrations of the problems; returns the loss of each step, in nats.

    Only the tokens of the response are learned: the prompt is read, not scored.
    `watch` sees the losses after each step.
    Raises ValueError if there are fewer problems than a step takes.
    """
    require_at_least("the number of problems", len(problems), config.batch_size)
    optimizer = AdamW(
        policy.model.parameters(),
        lr=config.learning_rate,
        weight_decay=config.weight_decay,
        betas=BETAS,
    )
    ending = {"warmup": config.warmup_steps, "final_share": config.final_share}
    schedule = linear_schedule(optimizer, config.num_steps, **ending)
    rng, losses = random.Random(config.seed), []
    for step in range(config.num_steps):
        chosen = rng.sample(problems, config.batch_size)
        batch = demonstrate(tokenizer, chosen, config, rng, system_prompt)
        loss = demonstration_loss(policy, batch)
        require_finite_loss(loss, f"step {step} of the warm start")
        optimizer.zero_grad()
        loss.backward()
        take_step(optimizer, max_norm=config.max_gradient_norm)
        schedule.step()
        losses.append(loss.item())
        if watch:
            watch(losses)
    return losses


def demonstrate(
    tokenizer: PreTrainedTokenizerBase,
    problems: Sequence[Problem],
    config: WarmStartConfig,
    rng: random.Random,
    system_prompt: str | None = SHORT_SYSTEM_PROMPT,
) -> Rollout:
    """One demonstration of each problem, as a rollout with one response a prompt."""
    responses = [
        demonstration(
            with_slip(problem, rng) if rng.random() < config.slip_share else problem,
            draw_form(rng, config.form_weights),
        )
        for problem in problems
    ]
    questions = [problem.question for problem in problems]
    return as_rollout(tokenizer, questions, responses, system_prompt)


def demonstration_loss(policy: CausalPolicy, batch: Rollout) -> Tensor:
    """Minus the mean log-probability of the demonstrations' tokens, in nats."""
    return -aggregate(policy.log_probs(batch), batch.mask, "token_mean")


def linear_schedule(
    optimizer: Optimizer, num_steps: int, warmup: int = 0, final_share: float = 0.0
) -> LambdaLR:
    """The learning rate rises over `warmup` steps, then falls in a straight line.

    Call its `step` after each step of the optimizer; the last share is `final_share`.
    """

    def share(step: int) -> float:
        if step < warmup:
            return (step + 1) / (warmup + 1)
        left = (num_steps - step) / max(1, num_steps - warmup)
        return final_share + (1 - final_share) * max(0.0, left)

    return LambdaLR(optimizer, share)
