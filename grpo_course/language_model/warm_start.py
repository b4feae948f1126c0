"""Supervised training on demonstrations, so that GRPO finds something to reward.

A demonstration is scored as a response is: the loss is minus the mean log-probability
of its tokens. So the policy's own `log_probs` does both, prompt and padding included.
"""

import random
from collections.abc import Callable, Sequence

from torch import Tensor
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedTokenizerBase

from grpo_course.algorithm.aggregation import aggregate
from grpo_course.algorithm.gradient import require_finite_loss, take_step
from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.validation import require_at_least
from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.encoding import as_rollout
from grpo_course.language_model.policy import CausalPolicy
from grpo_course.language_model.text_task import Problem

# AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101) that remembers squares of gradients
# for about 20 steps, not 1000: the run is short, and gradients shrink fast in it.
BETAS = (0.9, 0.95)
WEIGHT_DECAY, MAX_GRADIENT_NORM = 0.01, 1.0
WARMUP_STEPS = 20
FINAL_SHARE = 0.1  # of the learning rate, after the last step


def warm_start(
    policy: CausalPolicy,
    tokenizer: PreTrainedTokenizerBase,
    problems: Sequence[Problem],
    demonstrate: Callable[[Problem, random.Random], str],
    config: GRPOConfig,
    watch: Callable[[list[float]], None] | None = None,
) -> list[float]:
    """Train on demonstrations of the problems; returns the loss of each step, in nats.

    `demonstrate` is a task's: a problem to a response. Of `config`, what begins with
    warm_start counts, the system prompt, and the seed of order and demonstrations.
    Only the tokens of the response are learned: the prompt is read, not scored.
    `watch` sees the losses after each step.
    Raises ValueError if there are fewer problems than a step takes.
    """
    steps, size = config.warm_start_steps, config.warm_start_batch_size
    require_at_least("the number of problems", len(problems), size)
    optimizer = AdamW(
        policy.model.parameters(),
        lr=config.warm_start_learning_rate,
        weight_decay=WEIGHT_DECAY,
        betas=BETAS,
    )
    schedule = linear_schedule(optimizer, steps, WARMUP_STEPS, FINAL_SHARE)
    rng, losses = random.Random(config.seed), []
    for step in range(steps):
        chosen = rng.sample(problems, size)
        questions = [problem.question for problem in chosen]
        responses = [demonstrate(problem, rng) for problem in chosen]
        batch = as_rollout(tokenizer, questions, responses, config.system_prompt)
        loss = demonstration_loss(policy, batch)
        require_finite_loss(loss, f"step {step} of the warm start")
        optimizer.zero_grad()
        loss.backward()
        take_step(optimizer, max_norm=MAX_GRADIENT_NORM)
        schedule.step()
        losses.append(loss.item())
        if watch:
            watch(losses)
    return losses


def require_tiny(config: GRPOConfig, prompt_tokens: int) -> None:
    """Check that a model from nothing can read and write what it is to learn."""
    if config.lora_rank:
        raise ValueError(
            f"lora_rank={config.lora_rank} needs a model to stand beside: name one "
            "with --model, or leave it out: a tiny model from nothing learns whole."
        )
    needed = prompt_tokens + config.max_new_tokens
    if needed > config.context_length:
        raise ValueError(
            f"the longest prompt has {prompt_tokens} tokens and a response may have "
            f"{config.max_new_tokens} (max_new_tokens), but the model knows "
            f"{config.context_length} positions (context_length). For real data, such "
            "as GSM8K, take a pretrained model: --config gpu, or --model. For "
            f"problems of your own, --context-length {needed}."
        )


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
