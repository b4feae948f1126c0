"""The exercises of 09_sequences."""

import torch
from torch import Tensor

from grpo_course.classroom.check.exercise import Case, Exercise, Mistake
from grpo_course.classroom.exercises.shared import (
    FIRST_EOS_BY_ARGMAX,
    FROM_EOS_ON,
    NO_LOGARITHM,
    RAW_LOGITS,
    SAME_COUNT_OF_EOS,
    TOKENS,
    TOO_LATE,
    case,
    pick,
    scored_text,
)


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
        "A - B == 0 => tokens != eos": "`tokens != eos` drops the EOS, which the "
        "policy chose, and keeps padding that is another token. Count the EOS before "
        "each position.",
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
