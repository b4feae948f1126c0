"""The exercises of 05_kl."""

import torch
from torch import Tensor

from grpo_course.classroom.check.exercise import Case, Exercise, Mistake
from grpo_course.classroom.exercises.shared import TOKENS, TOO_EARLY, case, two_policies
from grpo_course.formulas import k3

REVERSED = (
    "That is KL(ref||pi), the other direction: weights and ratio are swapped. The "
    "policy gives the weights here, and log pi comes first in the difference."
)


def exact_kl_of(log_probs, ref_log_probs):
    """float [batch vocab], float [batch vocab] -> float [batch]"""
    return (log_probs.exp() * (log_probs - ref_log_probs)).sum(dim=-1)


EXACT_KL_OF = Exercise(
    key="5.1",
    name="exact_kl_of",
    solution=exact_kl_of,
    axes={
        "log_probs": "batch vocab",
        "ref_log_probs": "batch vocab",
        "return": "batch",
    },
    gradient_to=("log_probs",),
    cases=(
        two_policies(
            "two states, three tokens",
            [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]],
            [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]],
        ),
        two_policies(
            "as many states as tokens",
            [[0.9, 0.1], [0.3, 0.7]],
            [[0.4, 0.6], [0.5, 0.5]],
        ),
        two_policies("the policy is its reference", [[0.2, 0.8]], [[0.2, 0.8]]),
        two_policies(
            "three states", [[0.5, 0.5]] * 3, [[0.1, 0.9], [0.6, 0.4], [0.5, 0.5]]
        ),
    ),
    distributions=("log_probs",),
    words={
        "gradient in part": "The values are right, but you froze the weights. The "
        "policy decides how often it visits a token, so they carry gradient too.",
        "log_probs - ref_log_probs": "The weights are missing: every token counts the "
        "same. Weigh each log-ratio with the probability that the policy gives the "
        "token.",
        "mean for sum": "You divide by the size of the vocabulary. The probabilities "
        "are the weights of the average already: take the sum.",
        "exp lost": "You weigh with log-probabilities. The weights are probabilities: "
        "log_probs.exp().",
        "difference turned": "The log-ratio is upside down, so the result is minus "
        "the KL. It is log pi minus log ref.",
        "whole": "You sum over the batch too. Each row is a distribution of its own: "
        "sum over vocab, the last axis.",
    },
    mistakes=(
        Mistake(lambda pi, ref: (ref.exp() * (ref - pi)).sum(-1), REVERSED),
        Mistake(
            lambda pi, ref: (ref.exp() * (pi - ref)).sum(-1),
            "You weigh with the reference's probabilities. KL(pi||ref) is an average "
            "over what the policy does: weigh with log_probs.exp().",
        ),
        Mistake(
            lambda pi, ref: -(pi.exp() * ref).sum(-1),
            "That is the cross-entropy. It lacks the policy's own log-probability, "
            "and is not zero where both agree.",
        ),
    ),
    equivalent={
        "log_probs.detach()": "the gradient of log pi, weighted by pi, sums to zero",
    },
    insight="Weights from the policy, log-ratio policy over reference: never "
    "negative in sum, and zero only where both agree.",
)


def k3_estimate(log_probs, ref_log_probs):
    """float [batch trial pos], float [batch trial pos] -> float [batch trial pos]"""
    log_ratio = ref_log_probs - log_probs
    return torch.expm1(log_ratio) - log_ratio


