"""The exercises of 09_sequences."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from grpo_course.classroom.exercises.shared import (
    FIRST_EOS_BY_ARGMAX,
    FROM_EOS_ON,
    NO_LOGARITHM,
    NOT_CLIPPED,
    RAW_LOGITS,
    SAME_COUNT_OF_EOS,
    TOKENS,
    TOO_EARLY,
    TOO_LATE,
    case,
    mask_of,
    numbers,
    pick,
    products,
    scored_text,
)
from grpo_course.classroom.old_check.exercise import Case, Exercise, Mistake

INF, NAN = float("inf"), float("nan")


def _log(logits: Tensor) -> Tensor:
    return logits.log_softmax(-1)


SCORE_AXES = {
    "logits": "batch pos vocab",
    "tokens": "batch pos",
    "return": "batch pos-1",
}
SHIFT_WAY = (
    "You shift the wrong way: logits at t + 1 have read token t already. The logits "
    "at t score token t + 1: drop the last logits and the first token."
)


def shifted_log_probs(logits, tokens):
    """float [batch pos vocab], int [batch pos] -> float [batch pos-1]"""
    log_probs = logits[:, :-1].log_softmax(dim=-1)
    return log_probs.gather(-1, tokens[:, 1:, None]).squeeze(-1)


SHIFTED_LOG_PROBS = Exercise(
    key="9.1",
    name="shifted_log_probs",
    solution=shifted_log_probs,
    axes=SCORE_AXES,
    gradient_to=("logits",),
    cases=(
        scored_text("two texts of four tokens", 2, 4, 5),
        scored_text("as many tokens as words", 3, 5, 5),
        scored_text("one text of two tokens", 1, 2, 5),
        scored_text("logits of 200 and -200", 2, 3, 4, TOO_LATE, scale=200.0),
    ),
    words={
        "logits[:, 1:]": "You drop the first score but do not shift: each token still "
        "meets the logits that have read it. Pair logits[:, :-1] with tokens[:, 1:].",
        "tokens[:, :-1, None]": "You drop the last score but do not shift: each token "
        "still meets the logits that have read it. Pair logits[:, :-1] with tokens[:, "
        "1:].",
        "not normalized": RAW_LOGITS,
        "log lost": NO_LOGARITHM,
        "return (...).sum(-1)": "You sum over pos. The loss wants a log-probability "
        "for each token.",
    },
    mistakes=(
        Mistake(
            lambda x, ids: pick(_log(x), ids),
            "No shift: the logits at t have read token t. They score token t + 1, so "
            "there is one score fewer than there are tokens.",
        ),
        Mistake(lambda x, ids: pick(_log(x)[..., 1:, :], ids[..., :-1]), SHIFT_WAY),
        Mistake(
            lambda x, ids: pick(x.log_softmax(-2)[..., :-1, :], ids[..., 1:]),
            "Your softmax runs over pos, so places compete. Words do: normalize over "
            "vocab, the last axis.",
        ),
    ),
    equivalent={
        "logits": "gather reads only as many places as the tokens have",
    },
    insight="A greedy text scores best at the right shift: a probe that works on any "
    "model.",
)


def temperature_log_probs(logits, tokens, temperature):
    """float [batch pos vocab], int [batch pos], float -> float [batch pos]"""
    log_probs = (logits / temperature).log_softmax(dim=-1)
    return log_probs.gather(-1, tokens[..., None]).squeeze(-1)


TEMPERATURE_LOG_PROBS = Exercise(
    key="9.2",
    name="temperature_log_probs",
    solution=temperature_log_probs,
    axes=SCORE_AXES | {"return": "batch pos"},
    gradient_to=("logits",),
    cases=(
        scored_text("temperature 0.7", 2, 3, 5, temperature=0.7),
        scored_text("temperature 1", 2, 3, 5, temperature=1.0),
        scored_text("temperature 2", 2, 3, 5, temperature=2.0),
        scored_text("one text of one token", 1, 1, 5, temperature=0.5),
        scored_text("large logits", 2, 3, 4, TOO_LATE, scale=200.0, temperature=0.7),
    ),
    words={
        "not divided": "Your scores do not depend on the temperature: they belong to "
        "a policy other than the one that sampled.",
        "times for divided": "You multiply by the temperature. A low one makes the "
        "policy more certain: divide.",
        "not normalized": "These are logits. Normalize after dividing: log_softmax "
        "over vocab.",
        "log lost": NO_LOGARITHM,
    },
    mistakes=(
        Mistake(
            lambda x, ids, t: pick(_log(x), ids) / t,
            "You divide the log-probabilities. They no longer sum to one: divide the "
            "logits, then normalize.",
        ),
        Mistake(
            lambda x, ids, t: pick(_log(x[..., :-1, :] / t), ids[..., 1:]),
            "You shift here as well. These logits already stand where their token "
            "does: one score for each token.",
        ),
    ),
    insight="Sampler and score are now the same policy: before any update, every "
    "ratio is 1.",
)


KEEPS_PADDING = (
    "You keep everything before the second EOS. With a pad token of its own no second "
    "EOS ever comes, and all the padding counts. Ask how many came strictly before: "
    "cumsum minus is_eos."
)
DROPS_EOS = (
    "You drop the EOS itself. Ending is a choice of the policy, and it must be "
    "learned: keep the first EOS."
)
DROPS_AND_KEEPS = (
    " drops the EOS, which the policy chose, and keeps padding that is another token. "
    "Count the EOS before each position."
)


def response_mask(tokens, eos):
    """int [batch trial pos], int -> bool [batch trial pos]"""
    is_eos = (tokens == eos).long()
    return is_eos.cumsum(dim=-1) - is_eos == 0


RESPONSE_MASK = Exercise(
    key="9.3",
    name="response_mask",
    solution=response_mask,
    axes={"tokens": TOKENS, "return": TOKENS},
    cases=(
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
    ),
    words={
        "plus for minus": DROPS_EOS,
        "A - B == 0 => A <= 1": KEEPS_PADDING,
        "A - B == 0 => A > 0": FROM_EOS_ON,
        "A - B == 0 => tokens != eos": "`tokens != eos`" + DROPS_AND_KEEPS,
        "A - B == 0 => tokens != 0": "`tokens != pad` asks what a token is, not where "
        "it stands. With pad equal to EOS it drops or keeps both. Only the first EOS "
        "decides.",
        "is_eos.cumsum(dim=-1) - is_eos != 0": "The other way round: this is True on "
        "the padding. True marks the tokens that count.",
        "is_eos.cumsum(dim=-2)": "You count along trial: the EOS of one response ends "
        "another. Count along pos, the last axis.",
    },
    mistakes=(FIRST_EOS_BY_ARGMAX,),
    equivalent=SAME_COUNT_OF_EOS,
    insight="It never asks for the pad token, so it is right for any: all that counts "
    "is how many EOS came before.",
)


def _share_case(
    description: str, token: int, rows: list, hint: str = "", empty: bool = False
) -> Case:
    """Responses that end with 2; with `empty`, the first one's mask has no token."""
    responses = torch.tensor(rows)
    mask = response_mask(responses, 2)
    if empty:
        mask[0, 0] = False
    return case(description, hint, responses=responses, mask=mask, token=token)


