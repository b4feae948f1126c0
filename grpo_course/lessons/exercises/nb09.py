"""The exercises of 09_sequences."""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import (
    TOO_EARLY,
    TOO_LATE,
    mask_of,
    numbers,
    pick,
    scored_text,
)
from grpo_course.sampling import response_mask as mask_up_to_eos

INF, NAN = float("inf"), float("nan")


@exercise("9.1", gradient="logits")
def shifted_log_probs(logits, tokens):
    """float [batch pos vocab], int [batch pos] -> float [batch pos-1]"""
    log_probs = logits[:, :-1].log_softmax(dim=-1)
    return log_probs.gather(-1, tokens[:, 1:, None]).squeeze(-1)


shifted_log_probs.insight = (
    "A greedy text scores best at the right shift: a probe that works on any model."
)
shifted_log_probs.cases = (
    scored_text("two texts of four tokens", 2, 4, 5),
    scored_text("as many tokens as words", 3, 5, 5),
    scored_text("one text of two tokens", 1, 2, 5),
    scored_text("logits of 200 and -200", 2, 3, 4, TOO_LATE, scale=200.0),
)
shifted_log_probs.mistakes = """
return pick(logits.log_softmax(-1), tokens) | No shift: the logits at t have read \
token t. They score token t + 1, so there is one score fewer than there are tokens.
return pick(logits.log_softmax(-1), tokens.roll(-1, 1)) | The last logits score a \
token that is not there any more, and you score the first token with them. Drop them: \
there is one score fewer than there are tokens.
return logits[:, :-1].log_softmax(-1) | These are the log-probabilities of all words. \
Gather the one of the token that came.
logits[:, :-1] => logits[:, 1:] | You drop the first score but do not shift: each \
token still meets the logits that have read it. Pair logits[:, :-1] with tokens[:, 1:].
tokens[:, 1:, None] => tokens[:, :-1, None] | You drop the last score but do not \
shift: each token still meets the logits that have read it. Pair logits[:, :-1] with \
tokens[:, 1:].
logits[:, :-1] => logits[:, 1:] && tokens[:, 1:, None] => tokens[:, :-1, None] | You \
shift the wrong way: logits at t + 1 have read token t already. The logits at t score \
token t + 1: drop the last logits and the first token.
.log_softmax(dim=-1) => | These are raw logits. Log-probabilities need log_softmax \
over the vocabulary first.
.log_softmax(dim=-1) => .softmax(dim=-1) | These are probabilities. Use log_softmax \
instead of softmax.
logits[:, :-1].log_softmax(dim=-1) => logits.log_softmax(dim=1)[:, :-1] | Your \
softmax runs over pos, so places compete. Words do: normalize over vocab, the last axis.
logits[:, :-1].log_softmax(dim=-1) => logits[:, :-1].log_softmax(dim=1) | Your \
softmax runs over pos, so places compete. Words do: normalize over vocab, the last axis.
logits[:, :-1].log_softmax(dim=-1) => logits[:, :-1].log_softmax(dim=0) | Your \
softmax runs over batch, so texts compete. Words do: normalize over vocab, the last \
axis.
return logits[:, :-1].log_softmax(-1).amax(-1) | These are the scores of the \
likeliest words. Gather the one of the token that came.
return -pick(logits[:, :-1].log_softmax(-1), tokens[:, 1:]) | This is the \
cross-entropy, minus the log-probability: turn the sign.
.squeeze(-1) => .squeeze(-1).sum(-1) | You sum over pos. The loss wants a \
log-probability for each token.
"""


@exercise("9.2", gradient="logits")
def temperature_log_probs(logits, tokens, temperature):
    """float [batch pos vocab], int [batch pos], float -> float [batch pos]"""
    log_probs = (logits / temperature).log_softmax(dim=-1)
    return log_probs.gather(-1, tokens[..., None]).squeeze(-1)


