"""Five short runs whose loss says next to nothing, each with another cause."""

from collections.abc import Callable

import torch

from grpo_course.formulas import compute_deltas, compute_loss
from grpo_course.lessons.exercises import nb07
from grpo_course.loop import History
from grpo_course.sort import (
    SORT_PROMPTS,
    SortModel,
    compute_log_probs,
    compute_reward,
    generate_responses,
    sort_distance_reward,
)


def run_of(letter: str, log_line: Callable = nb07.log_line.solution) -> History:
    """Run A, B, C, D or E: 20 epochs of 4 inner steps, 16 seeds."""
    prompts, seeds = SORT_PROMPTS, range(16)
    model = SortModel(5, 10, 3, 3, init_scale=0.1, seeds=seeds)
    rate = 0.0 if letter == "B" else 3e-3  # B: no step is taken
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    dice = [torch.Generator().manual_seed(1000 + seed) for seed in seeds]
    history = History()
    for epoch in range(20):
        responses = generate_responses(prompts, model, 10, dice)
        rewards = compute_reward(prompts, responses, sort_distance_reward)
        if letter == "D":
            rewards = torch.zeros_like(rewards)  # D: all groups tied
        deltas = compute_deltas(rewards, "normalized_rewards")
        if letter == "A":
            deltas = -deltas  # A: the wrong sign
        old_log_probs = compute_log_probs(prompts, responses, model).detach()
        for step in range(4):
            log_probs = compute_log_probs(prompts, responses, model)
            if letter == "E":
                old_log_probs = log_probs.detach()  # E: noted anew
            loss = compute_loss(log_probs, deltas, "clipped", old_log_probs)
            optimizer.zero_grad()
            loss.sum().backward()
            optimizer.step()
            slopes = [w.grad for w in model.parameters() if w.grad is not None]
            norm = torch.stack([g.flatten(1).norm(dim=1) for g in slopes]).norm(dim=0)
            seen = {"loss": loss.detach(), "gradient_norm": norm}
            mask = torch.ones_like(responses, dtype=torch.bool)
            given = (rewards, log_probs.detach(), old_log_probs, mask)
            line = log_line(*(x.flatten(0, 1) for x in given))  # all seeds as one batch
            history.add(epoch, step, seen | line)
    return history
