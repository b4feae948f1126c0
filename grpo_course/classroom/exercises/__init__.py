"""The exercises of all notebooks, in the order of the course."""

from grpo_course.classroom.exercises import (
    deltas,
    kl,
    losses,
    policy,
    rewards,
    welcome,
)

EXERCISES = (
    *welcome.EXERCISES,
    *rewards.EXERCISES,
    *policy.EXERCISES,
    *deltas.EXERCISES,
    *losses.EXERCISES,
    *kl.EXERCISES,
)
