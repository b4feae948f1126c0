"""Short runs whose loss says next to nothing, each with another cause."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Generator, Tensor

from grpo_course.formulas import compute_deltas, compute_loss
from grpo_course.loop import History
from grpo_course.sort import (
    SORT_PROMPTS,
    SortModel,
    compute_log_probs,
    compute_reward,
    generate_responses,
    sort_distance_reward,
)

CAUSES = {
    "A": "deltas with the wrong sign",
    "B": "no step is taken",
    "C": "healthy",
    "D": "all groups tied",
    "E": "old log-probs noted anew",
    "F": "learning rate far too large",
}


def inner_steps(
    cause: str, model: SortModel, dice: Sequence[Generator], num_epochs: int
) -> Iterator[tuple[int, int, dict[str, Tensor]]]:
    """Train, four inner steps to an epoch. -> epoch, step, and what each step saw"""
    prompts = SORT_PROMPTS
    rates = {"no step is taken": 0.0, "learning rate far too large": 0.1}
    rate = rates.get(cause, 3e-3)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for epoch in range(num_epochs):
        responses = generate_responses(prompts, model, 10, dice)
        rewards = compute_reward(prompts, responses, sort_distance_reward)
        if cause == "all groups tied":  # nothing that it writes is paid
            rewards = torch.zeros_like(rewards)
        deltas = compute_deltas(rewards, "normalized_rewards")
        if cause == "deltas with the wrong sign":
            deltas = -deltas
        old_log_probs = compute_log_probs(prompts, responses, model).detach()
        for step in range(4):
            log_probs = compute_log_probs(prompts, responses, model)
            if cause == "old log-probs noted anew":
                old_log_probs = log_probs.detach()
            loss = compute_loss(log_probs, deltas, "clipped", old_log_probs)
            optimizer.zero_grad()
            loss.sum().backward()
            optimizer.step()
            slopes = [w.grad for w in model.parameters() if w.grad is not None]
            norm = torch.stack([g.flatten(1).norm(dim=1) for g in slopes]).norm(dim=0)
            yield (
                epoch,
                step,
                {
                    "loss": loss.detach(),  # [seed], as the gradient norm
                    "gradient_norm": norm,
                    "rewards": rewards,
                    "log_probs": log_probs.detach(),
                    "old_log_probs": old_log_probs,
                },
            )


def run_of(letter: str, log_line: Callable) -> History:
    """Run A to F: 20 epochs, 16 seeds, as `log_line` of 7.3 logs them."""
    seeds = range(16)
    model = SortModel(5, 10, 3, 3, init_scale=0.1, seeds=seeds)
    dice = [Generator().manual_seed(1000 + seed) for seed in seeds]
    history = History()
    for epoch, step, seen in inner_steps(CAUSES[letter], model, dice, 20):
        logged = [seen.pop(name) for name in ("rewards", "log_probs", "old_log_probs")]
        mask = torch.ones_like(logged[1], dtype=torch.bool)
        line = log_line(*(x.flatten(0, 1) for x in (*logged, mask)))  # as one batch
        history.add(epoch, step, seen | line)
    return history
