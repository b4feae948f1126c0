"""Runs that a learner designs, judged in words: what they reach, what they miss."""

import textwrap
from collections.abc import Iterator

from torch import Tensor

from grpo_course.classroom.old_check.report import WIDTH
from grpo_course.loop import ENOUGH, History, mean_and_error

CERTAIN, CUT = 0.15, 0.4  # nats of entropy, share of tokens without gradient


def judge_run(
    run: History, num_responses: int, *, budget: int, max_steps: int, goal: float
) -> None:
    """Print whether a run of the sort task learned enough from few enough responses.

    Two standard errors below its mean over the seeds, the expected reward must still be
    at least `goal`. `budget` counts sampled responses, `max_steps` optimizer steps.
    """
    rewards, steps = run.final("expected_reward"), len(run.curve("loss"))
    num_rollouts = len(run.epochs("loss"))
    used = num_rollouts * run.final("answer").shape[-2] * num_responses
    print(f"{used} of {budget} responses, {steps} of {max_steps} steps")
    print(f"reward {with_spread(rewards)}")
    words = run_words(run, used, budget, steps, max_steps, goal)
    print(textwrap.fill(" ".join(words), WIDTH))


def run_words(
    run: History, used: int, budget: int, steps: int, max_steps: int, goal: float
) -> Iterator[str]:
    """What to say of a run: it reaches the goal, or what went wrong and the cure."""
    if used > budget:
        yield (
            f"Over budget by {used - budget} responses: sample fewer times, or fewer "
            "responses to each prompt."
        )
    if steps > max_steps:
        yield f"{steps - max_steps} steps too many: take fewer on each rollout."
    low = sure_of(run.final("expected_reward"))
    if low < goal:
        yield short_of(goal, low)
        yield why_short(run)
    elif used <= budget and steps <= max_steps:
        yield f"The goal of {goal:g} is reached, with {low - goal:.2f} to spare."


def why_short(run: History) -> str:
    """The likely reason why a run learned too little, and what to turn."""
    entropy = run.final("entropy").mean().item()
    cut = run.curve("clip_fraction_low") + run.curve("clip_fraction_high")
    if entropy < CERTAIN:
        return (
            f"The policy is certain (entropy {entropy:.2f} nats), in many seeds of a "
            "wrong answer: it went too far on the first groups. Lower the rate, take "
            "fewer steps on each rollout, or sample larger groups."
        )
    if cut.mean() > CUT:
        return (
            f"On average, {cut.mean():.0%} of the tokens had no gradient: the clip had "
            "let go of them, and further steps on the same rollout do little. Spread "
            "the responses over more rollouts, or widen the range."
        )
    return (
        f"The policy is not decided yet (entropy {entropy:.2f} nats): it moved too "
        "little. Take more steps on each rollout, or larger ones."
    )


def judge_kl(
    kl: Tensor, rewards: Tensor, *, band: tuple[float, float], goal: float
) -> None:
    """Print whether a policy stayed within a band of its reference and still learned.

    kl and rewards [seed]: the exact KL of the trained policy and its expected reward.
    """
    low, high = band
    print(f"KL     {with_spread(kl)}")
    print(f"reward {with_spread(rewards)}")
    words = kl_words(kl.mean().item(), rewards, low, high, goal)
    print(textwrap.fill(" ".join(words), WIDTH))


def kl_words(
    kl: float, rewards: Tensor, low: float, high: float, goal: float
) -> Iterator[str]:
    """What to say of a trained policy: which side it missed, and by how much."""
    if kl > high:
        yield (
            f"The policy went {kl - high:.2f} nats a token too far: {high:g} are "
            "allowed. Leaving the reference costs too little."
        )
    if kl < low:
        yield (
            f"The policy stayed {low - kl:.2f} nats a token short of {low:g}: leaving "
            "the reference costs too much."
        )
    sure = sure_of(rewards)
    if sure < goal:
        yield short_of(goal, sure)
    elif low <= kl <= high:
        yield f"Both goals are reached: {low:g} to {high:g} nats, reward over {goal:g}."


def short_of(goal: float, sure: float) -> str:
    """How far a reward is from its goal."""
    return (
        f"The reward falls short of {goal:g}: two standard errors below its mean, "
        f"{sure:.2f} are left."
    )


def sure_of(values: Tensor) -> float:
    """Two standard errors below the mean over the seeds."""
    mean, error = mean_and_error(values)
    return (mean - ENOUGH * error).item()


def with_spread(values: Tensor) -> str:
    """The mean, its standard error, and how far the seeds lie apart."""
    (mean, error), spread = mean_and_error(values), values.std()
    return f"{mean:.2f} ± {error:.2f}, {len(values)} seeds (their spread {spread:.2f})"
