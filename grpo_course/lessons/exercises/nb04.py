"""The exercises of 04_losses."""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import (
    NEXT_TO_IMPOSSIBLE,
    TOO_EARLY,
    mask_of,
    numbers,
)

ANYTHING = (
    "Padding may hold anything, and 0 * inf is not a number. Choose instead of "
    "multiplying: torch.where(mask, per_token, 0.0)."
)


def two_policies(*shape, apart):
    """The new and the old log-probabilities, up to `apart` nats from each other."""
    old = -numbers(*shape).abs() - 1.2
    # Further along the same sine, so that new and old move on their own.
    new = old + numbers(2, *shape, scale=apart)[1]
    return {"log_probs": new, "old_log_probs": old}


@exercise("4.1", gradient="log_probs old_log_probs")
def compute_ratio_from_logs(log_probs, old_log_probs):
    """float [batch trial pos] twice -> float [batch trial pos]"""
    return torch.exp(log_probs - old_log_probs.detach())


compute_ratio_from_logs.insight = (
    "Subtract logarithms, then exp. pi_old is data here: no gradient enters."
)
compute_ratio_from_logs.cases = (
    case(
        "p goes from .5 to .6, and from .5 to .25",
        log_probs=torch.tensor([[[0.6, 0.25]]]).log(),
        old_log_probs=torch.tensor([[[0.5, 0.5]]]).log(),
    ),
    case("two prompts, two responses", **two_policies(2, 2, 3, apart=0.9)),
    case(
        "tokens that are next to impossible",
        TOO_EARLY,
        log_probs=[[[-200.0, -150.0]]],
        old_log_probs=[[[-199.5, -150.0]]],
    ),
    case(
        "ratios far from 1",
        "Nothing bounds a ratio here: take exp of the difference as it is, however large it is. The loss clips later.",
        log_probs=[[[-1.0, -5.0]], [[-3.0, -0.5]]],
        old_log_probs=[[[-5.0, -1.0]], [[-0.5, -4.5]]],
    ),
)
compute_ratio_from_logs.mistakes = """
return log_probs / old_log_probs.detach() | You divide log-probabilities. The ratio is a quotient of probabilities: exp of the difference of their logarithms.
log_probs - old_log_probs.detach() => log_probs / old_log_probs.detach() | You divide log-probabilities. The logarithm of a quotient is the difference of the logarithms: subtract, then exp.
return log_probs - old_log_probs.detach() | This is the logarithm of the ratio: the exp is missing. Where both policies agree, the ratio is 1, not 0.
return 1 + log_probs - old_log_probs.detach() | Near 1 this comes close, but it is not the ratio: the exp is missing.
log_probs - old_log_probs.detach() => old_log_probs.detach() - log_probs | Upside down: this is pi_old / pi. A token that became likelier has a ratio above 1.
.detach() => | The values are right, but pi_old is not frozen: a gradient flows into old_log_probs. Detach it.
return torch.exp(log_probs - old_log_probs.detach()).clamp(0.8, 1.2) | You clip the ratio. It is asked for as it is: clipping is the next exercise.
log_probs - old_log_probs.detach() => (log_probs - old_log_probs.detach()).mean(-1, keepdim=True).expand_as(log_probs) | You average over pos. Each token has a ratio of its own.
"""


@exercise("4.2", gradient="log_probs")
def clipped_surrogate_loss(log_probs, old_log_probs, deltas):
    """float [batch trial pos] twice, float [batch trial] -> scalar"""
    ratio = torch.exp(log_probs - old_log_probs)
    clipped = ratio.clamp(0.8, 1.2)
    deltas = deltas[..., None]
    return -torch.minimum(ratio * deltas, clipped * deltas).mean()


def one_token(ratio, delta):
    """A token above or below the range."""
    side = "above" if ratio > 1 else "below"
    sign = "positive" if delta > 0 else "negative"
    return case(
        f"one token: ratio {side} the range, {sign} delta",
        log_probs=torch.tensor([[[0.02 * ratio]]]).log(),
        old_log_probs=torch.tensor([[[0.02]]]).log(),
        deltas=[[delta]],
    )


def surrogate_case(description, *shape):
    """Ratios inside and outside the range, deltas of both signs."""
    deltas = numbers(3, *shape[:-1], scale=2.0)[2]
    return case(description, **two_policies(*shape, apart=0.6), deltas=deltas)


