"""The exercises of 09_sequences on masks and what they are for."""

import torch
from torch import Tensor

from grpo_course.algorithm.masks import response_mask
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake
from grpo_course.sequences.tasks import token_share


def _mask_case(description: str, rows: list, eos: int = 2, hint: str = "") -> Case:
    return Case(description, {"tokens": torch.tensor(rows), "eos": eos}, hint)


def _is_eos(tokens: Tensor, eos: int) -> Tensor:
    return (tokens == eos).long()


KEEPS_PADDING = (
    "You keep everything before the second EOS. With a pad token of its own no second "
    "EOS ever comes, and all the padding counts. Ask how many came strictly before: "
    "cumsum minus is_eos."
)
DROPS_EOS = (
    "You drop the EOS itself. Ending is a choice of the policy, and it must be "
    "learned: keep the first EOS."
)

RESPONSE_MASK = Exercise(
    key="9.3",
    name="response_mask",
    solution=response_mask,
    axes={"tokens": "batch trial pos", "return": "batch trial pos"},
    cases=(
        _mask_case("pad is 0", [[[5, 2, 0, 0], [4, 5, 2, 0]]]),
        _mask_case("pad is EOS itself", [[[5, 2, 2, 2], [2, 2, 2, 2]]]),
        _mask_case("a response without EOS", [[[5, 4, 5, 4], [3, 2, 0, 0]]]),
        _mask_case("0 is a word as well", [[[5, 0, 5, 2], [0, 2, 0, 0]]]),
        _mask_case(
            "EOS is 7, and 2 is a word",
            [[[5, 2, 7, 0], [2, 7, 2, 2]]],
            7,
            "Here another token ends a response: use the argument `eos`.",
        ),
    ),
    mistakes=(
        Mistake(
            lambda tokens, eos: _is_eos(tokens, eos).cumsum(-1) <= 1, KEEPS_PADDING
        ),
        Mistake(lambda tokens, eos: _is_eos(tokens, eos).cumsum(-1) == 0, DROPS_EOS),
        Mistake(
            lambda tokens, eos: tokens != eos,
            "`tokens != eos` drops the EOS, which the policy chose, and keeps padding "
            "that is another token. Count the EOS before each position.",
        ),
        Mistake(
            lambda tokens, eos: tokens != 0,
            "`tokens != pad` asks what a token is, not where it stands. With pad equal "
            "to EOS it drops or keeps both. Only the first EOS decides.",
        ),
        Mistake(
            lambda tokens, eos: (
                _is_eos(tokens, eos).cumsum(-1) - _is_eos(tokens, eos) > 0
            ),
            "The other way round: this is True on the padding. True marks the tokens "
            "that count.",
        ),
        Mistake(
            lambda tokens, eos: torch.arange(tokens.shape[-1]) <= _first(tokens, eos),
            "argmax gives 0 where no EOS was found, so a response that was cut off "
            "loses all but its first token. Without EOS every token counts.",
        ),
        Mistake(
            lambda tokens, eos: (
                _is_eos(tokens, eos).cumsum(-2) - _is_eos(tokens, eos) == 0
            ),
            "You count along trial: the EOS of one response ends another. Count along "
            "pos, the last axis.",
        ),
    ),
    insight="It never asks for the pad token, so it is right for any: all that counts "
    "is how many EOS came before.",
)


def _first(tokens: Tensor, eos: int) -> Tensor:
    return _is_eos(tokens, eos).argmax(-1, keepdim=True)


def _share_case(
    description: str, token: int, rows: list, hint: str = "", empty: bool = False
) -> Case:
    """Responses that end with 2; with `empty`, the first one's mask has no token."""
    responses = torch.tensor(rows)
    mask = response_mask(responses, 2)
    if empty:
        mask[0, 0] = False
    return Case(
        description, {"responses": responses, "mask": mask, "token": token}, hint
    )


_ENDED = [[[1, 1, 2, 0], [3, 1, 1, 2]], [[2, 1, 1, 1], [1, 0, 3, 2]]]


def _hits(responses: Tensor, mask: Tensor, token: int) -> Tensor:
    return ((responses == token) & mask).float()


TOKEN_SHARE = Exercise(
    key="9.4",
    name="token_share_reward",
    solution=lambda responses, mask, token: token_share(responses, mask, token),
    axes={
        "responses": "batch trial pos",
        "mask": "batch trial pos",
        "return": "batch trial",
    },
    cases=(
        _share_case("responses of unequal length", 1, _ENDED),
        _share_case("the token that is also the padding", 0, _ENDED),
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
    ),
    mistakes=(
        Mistake(
            lambda responses, mask, token: (responses == token).float().mean(-1),
            "You count padding too. Only tokens under the mask were written by the "
            "policy.",
        ),
        Mistake(
            lambda responses, mask, token: _hits(responses, mask, token).mean(-1),
            "You divide by the width of the tensor. Longer padding would lower the "
            "share: divide by the response's own length.",
        ),
        Mistake(
            lambda responses, mask, token: _hits(responses, mask, token).sum(-1),
            "This is a count, and longer responses have more. A share is divided by "
            "the length.",
        ),
        Mistake(
            lambda responses, mask, token: (
                (responses == token).sum(-1) / mask.sum(-1).clamp(min=1)
            ),
            "You divide by the length but count hits in the padding as well. Mask "
            "both.",
        ),
        Mistake(
            lambda responses, mask, token: (
                _hits(responses, mask, token).sum(-1) / mask.sum(-1)
            ),
            "0/0 in the empty response. Divide by clamp(min=1): its share is 0.",
        ),
        Mistake(
            lambda responses, mask, token: (
                _hits(responses, mask, token).sum() / mask.sum()
            ),
            "You give one number for the whole batch. Each response has its own "
            "reward: sum along pos only.",
        ),
    ),
    insight="A reward must not change when somebody pads the batch wider.",
)

EXERCISES = (RESPONSE_MASK, TOKEN_SHARE)
