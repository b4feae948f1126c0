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
1 / (p * (1 - p)).sqrt() => 2 * torch.ones_like(p) | The second row is 2 at p = 0.5 \
alone. Ask for 0.1 and 0.01, in groups of hundreds.
1 / (p * (1 - p)).sqrt() => (p * (1 - p)).sqrt() | The second row is upside down: hard \
prompts weigh more, not less.
1 / p] => (1 - p) / p] | That is the third row where p is small. At p = 0.5 the table \
says 2, and not 1.
1 / p] => 1 / p**2] | The third row rises too fast: at p = 0.5 the table says 2, and not 4.
1 / p] => 1 / (p * (1 - p))] | The third row has no mirror images: at p = 0.9 the \
table says 1.11, and at 0.1 it says 10.
1 / (p * (1 - p)).sqrt(), 1 / p => (p * (1 - p)).sqrt(), p | These are the divisors. \
The weight is one over each: hard prompts weigh more, not less.
torch.ones_like(p), 1 / (p * (1 - p)).sqrt(), 1 / p => torch.ones_like(p), 1 / p, 1 / \
(p * (1 - p)).sqrt() | The rows are in another order: nothing, the spread, the mean.
torch.ones_like(p), => torch.full_like(p, 0.875), | 0.875 is (G - 1) / G of a group \
of 8. Ask for groups of hundreds.
torch.ones_like(p), 1 / (p * (1 - p)).sqrt(), 1 / p => p * (1 - p), (p * (1 - \
p)).sqrt(), 1 - p | These are the weights times p (1 - p). By nothing, the table says \
0.875 for each p: what does it say when G is 500?
torch.stack([torch.ones_like(p), 1 / (p * (1 - p)).sqrt(), 1 / p]) => \
torch.stack([torch.ones_like(p), 1 / (p * (1 - p)).sqrt(), 1 / p], -1) | A row is a \
divisor and a column a prompt: stack along the first axis.
"""


@exercise("14.2")
def pass_at_k(num_right, num_samples, k):
    """int [problem], int, int -> float [problem]"""
    drawn = torch.arange(k)
    wrong = num_samples - num_right[:, None]
    return 1 - ((wrong - drawn) / (num_samples - drawn)).prod(-1)


def _pass_case(description, right, n, k, hint="", within=None):
    args = {"num_right": right, "num_samples": n, "k": k}
    return case(description, hint, within=within, **args)


pass_at_k.insight = (
    "Nothing overflows: a product of k fractions takes the place of two huge binomials."
)
pass_at_k.cases = (
    _pass_case("10 samples, k = 3", [0, 1, 4, 9], 10, 3),
    _pass_case("6 samples, k = 1", [0, 2, 6], 6, 1),
    _pass_case("one problem", [2], 5, 2),
    _pass_case(
        "1000 samples, k = 400",
        [0, 1, 2, 5],
        1000,
        400,
        "Factorials of 1000 do not fit a float. Multiply k fractions, each below 1.",
        within=2e-3,
    ),
)
pass_at_k.mistakes = """
return 1 - (1 - num_right / num_samples) ** k | This draws with replacement, as if \
c/n were the true solve rate. It is too low on average. Draw k of the n samples \
without replacement.
return (num_right >= 1).float() | This is pass@n: whether any of all samples is \
right. Only k of them are drawn.
return num_right / num_samples | This is pass@1, the share of right samples.
return ((num_right[:, None] - torch.arange(k)) / (num_samples - torch.arange(k)))\
.prod(-1) | This is the chance that all k are right. pass@k asks for \
at least one: take one minus the chance that all k are wrong.
return (num_right / num_samples * k).clamp(max=1) | The chances of k draws do not add \
up: two draws can both be right. Take the chance that all k are wrong.
1 - ((wrong => ((wrong | This is the chance that all k are wrong. pass@k is one minus \
it.
/ (num_samples - drawn) => / num_samples | Of all samples, too, one fewer is left with \
each draw.
return 1 - (torch.lgamma(num_samples - num_right + 1.0) - torch.lgamma((num_samples - \
num_right - k).clamp(min=0) + 1.0) - torch.tensor(num_samples + 1.0).lgamma() + \
torch.tensor(num_samples - k + 1.0).lgamma()).exp() | Where fewer than k samples \
are wrong, one of the k drawn is right for certain: there pass@k is 1.
torch.arange(k) => torch.arange(k - 1) | That is one draw too few. k draws are \
counted from 0 to k - 1: torch.arange(k).
return 1 - ((num_samples - num_right[:, None]) / (num_samples - \
torch.arange(k))).prod(-1) | You put the sample back above: with each draw one fewer \
is left, of the wrong ones as of all.
num_samples - num_right[:, None] => num_right[:, None] | You count the wrong samples \
as right: c of n are right, n - c wrong.
torch.arange(k) => torch.arange(1, k + 1) | The first draw is counted as if one sample \
were gone. k draws are counted from 0 to k - 1: torch.arange(k).
torch.arange(k) => torch.arange(k + 1) | That is one draw too many. k draws are \
counted from 0 to k - 1: torch.arange(k).
"""