temperature_log_probs.insight = (
    "Sampler and score are now the same policy: before any update, every ratio is 1."
)
temperature_log_probs.cases = (
    scored_text("temperature 0.7", 2, 3, 5, temperature=0.7),
    scored_text("temperature 1", 2, 3, 5, temperature=1.0),
    scored_text("temperature 2", 2, 3, 5, temperature=2.0),
    scored_text("one text of one token", 1, 1, 5, temperature=0.5),
    scored_text("large logits", 2, 3, 4, TOO_LATE, scale=200.0, temperature=0.7),
)
temperature_log_probs.mistakes = """
(logits / temperature) => logits | Your scores do not depend on the temperature: they \
belong to a policy other than the one that sampled.
logits / temperature => logits * temperature | You multiply by the temperature. A low \
one makes the policy more certain: divide.
(logits / temperature).log_softmax(dim=-1) => logits.log_softmax(dim=-1) / \
temperature | You divide the log-probabilities. They no longer sum to one: divide the \
logits, then normalize.
(logits / temperature).log_softmax(dim=-1) => logits.log_softmax(dim=-1) * \
temperature | You multiply the log-probabilities by the temperature. Divide the \
logits by it, then normalize.
.log_softmax(dim=-1) => .log_softmax(dim=-1) / temperature | You divide twice: by the \
temperature once more after the softmax. Divide the logits alone.
.log_softmax(dim=-1) => | These are logits. Normalize after dividing: log_softmax \
over vocab.
.log_softmax(dim=-1) => .softmax(dim=-1) | These are probabilities. Use log_softmax \
instead of softmax.
(logits / temperature) => (logits[:, :-1] / temperature) && tokens[..., None] => \
tokens[:, 1:, None] | You shift here as well. These logits already stand where their \
token does: one score for each token.
.log_softmax(dim=-1) => .log_softmax(dim=1) | Your softmax runs over pos, so places \
compete. Words do: normalize over vocab, the last axis.
"""


@exercise("9.3")
def response_mask(tokens, eos):
    """int [batch trial pos], int -> bool [batch trial pos]"""
    is_eos = (tokens == eos).long()
    return is_eos.cumsum(dim=-1) - is_eos == 0


response_mask.insight = (
    "It never asks for the pad token, so it is right for any: all that counts is how "
    "many EOS came before."
)
response_mask.cases = (
    case("pad is 0", tokens=[[[5, 2, 0, 0], [4, 5, 2, 0]]], eos=2),
    case("pad is EOS itself", tokens=[[[5, 2, 2, 2], [2, 2, 2, 2]]], eos=2),
    case("two prompts", tokens=[[[5, 4, 2]], [[2, 0, 0]], [[4, 4, 4]]], eos=2),
    case("a response without EOS", tokens=[[[5, 4, 5, 4], [3, 2, 0, 0]]], eos=2),
    case("0 is a word as well", tokens=[[[5, 0, 5, 2], [0, 2, 0, 0]]], eos=2),
    case(
        "EOS is 7, and 2 is a word",
        "Here another token ends a response: use the argument `eos`.",
        tokens=[[[5, 2, 7, 0], [2, 7, 2, 2]]],
        eos=7,
    ),
)
response_mask.mistakes = """
- is_eos == 0 => == 0 | You drop the EOS itself. Ending is a choice of the policy, \
and it must be learned: keep the first EOS.
- is_eos == 0 => <= 1 | You keep everything before the second EOS. With a pad token \
of its own no second EOS ever comes, and all the padding counts. Ask how many came \
strictly before: cumsum minus is_eos.
- is_eos == 0 => > 0 | The other way round: this is True from the first EOS on. True \
marks the tokens up to it.
is_eos.cumsum(dim=-1) - is_eos == 0 => tokens != eos | `tokens != eos` drops the EOS, \
which the policy chose, and keeps padding that is another token. Count the EOS before \
each position.
is_eos.cumsum(dim=-1) - is_eos == 0 => tokens != 0 | `tokens != pad` asks what a \
token is, not where it stands. With pad equal to EOS it drops or keeps both. Only the \
first EOS decides.
- is_eos == 0 => - is_eos != 0 | The other way round: this is True on the padding. \
True marks the tokens that count.
cumsum(dim=-1) => cumsum(dim=-2) | You count along trial: the EOS of one response \
ends another. Count along pos, the last axis.
return torch.arange(tokens.shape[-1]) <= (tokens == eos).int().argmax(-1, \
keepdim=True) | argmax gives 0 where no EOS was found, so a response that was cut off \
loses all but its first token. Without EOS every token counts.
return (tokens == eos).flip(-1).cumsum(-1).flip(-1) > 0 | This is True up to the last \
EOS. Padding may be EOS as well, and a response without any counts in full: ask how \
many EOS came before.
return ((tokens == eos).cumsum(-1) == 0).logical_or(tokens == eos) | You keep every \
EOS. Padding may be EOS as well, and the policy chose the first one only.
return (tokens == eos).long().cumsum(-1).roll(1, -1) == 0 | roll carries the last \
count round to the first place, so a response that ends loses its first token. Before \
the first token stand no EOS: cumsum minus is_eos.
return tokens == eos | This is True at the EOS alone. True marks all tokens up to the \
first one.
return torch.ones_like(tokens, dtype=torch.bool) | All is True: the padding behind \
the first EOS counts as well.
cumsum(dim=-1) => cumsum(dim=0) | You count along batch: the EOS of one prompt's \
response ends another's. Count along pos, the last axis.
"""


