"""The exercise of 00_welcome."""

from grpo_course.classroom.exercises.shared import case
from grpo_course.classroom.old_check.exercise import Exercise


def mean_by_group(rewards):
    """float [batch trial] -> float [batch]"""
    return rewards.mean(dim=-1)


MEAN_BY_GROUP = Exercise(
    key="0.1",
    name="mean_by_group",
    solution=mean_by_group,
    axes={"rewards": "batch trial", "return": "batch"},
    cases=(
        case("two groups", rewards=[[0.0, 1.0, 2.0], [4.0, 4.0, 7.0]]),
        case("as many groups as responses", rewards=[[1.0, 3.0], [5.0, -1.0]]),
        case("a group of one", rewards=[[2.5]]),
    ),
    words={
        "whole": "You averaged over the whole batch, across prompts. Each row is a "
        "group with its own mean: say along which axis.",
        "axis": "You averaged over the batch axis, across prompts. A group is a row: "
        "average along trial, the last axis.",
        "sum for mean": "You return the sum of each group. The mean divides it by the "
        "number of responses.",
    },
    insight="Axes have names in this course: one row of rewards is one group, the "
    "responses to one prompt.",
)