_ENDED = [[[1, 1, 2, 0], [3, 1, 1, 2]], [[2, 1, 1, 1], [1, 0, 3, 2]]]


def _hits(responses: Tensor, mask: Tensor, token: int) -> Tensor:
    return ((responses == token) & mask).float()


def token_share_reward(responses, mask, token):
    """int, bool [batch trial pos], int -> float [batch trial]"""
    hits = ((responses == token) & mask).sum(dim=-1)
    return hits / mask.sum(dim=-1).clamp(min=1)


TOKEN_SHARE = Exercise(
    key="9.4",
    name="token_share_reward",
    solution=token_share_reward,
    axes={"responses": TOKENS, "mask": TOKENS, "return": "batch trial"},
    cases=(
        _share_case("responses of unequal length", 1, _ENDED),
        _share_case("the token that is also the padding", 0, _ENDED),
        _share_case("the token that ends a response", 2, _ENDED),
        _share_case(
            "a response whose mask is empty",
            1,
            _ENDED,
            "Nothing counts in this response, and 0/0 is not a number. Divide by "
            "clamp(min=1): its share is 0.",
            empty=True,
        ),
        _share_case(
            "a response that was cut off",
            1,
            [[[1, 3, 1, 1], [1, 2, 0, 0]]],
            "The first response has no EOS: the length limit cut it off. Its tokens "
            "count, and it is paid like the others.",
        ),
        _share_case("padding of another kind", 1, [[[1, 2, 3, 3], [1, 1, 2, 3]]]),
    ),
    words={
        "mask.float().mean(dim=-1)": "This is a count, and longer responses have "
        "more. A share is divided by the length.",
        "responses == token": "You divide by the length but count hits in the padding "
        "as well. Mask both.",
        "floor lost": "0/0 in the empty response. Divide by clamp(min=1): its share "
        "is 0.",
    },
    mistakes=(
        Mistake(
            lambda x, m, token: _hits(x, m, token).mean(-1),
            "You divide by the width of the tensor. Longer padding would lower the "
            "share: divide by the response's own length.",
        ),
        Mistake(
            lambda x, m, token: _hits(x, m, token).sum() / m.sum(),
            "You give one number for the whole batch. Each response has its own "
            "reward: sum along pos only.",
        ),
    ),
    equivalent={
        "almost equal": "tokens are whole numbers",
    },
    insight="A reward must not change when somebody pads the batch wider.",
)


