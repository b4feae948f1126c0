"""The exercises of 14_exact_answers."""

import torch

from grpo_course.classroom.check import case, exercise


@exercise("14.1")
def weights_of_large_groups(p):
    """float [prompt] -> float [divisor prompt]"""
    return torch.stack([torch.ones_like(p), 1 / (p * (1 - p)).sqrt(), 1 / p])


weights_of_large_groups.insight = (
    "The centered deltas and their pulls make 1, for any p. The divisor is what leans: "
    "it is 1, the spread or the mean of the rewards."
)
weights_of_large_groups.cases = (
    case("three prompts", p=[0.5, 0.1, 0.8]),
    case("one prompt", p=[0.01]),
    case("four prompts", p=[0.99, 0.25, 0.6, 0.05]),
)
weights_of_large_groups.mistakes = """
(p * (1 - p)).sqrt() => (p * (1 - p)) | The square root is missing in the second row: \
at p = 0.5 the table says 2, and not 4.
1 / (p * (1 - p)).sqrt() => 1 / p.sqrt() | That is the second row where p is small. \
Look at mirror images: 0.9 weighs as much as 0.1.
1 / (p * (1 - p)).sqrt(), 1 / p => 1 / p.std().expand_as(p), 1 / p.mean().expand_as(p) \
| The spread and the mean are those of the rewards in a group, not those of the \
prompts: each p has its own weight.
1 / p] => (1 - p) / p] | That is the third row where p is small. At p = 0.5 the table \
says 2, and not 1.
1 / p] => 1 / (p * (1 - p))] | The third row has no mirror images: at p = 0.9 the \
table says 1.11, and at 0.1 it says 10.
1 / (p * (1 - p)).sqrt(), 1 / p => (p * (1 - p)).sqrt(), p | These are the divisors. \
The weight is one over each: hard prompts weigh more, not less.
torch.ones_like(p), 1 / (p * (1 - p)).sqrt(), 1 / p => torch.ones_like(p), 1 / p, 1 / \
(p * (1 - p)).sqrt() | The rows are in another order: nothing, the spread, the mean.
torch.ones_like(p), => torch.full_like(p, 0.875), | 0.875 is (G - 1) / G of a group \
of 8. Ask for groups of hundreds.
torch.ones_like(p), 1 / (p * (1 - p)).sqrt(), 1 / p => p * (1 - p), (p * (1 - \
p)).sqrt(), 1 - p | Begin with the first row: by nothing, the table says the same for \
each p.
"""


@exercise("14.2")
def votes(gradients, weight, rate):
    """float [prompt param], [prompt], float -> float [moved by]"""
    return rate / len(gradients) * gradients @ gradients.T * weight


votes.insight = (
    "With the weight 1, two prompts push each other equally hard. With others, the one "
    "that weighs more pushes harder."
)
votes.cases = (
    case(
        "two prompts, three parameters",
        gradients=[[1.0, 2.0, 0.0], [3.0, -1.0, 4.0]],
        weight=[1.0, 3.0],
        rate=0.1,
    ),
    case(
        "as many prompts as parameters",
        gradients=[[0.0, 2.0, 1.0], [-1.0, 4.0, 0.5], [3.0, 0.0, -2.0]],
        weight=[1.0, 1.0, 1.0],
        rate=0.5,
    ),
    case(
        "four prompts, two parameters",
        gradients=[[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [-1.0, 1.0]],
        weight=[2.0, 0.5, 1.0, 4.0],
        rate=1.0,
    ),
    case("one prompt", gradients=[[2.0, -1.0]], weight=[3.0], rate=0.2),
)
votes.mistakes = """
* weight => * weight[:, None] | The weight is the voter's, and each voter has a \
column: you weigh the prompts that are moved.
gradients @ gradients.T * weight => (weight[:, None] * gradients) @ (weight[:, None] * \
gradients).T | You weigh both. The weight multiplies the voter's gradient alone: that \
of the moved p only says what a move changes.
* weight => | The weights are missing: a vote moves the parameters by rate / prompts \
times weight times gradient.
rate / len(gradients) * => rate / weight.sum() * | The step takes the mean over \
prompts: divide by their number, not by the sum of their weights.
rate / len(gradients) * => rate * | The step takes the mean of the gradients. Each \
prompt has one part in it of as many as there are prompts.
gradients @ gradients.T * weight => gradients.T @ (weight[:, None] * gradients) | Your \
table has a row for each parameter. Sum over the parameters: rows and columns are \
prompts.
gradients @ gradients.T * weight => gradients * weight[:, None] | This is how a vote \
moves the parameters. How does that move change each p? Multiply by the gradient of \
that p.
return rate * gradients @ (weight[:, None] * gradients).mean(0) | You add up all votes. \
Keep them apart: a column for each voter.
gradients @ gradients.T => torch.nn.functional.cosine_similarity(gradients[:, None], \
gradients[None], dim=-1) | A cosine drops the lengths of both gradients. A long \
gradient moves more, and is moved more.
"""
