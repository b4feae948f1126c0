"""The exercises of all notebooks, in the order of the course."""

from grpo_course.classroom.exercises import deltas, policy, rewards, welcome

EXERCISES = (
    *welcome.EXERCISES,
    *rewards.EXERCISES,
    *policy.EXERCISES,
    *deltas.EXERCISES,
)
