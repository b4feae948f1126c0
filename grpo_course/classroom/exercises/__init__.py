"""The exercises of all notebooks, in the order of the course."""

from grpo_course.classroom.exercises import (
    actor_critic,
    aggregation,
    bug_hunt,
    bug_hunt_losses,
    deltas,
    kl,
    loop,
    losses,
    policy,
    rewards,
    sequence_scores,
    sequences,
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
    *actor_critic.EXERCISES,
    *sequence_scores.EXERCISES,
    *sequences.EXERCISES,
    *bug_hunt.EXERCISES,
    *bug_hunt_losses.EXERCISES,
)