CHOOSE_FIRST = (
    "Padding may hold anything, and 0 * inf is not a number, not even in a gradient. "
    "Choose before exp: torch.where(mask, log_probs - other, 0.0)."
)


EACH_ITS_OWN = (
    "deltas broadcasts along the wrong axis. Each response has one delta for all its "
    "tokens: deltas[..., None] is [batch trial 1]."
)
UPSIDE_DOWN = "k3 upside down: its exponent is ref minus policy, log(pi_ref / pi)."
SUBTRACTED = (
    "You subtract the KL. The loss is minimized, so a penalty is added: minus would "
    "reward leaving the reference."
)
NO_KL = "The KL is missing. Add beta times its mean."
UNSHIFTED = (
    "No shift: the logits at a token have read it already. Those one place before "
    "score it."
)
NEVER_SEEN = dict.fromkeys(("0.1", "-0.1"), "the mask leaves it out afterwards")
NEVER_NEGATIVE = {"(gap.expm1() - gap).abs()": "k3 is never negative"}
WIDTH_COUNTED = (
    "You divide by the width of the tensor. Padding counts in neither sum nor length: "
    "divide by mask.sum."
)


def _padded(mask: Tensor, pad: float, *, apart: float = 0.5) -> dict[str, Tensor]:
    """Two policies that are up to `apart` nats from each other; `pad` off the mask."""
    first = -1.5 - numbers(*mask.shape, shift=-1.4, scale=0.5)
    second = first + numbers(*mask.shape, shift=-0.6, scale=apart)
    hidden = torch.where(mask, first, pad)
    return {"log_probs": second, "other": hidden, "mask": mask}


def _gain(new: Tensor, old: Tensor, deltas: Tensor, mask: Tensor) -> Tensor:
    ratio = torch.where(mask, new - old, 0.0).exp()
    return torch.where(mask, torch.minimum(*products(ratio, deltas[..., None])), 0.0)


def _k3(new: Tensor, ref: Tensor, mask: Tensor) -> Tensor:
    gap = torch.where(mask, ref - new, 0.0)
    return gap.expm1() - gap


def _clip_case(
    description: str,
    lengths: list,
    aggregation: str,
    width: int | None = None,
    pad: float = 0.0,
    hint: str = "",
) -> Case:
    made = _padded(mask_of(lengths, width), pad)
    return case(
        description,
        hint,
        log_probs=made["log_probs"],
        old_log_probs=made["other"],
        deltas=numbers(*made["mask"].shape[:2], shift=-0.9, scale=1.5),
        mask=made["mask"],
        aggregation=aggregation,
    )


