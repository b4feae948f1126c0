"""The exercises of 13_beyond_grpo.

Each has a case with two prompts: with one, a lost batch axis is no mistake.
"""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.formulas import compute_loss
from grpo_course.lessons.exercises.shared import NEXT_TO_IMPOSSIBLE, mask_of, numbers


@exercise("13.1", gradient="per_token")
def two_means(per_token, mask, max_length):
    """[batch trial pos], bool [batch trial pos], int -> [2]"""
    total = (per_token * mask).sum()
    responses = mask.shape[0] * mask.shape[1]
    return torch.stack([total / mask.sum(), total / (responses * max_length)])


def _means_case(description, lengths, max_length):
    mask = mask_of(lengths, 6)
    per_token = torch.where(mask, numbers(*mask.shape), 0.3)
    return case(description, per_token=per_token, mask=mask, max_length=max_length)


two_means.insight = (
    "Neither looks at a response's own length. They differ by one number for the "
    "batch. Adam does not see a number that stays the same; this one moves with the "
    "mean length."
)
two_means.cases = (
    _means_case("responses of 2 and 6 tokens, at most 6", [[2, 6]], 6),
    _means_case("two prompts, at most 10", [[2, 6, 3], [1, 4, 5]], 10),
    _means_case("three prompts, one response each", [[2], [6], [1]], 8),
)
two_means.mistakes = """
[total / mask.sum() => [((per_token * mask).sum(-1) / mask.sum(-1)).mean() | The \
first is the sequence mean of GRPO: each response averaged for itself. DAPO divides \
the sum of all tokens by the number of all tokens.
(responses * max_length) => mask.numel() | The second divides by the width of the \
tensor. The width is that of the longest response, so it changes from batch to batch; \
max_length does not.
(responses * max_length) => max_length | The second divides by max_length, but not by \
the number of responses: a larger batch would be a larger loss.
[total / mask.sum(), total / (responses * max_length)] => [total / (responses * \
max_length), total / mask.sum()] | The right two numbers in the wrong order: DAPO first.
(per_token * mask) => per_token | Padding is counted: multiply by the mask first.
total / (responses * max_length) => per_token.sum() / (responses * max_length) | The \
second counts padding: it is the same sum under the mask, with another divisor.
total / (responses * max_length) => ((per_token * mask).sum(-1) / \
mask.sum(-1)).mean() | The second is the sequence mean of GRPO: each response \
averaged for itself. Dr. GRPO divides the same sum as DAPO, by the number of \
responses times max_length.
[total / mask.sum(), total / (responses * max_length)] => [total, total / max_length] \
| These are sums. DAPO divides by the number of tokens, Dr. GRPO by the number of \
responses times max_length.
[total / mask.sum() => [total / mask.numel() | The first divides by every position, \
padding too. DAPO divides by the number of tokens that count, mask.sum().
[total / mask.sum() => [((per_token * mask).sum((1, 2)) / mask.sum((1, 2))).mean() | \
The first averages each prompt for itself. DAPO divides once, for the whole batch: a \
token weighs the same wherever it stands.
responses * max_length => mask.shape[1] * max_length | The second counts the \
responses of one prompt only. The batch has mask.shape[0] * mask.shape[1] responses.
responses * max_length => mask.shape[0] * max_length | The second counts the prompts. \
Each prompt has several responses: mask.shape[0] * mask.shape[1].
(per_token * mask) => per_token && [total / mask.sum() => [total / mask.numel() | The \
mask is not used: padding counts in both. Multiply by it first, and divide by \
mask.sum().
"""


@exercise("13.2", gradient="log_probs")
def sequence_ratio(log_probs, old_log_probs, mask):
    """float [batch trial pos] twice, bool [batch trial pos] -> float [batch trial]"""
    log_ratio = ((log_probs - old_log_probs) * mask).sum(-1)
    return (log_ratio / mask.sum(-1)).exp()


def _ratio_case(description, lengths, apart):
    mask = mask_of(lengths, 6)
    new = -numbers(*mask.shape).abs() - 0.1
    shift = torch.linspace(-apart, apart, mask.numel()).reshape(mask.shape) + 0.1
    return case(description, log_probs=new, old_log_probs=new - shift, mask=mask)


