"""The exercises of 13_beyond_grpo.

Each has a case with two prompts: with one, a lost batch axis is no mistake.
"""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.formulas import compute_loss
from grpo_course.lessons.exercises.shared import NEXT_TO_IMPOSSIBLE, mask_of, numbers


@exercise("13.1", gradient="log_probs")
def sequence_ratio(log_probs, old_log_probs, mask):
    """float [batch trial pos] twice, bool [batch trial pos] -> float [batch trial]"""
    log_ratio = ((log_probs - old_log_probs) * mask).sum(-1)
    return (log_ratio / mask.sum(-1)).exp()


def _ratio_case(description, lengths, apart, width=6):
    mask = mask_of(lengths, width)
    new = -numbers(*mask.shape).abs() - 0.1
    shift = torch.linspace(-apart, apart, mask.numel()).reshape(mask.shape) + 0.1
    return case(description, log_probs=new, old_log_probs=new - shift, mask=mask)


sequence_ratio.insight = (
    "One ratio a response: it is clipped or kept as a whole, and its range is much "
    "narrower, because a mean of many tokens moves little."
)
sequence_ratio.cases = (
    _ratio_case("one response of two tokens", [[2]], 0.3, 3),
    _ratio_case("responses of 2 and 6 tokens", [[2, 6]], 0.8),
    _ratio_case("two prompts, three responses", [[2, 6, 3], [1, 4, 5]], 0.5),
    _ratio_case("one response of one token", [[1]], 0.4),
)
sequence_ratio.mistakes = """
(log_ratio / mask.sum(-1)).exp() => log_ratio.exp() | This is the ratio of the whole \
response, without the length: for a long one it is far from 1 in no time. GSPO takes \
the mean of the logarithms.
return ((log_probs - old_log_probs).exp() * mask).sum(-1) / mask.sum(-1) | This is \
the arithmetic mean of the token ratios. Take the mean of their logarithms, and exp \
last.
return (log_probs - old_log_probs).exp() * mask | These are the ratios of single \
tokens. GSPO has one for each response: the exp of the mean of their logarithms.
return (log_probs.exp() * mask).sum(-1) / (old_log_probs.exp() * mask).sum(-1) | You \
add probabilities. A response's probability is the product of its tokens', so add up \
their logarithms, and exp comes last.
((log_probs - old_log_probs) * mask) => (log_probs - old_log_probs) | The mask is \
missing above: the sum takes padding in, and the divisor does not.
log_ratio / mask.sum(-1) => log_ratio / mask.shape[-1] | You divide by the width of \
the tensor: .mean(-1) takes padding for tokens. Divide by the response's own length, \
mask.sum(-1).
return (log_probs - old_log_probs).mean(-1).exp() | The mask is missing: the mean takes \
padding in. Add up under the mask, and divide by the response's own length.
log_probs - old_log_probs => log_probs / old_log_probs | You divide log-probabilities. The \
logarithm of a ratio is their difference.
return ((log_probs - old_log_probs).exp() * mask).prod(-1) ** (1 / mask.sum(-1)) | The \
mask gives padding a ratio of 0, and the product becomes 0. Mask the logarithms: a 0 \
adds nothing to their sum.
"""


@exercise("13.2", gradient="log_probs")
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
    "weight."
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
.clamp(max=1.2) => .clamp(0.8, 1.2) | You bound the weight from below, too, as the clip \
does. A token that has become rare then weighs 0.8 and not its ratio. Only the upper \
bound is asked for.
.clamp(max=1.2) => .clamp(min=1.2) | Your bound is a floor: all ratios below 1.2 are \
raised to it. It is to be a ceiling: clamp(max=1.2), or torch.minimum. clamp(1.2) \
bounds from below, too.
* log_probs) => * ratio) | The ratio stands in the place of log pi. CISPO weighs delta \
log pi: the gradient flows through log_probs itself.
weight * deltas[..., None] => torch.minimum(ratio * deltas[..., None], weight * \
deltas[..., None]).detach() | You take the minimum after the deltas, \
as PPO does, so bad tokens have no bound. Bound the ratio first.
* log_probs) => ) | log pi is missing: the weight is frozen, so nothing here has a \
gradient.
* log_probs) => * (log_probs - old_log_probs)) | You subtract old_log_probs from log \
pi. It changes no gradient, but the value: the task has log pi alone.
-(weight * deltas[..., None] * log_probs) => -torch.minimum(ratio * \
deltas[..., None], ratio.clamp(max=1.2) * deltas[..., None]) | This is PPO's \
minimum, where the gradient flows through the ratio. CISPO weighs delta log pi, with the bounded ratio as the weight.
return -(deltas[..., None] * log_probs).mean() | The weight is missing: this is the \
naive loss. Multiply by the bounded ratio, detached.
"""