def masked_clip_loss(log_probs, old_log_probs, deltas, mask, aggregation):
    """float [batch trial pos] twice, [batch trial], bool [batch trial pos], a name"""
    log_ratio = torch.where(mask, log_probs - old_log_probs, 0.0)
    ratio, each = log_ratio.exp(), deltas[..., None]
    gain = torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each)
    kept = torch.where(mask, gain, 0.0)
    if aggregation == "token_mean":
        return -kept.sum() / mask.sum()
    return -(kept.sum(dim=-1) / mask.sum(dim=-1)).mean()


MASKED_CLIP_LOSS = Exercise(
    key="9.5",
    name="masked_clip_loss",
    solution=masked_clip_loss,
    axes={
        "log_probs": TOKENS,
        "old_log_probs": TOKENS,
        "deltas": "batch trial",
        "mask": TOKENS,
        "return": "",
    },
    gradient_to=("log_probs",),
    cases=(
        _clip_case("one response", [[3]], "sequence_mean", 4),
        _clip_case("unequal lengths", [[1, 4, 3], [6, 2, 5]], "sequence_mean"),
        _clip_case("each token weighs the same", [[1, 4, 3], [6, 2, 5]], "token_mean"),
        _clip_case("no padding, all sizes equal", [[3, 3, 3]] * 3, "sequence_mean"),
        _clip_case("one prompt, four responses", [[2, 5, 1, 5]], "token_mean"),
        _clip_case(
            "NaN in the padding", [[3], [5]], "token_mean", 6, NAN, CHOOSE_FIRST
        ),
        _clip_case(
            "inf in the padding", [[2, 4]], "sequence_mean", 5, INF, CHOOSE_FIRST
        ),
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
    ),
    words={
        "log_probs - old_log_probs": CHOOSE_FIRST,
        "gain": "You mask the ratio only: in the padding it is 1, and the delta still "
        "counts there. Leave the padding out of the sum as well.",
        "ratio * each": NOT_CLIPPED,
        "deltas[None]": EACH_ITS_OWN,
        "deltas[:, None]": EACH_ITS_OWN,
        "aggregation != 'token_mean'": "The two means are the wrong way round: "
        "'sequence_mean' averages each response first.",
    },
    mistakes=(
        Mistake(
            lambda new, old, d, m, how: -_gain(new, old, d, m).mean(),
            WIDTH_COUNTED,
        ),
        Mistake(
            lambda new, old, d, m, how: (
                -_gain(new, old, d, m).mean()
                if how == "token_mean"
                else masked_clip_loss(new, old, d, m, how)
            ),
            WIDTH_COUNTED,
        ),
        Mistake(
            lambda new, old, d, m, how: (
                -_gain(new, old, d, m).mean()
                if how == "sequence_mean"
                else masked_clip_loss(new, old, d, m, how)
            ),
            WIDTH_COUNTED,
        ),
        Mistake(
            lambda new, old, d, m, how: -_gain(new, old, d, m).sum() / m.sum(),
            "This is the token mean whatever `aggregation` says. For 'sequence_mean' "
            "average each response first, then the averages.",
        ),
        Mistake(
            lambda new, old, d, m, how: masked_clip_loss(
                new, old, d, m, "sequence_mean"
            ),
            "This is the sequence mean whatever `aggregation` says. For 'token_mean' "
            "divide the sum over all tokens by the number of all tokens.",
        ),
    ),
    equivalent=NEVER_SEEN | {"mask * gain": "no gain is infinite by then"},
    insight="The mask acts twice: padding neither enters the arithmetic nor counts in "
    "the mean.",
)


def _kl_case(
    description: str,
    lengths: list,
    beta: float,
    pad: float = 0.0,
    hint: str = "",
    width: int | None = None,
) -> Case:
    made = _padded(mask_of(lengths, width), pad)
    return case(
        description,
        hint,
        policy_loss=torch.tensor(-0.3),
        log_probs=made["log_probs"],
        ref_log_probs=made["other"],
        mask=made["mask"],
        beta=beta,
    )


