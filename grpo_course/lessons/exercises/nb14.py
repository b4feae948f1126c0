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
