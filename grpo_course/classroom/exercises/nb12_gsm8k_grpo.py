"""The exercises of 12_gsm8k_grpo."""

from torch import Tensor

from grpo_course.classroom.check.exercise import Exercise, Mistake
from grpo_course.classroom.exercises.shared import (
    RAW_LOGITS,
    TOO_LATE,
    pick,
    scored_text,
)


def _scores(logits: Tensor, tokens: Tensor) -> Tensor:
    return pick(logits.log_softmax(-1), tokens)


def response_log_probs(logits, tokens, prompt_length):
    """float [batch pos vocab], int [batch pos] -> float [batch pos-prompt_length]"""
    before = logits[:, prompt_length - 1 : -1].log_softmax(dim=-1)
    chosen = tokens[:, prompt_length:, None]
    return before.gather(-1, chosen).squeeze(-1)


RESPONSE_SCORES = Exercise(
    key="12.1",
    name="response_log_probs",
    solution=response_log_probs,
    axes={
        "logits": "batch pos vocab",
        "tokens": "batch pos",
        "return": "batch pos-prompt_length",
    },
    gradient_to=("logits",),
    cases=(
        scored_text(
            "a prompt of three tokens, a response of four", 2, 7, 5, prompt_length=3
        ),
        scored_text("a prompt of one token", 2, 4, 5, prompt_length=1),
        scored_text("a response of one token", 2, 5, 5, prompt_length=4),
        scored_text("a batch of one", 1, 7, 5, prompt_length=3),
        scored_text("one token each", 1, 2, 5, prompt_length=1),
        scored_text(
            "logits of 200 and -200", 2, 5, 4, TOO_LATE, scale=200.0, prompt_length=2
        ),
    ),
    words={
        "return (...).sum(-1)": "You sum over pos. The ratio and the mask work on "
        "single tokens: return a score for each.",
        "not normalized": RAW_LOGITS,
    },
    mistakes=(
        Mistake(
            lambda x, ids, n: _scores(x[:, n:], ids[:, n:]),
            "No shift: the logits that stand beside a token have read it already. "
            "Those one place before score it, so begin at prompt_length - 1.",
        ),
        Mistake(
            lambda x, ids, n: _scores(x[:, n:-1], ids[:, n + 1 :]),
            "You lose the first response token. The logits of the last prompt token "
            "score it: begin at prompt_length - 1.",
        ),
        Mistake(
            lambda x, ids, n: _scores(x[:, :-1], ids[:, 1:]),
            "You score the prompt as well. Nobody sampled it: keep the scores of the "
            "response only.",
        ),
        Mistake(
            lambda x, ids, n: _scores(x[:, n - 1 : -1], ids[:, n - 1 : -1]),
            "You shift the logits and the tokens. The tokens stay those of the "
            "response; only the logits begin one place earlier.",
        ),
    ),
    insight="With left padding all prompts end at one place, so a single slice cuts "
    "every row of the batch.",
)