def loss_with_kl(policy_loss, log_probs, ref_log_probs, mask, beta):
    """scalar, float [batch trial pos] twice, bool [batch trial pos], float -> scalar"""
    gap = torch.where(mask, ref_log_probs - log_probs, 0.0)
    k3 = gap.expm1() - gap
    return policy_loss + beta * (k3.sum(dim=-1) / mask.sum(dim=-1)).mean()


def _chosen_last(policy_loss, log_probs, ref_log_probs, mask, beta):
    """The right value, and NaN in the gradient where the padding is not finite."""
    gap = ref_log_probs - log_probs
    k3 = torch.where(mask, gap.expm1() - gap, 0.0)
    return policy_loss + beta * (k3.sum(-1) / mask.sum(-1)).mean()


LOSS_WITH_KL = Exercise(
    key="9.6",
    name="loss_with_kl",
    solution=loss_with_kl,
    axes={
        "log_probs": TOKENS,
        "ref_log_probs": TOKENS,
        "mask": TOKENS,
        "return": "",
    },
    gradient_to=("policy_loss", "log_probs"),
    cases=(
        _kl_case("one response", [[3]], 1.0, width=4),
        _kl_case("unequal lengths", [[1, 4, 3], [6, 2, 5]], 0.5),
        _kl_case("no padding, all sizes equal", [[3, 3, 3]] * 3, 0.1),
        _kl_case("one prompt, four responses", [[2, 5, 1, 5]], 0.5),
        _kl_case("beta is 0", [[2, 3]], 0.0),
        _kl_case("NaN in the padding", [[3], [5]], 0.5, NAN, CHOOSE_FIRST, 6),
        _kl_case("inf in the padding", [[2, 4]], 0.5, INF, CHOOSE_FIRST, 5),
    ),
    words={
        "ref_log_probs - log_probs": CHOOSE_FIRST,
        "log_probs - ref_log_probs": UPSIDE_DOWN,
        "minus for plus": SUBTRACTED,
        "k3.sum(dim=-1)": "You sum the KL over pos. The policy loss is a mean over the "
        "tokens of a response, so the KL must be too, or beta grows with the length.",
        "(k3.sum(dim=-1) / mask.sum(dim=-1)).mean()": "beta is not used: the KL is "
        "added at full weight.",
        "beta * (k3.sum(dim=-1) / mask.sum(dim=-1)).mean()": "The policy loss is "
        "missing: the KL is added to it.",
        "policy_loss": NO_KL,
    },
    mistakes=(
        Mistake(
            lambda loss, new, ref, m, beta: loss + beta * _k3(new, ref, m).mean(),
            "Your KL is divided by the width of the tensor. Padding does not count: "
            "divide by each response's own length.",
        ),
        Mistake(
            lambda loss, new, ref, m, beta: (
                loss + beta * _k3(new, ref, m).sum() / m.sum()
            ),
            "This is the token mean. Here every response weighs the same: average "
            "each one first, then the averages.",
        ),
        Mistake(
            lambda loss, new, ref, m, beta: (
                loss
                - beta * (torch.where(m, ref - new, 0.0).sum(-1) / m.sum(-1)).mean()
            ),
            "This KL is k1, the plain difference: as a loss it teaches nothing. Use "
            "k3.",
        ),
        Mistake(_chosen_last, CHOOSE_FIRST),
    ),
    equivalent=NEVER_NEGATIVE,
    insight="A token's KL counts where the token counts: with the same mask and the "
    "same mean as the policy loss, so that beta keeps its meaning.",
)


