"""Rewards for completions, with the signature that TRL's GRPOTrainer calls.

Lists in, a list of floats out, one for each completion. A completion is a string or a
list of messages; the columns of the data set come as keyword arguments, and each
reward ignores those that it does not name.
"""

from collections.abc import Callable, Sequence

from grpo_course.gsm8k.grading import is_correct, is_leniently_correct
from grpo_course.gsm8k.prompts import TAGS

Completion = str | list[dict]

FREE_CHARACTERS = 800  # a completion up to here costs nothing
MOST_CHARACTERS = 1600  # from here on it costs the whole penalty


def completion_text(completion: Completion) -> str:
    """The text of a plain or a chat completion."""
    if isinstance(completion, str):
        return completion
    if isinstance(completion, list | tuple):
        return "".join(message.get("content") or "" for message in completion)
    raise TypeError(
        f"A completion is a {type(completion).__name__}. Pass a string, or a list of "
        'messages like {"role": "assistant", "content": "..."}.'
    )


def correctness_reward(
    completions: Sequence[Completion], answer: Sequence[str], **kwargs: object
) -> list[float]:
    """1.0 where the number between the answer tags is the right one, else 0.0."""
    return _graded(is_correct, completions, answer)


def lenient_reward(
    completions: Sequence[Completion], answer: Sequence[str], **kwargs: object
) -> list[float]:
    """1.0 where the last number is the right one, tags or no tags, else 0.0.

    For measuring: beside the strict accuracy it tells arithmetic from format.
    """
    return _graded(is_leniently_correct, completions, answer)


def format_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """0.2 for each of the four tags that stands exactly once, 0.2 for good order.

    Good order: the four tags once each, as in the template, with something inside
    both pairs and nothing but white space outside them.
    """
    return [_format_points(completion_text(c)) / 5 for c in completions]


def length_reward(
    completions: Sequence[Completion],
    free: int = FREE_CHARACTERS,
    most: int = MOST_CHARACTERS,
    **kwargs: object,
) -> list[float]:
    """0.0 up to `free` characters, then down in a straight line to -1.0 at `most`.

    The soft punishment of overlong responses in DAPO (Yu et al. 2025,
    arXiv:2503.14476), there in tokens.
    """
    if not 0 <= free < most:
        raise ValueError(f"free={free} and most={most}: free must be the smaller one.")
    lengths = [len(completion_text(c)) for c in completions]
    return [max(min(free - n, 0) / (most - free), -1.0) for n in lengths]


def _graded(
    rule: Callable[[str, str], bool],
    completions: Sequence[Completion],
    answer: Sequence[str],
) -> list[float]:
    """`rule` for each completion with its own right answer."""
    if isinstance(answer, str) or len(completions) != len(answer):
        raise ValueError(
            f"answer must be a list with one right answer for each of the "
            f"{len(completions)} completions. Repeat an answer for its whole group."
        )
    return [
        float(rule(completion_text(c), a))
        for c, a in zip(completions, answer, strict=True)
    ]


def _format_points(text: str) -> int:
    """0 to 5: one for each tag that stands exactly once, one for good order."""
    points = sum(text.count(tag) == 1 for tag in TAGS)
    return points + (points == len(TAGS) and _in_order(text))


def _in_order(text: str) -> bool:
    """Whether the tags, once each, cut the text as the template does."""
    parts = []
    for tag in TAGS:
        part, found, text = text.partition(tag)
        if not found:
            return False
        parts.append(part.strip())
    before, thinking, between, given = parts
    return bool(thinking and given) and not (before or between or text.strip())
