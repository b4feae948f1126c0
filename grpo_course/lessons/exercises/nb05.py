"""The exercises of 05_kl."""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.formulas import k3
from grpo_course.lessons.exercises.shared import TOO_EARLY


def two_policies(description, probs, ref_probs, hint=""):
    """The log-probabilities of a policy and of its reference."""
    log_probs, ref_log_probs = torch.tensor(probs).log(), torch.tensor(ref_probs).log()
    return case(description, hint, log_probs=log_probs, ref_log_probs=ref_log_probs)


@exercise("5.1", gradient="log_probs", logs="log_probs")
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
        "as many states as tokens", [[0.9, 0.1], [0.3, 0.7]], [[0.4, 0.6], [0.5, 0.5]]
    ),
    two_policies(
        "two prompts, two positions, two tokens",
        [[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]],
        [[[0.4, 0.6], [0.5, 0.5]], [[0.7, 0.3], [0.9, 0.1]]],
    ),
    two_policies("the policy is its reference", [[0.2, 0.8]], [[0.2, 0.8]]),
    two_policies(
        "three states", [[0.5, 0.5]] * 3, [[0.1, 0.9], [0.6, 0.4], [0.5, 0.5]]
    ),
    two_policies(
        "a reference that hardly knows a token",
        [[0.5, 0.5]],
        [[1e-12, 1.0]],
        "The reference gives the first token a probability of 1e-12, beside which an epsilon is large. Subtract the logarithms as they are.",
    ),
)
exact_kl_of.mistakes = """
return (ref_log_probs.exp() * (ref_log_probs - log_probs)).sum(-1) | That is KL(ref||pi), the other direction: weights and ratio are swapped. The policy gives the weights here, and log pi comes first in the difference.
(log_probs - ref_log_probs) => (log_probs - ref_log_probs).exp() | You average the ratio pi/ref, and its logarithm is missing: average log pi minus log ref.
(log_probs - ref_log_probs) => (log_probs / ref_log_probs) | You divide logarithms. The logarithm of pi/ref is the difference of the two.
log_probs.exp() * => ref_log_probs.exp() * | You weigh with the reference's probabilities. KL(pi||ref) is an average over what the policy does: weigh with log_probs.exp().
log_probs.exp() * => | The weights are missing: every token counts the same. Weigh each log-ratio with the probability that the policy gives the token.
.sum( => .mean( | You divide by the size of the vocabulary. The probabilities are the weights of the average already: take the sum.
return (log_probs - ref_log_probs).mean(dim=-1) | Every token counts the same, because you average over the vocabulary. Weigh each log-ratio with the probability that the policy gives the token, and sum.
log_probs.exp() * => log_probs * | You weigh with log-probabilities. The weights are probabilities: log_probs.exp().
(log_probs - ref_log_probs) => (ref_log_probs - log_probs) | The log-ratio is upside down, so the result is minus the KL. It is log pi minus log ref.
.sum(dim=-1) => .sum() | You sum over the batch too. Each row is a distribution of its own: sum over vocab, the last axis.
.sum(dim=-1) => .sum(dim=1) | You sum over the second axis. The tokens of a distribution stand in the last one, however many axes come before it: dim=-1.
(log_probs - ref_log_probs) => -ref_log_probs | That is the cross-entropy. It lacks the policy's own log-probability, and is not zero where both agree.
return (torch.expm1(ref_log_probs - log_probs) - (ref_log_probs - log_probs)).sum(dim=-1) | You add k3 up over the vocabulary. An estimate is made for samples; here the average is exact, so weigh each log-ratio with its probability.
return -(log_probs.exp() * log_probs).sum(dim=-1) | This is the entropy of the policy, and the reference is not in it. The KL averages log pi minus log ref.
log_probs.exp() * (log_probs => log_probs.exp().detach() * (log_probs | The values are right, but you froze the weights. The policy decides how often it visits a token, so they carry gradient too.
"""


@exercise("5.2", gradient="log_probs")
def k3_estimate(log_probs, ref_log_probs):
    """float [... batch trial pos] twice -> float [... batch trial pos]"""
    log_ratio = ref_log_probs - log_probs
    return torch.expm1(log_ratio) - log_ratio


