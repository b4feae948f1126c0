"""The exercises of 12_gsm8k_grpo."""

from collections import Counter
from collections.abc import Callable
from itertools import chain

import torch
from torch import Tensor

from grpo_course.classroom.exercises.shared import (
    RAW_LOGITS,
    TOO_LATE,
    case,
    numbers,
    pick,
    scored_text,
)
from grpo_course.classroom.old_check.exercise import Case, Exercise, Mistake


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


PAIRS = (
    "You treat the two as samples of their own. They answer the same problems: what "
    "makes a problem easy helps both, and drops out of the gain of a pair. Take the "
    "spread of the gains."
)


def _pairs_case(description: str, seeds: int, problems: int, shift: float) -> Case:
    before = (numbers(seeds, problems) > 0.4).float()
    new = numbers(seeds, problems, shift=shift)
    after = torch.where(new > 0.1, 1.0, torch.where(new < -0.8, 0.0, before))
    return case(description, before=before, after=after)


def _error(values: Tensor) -> Tensor:
    """Of the mean of all."""
    return values.std() / values.numel() ** 0.5


def paired_gain(before, after):
    """float [seed problem] twice, the shares that are right -> float [2]"""
    gain = (after - before).flatten()
    return torch.stack([gain.mean(), gain.std() / gain.numel() ** 0.5])


def _with_error(error: Callable) -> Callable:
    """The right gain, with what `error` makes of the two."""
    return lambda before, after: torch.stack(
        [(after - before).mean(), error(before, after)]
    )


PAIRED_GAIN = Exercise(
    key="12.3",
    name="paired_gain",
    solution=paired_gain,
    axes=dict.fromkeys(("before", "after"), "seed problem"),
    cases=(
        case(
            "two seeds, four problems",
            before=[[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]],
            after=[[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0]],
        ),
        _pairs_case("three seeds, eight problems", 3, 8, 2.0),
        _pairs_case("one seed", 1, 12, 1.0),
        case(
            "fewer right than before",
            before=[[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]],
            after=[[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]],
        ),
        case(
            "shares of several samples, in place of 0 and 1",
            before=[[0.25, 0.5, 0.0], [0.75, 0.5, 1.0]],
            after=[[0.5, 0.75, 0.75], [1.0, 0.25, 1.0]],
        ),
    ),
    words={
        "difference turned": "The sign is turned: this is what was lost. The gain is "
        "after minus before.",
        "gain.std()": "This is the spread of single problems. The mean of n of them "
        "strays less: divide by the square root of n.",
        "times for divided": "The error of a mean falls with the number of problems: "
        "divide the spread by the square root, do not multiply.",
        "difference lost": "This is the share right of one of the two. The gain of a "
        "problem is after minus before.",
        "sign dropped": "You take the size of each change, without its sign: then a "
        "problem that is lost counts as a gain.",
    },
    mistakes=(
        Mistake(
            _with_error(lambda b, a: (_error(b) ** 2 + _error(a) ** 2).sqrt()), PAIRS
        ),
        Mistake(_with_error(lambda b, a: _error(b) + _error(a)), PAIRS),
        Mistake(
            _with_error(lambda b, a: (a - b).std() / a.numel()),
            "You divide by the number of problems. The error of a mean falls with its "
            "square root.",
        ),
        Mistake(
            _with_error(lambda b, a: (a - b).std(correction=0) / a.numel() ** 0.5),
            "You divide the squares by n. The sample spread divides them by n - 1, as "
            "torch does by default.",
        ),
        Mistake(
            _with_error(lambda b, a: _error((a - b).mean(-1))),
            "This is the spread of the seeds' means, a handful of numbers: it says how "
            "far another run would differ. Asked is what other problems would change: "
            "take all pairs.",
        ),
        Mistake(
            _with_error(lambda b, a: (a - b).std() / a.shape[-1] ** 0.5),
            "You divide by the number of problems of one seed. The mean is over those "
            "of all seeds.",
        ),
        Mistake(
            _with_error(lambda b, a: 2 * _error(a - b)),
            "These are two standard errors, half of a 95 % interval. Return one.",
        ),
        Mistake(
            lambda b, a: paired_gain(b, a).flip(0),
            "The right two numbers in the wrong order: the gain first.",
        ),
    ),
    equivalent={
        "gain.shape[0]": "after flatten() there is one axis",
        "gain.shape[-1]": "after flatten() there is one axis",
        "gain.mean(dim=0)": "after flatten() there is one axis",
        "gain.mean(dim=-1)": "after flatten() there is one axis",
    },
    insight="Pairs make the error small: problems that both get right, or both get "
    "wrong, add no noise.",
)
