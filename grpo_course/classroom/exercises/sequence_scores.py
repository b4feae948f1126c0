"""The exercises of 09_sequences on log-probabilities."""

import torch
from torch import Tensor

from grpo_course.algorithm.sampler import shifted_log_probs, token_log_probs
from grpo_course.classroom.exercise import Case, Exercise, Mistake


def _scores_case(description: str, batch: int, pos: int, vocab: int) -> Case:
    generator = torch.Generator().manual_seed(pos)
    logits = 2 * torch.randn(batch, pos, vocab, generator=generator)
    tokens = torch.randint(vocab, (batch, pos), generator=generator)
    return Case(description, {"logits": logits, "tokens": tokens})


def _gather(scores: Tensor, tokens: Tensor) -> Tensor:
    return scores.gather(-1, tokens[..., None]).squeeze(-1)


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

SHIFTED_LOG_PROBS = Exercise(
    key="9.1",
    name="shifted_log_probs",
    solution=shifted_log_probs,
    axes=SCORE_AXES,
    gradient_to=("logits",),
    cases=(
        _scores_case("two texts of four tokens", 2, 4, 5),
        _scores_case("as many tokens as words", 3, 5, 5),
    ),
    mistakes=(
        Mistake(
            lambda logits, tokens: _gather(_log(logits), tokens),
            "No shift: the logits at t have read token t. They score token t + 1, so "
            "there is one score less than there are tokens.",
        ),
        Mistake(
            lambda logits, tokens: _gather(_log(logits), tokens)[..., 1:],
            "You drop the first score but do not shift: each token still meets the "
            "logits that have read it. Pair logits[:, :-1] with tokens[:, 1:].",
        ),
        Mistake(
            lambda logits, tokens: _gather(_log(logits), tokens)[..., :-1],
            "You drop the last score but do not shift: each token still meets the "
            "logits that have read it. Pair logits[:, :-1] with tokens[:, 1:].",
        ),
        Mistake(
            lambda logits, tokens: _gather(_log(logits)[..., 1:, :], tokens[..., :-1]),
            SHIFT_WAY,
        ),
        Mistake(
            lambda logits, tokens: _gather(logits[..., :-1, :], tokens[..., 1:]),
            "These are raw logits. Log-probabilities need log_softmax over the "
            "vocabulary first.",
        ),
        Mistake(
            lambda logits, tokens: _gather(
                logits.softmax(-1)[..., :-1, :], tokens[..., 1:]
            ),
            "These are probabilities. Use log_softmax instead of softmax.",
        ),
        Mistake(
            lambda logits, tokens: _gather(
                logits.log_softmax(-2)[..., :-1, :], tokens[..., 1:]
            ),
            "Your softmax runs over pos, so places compete. Words do: normalise over "
            "vocab, the last axis.",
        ),
        Mistake(
            lambda logits, tokens: _gather(
                _log(logits)[..., :-1, :], tokens[..., 1:]
            ).sum(-1),
            "You sum over pos. The loss wants a log-probability for each token.",
        ),
    ),
    insight="A greedy text scores best at the right shift: a probe that works on any "
    "model.",
)


def _temperature_case(description: str, temperature: float) -> Case:
    args = dict(_scores_case(description, 2, 3, 5).args)
    return Case(description, args | {"temperature": temperature})


TEMPERATURE_LOG_PROBS = Exercise(
    key="9.2",
    name="temperature_log_probs",
    solution=lambda logits, tokens, temperature: token_log_probs(
        logits, tokens, temperature
    ),
    axes=SCORE_AXES | {"return": "batch pos"},
    gradient_to=("logits",),
    cases=(
        _temperature_case("temperature 0.7", 0.7),
        _temperature_case("temperature 1", 1.0),
        _temperature_case("temperature 2", 2.0),
    ),
    mistakes=(
        Mistake(
            lambda logits, tokens, temperature: _gather(_log(logits), tokens),
            "Your scores do not depend on the temperature: they are those of another "
            "policy than the one that sampled.",
        ),
        Mistake(
            lambda logits, tokens, temperature: _gather(
                _log(logits * temperature), tokens
            ),
            "You multiply by the temperature. A low one makes the policy surer: "
            "divide.",
        ),
        Mistake(
            lambda logits, tokens, temperature: (
                _gather(_log(logits), tokens) / temperature
            ),
            "You divide the log-probabilities. They no longer sum to one: divide the "
            "logits, then normalise.",
        ),
        Mistake(
            lambda logits, tokens, temperature: _gather(logits / temperature, tokens),
            "These are logits. Normalise after dividing: log_softmax over vocab.",
        ),
        Mistake(
            lambda logits, tokens, temperature: _gather(
                (logits / temperature).softmax(-1), tokens
            ),
            "These are probabilities. Use log_softmax instead of softmax.",
        ),
        Mistake(
            lambda logits, tokens, temperature: _gather(
                _log(logits[..., :-1, :] / temperature), tokens[..., 1:]
            ),
            "You shift here as well. These logits already stand where their token "
            "does: one score for each token.",
        ),
    ),
    insight="Sampler and score are now the same policy: before any update, every "
    "ratio is 1.",
)

EXERCISES = (SHIFTED_LOG_PROBS, TEMPERATURE_LOG_PROBS)
