"""The exercises of all notebooks, in the order of the course."""

from grpo_course.classroom.exercises import (
    aggregation,
    deltas,
    kl,
    loop,
    losses,
    policy,
    rewards,
    welcome,
    zero_loss,
    zero_loss_lengths,
)

EXERCISES = (
    *welcome.EXERCISES,
    *rewards.EXERCISES,
    *policy.EXERCISES,
    *deltas.EXERCISES,
    *losses.EXERCISES,
    *aggregation.EXERCISES,
    *kl.EXERCISES,
    *loop.EXERCISES,
    *zero_loss.EXERCISES,
    *zero_loss_lengths.EXERCISES,
)
