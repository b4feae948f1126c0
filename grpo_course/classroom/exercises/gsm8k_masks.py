"""The exercise of 11_gsm8k_data on the tokens of a conversation."""

import torch
from torch import Tensor

from grpo_course.algorithm.masks import response_mask
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake


def completion_mask(tokens: Tensor, prompt_width: int, eos: int) -> Tensor:
    """True on the tokens that the policy wrote. int [batch pos] -> bool [batch pos]"""
    mask = torch.zeros_like(tokens, dtype=torch.bool)
    mask[:, prompt_width:] = response_mask(tokens[:, prompt_width:], eos)
    return mask


def _case(
    description: str, rows: list, hint: str = "", *, width: int = 4, eos: int = 2
) -> Case:
    args = {"tokens": torch.tensor(rows), "prompt_width": width, "eos": eos}
    return Case(description, args, hint)


def _after(tokens: Tensor, width: int) -> Tensor:
    """True from the place `width` on."""
    return (torch.arange(tokens.shape[-1]) >= width).expand(tokens.shape)


def _filled(tokens: Tensor, width: int, written: Tensor) -> Tensor:
    """`written` behind a prompt that does not count."""
    prompt = torch.zeros(len(tokens), width, dtype=torch.bool)
    return torch.cat([prompt, written], dim=-1)


def _ended(tokens: Tensor, eos: int) -> Tensor:
    return (tokens == eos).long().cumsum(-1)


COMPLETION_MASK = Exercise(
    key="11.4",
    name="completion_mask",
    solution=completion_mask,
    axes={"tokens": "batch pos", "return": "batch pos"},
    cases=(
        _case("pad is 0", [[1, 5, 2, 1, 6, 7, 2, 0], [0, 5, 2, 1, 2, 0, 0, 0]]),
        _case("pad is EOS", [[1, 5, 2, 1, 6, 7, 2, 2], [2, 5, 2, 1, 2, 2, 2, 2]]),
        _case("cut off, no EOS", [[0, 5, 2, 1, 6, 7, 8, 9], [1, 5, 2, 1, 6, 2, 0, 0]]),
        _case("a prompt without EOS", [[1, 5, 6, 1, 6, 7, 2, 0]]),
        _case(
            "the policy wrote token 0",
            [[1, 5, 2, 1, 6, 0, 7, 2], [1, 5, 2, 1, 0, 2, 0, 0]],
            "A token 0 before the EOS was written, whatever pads elsewhere: only the "
            "place of the first EOS decides.",
        ),
        _case(
            "a prompt of three",
            [[1, 2, 5, 6, 7, 2, 0, 0]],
            "The response begins at prompt_width, and that is not always 4.",
            width=3,
        ),
        _case(
            "EOS is 9",
            [[1, 5, 9, 1, 6, 2, 9, 0], [0, 5, 9, 1, 9, 0, 0, 0]],
            "The ending token is the argument eos: each tokenizer has its own number.",
            eos=9,
        ),
        _case("EOS is 0, and pads", [[1, 5, 0, 6, 2, 7, 0, 0]], width=3, eos=0),
    ),
    mistakes=(
        Mistake(
            lambda tokens, width, eos: (
                response_mask(tokens, eos) & _after(tokens, width)
            ),
            "The prompt holds EOS too: it ends the user's message. You count it, and "
            "the response is over before it began. Count from prompt_width on.",
        ),
        Mistake(
            lambda tokens, width, eos: (
                completion_mask(tokens, width, eos) | ~_after(tokens, width)
            ),
            "The prompt is True in your mask. Nobody chose those tokens: training "
            "them teaches the model to ask questions.",
        ),
        Mistake(
            lambda tokens, width, eos: _filled(
                tokens, width, _ended(tokens[:, width:], eos) == 0
            ),
            "You drop the EOS of the response. Stopping is a choice of the policy: "
            "without it in the mask, it never learns to stop.",
        ),
        Mistake(
            lambda tokens, width, eos: _filled(
                tokens, width, _ended(tokens[:, width:], eos) <= 1
            ),
            "You keep everything before the second EOS. With a pad token of its own "
            "no second one comes, and the padding counts.",
        ),
        Mistake(
            lambda tokens, width, eos: _after(tokens, width),
            "You score the padding behind the response. Nobody chose it: stop after "
            "the first EOS.",
        ),
        Mistake(
            lambda tokens, width, eos: (tokens != eos) & _after(tokens, width),
            "`tokens != eos` drops the EOS that the policy chose, and keeps padding "
            "that is another token.",
        ),
        Mistake(
            lambda tokens, width, eos: completion_mask(tokens, width, eos).roll(-1, 1),
            "Off by one: your mask marks the logits that score a token, one place "
            "before it. Mark the token itself.",
        ),
    ),
    insight="The same mask as in notebook 09, begun where the prompt ends.",
)

EXERCISES = (COMPLETION_MASK,)
