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


def _with_trials(description, batch, trial, pos, vocab):
    """Texts with two axes in front: [batch trial pos]."""
    generator = torch.Generator().manual_seed(pos)
    shape = (batch, trial, pos)
    return case(
        description,
        "There may be any number of axes in front of pos: `...` stands for all of them.",
        logits=2 * torch.randn(*shape, vocab, generator=generator),
        tokens=torch.randint(vocab, shape, generator=generator),
    )


@exercise("9.1", gradient="logits")
def shifted_log_probs(logits, tokens):
    """float [... pos vocab], int [... pos] -> float [... pos-1]"""
    log_probs = logits[..., :-1, :].log_softmax(dim=-1)
    return log_probs.gather(-1, tokens[..., 1:, None]).squeeze(-1)


shifted_log_probs.insight = (
    "A greedy text scores best at the right shift: a probe that works on any model."
)
shifted_log_probs.cases = (
    scored_text("two texts of four tokens", 2, 4, 5),
    scored_text("as many tokens as words", 3, 5, 5),
    scored_text("one text of two tokens", 1, 2, 5),
    _with_trials("two prompts, three responses each", 2, 3, 4, 5),
    scored_text("logits of 200 and -200", 2, 3, 4, TOO_LATE, scale=200.0),
)
shifted_log_probs.mistakes = """
return pick(logits.log_softmax(-1), tokens) | No shift: the logits at t have read \
token t. They score token t + 1, so there is one score fewer than there are tokens.
logits[..., :-1, :].log_softmax(dim=-1) => logits[..., :-1, :].log_softmax(dim=-2) | \
Your softmax runs over pos, so places compete. Words do: normalize over vocab, the \
last axis.
logits[..., :-1, :] => logits[:, :-1] && tokens[..., 1:, None] => tokens[:, 1:, None] \
| You cut the second axis, and with two axes in front that is not pos. Count from the \
end: logits[..., :-1, :] and tokens[..., 1:].
logits[..., :-1, :] => logits[..., 1:, :] | You drop the first score but do not shift: \
each token still meets the logits that have read it. Pair logits[..., :-1, :] with \
tokens[..., 1:].
tokens[..., 1:, None] => tokens[..., :-1, None] | You drop the last score but do not \
shift: each token still meets the logits that have read it. Pair logits[..., :-1, :] \
with tokens[..., 1:].
logits[..., :-1, :] => logits[..., 1:, :] && tokens[..., 1:, None] => \
tokens[..., :-1, None] | You shift the wrong way: logits at t + 1 have read token t \
already. The logits at t score token t + 1: drop the last logits and the first token.
.log_softmax(dim=-1) => | These are raw logits. Log-probabilities need log_softmax \
over the vocabulary first.
.log_softmax(dim=-1) => .softmax(dim=-1) | These are probabilities. Use log_softmax \
instead of softmax.
return -pick(logits[..., :-1, :].log_softmax(-1), tokens[..., 1:]) | This is the \
cross-entropy, minus the log-probability: turn the sign.
"""


@exercise("9.2")
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
is_eos.cumsum(dim=-1) - is_eos == 0 => tokens != 0 | This asks what a token is, as \
`tokens != pad` does, not where it stands. With pad equal to EOS it drops or keeps \
both. Only the first EOS decides.
cumsum(dim=-1) => cumsum(dim=-2) | You count along trial: the EOS of one response \
ends another. Count along pos, the last axis.
return torch.arange(tokens.shape[-1]) <= (tokens == eos).int().argmax(-1, \
keepdim=True) | argmax gives 0 where no EOS was found, so a response that was cut off \
loses all but its first token. Without EOS every token counts.
return (tokens == eos).flip(-1).cumsum(-1).flip(-1) > 0 | This is True up to the last \
EOS. Padding may be EOS as well, and a response without any counts in full: ask how \
many EOS came before.
return (tokens == eos).long().cumsum(-1).roll(1, -1) == 0 | roll carries the last \
count round to the first place, so a response that ends loses its first token. Before \
the first token stand no EOS: cumsum minus is_eos.
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


