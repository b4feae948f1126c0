"""The exercise of 00_welcome."""

from grpo_course.classroom.check import case, exercise


@exercise("0.1")
def mean_by_group(rewards):
    """float [batch trial] -> float [batch]"""
    return rewards.mean(dim=-1)


mean_by_group.insight = "Axes have names in this course: one row of rewards is one group, the responses to one prompt."
mean_by_group.cases = (
    case("two groups", rewards=[[0.0, 1.0, 2.0], [4.0, 4.0, 7.0]]),
    case("as many groups as responses", rewards=[[1.0, 3.0], [5.0, -1.0]]),
    case("a group of one", rewards=[[2.5]]),
)
mean_by_group.mistakes = """
.mean(dim=-1) => .mean() | You averaged over the whole batch, across prompts. Each row is a group with its own mean: say along which axis.
.mean(dim=-1) => .mean().expand(len(rewards)) | You averaged over the whole batch, across prompts. Each row is a group with its own mean: say along which axis.
dim=-1 => dim=0 | You averaged over the batch axis, across prompts. A group is a row: average along trial, the last axis.
.mean( => .sum( | You return the sum of each group. The mean divides it by the number of responses.
.mean(dim=-1) => .sum(dim=-1) / len(rewards) | You divide by the number of prompts, the size of the batch axis. A mean divides by the number of responses: rewards.shape[-1].
.mean(dim=-1) => .sum(dim=-1) / max(rewards.shape[-1] - 1, 1) | You divide by G - 1. A mean divides by the number of responses, G: rewards.shape[-1].
.mean(dim=-1) => .median(dim=-1).values | You return the median, the one in the middle. The mean is the sum over the number of responses.
.mean(dim=-1) => .amax(dim=-1) | You return the largest reward of each group. The mean is the sum over the number of responses.
dim=-1 => dim=-1, keepdim=True | keepdim=True keeps an axis of size 1. Here it has to go: the result is [batch].
"""
