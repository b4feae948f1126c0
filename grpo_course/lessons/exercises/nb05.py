"""The exercises of 05_kl."""

import torch
from torch.nn.functional import kl_div

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import TOO_EARLY


def two_policies(description, probs, ref_probs, hint=""):
    """The log-probabilities of a policy and of its reference."""
    log_probs, ref_log_probs = torch.tensor(probs).log(), torch.tensor(ref_probs).log()
    return case(description, hint, log_probs=log_probs, ref_log_probs=ref_log_probs)


def torch_kl(log_probs, ref_log_probs):
    """float [... vocab], float [... vocab] -> float [...]"""
    areas = kl_div(log_probs, ref_log_probs, log_target=True, reduction="none")
    return areas.mean(dim=-1)


@exercise("5.1", gradient="log_probs", logs="log_probs", draft=torch_kl)
def exact_kl_of(log_probs, ref_log_probs):
    """float [... vocab], float [... vocab] -> float [...]"""
    return (log_probs.exp() * (log_probs - ref_log_probs)).sum(dim=-1)


exact_kl_of.insight = (
    "The weights are the policy's, so what it never says costs it nothing."
)
exact_kl_of.cases = (
    two_policies(
        "two states, three tokens",
        [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]],
        [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]],
    ),
    two_policies(
        "two prompts, two positions, two tokens",
        [[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]],
        [[[0.4, 0.6], [0.5, 0.5]], [[0.7, 0.3], [0.9, 0.1]]],
    ),
    two_policies("the policy is its reference", [[0.2, 0.8]], [[0.2, 0.8]]),
    two_policies(
        "a reference that hardly knows a token",
        [[0.5, 0.5]],
        [[1e-12, 1.0]],
        "The reference gives the first token a probability of 1e-12, beside which an "
        "epsilon is large. Subtract the logarithms as they are.",
    ),
    case(
        "a token next to impossible under both",
        "exp(-200) rounds to zero, so the quotient of the two probabilities is 0/0. "
        "Subtract the logarithms as they are.",
        log_probs=[[-200.0, 0.0]],
        ref_log_probs=[[-199.0, 0.0]],
    ),
)
exact_kl_of.mistakes = """
return (ref_log_probs.exp() * (ref_log_probs - log_probs)).sum(-1) | That is \
KL(ref||pi), the other direction, as in the draft: weights and ratio are swapped. The \
policy gives the weights here (kl_div weighs with its second argument), and log pi \
comes first in the difference.
(log_probs - ref_log_probs) => (log_probs / ref_log_probs) | You divide logarithms. \
The logarithm of pi/ref is the difference of the two.
log_probs.exp() * => ref_log_probs.exp() * | You weigh with the reference's \
probabilities. KL(pi||ref) is an average over what the policy does: weigh with \
log_probs.exp().
log_probs.exp() * => | The weights are missing: every token counts the same. Weigh \
each log-ratio with the probability that the policy gives the token.
.sum( => .mean( | You divide by the size of the vocabulary. The probabilities are the \
weights of the average already: take the sum.
log_probs.exp() * => log_probs * | You weigh with log-probabilities. The weights are \
probabilities: log_probs.exp().
(log_probs - ref_log_probs) => (ref_log_probs - log_probs) | The log-ratio is upside \
down, so the result is minus the KL. It is log pi minus log ref.
(log_probs - ref_log_probs) => (log_probs - ref_log_probs).clamp(min=0) | You leave \
out the area below the line. A token that became rarer counts as negative.
log_probs.exp() * (log_probs => log_probs.exp().detach() * (log_probs | The values are \
right, but you froze the weights. The policy decides how often it visits a token, so \
they carry gradient too.
"""


@exercise("5.2", gradient="log_probs")
def k3_estimate(log_probs, ref_log_probs):
    """float [... batch trial pos] twice -> float [... batch trial pos]"""
    log_ratio = ref_log_probs - log_probs
    return torch.expm1(log_ratio) - log_ratio