def _batch_case(
    description: str,
    rows: list,
    hint: str = "",
    *,
    prompts: Sequence = ((5, 3),),
    eos: int = 2,
    beta: float = 0.5,
    pad: float = 0.0,
    scale: float = 2.0,
) -> Case:
    """Responses to prompts, with what pi_old and pi_ref said of them."""
    responses = torch.tensor(rows)  # [batch trial pos]
    batch, trial, width = responses.shape
    before = torch.tensor(prompts)[:, None].expand(-1, trial, -1)
    tokens = torch.cat([before, responses], dim=-1)
    generator = torch.Generator().manual_seed(width)
    logits = scale * torch.randn(*tokens.shape, 8, generator=generator)
    scores = pick(_log(logits[..., -width - 1 : -1, :]), responses)
    mask, shape = response_mask(responses, eos), responses.shape
    old = (scores + numbers(*shape, shift=-0.6, scale=0.5)).clamp(max=-0.01)
    ref = (scores + numbers(*shape, shift=0.9, scale=0.5)).clamp(max=-0.01)
    return case(
        description,
        hint,
        logits=logits,
        tokens=tokens,
        old_log_probs=torch.where(mask, old, pad),
        ref_log_probs=torch.where(mask, ref, pad),
        deltas=numbers(batch, trial, shift=-0.9, scale=1.5),
        eos=eos,
        beta=beta,
    )


def masked_loss(logits, tokens, old_log_probs, ref_log_probs, deltas, eos, beta):
    """-> scalar"""
    width = old_log_probs.shape[-1]
    responses = tokens[..., -width:]
    scores = logits[..., -width - 1 : -1, :].log_softmax(dim=-1)
    log_probs = scores.gather(-1, responses[..., None]).squeeze(-1)
    is_eos = (responses == eos).long()
    mask = is_eos.cumsum(dim=-1) - is_eos == 0
    ratio = torch.where(mask, log_probs - old_log_probs, 0.0).exp()
    gap = torch.where(mask, ref_log_probs - log_probs, 0.0)
    each = deltas[..., None]
    gain = torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each)
    per_token = beta * (gap.expm1() - gap) - gain
    kept = torch.where(mask, per_token, 0.0)
    return (kept.sum(dim=-1) / mask.sum(dim=-1)).mean()


def _over_all_tokens(logits, tokens, old, ref, deltas, eos, beta):
    """The loss with a token mean."""
    width = old.shape[-1]
    ids = tokens[..., -width:]
    new, mask = (
        pick(_log(logits[..., -width - 1 : -1, :]), ids),
        response_mask(ids, eos),
    )
    per_token = beta * _k3(new, ref, mask) - _gain(new, old, deltas, mask)
    return per_token.sum() / mask.sum()


EOS_OF_PROMPT = (
    "Your mask looks at the prompt as well, so an EOS in the prompt hides the whole "
    "response. Cut the response out first, then count its own EOS."
)


def _before_eos(tokens: Tensor, width: int, eos: int) -> Tensor:
    return (tokens[..., -width:] == eos).cumsum(-1) == 0


def _of_whole_text(tokens: Tensor, width: int, eos: int) -> Tensor:
    return response_mask(tokens, eos)[..., -width:]


def _with_mask(made: Callable, floor: int) -> Callable:
    """The loss with another mask, and a floor for the lengths."""

    def answer(logits, tokens, old, ref, deltas, eos, beta):
        width = old.shape[-1]
        ids, mask = tokens[..., -width:], made(tokens, width, eos)
        new = pick(_log(logits[..., -width - 1 : -1, :]), ids)
        per_token = beta * _k3(new, ref, mask) - _gain(new, old, deltas, mask)
        return (per_token.sum(-1) / mask.sum(-1).clamp(min=floor)).mean()

    return answer


def _with_beta_times(factor: float) -> Callable:
    return lambda x, ids, old, ref, deltas, eos, beta: masked_loss(
        x, ids, old, ref, deltas, eos, factor * beta
    )


_ROWS = [
    [[5, 4, 2, 0], [1, 2, 0, 0], [6, 5, 4, 7]],
    [[2, 0, 0, 0], [3, 2, 0, 0], [4, 4, 1, 2]],
]