clipped_surrogate_loss.insight = (
    "The min lets go of a token only where moving on would look like a gain."
)
clipped_surrogate_loss.cases = (
    one_token(1.5, 1.0),
    one_token(1.5, -1.0),
    one_token(0.5, 1.0),
    one_token(0.5, -1.0),
    surrogate_case("two prompts, two responses", 2, 2, 3),
    surrogate_case("all axes of the same size", 3, 3, 3),
    case(
        "ratios of 50 and 0.01, and a delta of zero",
        "No ratio has another bound than 0.8 and 1.2, and every token counts in the mean, also one whose loss is zero.",
        log_probs=torch.tensor([[[0.5, 0.001]] * 3]).log(),
        old_log_probs=torch.tensor([[[0.01, 0.1]] * 3]).log(),
        deltas=[[1.0, -1.0, 0.0]],
    ),
    NEXT_TO_IMPOSSIBLE,
)
clipped_surrogate_loss.mistakes = """
minimum => maximum | max for min: PPO takes the pessimist's side, the smaller product.
torch.minimum(ratio * deltas, clipped * deltas) => (torch.minimum(ratio, clipped) * deltas) | For negative delta you clip the wrong side (as min over ratios does: the order is reversed). Multiply by delta first, then min.
torch.minimum(ratio * deltas, clipped * deltas).mean() => torch.minimum((ratio * deltas).mean(), (clipped * deltas).mean()) | You take the smaller of two means. Every token has a min of its own: torch.minimum first, which works entry by entry, and then the mean.
torch.minimum(ratio * deltas, clipped * deltas) => (clipped * deltas) | Only the clipped product is left. Without the min, a token that was pushed the wrong way out of the range can never come back.
.clamp(0.8, 1.2) => | Nothing is clipped: this is the unclipped loss.
.clamp(0.8, 1.2) => .clamp(-0.2, 0.2) | You clip the ratio to -0.2 and 0.2, the range of a difference. A ratio lies around 1: its bounds are 1 - epsilon and 1 + epsilon, 0.8 and 1.2.
ratio.clamp(0.8, 1.2) => (log_probs - old_log_probs).clamp(-0.2, 0.2).exp() | You clip the logarithm of the ratio, so the range ends at exp(0.2) = 1.22. Take exp first: it is the ratio that stays between 0.8 and 1.2.
.clamp(0.8, 1.2) => .clamp(max=1.2) | The lower bound is missing: where delta is negative, a ratio below 0.8 is let go.
log_probs - old_log_probs) => log_probs - log_probs.detach()) | You use pi itself as pi_old: the ratio is 1 in every step, and nothing is ever clipped. Use the noted old_log_probs.
torch.exp(log_probs - old_log_probs) => log_probs.exp() | pi_old is not used: this is the probability itself. Divide by pi_old, which is to subtract old_log_probs before exp.
return -(deltas[..., None] * log_probs).mean() | This is the naive loss, without a ratio: pi_old is not used, and nothing is clipped.
clipped * deltas => (ratio * deltas).clamp(0.8, 1.2) | You clip the product. It is the ratio that stays between 0.8 and 1.2: clip it before you multiply.
.mean() => .sum() | You sum. The loss is the mean over all tokens, so that it does not grow with the size of the batch.
-torch => torch | The minus sign is missing: an optimizer would minimize the objective.
log_probs - old_log_probs) => old_log_probs - log_probs) | The ratio is upside down: it is pi over pi_old, so the new log-probability comes first.
torch.exp(log_probs - old_log_probs) => log_probs / old_log_probs | You divide log-probabilities. The ratio is exp of their difference.
log_probs - old_log_probs) => (log_probs - old_log_probs).mean(-1, keepdim=True)) | You average over pos before exp: one ratio for each response. Here every token has a ratio of its own.
log_probs - old_log_probs) => (log_probs - old_log_probs).sum(-1, keepdim=True)) | You add up over pos before exp: one ratio for the whole response. Here every token has a ratio of its own, and the mean comes last.
"""


@exercise("4.3")
def clip_fraction(ratio, deltas, epsilon):
    """float [batch trial pos], float [batch trial], number -> scalar"""
    deltas = deltas[..., None]
    high = (ratio > 1 + epsilon) & (deltas > 0)
    low = (ratio < 1 - epsilon) & (deltas < 0)
    return (low | high).float().mean()


