"""The exercise of 12_gsm8k_grpo on scores under left padding."""

import torch
from torch import Tensor

from grpo_course.algorithm.sampler import token_log_probs
from grpo_course.classroom.exercise import Case, Exercise, Mistake


def _text_case(description: str, prompt_length: int, pos: int, batch: int = 2) -> Case:
    generator = torch.Generator().manual_seed(pos)
    logits = 2 * torch.randn(batch, pos, 5, generator=generator)
    tokens = torch.randint(5, (batch, pos), generator=generator)
    args = {"logits": logits, "tokens": tokens, "prompt_length": prompt_length}
    return Case(description, args)


def _gather(logits: Tensor, tokens: Tensor) -> Tensor:
    return logits.log_softmax(-1).gather(-1, tokens[..., None]).squeeze(-1)


def response_scores(logits: Tensor, tokens: Tensor, prompt_length: int) -> Tensor:
    """The log-probability of each response token. -> [batch pos-prompt_length]"""
    return token_log_probs(logits[:, prompt_length - 1 : -1], tokens[:, prompt_length:])


RESPONSE_SCORES = Exercise(
    key="12.1",
    name="response_scores",
    solution=response_scores,
    axes={
        "logits": "batch pos vocab",
        "tokens": "batch pos",
        "return": "batch pos-prompt_length",
    },
    gradient_to=("logits",),
    cases=(
        _text_case("a prompt of three tokens, a response of four", 3, 7),
        _text_case("a prompt of one token", 1, 4),
        _text_case("a response of one token", 4, 5),
        _text_case("a batch of one", 3, 7, batch=1),
    ),
    mistakes=(
        Mistake(
            lambda logits, tokens, prompt_length: _gather(
                logits[:, prompt_length:], tokens[:, prompt_length:]
            ),
            "No shift: the logits that stand beside a token have read it already. "
            "Those one place before score it, so begin at prompt_length - 1.",
        ),
        Mistake(
            lambda logits, tokens, prompt_length: _gather(
                logits[:, prompt_length:-1], tokens[:, prompt_length + 1 :]
            ),
            "You lose the first response token. The logits of the last prompt token "
            "score it: begin at prompt_length - 1.",
        ),
        Mistake(
            lambda logits, tokens, prompt_length: _gather(
                logits[:, :-1], tokens[:, 1:]
            ),
            "You score the prompt as well. Nobody sampled it: keep the scores of the "
            "response only.",
        ),
        Mistake(
            lambda logits, tokens, prompt_length: _gather(
                logits[:, prompt_length - 1 : -1], tokens[:, prompt_length:]
            ).sum(-1),
            "You sum over pos. The ratio and the mask work on single tokens: return a "
            "score for each.",
        ),
        Mistake(
            lambda logits, tokens, prompt_length: response_scores(
                logits, tokens, prompt_length
            ).squeeze(),
            "squeeze() also drops a batch or pos axis of length 1. squeeze(-1) drops "
            "only the axis that gather left.",
        ),
        Mistake(
            lambda logits, tokens, prompt_length: (
                logits[:, prompt_length - 1 : -1]
                .gather(-1, tokens[:, prompt_length:, None])
                .squeeze(-1)
            ),
            "These are raw logits. Log-probabilities need log_softmax over the "
            "vocabulary first.",
        ),
        Mistake(
            lambda logits, tokens, prompt_length: _gather(
                logits[:, prompt_length - 1 : -1], tokens[:, prompt_length - 1 : -1]
            ),
            "You shift the logits and the tokens. The tokens stay those of the "
            "response; only the logits begin one place earlier.",
        ),
    ),
    insight="With left padding all prompts end at one place, so a single slice cuts "
    "every row of the batch.",
)

EXERCISES = (RESPONSE_SCORES,)