MASKED_LOSS = Exercise(
    key="9.7",
    name="masked_loss",
    solution=masked_loss,
    axes={
        "logits": "batch trial text vocab",
        "tokens": "batch trial text",
        "old_log_probs": TOKENS,
        "ref_log_probs": TOKENS,
        "deltas": "batch trial",
        "return": "",
    },
    gradient_to=("logits",),
    cases=(
        _batch_case("one response that ends early", [[[5, 4, 2, 0]]]),
        _batch_case("two prompts, unequal lengths", _ROWS, prompts=[[5, 3], [0, 6]]),
        _batch_case("no padding", [[[5, 4, 2], [3, 1, 2]]], prompts=[[7]]),
        _batch_case("a response without EOS", [[[5, 4, 5, 4], [3, 2, 0, 0]]]),
        _batch_case("a response that is EOS only", [[[2, 0, 0], [4, 2, 0]]]),
        _batch_case(
            "pad is EOS, in the prompt too",
            [[[4, 2, 2], [2, 2, 2]]],
            prompts=[[2, 2, 5]],
        ),
        _batch_case("EOS is 7, and 2 is a word", [[[5, 2, 7, 0], [2, 1, 2, 7]]], eos=7),
        _batch_case(
            "three prompts, one response each",
            [[[5, 2, 0]], [[2, 0, 0]], [[1, 4, 2]]],
            prompts=[[5, 3], [1, 1], [4, 2]],
        ),
        _batch_case("beta is 0", [[[5, 2, 0], [1, 4, 2]]], beta=0.0),
        _batch_case("NaN in the padding", _ROWS[:1], CHOOSE_FIRST, pad=NAN),
        _batch_case("inf in the padding", _ROWS[1:], CHOOSE_FIRST, pad=INF),
        _batch_case("logits of 200", [[[5, 2, 0], [1, 4, 2]]], TOO_LATE, scale=200.0),
    ),
    words={
        "log_probs - old_log_probs": CHOOSE_FIRST,
        "ref_log_probs - log_probs": CHOOSE_FIRST,
        "axis left": "gather leaves an axis of size 1: squeeze(-1) takes it away.",
        "per_token": "Padding is in your sum: the gain there is not 0. Leave it out "
        "with the mask.",
        "is_eos.cumsum(dim=-1)": DROPS_EOS,
        "A - B == 0 => A <= 1": "You keep all before the second EOS, which may "
        "never come. Count how many came strictly before.",
        "A - B == 0 => A > 0": FROM_EOS_ON,
        "A - B == 0 => responses != eos": "`responses != eos`" + DROPS_AND_KEEPS,
        "ratio * each": NOT_CLIPPED,
        "log_probs - ref_log_probs": UPSIDE_DOWN,
        "gain - beta * (gap.expm1() - gap)": "The sign is reversed: the gain is taken "
        "away from the loss, the KL is added.",
        "gap.expm1() - gap": "beta is not used: the KL is added at full weight.",
    },
    mistakes=(
        Mistake(lambda x, *given: masked_loss(x.roll(-1, -2), *given), UNSHIFTED),
        Mistake(
            lambda x, *given: masked_loss(x.roll(1, -2), *given),
            "You shift twice: the logits just before a token score it, not those two "
            "places before.",
        ),
        Mistake(_with_beta_times(0.0), NO_KL),
        Mistake(_with_beta_times(-1.0), SUBTRACTED),
        Mistake(
            lambda x, ids, old, ref, *rest: masked_loss(x, ids, ref, old, *rest),
            "pi_old and pi_ref are swapped: pi_old belongs in the ratio, pi_ref in "
            "the KL.",
        ),
        Mistake(_with_mask(_before_eos, floor=1), DROPS_EOS),
        Mistake(_with_mask(_of_whole_text, floor=0), EOS_OF_PROMPT),
        Mistake(_with_mask(_of_whole_text, floor=1), EOS_OF_PROMPT),
        Mistake(
            _over_all_tokens,
            "This is the token mean. Here every response weighs the same: average "
            "each one first, then the averages.",
        ),
    ),
    equivalent=NEVER_SEEN
    | NEVER_NEGATIVE
    | SAME_COUNT_OF_EOS
    | {"mask * per_token": "nothing is infinite by then"}
    | dict.fromkeys(("ref_log_probs", "old_log_probs[:1]"), "only the width is used"),
    insight="From logits to loss: shift, mask, ratio, clip, KL, mean. This is what a "
    "trainer computes for a padded batch, and you have written all of it.",
)
