"""The exercises of 12_gsm8k_grpo: scores under left padding, and a run's panel."""

from collections.abc import Callable

import torch
from torch import Tensor

from grpo_course.algorithm.scoring import token_log_probs
from grpo_course.classroom.exercise import Case, Exercise, Mistake


def _text_case(description: str, prompt_length: int, pos: int) -> Case:
    generator = torch.Generator().manual_seed(pos)
    logits = 2 * torch.randn(2, pos, 5, generator=generator)
    tokens = torch.randint(5, (2, pos), generator=generator)
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


def diagnose(start: dict, end: dict) -> str:
    """Name what happened between two readings of the panel of one run."""
    if end["tied_groups"] > 0.8 and end["accuracy"] < 0.1:
        return "too hard"
    if end["tied_groups"] > 0.8 and end["accuracy"] < 0.9:
        return "format alone"
    if end["lenient_accuracy"] < start["lenient_accuracy"] - 0.1:
        return "rate too high"
    return "learns"


def _reading(*values: float) -> dict:
    names = ("accuracy", "lenient_accuracy", "format", "tied_groups")
    return dict(zip(names, values, strict=True))


def _instead(wrong: str, right: str) -> Callable:
    """An answer that says `wrong` where `right` would be right."""

    def answer(start: dict, end: dict) -> str:
        said = diagnose(start, end)
        return wrong if said == right else said

    return answer


# Made up, in the ranges that the runs of the notebook show.
_START = _reading(0.3, 0.6, 0.5, 0.1)


def _panel_case(description: str, end: dict, start: dict = _START) -> Case:
    return Case(description, {"start": start, "end": end})


PANEL_READING = Exercise(
    key="12.2",
    name="diagnose",
    solution=diagnose,
    cases=(
        _panel_case("accuracy up", _reading(0.8, 0.8, 0.99, 0.3)),
        _panel_case("all right by now", _reading(0.97, 0.97, 1.0, 0.95)),
        _panel_case(
            "nothing is ever right",
            _reading(0.01, 0.02, 0.6, 0.95),
            _reading(0.01, 0.02, 0.5, 0.95),
        ),
        _panel_case("all tied, half of them right", _reading(0.5, 0.5, 1.0, 0.85)),
        _panel_case("sums got worse", _reading(0.35, 0.36, 0.99, 0.3)),
    ),
    mistakes=(
        Mistake(
            lambda start, end: (
                "too hard" if end["tied_groups"] > 0.8 else diagnose(start, end)
            ),
            "Groups are tied where all responses are wrong, where all are right, and "
            "where the reward does not look at them. Ask the accuracy which it is.",
        ),
        Mistake(
            lambda start, end: (
                "learns"
                if end["accuracy"] > start["accuracy"]
                else diagnose(start, end)
            ),
            "Strict accuracy rises with the form alone, while the sums get worse. Look "
            "at tied groups and lenient accuracy first.",
        ),
        Mistake(
            _instead("learns", "rate too high"),
            "A rising format hides sums that got worse: lenient accuracy fell by more "
            "than 0.1 in one of these runs.",
        ),
        Mistake(
            _instead("learns", "format alone"),
            "Half of the responses are right, yet nearly all groups are tied: a reward "
            "that saw the answers would tell them apart.",
        ),
        Mistake(
            _instead("format alone", "learns"),
            "You call a run that learns broken. Where all is right, groups are tied "
            "too, and that is no fault: ask for an accuracy below 0.9.",
        ),
    ),
    insight="Reward, format and strict accuracy rise in good runs and in bad ones. "
    "Tied groups and lenient accuracy tell them apart.",
)

EXERCISES = (RESPONSE_SCORES, PANEL_READING)