clip_fraction.insight = (
    "Outside the range does not mean clipped: some tokens are on their way back."
)
clip_fraction.cases = (
    case(
        "one better, one worse response",
        ratio=[[[0.5, 1.5, 1.0, 2.0], [0.5, 1.5, 1.0, 2.0]]],
        deltas=[[1.0, -1.0]],
        epsilon=0.2,
    ),
    case(
        "only one, better",
        ratio=[[[0.5, 1.3, 1.1, 1.0, 0.7]]],
        deltas=[[0.5]],
        epsilon=0.2,
    ),
    case(
        "a response whose delta is zero",
        "Where delta is zero, nothing is clipped; yet these tokens are tokens, and the fraction is one of all.",
        ratio=[[[0.5, 1.5], [3.0, 0.1]]],
        deltas=[[0.0, 1.0]],
        epsilon=0.2,
    ),
    case(
        "as many responses as positions",
        ratio=[[[0.5, 1.5, 1.0], [0.7, 0.6, 1.9], [2.0, 2.0, 0.9]]],
        deltas=[[1.0, -2.0, 0.5]],
        epsilon=0.2,
    ),
    case(
        "a wider range",
        "Your range is always the same. Its width is the argument epsilon.",
        ratio=[[[0.7, 1.3, 1.6]]],
        deltas=[[1.0]],
        epsilon=0.5,
    ),
    case(
        "two prompts, two responses",
        ratio=[[[0.81, 0.5], [1.19, 3.0]], [[50.0, 1.0], [0.01, 0.9]]],
        deltas=[[-1.0, 2.0], [0.5, -0.5]],
        epsilon=0.2,
    ),
    case(
        "another prompt, where more is let go",
        ratio=[[[0.5, 1.5], [2.0, 1.0]], [[0.5, 1.0], [0.6, 0.7]]],
        deltas=[[1.0, -1.0], [-1.0, -2.0]],
        epsilon=0.2,
    ),
)
clip_fraction.mistakes = """
 & (deltas > 0) => && & (deltas < 0) => | You count every token outside the range. One that must come back keeps its gradient: delta's sign decides.
deltas > 0 => deltas < 0.0 && (ratio < 1 - epsilon) & (deltas < 0) => (ratio < 1 - epsilon) & (deltas > 0) | The sides are swapped: these are the tokens that must come back. A good token is let go above the range, a bad one below.
low | high => ratio > 1 + epsilon | You count what lies above the range, whatever its delta is. There a bad token keeps its gradient; it is below the range that a bad one is let go.
low | high => high | You count only good tokens above the range. Bad ones below it are let go too.
low | high => low | You count only bad tokens below the range. Good ones above it are let go too.
deltas > 0 => deltas >= 0 && deltas < 0 => deltas <= 0 | You count tokens whose delta is zero. They had no gradient that clipping could have taken.
1 + epsilon => epsilon && 1 - epsilon => -epsilon | You compare the ratio with epsilon alone. It lies around 1: the range goes from 1 - epsilon to 1 + epsilon.
low | high => ~(low | high) | This is the share of tokens that keep their gradient. The share that loses it is asked for.
.float().mean() => .sum() / (deltas != 0).expand_as(ratio).sum() | You leave tokens whose delta is zero out of the number of tokens. They are never clipped, and still are tokens.
.float().mean() => .sum() | This is a count. A fraction is the mean over all tokens, and the mean wants floats.
.mean() => .sum() | This is a count. A fraction is the mean over all tokens.
"""


@exercise("4.4", gradient="per_token")
def masked_sequence_mean(per_token, mask):
    """float [batch trial pos], bool [batch trial pos] -> scalar"""
    kept = torch.where(mask, per_token, 0.0)
    lengths = mask.sum(dim=-1).clamp(min=1)
    return (kept.sum(dim=-1) / lengths).mean()


def masked_case(description, lengths, hint="", pad=0.5):
    """Responses of these lengths in six positions; `pad` stands behind them."""
    mask = mask_of(lengths, 6)
    per_token = torch.where(mask, numbers(*mask.shape), pad)
    return case(description, hint, per_token=per_token, mask=mask)


masked_sequence_mean.insight = (
    "Every response weighs the same, so a token of a long one weighs less."
)
masked_sequence_mean.cases = (
    masked_case("two responses, of 2 and 6 tokens", [[2, 6]]),
    masked_case("two prompts, three responses", [[1, 4, 3], [6, 2, 5]]),
    masked_case(
        "one response is empty",
        [[3, 0, 5]],
        "An empty response adds zero to the sum, and still counts as a response.",
    ),
    masked_case("infinity in the padding", [[2, 4]], ANYTHING, pad=float("inf")),
    masked_case("NaN in the padding", [[3], [5]], ANYTHING, pad=float("nan")),
    case(
        "NaN in a token that counts",
        "This NaN is no padding, and it must come out: nan_to_num would turn a broken loss into a harmless number. Avoid 0/0 by clamp(min=1) instead.",
        per_token=[[[0.5, float("nan"), 0.0], [1.0, 2.0, 3.0]]],
        mask=mask_of([[2, 3]]),
    ),
)
masked_sequence_mean.mistakes = """
.clamp(min=1) => | An empty response makes 0/0, which is not a number: give its length a floor, clamp(min=1).
torch.where(mask, per_token, 0.0) => per_token | The mask is forgotten in the numerator: padding is summed too.
torch.where(mask, per_token, 0.0) => torch.where(mask, 0.0, per_token) | You keep the padding and drop the tokens: mask is True on the tokens that count. masked_fill writes where it is True, so there it needs ~mask.
return torch.where(mask, per_token, 0.0).sum() / mask.sum() | This is the token mean: every token weighs the same. Here every response does: average each one first, then the averages.
return torch.where(mask, per_token, 0.0).mean() | You divide by the width of the tensor: the mask is forgotten in the denominator. Divide by each response's own length.
kept.sum(dim=-1) => kept.sum(dim=1) && mask.sum(dim=-1) => mask.sum(dim=1) | You average over the responses at each position. Average each response over its own tokens: along pos, the last axis.
 / lengths => | You average the sums of the responses. Divide each by its own length first.
.clamp(min=1) => | A response without tokens makes 0/0. Divide by mask.sum(-1).clamp(min=1): then it adds zero, and still counts as a response.
lengths).mean() => lengths).sum() / mask.any(dim=-1).sum() | You leave empty responses out of the last mean. One without tokens adds zero, and still counts as a response.
lengths).mean() => lengths).sum() | You sum over the responses. The last step is a mean over all of them.
"""