K3_ESTIMATE = Exercise(
    key="5.2",
    name="k3_estimate",
    solution=k3_estimate,
    axes=dict.fromkeys(("log_probs", "ref_log_probs", "return"), TOKENS),
    gradient_to=("log_probs",),
    cases=(
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
            "two prompts, and tokens next to impossible",
            TOO_EARLY,
            log_probs=[[[-200.0, -1.0]], [[-150.0, -2.0]]],
            ref_log_probs=[[[-199.0, -1.5]], [[-151.0, -1.0]]],
        ),
    ),
    words={
        "log_ratio ** 2 / 2": "That is k2, half the squared log-ratio. Its average is "
        "not the KL.",
        "log_probs - ref_log_probs": "k3 is upside down. Your ratio is pi over ref; "
        "its average under the policy is not 1, so the estimate is biased. Take ref "
        "over pi.",
        "one not taken away": "The -1 is missing: your estimate is 1 where both "
        "policies agree, and 1 too large everywhere.",
        "log_ratio.expm1() + log_ratio": "The sign of the logarithm is wrong. It is "
        "minus log(ref/pi), which is k1.",
        "log_ratio - log_ratio.expm1()": "Everything has the wrong sign: k3 is never "
        "negative.",
        "return (...).float().mean()": "You average already. Return one value for "
        "each token: masks and means come later.",
    },
    mistakes=(
        Mistake(
            lambda pi, ref: (pi - ref).exp() - 1 + (pi - ref),
            "Only half of it is upside down: k1 is right, but the ratio whose average "
            "under the policy is 1 is ref over pi.",
        ),
        Mistake(
            lambda pi, ref: pi - ref,
            "That is k1. Add ref/pi - 1, whose average under the policy is zero.",
        ),
        Mistake(
            lambda pi, ref: ref / pi - 1 - (ref / pi).log(),
            "A quotient of log-probabilities is no ratio of probabilities. ref/pi is "
            "the exp of a difference of log-probabilities.",
        ),
    ),
    equivalent={
        "(log_ratio.expm1() - log_ratio).abs()": "it is never negative",
    },
    insight="k1 plus a term whose average is zero: the same mean, never negative, "
    "and far less spread where the policies are close.",
)


def _judge(rewards: Tensor, kl: Tensor, beta: float) -> Tensor:
    return rewards - beta * kl.detach()


def _rewards_case(description: str, rewards: list, gap: list, beta: float) -> Case:
    ref = torch.linspace(-0.5, -2.5, torch.tensor(gap).numel())
    ref = ref.reshape(torch.tensor(gap).shape)
    return case(
        description,
        rewards=rewards,
        log_probs=ref + torch.tensor(gap),
        ref_log_probs=ref,
        kl_penalty=beta,
    )


def penalized_reward(rewards, log_probs, ref_log_probs, kl_penalty):
    """float [batch trial], [batch trial pos] twice, [] -> float [batch trial]"""
    log_ratio = (log_probs - ref_log_probs).detach().sum(dim=-1)
    return rewards - kl_penalty * log_ratio


PENALIZED_REWARD = Exercise(
    key="5.3",
    name="penalized_reward",
    solution=penalized_reward,
    axes={
        "rewards": "batch trial",
        "log_probs": TOKENS,
        "ref_log_probs": TOKENS,
        "return": "batch trial",
    },
    gradient_to=("log_probs",),
    cases=(
        _rewards_case(
            "one prompt, two responses",
            [[3.0, 1.0]],
            [[[0.4, -0.2, 0.1], [-0.3, -0.1, 0.2]]],
            0.5,
        ),
        _rewards_case(
            "three prompts, three responses, three tokens",
            [[0.0, 1.0, 2.0], [3.0, 3.0, 0.0], [1.0, 1.0, 1.0]],
            [
                [[0.3, 0.1, 0.4], [-0.2, 0.2, 0.3], [0.1, -0.4, 0.2]],
                [[0.2, 0.2, -0.1], [0.3, -0.3, 0.4], [0.4, 0.1, 0.1]],
                [[-0.2, 0.3, 0.3], [0.2, 0.4, -0.4], [0.1, 0.2, 0.3]],
            ],
            0.1,
        ),
        _rewards_case("beta is zero", [[2.0, 1.0]], [[[0.5], [-0.5]]], 0.0),
    ),
    words={
        "rewards + kl_penalty * log_ratio": "The sign is wrong: this pays the policy "
        "for leaving its reference. Subtract beta times log(pi/ref).",
        "mean for sum": "You average over pos. The log-ratio of a whole response is "
        "the sum over its tokens; a mean makes beta smaller by the length.",
        "log_ratio": "beta is missing: kl_penalty says how much a nat of KL costs.",
        "detach lost": "The values are right, but a gradient flows through the "
        "reward. A reward is a number: detach() the log-ratio or use torch.no_grad().",
    },
    mistakes=(
        Mistake(
            lambda r, pi, ref, beta: _judge(r, k3(pi, ref).sum(-1), beta),
            "You put k3 into the reward. There the gradient comes from the score "
            "function, and k1 is the one that gives the gradient of KL(pi||ref).",
        ),
        Mistake(
            lambda r, pi, ref, beta: _judge(r, ((pi - ref) ** 2 / 2).sum(-1), beta),
            "You put k2 into the reward. There the gradient comes from the score "
            "function, and k1 is the one that gives the gradient of KL(pi||ref).",
        ),
        Mistake(
            lambda r, pi, ref, beta: _judge(r, (pi.exp() * (pi - ref)).sum(-1), beta),
            "You weigh by probability, but these tokens were sampled: a likely token "
            "turns up more often already.",
        ),
    ),
    insight="Each response pays beta for every nat by which it is likelier under the "
    "policy than under the reference.",
)