@exercise("9.4")
def token_share_reward(responses, mask, token):
    """int [batch trial pos], bool [batch trial pos], int -> float [batch trial]"""
    hits = ((responses == token) & mask).sum(dim=-1)
    return hits / mask.sum(dim=-1).clamp(min=1)


def _share_case(description, token, rows, hint="", empty=False):
    """Responses that end with 2; with `empty`, the first one's mask has no token."""
    responses = torch.tensor(rows)
    mask = mask_up_to_eos(responses, 2)
    if empty:
        mask[0, 0] = False
    return case(description, hint, responses=responses, mask=mask, token=token)


ENDED = [[[1, 1, 2, 0], [3, 1, 1, 2]], [[2, 1, 1, 1], [1, 0, 3, 2]]]

token_share_reward.insight = (
    "A reward must not change when somebody pads the batch wider."
)
token_share_reward.cases = (
    _share_case("responses of unequal length", 1, ENDED),
    _share_case("the token that is also the padding", 0, ENDED),
    _share_case("the token that ends a response", 2, ENDED),
    _share_case(
        "a response whose mask is empty",
        1,
        ENDED,
        "Nothing counts in this response, and 0/0 is not a number. Divide by "
        "clamp(min=1): its share is 0.",
        empty=True,
    ),
    _share_case(
        "a response that was cut off",
        1,
        [[[1, 3, 1, 1], [1, 2, 0, 0]]],
        "The first response has no EOS: the length limit cut it off. Its tokens count, "
        "and it is paid like the others.",
    ),
    _share_case("padding of another kind", 1, [[[1, 2, 3, 3], [1, 1, 2, 3]]]),
)
token_share_reward.mistakes = """
return ((responses == token) & mask).sum(-1).float() | This is a count, and longer \
responses have more. A share is divided by the length.
return ((responses == token) & mask).sum(-1) | This is a count of hits, and longer \
responses have more. A share is divided by the length.
((responses == token) & mask) => (responses == token) | You divide by the length but \
count hits in the padding as well. Mask both.
((responses == token) & mask) => (responses * mask == token) | Multiplied by the \
mask, padding becomes token 0, and that may be the one that is counted. Compare \
first, then mask.
return (responses == token).float().mean(-1) | Padding takes part in both, as a hit \
and in the length. Mask the hits, and divide by the tokens that count.
mask.sum(dim=-1).clamp(min=1) => mask.shape[-1] | You divide all by one number, the \
width of the tensor or the largest length. Divide by the response's own length.
return ((responses == token) & mask).any(-1).float() | You ask whether the token is \
there. A share counts how often: sum the hits, divide by the length.
mask.sum(dim=-1).clamp(min=1) => (mask.sum(dim=-1) - 1).clamp(min=1) | Your length is \
one too short. The EOS counts, too: the mask keeps it.
return ((responses == token) & mask).sum(-1) / mask.sum(-1).clamp(min=1) * \
~mask.all(-1) | You pay nothing for a response that was cut off. It is paid like any \
other: its mask is True to the end.
.clamp(min=1) => | 0/0 in the empty response. Divide by clamp(min=1): its share is 0.
mask.sum(dim=-1).clamp(min=1) => (mask.sum(dim=-1) + 1) | You add one to every \
length, which lowers every share. Only the empty response needs it: clamp(min=1).
return ((responses == token) & mask).sum() / mask.sum() | You give one number for the \
whole batch. Each response has its own reward: sum along pos only.
"""

CHOOSE_FIRST = (
    "Padding may hold anything, and 0 * inf is not a number, not even in a gradient. "
    "Choose before exp: torch.where(mask, log_probs - other, 0.0)."
)


def _padded(mask, pad, both=False):
    """Two policies up to half a nat from each other; off the mask the second, or both,
    hold `pad`."""
    second = -1.5 - numbers(*mask.shape, shift=-1.4, scale=0.5)
    first = second + numbers(*mask.shape, shift=-0.6, scale=0.5)
    first = torch.where(mask, first, pad) if both else first
    return first, torch.where(mask, second, pad)


