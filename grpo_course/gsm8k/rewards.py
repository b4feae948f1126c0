"""Rewards for completions, with the signature that TRL's GRPOTrainer calls.

Lists in, a list of floats out, one for each completion. A completion is a string or a
list of messages; the columns of the data set come as keyword arguments, and each
reward ignores those that it does not name.
"""

from collections.abc import Sequence

from grpo_course.gsm8k.grading import is_correct, is_leniently_correct
from grpo_course.language_model.template import Completion, completion_texts, graded

FREE_CHARACTERS = 800  # a completion up to here costs nothing
MOST_CHARACTERS = 1600  # from here on it costs the whole penalty


def correctness_reward(
    completions: Sequence[Completion], answer: Sequence[str], **kwargs: object
) -> list[float]:
    """1.0 where the number between the answer tags is the right one, else 0.0."""
    return graded(is_correct, completions, answer)


def lenient_reward(
    completions: Sequence[Completion], answer: Sequence[str], **kwargs: object
) -> list[float]:
    """1.0 where the last number is the right one, tags or no tags, else 0.0.

    For measuring: beside the strict accuracy it tells arithmetic from format.
    """
    return graded(is_leniently_correct, completions, answer)


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
    lengths = [len(text) for text in completion_texts(completions)]
    return [max(min(free - n, 0) / (most - free), -1.0) for n in lengths]
