"""The exercises of 13_beyond_grpo.

Each has a case with two prompts: with one, a lost batch axis is no mistake.
"""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.formulas import compute_loss
from grpo_course.lessons.exercises.shared import NEXT_TO_IMPOSSIBLE, numbers


@exercise("13.1", gradient="log_probs")
def sequence_loss(log_probs, old_log_probs, deltas):
    """[batch trial pos] twice, [batch trial] -> scalar"""
    ratio = (log_probs - old_log_probs).mean(-1).exp()
    epsilon = 0.2 / log_probs.shape[-1] ** 0.5
    held = ratio.clamp(1 - epsilon, 1 + epsilon)
    return -torch.minimum(ratio * deltas, held * deltas).mean()


def _sequence_case(description, means, deltas, length=4):
    """Responses of so many tokens whose ratios have these geometric means."""
    means = torch.tensor(means).log()[..., None]
    old = -3.0 - numbers(*means.shape[:-1], length).abs()
    apart = torch.tensor([-0.9, 0.3, 0.2, 0.4])  # which add up to 0
    new = old + means + apart.repeat(length // 4)
    return case(description, log_probs=new, old_log_probs=old, deltas=deltas)


sequence_loss.insight = (
    "One ratio a response: it is clipped or kept as a whole. The mean of n independent "
    "numbers spreads √n times less than each, so the range is √n times narrower."
)
sequence_loss.cases = (
    _sequence_case("one good response above the range", [[1.15]], [[1.0]]),
    _sequence_case(
        "two prompts, three responses of sixteen tokens",
        [[0.9, 1.01, 1.1], [1.06, 0.94, 0.98]],
        [[1.0, -2.0, 0.5], [-1.0, -0.3, 2.0]],
        length=16,
    ),
    _sequence_case(
        "four responses of four tokens", [[2, 0.93, 1.07, 0.7]], [[1, 2, -1, -2.0]]
    ),
    NEXT_TO_IMPOSSIBLE,
)
sequence_loss.mistakes = """
.mean(-1).exp() => .sum(-1).exp() | This is the ratio of the whole response, without \
the length: for a long one it is far from 1 in no time. GSPO takes the mean of the \
logarithms.
.mean(-1).exp() => .exp().mean(-1) | This is the arithmetic mean of the token ratios. \
Take the mean of their logarithms, and exp last.
.mean(-1).exp() => .mean().exp() | You average over the responses, too: each has a \
ratio of its own. Take the mean over the last axis alone.
return compute_loss(log_probs, deltas, "clipped", old_log_probs) | These are the \
ratios of single tokens. GSPO has one for each response: the exp of the mean of their \
logarithms.
torch.minimum(ratio * deltas, held * deltas) => (held * deltas) | Only the clipped \
product is left. The smaller of the two products counts.
minimum => maximum | max for min: the clip takes the smaller product.
0.2 / log_probs.shape[-1] ** 0.5 => 0.2 | This is the range for single tokens. A \
mean of independent numbers spreads less: by how much?
 ** 0.5 => | You divide by n, as the variance does. The spread is its root.
shape[-1] => shape[-2] | This shrinks the range by the number of responses. The mean \
is over the tokens of each.
"""


def ratio_at_most(log_probs, old_log_probs, deltas):
    """[batch trial pos] twice, [batch trial] -> scalar"""
    ratio = (log_probs - old_log_probs).exp().clamp(max=1.2)
    return -(ratio * deltas[..., None]).mean()


@exercise("13.2", gradient="log_probs", draft=ratio_at_most)
def weighted_loss(log_probs, old_log_probs, deltas):
    """[batch trial pos] twice, [batch trial] -> scalar"""
    ratio = (log_probs - old_log_probs).exp()
    weight = ratio.clamp(max=1.2).detach()
    return -(weight * deltas[..., None] * log_probs).mean()


def _loss_case(description, ratios, deltas):
    log_ratios = torch.tensor(ratios).log()
    old = -5.0 - numbers(*log_ratios.shape, scale=0.4).abs()
    new = old + log_ratios
    return case(description, log_probs=new, old_log_probs=old, deltas=deltas)


weighted_loss.insight = (
    "The clip of PPO takes a token's gradient; the bound of CISPO only limits its "
    "weight. The draft was the clip on good tokens, the clip turned round on bad ones."
)
weighted_loss.cases = (
    _loss_case(
        "two prompts, ratios 0.5 to 2.5",
        [
            [[0.5, 2.0], [1.1, 0.7], [1.5, 1.0]],
            [[0.9, 1.3], [2.5, 0.6], [1.4, 0.8]],
        ],
        [[1.0, -2.0, 0.5], [-1.0, 0.3, 2.0]],
    ),
    _loss_case("all far above the bound", [[[1.6, 50.0], [2.2, 1.4]]], [[1.0, -1.0]]),
    _loss_case("far below", [[[0.01, 0.3, 0.5], [0.02, 0.1, 0.7]]], [[1.0, -1.0]]),
    NEXT_TO_IMPOSSIBLE,
)
weighted_loss.mistakes = """
.clamp(max=1.2).detach() => .clamp(max=1.2) | The weight is not frozen: a gradient \
flows through the ratio too. Detach the bounded ratio.
return compute_loss(log_probs, deltas, "clipped", old_log_probs) | This is PPO's \
clipped loss: it takes the gradient of the tokens that it clips. CISPO weighs delta \
log pi, so every token pulls.
ratio.clamp(max=1.2).detach() => (ratio * (ratio <= 1.2)).detach() | Tokens above the \
bound are dropped. CISPO keeps them, with weight 1.2.
.clamp(max=1.2) => .clamp(0.8, 1.2) | You bound the weight from below, too, as the \
clip \
does. A token that has become rare then weighs 0.8 and not its ratio. Only the upper \
bound is asked for.
* log_probs) => * ratio) | The ratio stands in the place of log pi. CISPO weighs delta \
log pi: the gradient flows through log_probs itself.
weight * deltas[..., None] => torch.minimum(ratio * deltas[..., None], weight * \
deltas[..., None]).detach() | You take the minimum after the deltas, \
as PPO does, so bad tokens have no bound. Bound the ratio first.
* log_probs) => ) | log pi is missing. A bounded ratio has no gradient above 1.2, and \
a detached one has none at all: let it flow through log_probs.
-(weight * deltas[..., None] * log_probs) => -torch.minimum(ratio * \
deltas[..., None], ratio.clamp(max=1.2) * deltas[..., None]) | This is PPO's \
minimum, where the gradient flows through the ratio. CISPO weighs delta log pi, with \
the bounded ratio as the weight.
return -(deltas[..., None] * log_probs).mean() | The weight is missing: this is the \
naive loss. Multiply by the bounded ratio, detached.
"""