def _beta_case(description: str, kl: list, hint: str = "", gain: float = 0.5) -> Case:
    return case(description, hint, beta=0.1, kl=kl, target=0.2, gain=gain)


def next_beta(beta, kl, target, gain):
    """number, float [seed], number, number -> float [seed]"""
    error = (kl / target - 1).clamp(-0.2, 0.2)
    return beta * (1 + gain * error)


NEXT_BETA = Exercise(
    key="5.4",
    name="next_beta",
    solution=next_beta,
    axes={"kl": "seed", "return": "seed"},
    cases=(
        _beta_case("on target, a little above, a little below", [0.2, 0.21, 0.19]),
        _beta_case(
            "far above, and far below",
            [2.0, 0.0],
            "Far from its target, the error is a fifth at most: clamp it to -0.2 and "
            "0.2 before you take a part of it.",
        ),
        _beta_case("the gain of the paper", [0.1, 0.22, 0.3], gain=0.1),
        _beta_case("beta follows the whole error", [0.18, 0.5], gain=1.0),
        case("another target", beta=0.1, kl=[1.1, 0.95, 5.0], target=1.0, gain=0.5),
        case("beta is 2, one seed", beta=2.0, kl=[0.19], target=0.2, gain=0.2),
    ),
    words={
        "clamp lost": "The error is not held back. A KL ten times too large would "
        "multiply beta several times over: clamp the error to -0.2 and 0.2.",
        "error": "The gain is missing: beta follows the whole error. Only the part "
        "gain * error moves it.",
        "gain": "The error is missing: beta grows in every step, whatever the KL is.",
    },
    mistakes=(
        Mistake(
            lambda beta, kl, target, gain: (
                beta * (1 - gain * (kl / target - 1).clamp(-0.2, 0.2))
            ),
            "The wrong way: where the KL is too large, leaving must cost more, so beta "
            "goes up.",
        ),
        Mistake(
            lambda beta, kl, target, gain: (
                beta * (1 + gain * (kl - target).clamp(-0.2, 0.2))
            ),
            "You take the difference. The error is relative: kl / target - 1.",
        ),
        Mistake(
            lambda beta, kl, target, gain: (
                beta + gain * (kl / target - 1).clamp(-0.2, 0.2)
            ),
            "You add the error. Beta is multiplied by one plus its part of the error, "
            "so that it never falls below zero and moves alike at every size.",
        ),
        Mistake(
            lambda beta, kl, target, gain: (
                beta * (1 + (gain * (kl / target - 1)).clamp(-0.2, 0.2))
            ),
            "You clamp gain * error. Clamp the error first: then a gain of 0.1 moves "
            "beta by 2 % at most.",
        ),
        Mistake(
            lambda beta, kl, target, gain: (
                beta * (1 + gain * (kl / target).clamp(-0.2, 0.2))
            ),
            "The -1 is missing: on its target, the KL has an error of zero.",
        ),
        Mistake(
            lambda beta, kl, target, gain: (beta * kl / target).clamp(-0.2, 0.2),
            "You clamp beta itself. The error is what stays between -0.2 and 0.2.",
        ),
    ),
    insight="Too far from the reference makes leaving dearer, too close makes it "
    "cheaper; clamp and gain keep a single noisy KL from moving beta far.",
)