@exercise("9.5", gradient="log_probs")
def masked_clip_loss(log_probs, old_log_probs, deltas, mask, aggregation):
    """float [batch trial pos] twice, [batch trial], bool [batch trial pos], a name"""
    log_ratio = torch.where(mask, log_probs - old_log_probs, 0.0)
    ratio, each = log_ratio.exp(), deltas[..., None]
    gain = torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each)
    kept = torch.where(mask, gain, 0.0)
    if aggregation == "token_mean":
        return -kept.sum() / mask.sum()
    return -(kept.sum(dim=-1) / mask.sum(dim=-1)).mean()


def _clip_case(
    description, lengths, aggregation, width=None, pad=0.0, hint="", both=False
):
    mask = mask_of(lengths, width)
    new, old = _padded(mask, pad, both)
    return case(
        description,
        hint,
        log_probs=new,
        old_log_probs=old,
        deltas=numbers(*mask.shape[:2], shift=-0.9, scale=1.5),
        mask=mask,
        aggregation=aggregation,
    )


masked_clip_loss.insight = (
    "The mask acts twice: padding neither enters the arithmetic nor counts in the mean."
)
masked_clip_loss.cases = (
    _clip_case("one response", [[3]], "sequence_mean", 4),
    _clip_case("unequal lengths", [[1, 4, 3], [4, 2, 3]], "sequence_mean"),
    _clip_case("each token weighs the same", [[1, 4, 3], [4, 2, 3]], "token_mean"),
    _clip_case("no padding, all sizes equal", [[3, 3, 3]] * 3, "sequence_mean"),
    _clip_case("one prompt, four responses", [[2, 5, 1, 5]], "token_mean"),
    _clip_case("NaN in the padding", [[3], [5]], "token_mean", 6, NAN, CHOOSE_FIRST),
    _clip_case("-inf in the padding", [[2, 4]], "sequence_mean", 5, -INF, CHOOSE_FIRST),
    _clip_case("NaN in both", [[3, 1]], "token_mean", 5, NAN, CHOOSE_FIRST, True),
    _clip_case("both -inf", [[2, 4]], "sequence_mean", 5, -INF, CHOOSE_FIRST, True),
    case(
        "ratios of 50 and 0.01, both signs",
        log_probs=torch.tensor([[[0.5, 0.001, 0.3]] * 2]).log(),
        old_log_probs=torch.tensor([[[0.01, 0.1, 0.3]] * 2]).log(),
        deltas=[[1.0, -1.0]],
        mask=mask_of([[2, 3]]),
        aggregation="sequence_mean",
    ),
    case(
        "tokens that are next to impossible",
        TOO_EARLY,
        log_probs=[[[-200.0, -150.0]]],
        old_log_probs=[[[-199.9, -150.0]]],
        deltas=[[1.0]],
        mask=mask_of([[2]]),
        aggregation="token_mean",
    ),
)
masked_clip_loss.mistakes = """
torch.where(mask, log_probs - old_log_probs, 0.0) => log_probs - old_log_probs | \
Padding may hold anything, and 0 * inf is not a number, not even in a gradient. \
Multiplying does not hide it. Choose before exp: torch.where(mask, log_probs - other, \
0.0).
torch.where(mask, log_probs - old_log_probs, 0.0) => log_probs - torch.where(mask, \
old_log_probs, log_probs.detach()) | Both may hold NaN in the padding, the new \
log-probabilities as well, and NaN minus NaN is NaN. Take the difference first, then \
choose: torch.where(mask, log_probs - old_log_probs, 0.0).
torch.where(mask, gain, 0.0) => gain | You mask the ratio only: in the padding it is \
1, and the delta still counts there. Leave the padding out of the sum as well.
torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each) => ratio * each | Nothing \
is clipped: this is the unclipped loss.
torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each) => ratio.clamp(0.8, 1.2) * \
each | Everything is clipped. The loss takes the smaller of clipped and unclipped, so \
that a step back is never held up: torch.minimum of both.
torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each) => torch.minimum(ratio, \
ratio.clamp(0.8, 1.2)) * each | You take the minimum of the ratios. Times a negative \
delta the order turns round: multiply first, then take the smaller product.
torch.minimum => torch.maximum | You take the larger of the two. Clipping must never \
promise more than the ratio does: torch.minimum.
clamp(0.8, 1.2) => clamp(max=1.2) | You clamp on one side only. A bad response's \
ratio is held at 0.8: clamp(0.8, 1.2).
log_probs - old_log_probs => old_log_probs - log_probs | The ratio is upside down: pi \
stands above, pi_old below.
deltas[..., None] => deltas[None] | deltas broadcasts along the wrong axis. Each \
response has one delta for all its tokens: deltas[..., None] is [batch trial 1].
deltas[..., None] => deltas[:, None] | deltas broadcasts along trial. Each response \
has one delta for all its tokens: deltas[..., None] is [batch trial 1].
-(kept.sum(dim=-1) / mask.sum(dim=-1)).mean() => -(kept.sum(dim=(1, 2)) / \
mask.sum(dim=(1, 2))).mean() | For 'sequence_mean' you average each prompt. Average \
each response over its tokens, with sum(dim=-1), then the responses.
-(kept.sum(dim=-1) / mask.sum(dim=-1)).mean() => -(kept.sum(dim=-1) / \
mask.sum(dim=-1)).sum() | For 'sequence_mean' you add up the responses. Take their \
mean, or a larger batch is a larger loss.
-kept.sum() / mask.sum() => -kept.sum() && -(kept.sum(dim=-1) / \
mask.sum(dim=-1)).mean() => -kept.sum(dim=-1).mean() | You add up the tokens of a \
response. Divide by how many of them count.
aggregation == => aggregation != | The two means are the wrong way round: \
'sequence_mean' averages each response first.
-kept.sum() / mask.sum() => -kept.mean() && -(kept.sum(dim=-1) / \
mask.sum(dim=-1)).mean() => -kept.mean() | You divide by the width of the tensor. \
Padding counts in neither sum nor length: divide by mask.sum.
-kept.sum() / mask.sum() => -kept.mean() | For 'token_mean' you divide by the width \
of the tensor. Padding counts in neither sum nor length: divide by mask.sum().
-(kept.sum(dim=-1) / mask.sum(dim=-1)).mean() => -kept.mean() | For 'sequence_mean' \
you divide by the width of the tensor. Padding counts in neither sum nor length: \
divide by mask.sum(dim=-1).
torch.where(mask, gain, 0.0) => gain && -kept.sum() / mask.sum() => -kept.mean() && \
-(kept.sum(dim=-1) / mask.sum(dim=-1)).mean() => -kept.mean() | You mask the ratio \
only: in the padding it is 1, and the delta still counts there, and so does the \
width. Leave the padding out of the sum, and divide by the tokens that count.
aggregation == "token_mean" => True | This is the token mean whatever `aggregation` \
says. For 'sequence_mean' average each response first, then the averages.
aggregation == "token_mean" => False | This is the sequence mean whatever \
`aggregation` says. For 'token_mean' divide the sum over all tokens by the number of \
all tokens.
"""