sequence_ratio.insight = (
    "One ratio a response: it is clipped or kept as a whole, and its range is much "
    "narrower, because a mean of many tokens moves little."
)
sequence_ratio.cases = (
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
return ((log_probs - old_log_probs).exp() * mask).mean(-1) | This is an arithmetic \
mean of the token ratios, with padding in its divisor. Take the mean of their \
logarithms under the mask, and exp last.
return (log_probs - old_log_probs).exp() * mask | These are the ratios of single \
tokens. GSPO has one for each response: the exp of the mean of their logarithms.
return (log_probs.exp() * mask).sum(-1) / (old_log_probs.exp() * mask).sum(-1) | You \
add probabilities. A response's probability is the product of its tokens', so add up \
their logarithms, and exp comes last.
return ((log_probs - old_log_probs).exp() * mask).prod(-1) | You multiply by the mask \
before the product: one padding token is a 0 among the factors, and all is 0. And a \
product is not the mean: add up the logarithms under the mask, divide by their \
number, exp last.
return ((log_probs - old_log_probs).exp() * mask).prod() | You multiply all tokens of \
the batch, and the mask puts a 0 among the factors wherever there is padding. Each \
response has a ratio of its own: add up its logarithms under the mask, divide by \
their number, exp last.
return ((log_probs - old_log_probs).exp() * mask).prod(-1) ** (1 / mask.sum(-1)) | \
You multiply by the mask before the product: one padding token is a 0 among the \
factors, and all is 0. A place that does not count is a 1, or a logarithm of 0.
return (log_probs - old_log_probs).mean(-1).exp() | The mask is forgotten: padding \
takes part in the mean.
return (log_probs - old_log_probs).exp().prod(-1) | This is the product of all \
ratios, of the padding as well. Add up the logarithms under the mask, divide by their \
number, exp last.
((log_probs - old_log_probs) * mask) => (log_probs - old_log_probs) | The mask is \
missing above: the sum takes padding in, and the divisor does not.
log_ratio / mask.sum(-1) => log_ratio / mask.shape[-1] | You divide by the width of \
the tensor: .mean(-1) takes padding for tokens. Divide by the response's own length, \
mask.sum(-1).
return (log_probs * mask).sum(-1) / (old_log_probs * mask).sum(-1) | You divide \
logarithms. The ratio is one of probabilities: its logarithm is the difference of \
theirs, and exp comes last.
log_probs - old_log_probs => old_log_probs - log_probs | Upside down: pi stands \
above, pi_old below.
.exp() => | This is the logarithm of the ratio: the exp is missing.
.exp() => .exp().clamp(0.8, 1.2) | You clip the ratio. It is asked for as it is; the \
loss clips it.
mask.sum(-1) => mask.sum(-1).float().mean() | You divide by the mean length. Each \
response has a length of its own, mask.sum(-1).
(log_ratio / mask.sum(-1)).exp() => (log_ratio / mask.sum(-1).sqrt()).exp() | The \
root is one too many: the geometric mean divides the sum of the logarithms by the \
length.
mask.sum(-1) => mask.sum() | You divide by the tokens of the whole batch. Each \
response has a length of its own, mask.sum(-1).
"""


@exercise("13.3", gradient="log_probs")
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
ratio.clamp(max=1.2).detach() => ratio.detach() && weight * deltas[..., None] => \
torch.minimum(weight * deltas[..., None], weight.clamp(max=1.2) * deltas[..., None]) \
| The minimum of both products is PPO's: with a negative delta it keeps the large \
ratio. CISPO bounds the ratio itself, whatever the sign of delta.
ratio.clamp(max=1.2).detach() => (ratio * (ratio <= 1.2)).detach() | Tokens above the \
bound are dropped. CISPO keeps them, with weight 1.2.
.clamp(max=1.2).detach() => .clamp(max=1.2) && * log_probs) => ) | This is the \
bounded ratio times delta, without log pi: above the bound nothing pulls. CISPO \
weighs delta log pi, so every token pulls.
.clamp(max=1.2).detach() => .clamp(max=1.2) && * log_probs) => * log_probs.detach()) \
| log pi is detached. It is the weight that is frozen; log pi is where the gradient \
comes from.
.clamp(max=1.2) => | The ratio has no bound. Clamp it from above, at 1.2.
.clamp(max=1.2) => .clamp(min=1.2) | Your bound is a floor: all ratios below 1.2 are \
raised to it. It is to be a ceiling: clamp(max=1.2), or torch.minimum. clamp(1.2) \
bounds from below, too.
.clamp(max=1.2).detach() => && -(weight * deltas[..., None] * log_probs) => \
-torch.minimum(ratio * deltas[..., None], ratio.clamp(max=1.2) * deltas[..., None]) \
&& weight = ratio => pass | This is PPO's loss, without log pi: it takes the gradient \
of the tokens that it clips. CISPO weighs delta log pi, so every token pulls.
.clamp(max=1.2).detach() => .clamp(0.8, 1.2) && * log_probs) => ) | This is the \
clipped ratio times delta, without log pi: where it is clipped, nothing pulls. CISPO \
weighs delta log pi, so every token pulls, and bounds the ratio from above alone.
ratio.clamp(max=1.2).detach() => ratio.detach() && weight * deltas[..., None] => \
torch.minimum(weight * deltas[..., None], weight.clamp(0.8, 1.2) * deltas[..., None]) \
| The minimum of both products is PPO's: with a negative delta it keeps the large \
ratio. CISPO bounds the ratio itself, whatever the sign of delta.
ratio.clamp(max=1.2).detach() => ratio.detach() && weight * deltas[..., None] => \
torch.minimum(weight * deltas[..., None], 1.2 * deltas[..., None]) | You take the \
minimum of two products: with a negative delta it keeps the large ratio, and makes a \
small one large. CISPO bounds the ratio itself, whatever the sign of delta.
(log_probs - old_log_probs).exp() => (log_probs - old_log_probs) && \
ratio.clamp(max=1.2) => ratio.clamp(max=1.2).exp() | You bound the logarithm of the \
ratio at 1.2, which lets the ratio grow to 3.3. Bound the ratio: exp first.
(log_probs - old_log_probs).exp() => (log_probs / old_log_probs) | You divide \
logarithms. The ratio is exp of their difference.
* log_probs) => * old_log_probs) | The loss is delta times the logarithm of the old \
policy, which is not trained: no gradient comes of it.
* log_probs) => * log_probs.exp()) | This is delta times the probability. CISPO \
weighs its logarithm, which log_probs are already.
clamp(max=1.2) => clamp(max=0.2) | You bound the ratio at 0.2, where 1 is no change \
at all. The bound is 1.2.
clamp(max=1.2) => clamp(0.8, 1.2) | You bound the ratio from below too. Only the \
upper bound is used here.
log_probs - old_log_probs => old_log_probs - log_probs | The ratio is upside down: pi \
stands above, pi_old below.
-(weight => (weight | The minus sign is missing: an optimizer minimizes.
return -(deltas[..., None] * log_probs).mean() | The weight is missing: this is the \
naive loss. Multiply by the bounded ratio, detached.
* log_probs) => * (log_probs - old_log_probs)) | You weigh the log-ratio. The \
gradient is the same, but the loss is delta times log pi.
deltas[..., None] => deltas.T | deltas.T has the axes [trial batch], and fits by \
accident. Deltas need one more axis at the end: deltas[..., None].
"""


@exercise("13.4")
def turn_mask(lengths, width):
    """int [... trial turn], int -> bool [... trial pos]"""
    ends = lengths.cumsum(-1)
    pos = torch.arange(width)
    ended = (pos[:, None] >= ends[..., None, :]).sum(-1)
    return (ended % 2 == 0) & (pos < ends[..., -1:])


turn_mask.insight = (
    "The mask comes from who wrote, not from what was written: a policy can write "
    "anything, a tool's marker too."
)
turn_mask.cases = (
    case("one token, two of the tool, one token", lengths=[[1, 2, 1]], width=5),
    case(
        "two responses; one ends after its first turn",
        lengths=[[2, 3, 1, 0, 0], [3, 0, 0, 0, 0]],
        width=7,
    ),
    case(
        "five turns, two prompts",
        lengths=[
            [[1, 1, 2, 2, 1], [2, 1, 1, 0, 0]],
            [[3, 2, 2, 0, 0], [1, 4, 1, 1, 2]],
        ],
        width=9,
    ),
    case("cut off after the tool", lengths=[[1, 2, 0], [2, 1, 1]], width=6),
    case("cut off, four turns", lengths=[[1, 1, 1, 2], [2, 1, 0, 0]], width=7),
    case("no tool was called", lengths=[[4, 0, 0], [2, 0, 0]], width=4),
)
turn_mask.mistakes = """
(ended % 2 == 0) => (ended % 2 == 1) | The mask is the wrong way round: it is True \
where the tool wrote.
 & (pos < ends[..., -1:]) => | The end is missing: after the last turn nobody wrote, \
and the mask is False there.
(ended % 2 == 0) & => | Only the end is seen: the tool's tokens are inside it, and do \
not count.
(ended % 2 == 0) => (ended == 0) | Only the first turn counts. The policy writes \
again after the tool.
pos[:, None] >= ends => pos[:, None] > ends | Each turn is one token too long: \
positions count from 0, so a turn of one token ends before position 1.
lengths.cumsum(-1) => lengths.cumsum(0) | You add up along the first axis, so the \
turns of one response are added to another's. Add up the turns of each response: \
cumsum(-1).
lengths.cumsum(-1) => lengths.cumsum(-2) | You add up along trial, so the turns of \
one response are added to another's. Add up the turns of each response: cumsum(-1).
return torch.arange(width) < lengths[..., ::2].sum(-1, keepdim=True) | Right is how \
many tokens the policy wrote, and not where: the tool's stand between them. A turn \
ends where the lengths up to it are added up, with cumsum.
return (torch.arange(width) < (ends := lengths.cumsum(-1))[..., :1]) | \
((torch.arange(width) >= ends[..., 1:2]) & (torch.arange(width) < ends[..., 2:3])) | \
You look at the first three turns alone. There may be any number: the policy's are \
the first, the third, the fifth and so on.
lengths.cumsum(-1) => lengths | Lengths are no positions. A turn begins where the one \
before it has ended: add them up with cumsum.
"""
