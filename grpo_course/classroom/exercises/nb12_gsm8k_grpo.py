"""The exercises of 12_gsm8k_grpo."""

from collections import Counter
from collections.abc import Callable
from itertools import chain

from torch import Tensor

from grpo_course.classroom.check.exercise import Case, Exercise, Mistake
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


NO_VOTE = (
    "None is a response without an answer: it has no vote. Leave it out before you "
    "count."
)
EARLIEST = (
    "Two answers come equally often there. The one that came first wins: "
    "Counter.most_common keeps the order in which it met them."
)
NOBODY = (
    "Where nobody answered, there is nothing to count: return None for that problem, "
    "and go on."
)


def vote(answers):
    """answers to each problem, a list of lists -> one answer for each, a list"""
    winners = []
    for given in answers:
        counted = Counter(answer for answer in given if answer is not None)
        winners.append(counted.most_common(1)[0][0] if counted else None)
    return winners


def _winners(pick: Callable) -> Callable:
    """A vote that picks from the answers to one problem."""
    return lambda answers: [pick(given) for given in answers]


def _said(given: list) -> list:
    return [answer for answer in given if answer is not None]


def _often(given: list) -> object:
    """The most frequent; of equally many, the one that came last."""
    counted = Counter(reversed(given))
    return counted.most_common(1)[0][0] if counted else None


def _vote(description: str, *answers: list, hint: str = "") -> Case:
    return Case(description, {"answers": list(answers)}, hint)


MAJORITY = Exercise(
    key="12.2",
    name="vote",
    solution=vote,
    cases=(
        _vote("one answer comes most often", ["7", "8", "8", "7", "8"]),
        _vote("two problems", ["3", "3", "5"], ["9", "4", "4"]),
        _vote("the first is alone", ["1", "6", "6", "2"]),
        _vote("the most frequent is the smallest", ["20", "4", "4", "30"]),
        _vote("equally many", ["12", "5", "5", "12"], ["3", "4"], hint=EARLIEST),
        _vote("most are without an answer", [None, "5", None, None], hint=NO_VOTE),
        _vote("as many without as with", [None, "5", "5", None], hint=NO_VOTE),
        _vote("nobody answered", [None, None, None], ["5"], hint=NOBODY),
        _vote("all the same", ["11", "11", "11"]),
        _vote("the answer zero, and an empty text", ["0", "0", "1"], ["", "", "2"]),
    ),
    mistakes=(
        Mistake(
            _winners(lambda given: Counter(given).most_common(1)[0][0]),
            NO_VOTE,
        ),
        Mistake(_winners(lambda given: _often(_said(given))), EARLIEST),
        Mistake(
            _winners(lambda given: given[0]),
            "You take the first answer, whatever the others are. Count them.",
        ),
        Mistake(
            lambda answers: [_often(_said([*chain(*answers)][::-1]))] * len(answers),
            "You count over all problems. Each problem has a vote of its own.",
        ),
        Mistake(
            _winners(
                lambda given: next(iter(Counter(_said(given)).most_common(1)), None)
            ),
            "most_common gives pairs of an answer and its count. Return the answer "
            "alone.",
        ),
        Mistake(
            _winners(lambda given: max(_said(given), default=None)),
            "That is the largest of the answers, not the most frequent one.",
        ),
    ),
    equivalent={
        "2": "the first of two most frequent ones is the most frequent one",
        "-1": "of one pair the first is the last",
    },
    insight="Eight samples and a count: no weight moves. It helps where the right "
    "answer is the most frequent one already.",
)