@exercise("9.6", gradient="policy_loss log_probs")
def loss_with_kl(policy_loss, log_probs, ref_log_probs, mask, beta):
    """scalar, float [batch trial pos] twice, bool [batch trial pos], float -> scalar"""
    gap = torch.where(mask, ref_log_probs - log_probs, 0.0)
    k3 = gap.expm1() - gap
    return policy_loss + beta * (k3.sum(dim=-1) / mask.sum(dim=-1)).mean()


def _kl_case(description, lengths, beta, pad=0.0, hint="", width=None, both=False):
    mask = mask_of(lengths, width)
    new, ref = _padded(mask, pad, both)
    args = {"log_probs": new, "ref_log_probs": ref, "mask": mask, "beta": beta}
    return case(description, hint, policy_loss=torch.tensor(-0.3), **args)


loss_with_kl.insight = (
    "A token's KL counts where the token counts: with the same mask and the same mean "
    "as the policy loss, so that beta keeps its meaning."
)
loss_with_kl.cases = (
    _kl_case("one response", [[3]], 0.5, width=4),
    _kl_case("unequal lengths", [[1, 4, 3], [4, 2, 3]], 0.5),
    _kl_case("no padding, all sizes equal", [[3, 3, 3]] * 3, 0.1),
    _kl_case("one prompt, four responses", [[2, 5, 1, 5]], 1.0),
    _kl_case("beta is 0", [[2, 3]], 0.0),
    _kl_case("NaN in the padding", [[3], [5]], 0.5, NAN, CHOOSE_FIRST, 6),
    _kl_case("inf in the padding", [[2, 4]], 0.5, INF, CHOOSE_FIRST, 5),
    _kl_case("NaN in both", [[3, 1]], 0.5, NAN, CHOOSE_FIRST, 5, True),
    _kl_case("both -inf", [[2, 4]], 0.5, -INF, CHOOSE_FIRST, 5, True),
)
loss_with_kl.mistakes = """
torch.where(mask, ref_log_probs - log_probs, 0.0) => (ref_log_probs - log_probs) * \
mask | Padding may hold anything, and 0 * inf is not a number. Multiplying does not \
hide it. Choose before exp: torch.where(mask, ref_log_probs - log_probs, 0.0).
torch.where(mask, ref_log_probs - log_probs, 0.0) => ref_log_probs - log_probs | \
Padding may hold anything, and 0 * inf is not a number, not even in a gradient. \
Choose before exp: torch.where(mask, log_probs - other, 0.0).
torch.where(mask, ref_log_probs - log_probs, 0.0) => ref_log_probs - log_probs && k3 \
= gap.expm1() - gap => k3 = torch.where(mask, gap.expm1() - gap, 0.0) | The value is \
right, but not the gradient: 0 * inf is not a number there. Choose before exp: \
torch.where(mask, ref_log_probs - log_probs, 0.0).
torch.where(mask, ref_log_probs - log_probs, 0.0) => torch.where(mask, ref_log_probs, \
log_probs.detach()) - log_probs | Both may hold NaN in the padding, the new \
log-probabilities as well, and NaN minus NaN is NaN. Take the difference first, then \
choose: torch.where(mask, ref_log_probs - log_probs, 0.0).
ref_log_probs - log_probs => log_probs - ref_log_probs | k3 upside down: its exponent \
is ref minus policy, log(pi_ref / pi).
policy_loss + beta => policy_loss - beta | You subtract the KL. The loss is \
minimized, so a penalty is added: minus would reward leaving the reference.
(k3.sum(dim=-1) / mask.sum(dim=-1)).mean() => k3.sum() | You sum the KL over the \
whole batch. The policy loss is a mean, so the KL must be too: over each response's \
tokens, then over the responses.
(k3.sum(dim=-1) / mask.sum(dim=-1)).mean() => (k3.sum(dim=-1) / \
mask.sum(dim=-1)).sum() | You sum the KL over the responses. Take their mean, or beta \
grows with the batch.
(k3.sum(dim=-1) / mask.sum(dim=-1)).mean() => (k3.sum(dim=(1, 2)) / mask.sum(dim=(1, \
2))).mean() | You average the KL over each prompt. Here every response weighs the \
same: average each one first, with sum(dim=-1), then the averages.
(k3.sum(dim=-1) / mask.sum(dim=-1)).mean() => k3.sum(dim=-1).mean() | You sum the KL \
over pos. The policy loss is a mean over the tokens of a response, so the KL must be \
too, or beta grows with the length.
beta * (k3 => (k3 | beta is not used: the KL is added at full weight.
policy_loss + beta => beta | The policy loss is missing: the KL is added to it.
return policy_loss | The KL is missing. Add beta times its mean.
(k3.sum(dim=-1) / mask.sum(dim=-1)).mean() => k3.mean() | Your KL is divided by the \
width of the tensor. Padding does not count: divide by each response's own length.
torch.where(mask, ref_log_probs - log_probs, 0.0) => ref_log_probs - log_probs && \
(k3.sum(dim=-1) / mask.sum(dim=-1)).mean() => k3.mean() | The mask is not used: \
padding takes part in the KL. Hide it in the log-ratio, and divide by each response's \
own length.
policy_loss + beta * (k3 => beta * (policy_loss + k3 | beta scales the policy loss as \
well. It is the price of the KL alone.
(k3.sum(dim=-1) / mask.sum(dim=-1)).mean() => k3.sum() / mask.sum() | This is the \
token mean. Here every response weighs the same: average each one first, then the \
averages.
gap.expm1() - gap => -gap | This KL is k1, the plain difference: as a loss it teaches \
nothing. Use k3.
gap.expm1() - gap => gap.expm1() + gap | A sign is wrong: k3 is exp(d) - 1 - d, which \
is never negative.
gap.expm1() - gap => torch.where(mask, log_probs, 0.0).exp() * -gap | You weigh the \
log-ratio by the probability. The tokens are sampled, which weighs them already: use k3.
gap.expm1() - gap => gap**2 / 2 | That is k2, half the squared log-ratio. As a loss \
it measures the distance, but k3 is asked for: exp(d) - 1 - d.
gap.expm1() - gap => gap.exp() - gap | The -1 is missing: k3 is 0 where both agree, \
and yours is 1 there.
gap.expm1() - gap => torch.where(mask, gap.exp() - gap, 0.0) | The -1 is missing: k3 \
is 0 where both agree, and yours is 1 there.
"""


