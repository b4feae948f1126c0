"""The exercise of 00_welcome."""

from grpo_course.classroom.check import case, exercise


@exercise("0.1", tolerance=1e-3)  # with or without the small number
def group_deltas(rewards):
    """float [batch trial] -> float [batch trial]"""
    mean = rewards.mean(dim=-1, keepdim=True)
    spread = rewards.std(dim=-1, keepdim=True)
    return (rewards - mean) / (spread + 1e-4)


group_deltas.insight = "Axes have names in this course: one row of rewards is one group, the responses to one prompt, and each row is compared with itself alone."
group_deltas.cases = (
    case("two groups", rewards=[[0.0, 1.0, 2.0], [4.0, 4.0, 7.0]]),
    case("as many groups as responses", rewards=[[1.0, 3.0], [5.0, -1.0]]),
    case("four responses", rewards=[[0.0, 0.0, 0.0, 3.0]]),
    case(
        "a group in which all earn the same",
        "All of this group earn the same, so its spread is zero, and zero divided by zero is not a number. Add a small number to the spread.",
        rewards=[[2.0, 2.0, 2.0], [0.0, 1.0, 2.0]],
    ),
)
group_deltas.mistakes = """
return (rewards - rewards.mean()) / (rewards.std() + 1e-4) | You compare with the mean and the spread of the whole batch, across prompts. Each row is a group of its own: say along which axis, and keep it.
mean(dim=-1, keepdim=True) => mean() | You subtract the mean of the whole batch, across prompts. Each row is a group with its own mean: say along which axis.
std(dim=-1, keepdim=True) => std() | You divide by the spread of the whole batch, across prompts. Each row is a group with its own spread: say along which axis.
mean(dim=-1 => mean(dim=0 && std(dim=-1 => std(dim=0 | You compare along the batch axis, across prompts. A group is a row: mean and spread go along trial, the last axis.
return rewards - rewards.mean(-1, keepdim=True) | The division is missing: subtract the mean, then divide by the group's standard deviation.
return rewards / (rewards.std(-1, keepdim=True) + 1e-4) | The mean is missing: subtract the group's mean before you divide by its spread.
rewards - mean => mean - rewards | The sign is wrong: who earns more than the mean has a positive delta.
std(dim=-1 => std(correction=0, dim=-1 | correction=0 divides the squares by G. The standard deviation of step 5 divides them by G - 1, as rewards.std does by itself.
spread = rewards.std( => spread = rewards.var( | You divide by the variance. Its square root is the standard deviation, which has the unit of the rewards.
"""