k3_estimate.insight = "k1 plus a term whose average is zero: the same mean, never negative, and far less spread where the policies are close."
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
        "k3 grows with the gap and has no bound here. A clamp, or a small number inside a logarithm, holds it back.",
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
return log_probs - ref_log_probs | That is k1. Add ref/pi - 1, whose average under the policy is zero.
return (ref_log_probs - log_probs) ** 2 / 2 | That is k2, half the squared log-ratio. Its average is not the KL.
ref_log_probs - log_probs => log_probs - ref_log_probs | k3 is upside down. Your ratio is pi over ref; its average under the policy is not 1, so the estimate is biased. Take ref over pi.
torch.expm1(log_ratio) => torch.expm1(-log_ratio) | Only half of it is upside down: k1 is right, but the ratio whose average under the policy is 1 is ref over pi.
torch.expm1 => torch.exp | The -1 is missing: your estimate is 1 where both policies agree, and 1 too large everywhere.
) - log_ratio => ) + log_ratio | The sign of the logarithm is wrong. It is minus log(ref/pi), which is k1.
return log_probs.exp() * (log_probs - ref_log_probs) | This is a term of the exact KL, weighed by its probability. These tokens were sampled: a likely one turns up more often already.
return ref_log_probs.exp() * (ref_log_probs - log_probs) | This is what F.kl_div gives: a term of the exact KL in the other direction, weighed by the reference. Sampled tokens have no weight.
return (torch.expm1(ref_log_probs - log_probs) - (ref_log_probs - log_probs)).mean() | You average already. Return one value for each token: masks and means come later.
return log_probs.exp() * (torch.expm1(ref_log_probs - log_probs) - (ref_log_probs - log_probs)) | You weigh by probability, but these tokens were sampled: a likely token turns up more often already.
return ref_log_probs / log_probs - 1 - (ref_log_probs / log_probs).log() | A quotient of log-probabilities is no ratio of probabilities. ref/pi is the exp of a difference of log-probabilities.
"""


def rewards_case(description, rewards, gap, beta):
    """Log-ratios of `gap` over a reference that is a slope."""
    gap = torch.tensor(gap)
    ref = torch.linspace(-0.5, -2.5, gap.numel()).reshape(gap.shape)
    return case(
        description,
        rewards=rewards,
        log_probs=ref + gap,
        ref_log_probs=ref,
        beta=beta,
    )


@exercise("5.3", gradient="log_probs ref_log_probs")
def penalized_reward(rewards, log_probs, ref_log_probs, beta):
    """float [... batch trial], [... batch trial pos] twice, [] -> [... batch trial]"""
    log_ratio = (log_probs - ref_log_probs).detach().sum(dim=-1)
    return rewards - beta * log_ratio


penalized_reward.insight = "Each response pays beta for every nat by which it is likelier under the policy than under the reference."
penalized_reward.cases = (
    rewards_case(
        "one prompt, two responses",
        [[3.0, 1.0]],
        [[[0.4, -0.2, 0.1], [-0.3, -0.1, 0.2]]],
        0.5,
    ),
    rewards_case(
        "three prompts, three responses, three tokens",
        [[0.0, 1.0, 2.0], [3.0, 3.0, 0.0], [1.0, 1.0, 1.0]],
        [
            [[0.3, 0.1, 0.4], [-0.2, 0.2, 0.3], [0.1, -0.4, 0.2]],
            [[0.2, 0.2, -0.1], [0.3, -0.3, 0.4], [0.4, 0.1, 0.1]],
            [[-0.2, 0.3, 0.3], [0.2, 0.4, -0.4], [0.1, 0.2, 0.3]],
        ],
        0.1,
    ),
    rewards_case("beta is zero", [[2.0, 1.0]], [[[0.5], [-0.5]]], 0.0),
    rewards_case(
        "two seeds side by side",
        [[[3.0, 1.0]], [[2.0, 0.0]]],
        [[[[0.4, -0.2], [-0.3, 0.1]]], [[[0.1, 0.3], [0.2, -0.4]]]],
        0.5,
    ),
)
penalized_reward.mistakes = """
rewards - beta => rewards + beta | The sign is wrong: this pays the policy for leaving its reference. Subtract beta times log(pi/ref).
.sum(dim=-1) => .sum() | You sum over the whole batch. Each response pays for its own tokens: sum over pos, the last axis.
.sum(dim=-1) => .sum(dim=2) | You sum over the third axis, which is pos only as long as no axis of seeds comes first. It is always the last one: dim=-1.
log_probs - ref_log_probs) => log_probs / ref_log_probs) | You divide logarithms. The logarithm of pi/ref is the difference of the two.
.sum( => .mean( | You average over pos. The log-ratio of a whole response is the sum over its tokens; a mean makes beta smaller by the length.
return (rewards[..., None] - beta * (log_probs - ref_log_probs)).detach().sum(dim=-1) | You pay the reward once for each token. It belongs to the response: sum the log-ratio first, then subtract it from the reward.
beta * log_ratio => log_ratio | beta is missing: it says how much a nat of KL costs.
.detach() => | The values are right, but a gradient flows through the reward. A reward is a number: detach() the log-ratio or use torch.no_grad().
(log_probs - ref_log_probs).detach() => (log_probs.detach() - ref_log_probs) | The values are right, but a gradient flows through the reward, into ref_log_probs. Detach the whole log-ratio.
.detach() => .detach().clamp(min=0) | You cut off what is negative. A KL is never negative, but its samples are, and without them their mean is too large.
.sum(dim=-1) => .sum(dim=-1).clamp(min=0) | You cut off what is negative. A KL is never negative, but its samples are, and without them their mean is too large.
.detach() => .detach().exp() | You add up ratios. The penalty is the logarithm of the ratio, summed over the tokens.
return rewards - beta * k3(log_probs, ref_log_probs).detach().sum(-1) | You put k3 into the reward. A reward is a number and only weighs the gradient of log pi: weighed with k1, that gradient is the one of KL(pi||ref); with k3 it is another.
return rewards - beta * ((log_probs - ref_log_probs) ** 2 / 2).detach().sum(-1) | You put k2 into the reward. A reward is a number and only weighs the gradient of log pi: weighed with k1, that gradient is the one of KL(pi||ref); with k2 it is another.
return rewards - beta * (log_probs.exp() * (log_probs - ref_log_probs)).detach().sum(-1) | You weigh by probability, but these tokens were sampled: a likely token turns up more often already.
"""


@exercise("5.4")
def next_beta(beta, kl, target, gain):
    """number or [seed], float [seed], number, number -> float [seed]"""
    error = (kl / target - 1).clamp(-0.2, 0.2)
    return beta * (1 + gain * error)


def beta_case(description, kl, hint="", gain=0.5):
    """A beta of 0.1 and a target of 0.2 nats."""
    return case(description, hint, beta=0.1, kl=kl, target=0.2, gain=gain)


next_beta.insight = "Too far from the reference makes leaving dearer, too close makes it cheaper; clamp and gain keep a single noisy KL from moving beta far."
next_beta.cases = (
    beta_case("on target, a little above, a little below", [0.2, 0.21, 0.19]),
    beta_case(
        "far above, and far below",
        [2.0, 0.0],
        "Far from its target, the error is a fifth at most: clamp it to -0.2 and 0.2 before you take a part of it.",
    ),
    beta_case("the gain of the paper", [0.1, 0.22, 0.3], gain=0.1),
    beta_case("beta follows the whole error", [0.18, 0.5], gain=1.0),
    case("another target", beta=0.1, kl=[1.1, 0.95, 5.0], target=1.0, gain=0.5),
    case("beta is 2, one seed", beta=2.0, kl=[0.19], target=0.2, gain=0.2),
    case(
        "the betas of the step before, one for each seed",
        beta=[0.1, 0.4, 2.0],
        kl=[0.3, 0.19, 0.2],
        target=0.2,
        gain=0.5,
    ),
)
next_beta.mistakes = """
.clamp(-0.2, 0.2) => | The error is not held back. A KL ten times too large would multiply beta several times over: clamp the error to -0.2 and 0.2.
.clamp(-0.2, 0.2) => .clamp(0, 0.2) | Your error is never negative, so beta only grows. Below its target the KL makes it smaller: clamp to -0.2 and 0.2.
.clamp(-0.2, 0.2) => .clamp(max=0.2) | The lower bound is missing: a KL of zero would take half of beta away at once. Clamp the error to -0.2 and 0.2.
gain * error => error | The gain is missing: beta follows the whole error. Only the part gain * error moves it.
gain * error => gain | The error is missing: beta grows in every step, whatever the KL is.
beta * (1 + gain * error) => beta * gain * error | That is only the change. Add it to beta: beta times one plus gain times the error.
1 + gain => 1 - gain | The wrong way: where the KL is too large, leaving must cost more, so beta goes up.
kl / target - 1 => 1 - target / kl | You divide by the KL itself. The error is a share of the target: (kl - target) / target.
kl / target - 1 => kl - target | You take the difference. The error is relative: kl / target - 1.
beta * (1 + gain * error) => beta + gain * error | You add the error. Beta is multiplied by one plus its part of the error, so that it never falls below zero and moves alike at every size.
return beta * (1 + (gain * (kl / target - 1)).clamp(-0.2, 0.2)) | You clamp gain * error. Clamp the error first: then a gain of 0.1 moves beta by 2 % at most.
kl / target - 1 => kl / target | The -1 is missing: on its target, the KL has an error of zero.
kl / target => target / kl | The quotient is upside down, so a KL above its target makes leaving cheaper. Divide the KL by its target.
"""