@exercise("9.7", gradient="logits")
def masked_loss(logits, tokens, old_log_probs, ref_log_probs, deltas, eos, beta):
    """float [batch trial text vocab], int [batch trial text],
    float [batch trial pos] twice, float [batch trial], int, float -> scalar"""
    width = old_log_probs.shape[-1]
    responses = tokens[..., -width:]
    scores = logits[..., -width - 1 : -1, :].log_softmax(dim=-1)
    log_probs = scores.gather(-1, responses[..., None]).squeeze(-1)
    mask = response_mask(responses, eos)
    loss = masked_clip_loss(log_probs, old_log_probs, deltas, mask, "sequence_mean")
    return loss_with_kl(loss, log_probs, ref_log_probs, mask, beta)


def _batch_case(
    description,
    rows,
    hint="",
    *,
    prompts=((5, 3),),
    eos=2,
    beta=0.5,
    pad=0.0,
    scale=2.0,
):
    """Responses to prompts, with what pi_old and pi_ref said of them."""
    responses = torch.tensor(rows)  # [batch trial pos]
    batch, trial, width = responses.shape
    before = torch.tensor(prompts)[:, None].expand(-1, trial, -1)
    tokens = torch.cat([before, responses], dim=-1)
    generator = torch.Generator().manual_seed(width)
    logits = scale * torch.randn(*tokens.shape, 8, generator=generator)
    scores = pick(logits[..., -width - 1 : -1, :].log_softmax(-1), responses)
    mask, shape = mask_up_to_eos(responses, eos), responses.shape
    old = (scores + numbers(*shape, shift=-0.6, scale=0.5)).clamp(max=-0.01)
    ref = (scores + numbers(*shape, shift=0.9, scale=0.5)).clamp(max=-0.01)
    return case(
        description,
        hint,
        logits=logits,
        tokens=tokens,
        old_log_probs=torch.where(mask, old, -pad),  # inf is the worst for a KL
        ref_log_probs=torch.where(mask, ref, pad),
        deltas=numbers(batch, trial, shift=-0.9, scale=1.5),
        eos=eos,
        beta=beta,
    )