k3_estimate.insight = (
    "k1 plus a term whose average is zero: the same mean, never negative, and far less "
    "spread where the policies are close."
)
k3_estimate.cases = (
    case(
        "one prompt, two responses",
        log_probs=[[[-0.5, -1.0, -2.0], [-0.25, -3.0, -1.5]]],
        ref_log_probs=[[[-1.5, -0.5, -2.5], [-0.75, -1.0, -1.25]]],
    ),
    case(
        "tokens the policy made rare and made common",
        log_probs=[[[-4.0, -0.1]]],
        ref_log_probs=[[[-1.0, -3.0]]],
    ),
    case(
        "the policy is its reference",
        log_probs=[[[-1.0, -2.0]]],
        ref_log_probs=[[[-1.0, -2.0]]],
    ),
    case(
        "a token that the reference finds far rarer",
        "k3 grows with the gap and has no bound here. A clamp, or a small number "
        "inside a logarithm, holds it back.",
        log_probs=[[[-1.0, -0.5]]],
        ref_log_probs=[[[-31.0, -12.5]]],
    ),
    case(
        "two prompts, and tokens next to impossible",
        TOO_EARLY,
        log_probs=[[[-200.0, -1.0]], [[-150.0, -2.0]]],
        ref_log_probs=[[[-199.0, -1.5]], [[-151.0, -1.0]]],
    ),
)
k3_estimate.mistakes = """
return log_probs - ref_log_probs | That is k1. Add ref/pi - 1, whose average under the \
policy is zero.
return (ref_log_probs - log_probs) ** 2 / 2 | That is k2, half the squared log-ratio. \
Its average is not the KL.
ref_log_probs - log_probs => log_probs - ref_log_probs | k3 is upside down. Your ratio \
is pi over ref; its average under the policy is not 1, so the estimate is biased. Take \
ref over pi.
torch.expm1(log_ratio) => torch.expm1(-log_ratio) | Only half of it is upside down: k1 \
is right, but the ratio whose average under the policy is 1 is ref over pi.
torch.expm1 => torch.exp | The -1 is missing: your estimate is 1 where both policies \
agree, and 1 too large everywhere.
) - log_ratio => ) + log_ratio | The sign of the logarithm is wrong. It is minus \
log(ref/pi), which is k1.
return log_probs.exp() * (log_probs - ref_log_probs) | This is a term of the exact KL, \
weighed by its probability. These tokens were sampled: a likely one turns up more \
often already.
return (torch.expm1(ref_log_probs - log_probs) - (ref_log_probs - log_probs)).mean() | \
You average already. Return one value for each token: masks and means come later.
return log_probs.exp() * (torch.expm1(ref_log_probs - log_probs) - (ref_log_probs - \
log_probs)) | You weigh by probability, but these tokens were sampled: a likely token \
turns up more often already.
"""


@exercise("5.3", gradient="log_probs")
def corrected_k3(log_probs, old_log_probs, ref_log_probs):
    """float [... batch trial pos] three times -> float [... batch trial pos]"""
    ratio = (log_probs - old_log_probs).exp()
    log_ratio = ref_log_probs - log_probs
    return ratio * (torch.expm1(log_ratio) - log_ratio)


def three_policies(description, now, old, ref, hint=""):
    """The tokens of two responses under three policies."""
    return case(
        description, hint, log_probs=[now], old_log_probs=[old], ref_log_probs=[ref]
    )


corrected_k3.insight = (
    "The ratio brings the samples of pi_old to those of pi, and its gradient is what "
    "k3 lacks: that a change of pi changes which tokens are sampled."
)
corrected_k3.cases = (
    three_policies(
        "the policy's own samples",
        [[-0.5, -1.0, -2.0], [-0.25, -3.0, -1.5]],
        [[-0.5, -1.0, -2.0], [-0.25, -3.0, -1.5]],
        [[-1.5, -0.5, -2.5], [-0.75, -1.0, -1.25]],
    ),
    three_policies(
        "samples of an older policy",
        [[-0.5, -1.0, -2.0], [-0.25, -3.0, -1.5]],
        [[-0.75, -1.5, -1.0], [-0.5, -2.0, -1.75]],
        [[-1.5, -0.5, -2.5], [-0.75, -1.0, -1.25]],
    ),
    three_policies(
        "ratios far from 1",
        [[-0.1, -4.0]],
        [[-2.5, -1.0]],
        [[-1.0, -3.0]],
        "The ratios here are 11 and 0.05, and nothing is clipped.",
    ),
    three_policies(
        "the policy is its reference",
        [[-1.0, -2.0]],
        [[-1.5, -1.0]],
        [[-1.0, -2.0]],
    ),
    three_policies(
        "tokens next to impossible",
        [[-200.0, -150.0]],
        [[-199.5, -150.5]],
        [[-199.0, -151.0]],
        TOO_EARLY,
    ),
)
corrected_k3.mistakes = """
ratio * (torch => (torch | That is k3 alone. It is right on the policy's own samples, \
but its gradient is that of KL(ref||pi), and on older samples its average is not the \
KL. Multiply by pi / pi_old.
ratio * (torch => ratio.detach() * (torch | The values are right, but the ratio is cut \
off. On the policy's own samples it is 1, and its gradient is what k3 lacks.
(log_probs - old_log_probs).exp() => (old_log_probs - log_probs).exp() | The ratio is \
upside down: pi / pi_old turns an average over the samples of pi_old into one over \
those of pi.
(log_probs - old_log_probs).exp() => log_probs.exp() | You weigh with pi. The tokens \
were sampled with pi_old, so a likely one turns up more often already: weigh with \
pi / pi_old.
(log_probs - old_log_probs).exp() => (log_probs / old_log_probs) | A quotient of \
log-probabilities is no ratio of probabilities: subtract, then exp.
(torch.expm1(log_ratio) - log_ratio) => (torch.expm1(log_ratio) - log_ratio).detach() \
| The values are right, but k3 is cut off, so half of the gradient is missing.
ratio * (torch.expm1(log_ratio) - log_ratio) => log_ratio**2 / 2 | That is k2. Its \
gradient is right on the policy's own samples, but its average is not the KL. Correct \
k3.
(log_probs - old_log_probs).exp() => (log_probs - old_log_probs).sum(-1, \
keepdim=True).exp() | You take one ratio for the whole response. Each token has a \
ratio of its own.
(torch.expm1(log_ratio) - log_ratio) => -log_ratio | That corrects k1. Its average and \
its gradient are right as well, but it is as noisy as k1. Correct k3.
"""
