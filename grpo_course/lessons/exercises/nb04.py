"""The exercises of 04_losses."""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import NEXT_TO_IMPOSSIBLE, numbers


def two_policies(*shape, apart):
    """The new and the old log-probabilities, up to `apart` nats from each other."""
    old = -numbers(*shape).abs() - 1.2
    # Further along the same sine, so that new and old move on their own.
    new = old + numbers(2, *shape, scale=apart)[1]
    return {"log_probs": new, "old_log_probs": old}


def clipped_alone(log_probs, old_log_probs, deltas):
    """float [batch trial pos] twice, float [batch trial] -> scalar"""
    ratio = (log_probs - old_log_probs).exp()
    clipped = ratio.clamp(0.8, 1.2)
    return -(clipped * deltas[..., None]).mean()


@exercise("4.1", gradient="log_probs", draft=clipped_alone)
def clipped_surrogate_loss(log_probs, old_log_probs, deltas):
    """float [batch trial pos] twice, float [batch trial] -> scalar"""
    ratio = (log_probs - old_log_probs).exp()
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
        "No ratio has another bound than 0.8 and 1.2, and every token counts in the "
        "mean, also one whose loss is zero.",
        log_probs=torch.tensor([[[0.5, 0.001]] * 3]).log(),
        old_log_probs=torch.tensor([[[0.01, 0.1]] * 3]).log(),
        deltas=[[1.0, -1.0, 0.0]],
    ),
    NEXT_TO_IMPOSSIBLE,
)
clipped_surrogate_loss.mistakes = """
minimum => maximum | You let go of the other two kinds: good tokens below the range, \
and bad ones above it. The objective is the smaller of the two products.
torch.minimum(ratio * deltas, clipped * deltas) => (torch.minimum(ratio, clipped) \
* deltas) | For negative delta you clip the wrong side (as min over ratios does: the \
order is reversed). Multiply by delta first, then min.
torch.minimum(ratio * deltas, clipped * deltas) => (clipped * deltas) | This still \
lets go of all four kinds, as the draft does. A token that was pushed the wrong way \
out of the range has no pull of its own to bring it back.
.clamp(0.8, 1.2) => | Nothing is clipped: this is the unclipped loss.
torch.minimum(ratio * deltas, clipped * deltas) => torch.where(torch.where(deltas > \
0, ratio > 1.2, ratio < 0.8), 0.0, ratio * deltas) | The right tokens are let go, but \
their objective falls to 0. It has no jump: there it stays the clipped product.
torch.minimum(ratio * deltas, clipped * deltas) => torch.where(deltas > 0, \
torch.minimum(ratio, clipped), ratio) * deltas | Bad tokens below the range are still \
pushed down. They are the other kind to let go of.
torch.minimum(ratio * deltas, clipped * deltas) => torch.where(deltas > 0, ratio, \
torch.maximum(ratio, clipped)) * deltas | Good tokens above the range are still \
pushed up. They are the other kind to let go of.
(log_probs - old_log_probs).exp() => (log_probs - old_log_probs).exp().detach() | You \
detach the ratio, so no gradient reaches log_probs and nothing learns. The ratio \
is what the loss pushes; only old_log_probs is frozen.
log_probs - old_log_probs) => (log_probs - old_log_probs).sum(-1, keepdim=True)) | You \
add up over pos before exp: one ratio for the whole response. Here every token has a \
ratio of its own, and the mean comes last.
"""


@exercise("4.2")
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
        "Where delta is zero, nothing is clipped; yet these tokens are tokens, and "
        "the fraction is one of all.",
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
& (deltas > 0) => && & (deltas < 0) => | You count every token outside the range. One \
that must come back keeps its gradient: delta's sign decides.
deltas > 0 => deltas < 0.0 && (ratio < 1 - epsilon) & (deltas < 0) => (ratio < 1 - \
epsilon) & (deltas > 0) | The sides are swapped: these are the tokens that must come \
back. A good token is let go above the range, a bad one below.
low | high => ratio > 1 + epsilon | You count what lies above the range, whatever its \
delta is. There a bad token keeps its gradient; it is below the range that a bad one \
is let go.
low | high => high | You count only good tokens above the range. Bad ones below it are \
let go too.
low | high => low | You count only bad tokens below the range. Good ones above it are \
let go too.
deltas > 0 => deltas >= 0 && deltas < 0 => deltas <= 0 | You count tokens whose delta \
is zero. They had no gradient that clipping could have taken.
1 + epsilon => epsilon && 1 - epsilon => -epsilon | You compare the ratio with epsilon \
alone. It lies around 1: the range goes from 1 - epsilon to 1 + epsilon.
low | high => ~(low | high) | This is the share of tokens that keep their gradient. \
The share that loses it is asked for.
low | high) => low | high).any(dim=-1) | You count responses with such a token. The \
share of tokens is asked for.
"""