ROWS = [
    [[5, 4, 2, 0], [1, 2, 0, 0], [6, 5, 4, 7]],
    [[2, 0, 0, 0], [3, 2, 0, 0], [4, 4, 1, 2]],
]

masked_loss.insight = (
    "From logits to loss: shift, mask, ratio, clip, KL, mean. This is what a trainer "
    "computes for a padded batch, and you have written all of it."
)
masked_loss.cases = (
    _batch_case("one response that ends early", [[[5, 4, 2, 0]]]),
    _batch_case("two prompts, unequal lengths", ROWS, prompts=[[5, 3], [0, 6]]),
    _batch_case("no padding", [[[5, 4, 2], [3, 1, 2]]], prompts=[[7]]),
    _batch_case("a response without EOS", [[[5, 4, 5, 4], [3, 2, 0, 0]]]),
    _batch_case(
        "0 is a word as well",
        [[[5, 0, 5, 2], [0, 2, 0, 0]]],
        "The policy wrote token 0 here. It is padding behind the first EOS only.",
    ),
    _batch_case("a response that is EOS only", [[[2, 0, 0], [4, 2, 0]]]),
    _batch_case(
        "pad is EOS, in the prompt too", [[[4, 2, 2], [2, 2, 2]]], prompts=[[2, 2, 5]]
    ),
    _batch_case(
        "EOS is 7, and 2 is a word",
        [[[5, 2, 7, 0], [2, 1, 2, 7]]],
        "Here another token ends a response: use the argument `eos`.",
        eos=7,
    ),
    _batch_case(
        "three prompts, one response each",
        [[[5, 2, 0]], [[2, 0, 0]], [[1, 4, 2]]],
        prompts=[[5, 3], [1, 1], [4, 2]],
    ),
    _batch_case("beta is 0", [[[5, 2, 0], [1, 4, 2]]], beta=0.0),
    _batch_case("NaN in the padding", ROWS[:1], CHOOSE_FIRST, pad=NAN),
    _batch_case("-inf and inf in the padding", ROWS[1:], CHOOSE_FIRST, pad=INF),
    _batch_case("logits of 200", [[[5, 2, 0], [1, 4, 2]]], TOO_LATE, scale=200.0),
)
masked_loss.mistakes = """
logits[..., -width - 1 : -1, :] => logits[..., -width:, :] | No shift: the logits at \
a token have read it already. Those one place before score it.
logits[..., -width - 1 : -1, :] => logits[..., -width:, :] && responses[..., None] => \
tokens[..., -width - 1 : -1, None] | You shift the wrong way: those logits have read \
the token that they score. The logits one place before a token score it.
logits[..., -width - 1 : -1, :] => logits.roll(2, -2)[..., -width:, :] | You shift \
twice: the logits just before a token score it, not those two places before.
logits[..., -width - 1 : -1, :] => logits[..., :width, :] | You cut on the wrong \
side: these logits score the prompt, and the response begins after it. Count from the \
end.
logits[..., -width - 1 : -1, :] => logits[..., :width, :] && responses[..., None] => \
tokens[..., 1 : width + 1, None] | You cut on the wrong side: the first scores are \
those of the prompt, and the last of the response are lost. Count from the end.
scores.gather(-1, responses[..., None]).squeeze(-1) => shifted_log_probs(logits, \
tokens)[..., -width:] | Your 9.1 cuts the second axis, and here that is trial. Cut \
pos instead: logits[..., :-1, :] and tokens[..., 1:].
response_mask(responses, eos) => (responses == eos).cumsum(dim=-1) == 0 | You drop \
the EOS itself. Ending is a choice of the policy, and it must be learned: keep the \
first EOS.
response_mask(responses, eos) => (responses == eos).cumsum(dim=-1) <= 1 | You keep \
all before the second EOS, which may never come. Count how many came strictly before.
response_mask(responses, eos) => torch.ones_like(responses, dtype=torch.bool) | \
Padding counts in your loss. Nothing behind the first EOS does: make a mask of the \
response's own tokens.
response_mask(responses, eos) => responses != eos | `responses != eos` drops the EOS, \
which the policy chose, and keeps padding that is another token. Count the EOS before \
each position.
response_mask(responses, eos) => response_mask(tokens, eos)[..., -width:] | Your mask \
looks at the prompt as well, so an EOS in the prompt hides the whole response. Cut \
the response out first, then count its own EOS.
"sequence_mean" => "token_mean" | This is the token mean. Here every response weighs \
the same: average each one first, then the averages.
loss_with_kl(loss, log_probs, ref_log_probs => loss_with_kl(loss, ref_log_probs, \
log_probs | k3 upside down: its exponent is ref minus policy, log(pi_ref / pi).
masked_clip_loss(log_probs, old_log_probs => masked_clip_loss(log_probs, \
ref_log_probs && loss_with_kl(loss, log_probs, ref_log_probs => loss_with_kl(loss, \
log_probs, old_log_probs | pi_old and pi_ref are swapped: pi_old belongs in the \
ratio, pi_ref in the KL.
masked_clip_loss(log_probs, old_log_probs => masked_clip_loss(log_probs, \
log_probs.detach() | You compare the policy with itself, so every ratio is 1, and \
nothing is ever clipped. The old scores are the argument old_log_probs, noted when \
the responses were sampled.
loss_with_kl(loss, log_probs, ref_log_probs => loss_with_kl(loss, log_probs, \
old_log_probs | Your KL is that to pi_old. The KL holds the policy to its reference: \
ref_log_probs.
masked_clip_loss(log_probs, old_log_probs => masked_clip_loss(log_probs, \
ref_log_probs | Your ratio is that to pi_ref. It compares with the policy that \
sampled: old_log_probs.
loss_with_kl(loss, log_probs => loss_with_kl(loss, old_log_probs | Your KL is that of \
pi_old, which is not trained, so nothing is pulled. It is that of the policy as it is \
now: log_probs.
masked_clip_loss(log_probs, old_log_probs => masked_clip_loss(log_probs.detach(), \
old_log_probs | The values are right, but the clipped loss has no gradient: log_probs \
is detached there.
loss_with_kl(loss, log_probs, ref_log_probs => loss_with_kl(loss, log_probs.detach(), \
ref_log_probs | The values are right, but the KL has no gradient: log_probs is \
detached there.
loss_with_kl(loss, log_probs => loss + loss_with_kl(loss, log_probs | The clipped \
loss counts twice: your 9.6 adds the KL to the loss that you give it.
.log_softmax(dim=-1) => | These are raw logits. Log-probabilities need log_softmax \
over the vocabulary first.
masked_clip_loss(log_probs, old_log_probs => masked_clip_loss(old_log_probs, \
log_probs | The ratio is upside down: pi stands above, pi_old below.
loss_with_kl(loss, log_probs, ref_log_probs, mask, beta) => loss | The KL is missing. \
Add beta times its mean.
loss_with_kl(loss, log_probs, ref_log_probs, mask, beta) => 2 * loss - \
loss_with_kl(loss, log_probs, ref_log_probs, mask, beta) | You subtract the KL. The \
loss is minimized, so a penalty is added: minus would reward leaving the reference.
mask, beta) => torch.ones_like(mask), beta) | Padding counts in the KL. Give your 9.6 \
the same mask.
"""