@exercise("9.3", gradient="log_probs")
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
    _clip_case(
        "-200 in the padding", [[2, 4]], "sequence_mean", 5, -200.0, CHOOSE_FIRST
    ),
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
torch.where(mask, gain, 0.0) => gain | You mask the ratio only: in the padding it is \
1, and the delta still counts there. Leave the padding out of the sum as well.
torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each) => ratio.clamp(0.8, 1.2) * \
each | You take the clipped gain always. In a bad response, a token that has become 50 \
times as likely must still be pushed down: take the smaller of clipped and unclipped, \
torch.minimum.
-kept.sum() / mask.sum() => -(kept.sum((-1, -2)) / mask.sum((-1, -2))).mean() | You \
average the tokens of each prompt, and then the prompts. The token mean has one \
divisor, the number of all tokens of the batch: mask.sum().
deltas[..., None] => deltas[:, None] | deltas broadcasts along trial. Each response \
has one delta for all its tokens: deltas[..., None] is [batch trial 1].
aggregation == => aggregation != | The two means are the wrong way round: \
'sequence_mean' averages each response first.
(kept.sum(dim=-1) / mask.sum(dim=-1)).mean() => kept.mean() | You divide each response \
by the width of the tensor. Padding is not its length: divide by mask.sum(dim=-1).
(kept.sum(dim=-1) / mask.sum(dim=-1)).mean() => kept.sum(dim=-1).mean() | You add up \
the tokens of each response, and never divide by how many there are: mask.sum(dim=-1).
-kept.sum() / mask.sum() => -kept.mean() && -(kept.sum(dim=-1) / \
mask.sum(dim=-1)).mean() => -kept.mean() | You divide by the width of the tensor. \
Padding counts in neither sum nor length: divide by mask.sum.
"""


@exercise("9.4", gradient="logits")
def masked_loss(logits, tokens, old_log_probs, deltas, eos):
    """float [batch trial text vocab], int [batch trial text],
    float [batch trial pos], float [batch trial], int -> scalar"""
    width = old_log_probs.shape[-1]
    log_probs = shifted_log_probs(logits, tokens)[..., -width:]
    mask = response_mask(tokens[..., -width:], eos)
    return masked_clip_loss(log_probs, old_log_probs, deltas, mask, "sequence_mean")


def _batch_case(
    description,
    rows,
    hint="",
    *,
    prompts=((5, 3),),
    eos=2,
    pad=0.0,
    scale=2.0,
):
    """Responses to prompts, with what pi_old said of them."""
    responses = torch.tensor(rows)  # [batch trial pos]
    batch, trial, width = responses.shape
    before = torch.tensor(prompts)[:, None].expand(-1, trial, -1)
    tokens = torch.cat([before, responses], dim=-1)
    generator = torch.Generator().manual_seed(width)
    logits = scale * torch.randn(*tokens.shape, 8, generator=generator)
    scores = pick(logits[..., -width - 1 : -1, :].log_softmax(-1), responses)
    mask, shape = mask_up_to_eos(responses, eos), responses.shape
    old = (scores + numbers(*shape, shift=-0.6, scale=0.5)).clamp(max=-0.01)
    return case(
        description,
        hint,
        logits=logits,
        tokens=tokens,
        old_log_probs=torch.where(mask, old, pad),
        deltas=numbers(batch, trial, shift=-0.9, scale=1.5),
        eos=eos,
    )


ROWS = [
    [[5, 4, 2, 0], [1, 2, 0, 0], [6, 5, 4, 7]],
    [[2, 0, 0, 0], [3, 2, 0, 0], [4, 4, 1, 2]],
]

masked_loss.insight = (
    "From logits to loss: shift, mask, ratio, clip, mean. This is what a trainer "
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
    _batch_case("NaN in the padding", ROWS[:1], CHOOSE_FIRST, pad=NAN),
    _batch_case("-inf in the padding", ROWS[1:], CHOOSE_FIRST, pad=-INF),
    _batch_case("logits of 200", [[[5, 2, 0], [1, 4, 2]]], TOO_LATE, scale=200.0),
)
masked_loss.mistakes = """
shifted_log_probs(logits, tokens)[..., -width:] => pick(logits.log_softmax(-1), \
tokens)[..., -width:] | No shift: the logits at a token have read it already. Those \
one place before score it.
shifted_log_probs(logits, tokens)[..., -width:] => pick(logits[..., :width, \
:].log_softmax(-1), tokens[..., -width:]) | You cut the logits on the wrong side: the \
first ones score the prompt, and the response begins after it. Count from the end.
shifted_log_probs(logits, tokens)[..., -width:] => shifted_log_probs(logits, \
tokens)[..., :width] | You keep the first scores, and part of them belong to the \
prompt. The old ones are of the response, which comes last: keep [..., -width:].
masked_clip_loss(log_probs, old_log_probs => masked_clip_loss(old_log_probs, \
log_probs | The old and the new scores are exchanged, so every ratio is turned over. \
The new ones come first.
response_mask(tokens[..., -width:], eos) => torch.ones_like(log_probs, \
dtype=torch.bool) | Padding counts in your loss. Nothing behind the first EOS does: \
make a mask of the response's own tokens.
response_mask(tokens[..., -width:], eos) => tokens[..., -width:] != eos | `!= eos` \
drops the EOS, which the policy chose, and keeps padding that is another token. Count \
the EOS before each position.
response_mask(tokens[..., -width:], eos) => response_mask(tokens, eos)[..., -width:] \
| Your mask looks at the prompt as well, so an EOS in the prompt hides the whole \
response. Cut the response out first, then count its own EOS.
"sequence_mean" => "token_mean" | This is the token mean. Here every response weighs \
the same: average each one first, then the averages.
masked_clip_loss(log_probs, old_log_probs => masked_clip_loss(log_probs, \
log_probs.detach() | You compare the policy with itself, so every ratio is 1, and \
nothing is ever clipped. The old scores are the argument old_log_probs, noted when \
the responses were sampled.
"""
