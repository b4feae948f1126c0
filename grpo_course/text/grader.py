"""The grader: whether the number that a completion gives is the right one.

It reads what stands between the answer tags, and compares two fractions.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

from grpo_course.text.responses import (
    Completion,
    completion_texts,
    extract_answer,
    graded,
)

# What is read, and how; None: no answer. More or less than the whole is never read.
READINGS: tuple[tuple[str, int | Fraction | None], ...] = (
    ("72", 72), ("72.0", 72), ("**72**.", 72), ("x = 72", 72), ("72 km", 72),
    ("$1,234.50", Fraction("1234.5")), ("50%", 50), (".5", Fraction(1, 2)),
    ("1/2", Fraction(1, 2)), ("-3 apples", -3), ("−3", -3), ("-$5", -5), ("$-5", -5),
    (r"\boxed{72}", 72),
    ("5 or 7", None), ("5-7", None), ("9+9", None), ("- 5", None), ("5!", None),
    ("7²", None), ("2 million", None), ("1,23", None), ("1 000", None),
    ("1.234,5", None), ("1e3", None), ("3 1/2", None), ("3½", None),
    (r"\frac{1}{2}", None), (r"\sqrt{4}", None), ("12:30", None), ("٧٢", None),
    ("seven", None),
)  # fmt: skip

LONGEST_ANSWER = 200  # characters; a longer one is a text, not a number
LONGEST_NUMBER = 100  # digits and commas; Python takes long over thousands of digits
# Minus signs, dashes and hyphens of other widths, which some write for a minus.
_DASHES = str.maketrans(
    dict.fromkeys("\u2212\u2013\u2014\u2015\u2011\u2012\u207b\ufe63\uff0d", "-")
    | {"\0": " "}  # which stands for a number below
)
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_ESCAPED = re.compile(r"\\(?=[$%])")
_FORMULA = re.compile(r"\\[()\[\]]")  # where LaTeX's formulas begin and end
# It is a sign unless it stands right behind a number, word or bracket: not in "5-7".
_SIGN = r"((?<![\w)])[-+])?"
_NUMBER = re.compile(
    rf"{_SIGN}[$€£]?{_SIGN}((?:(?<![\w.])\.)?[0-9][0-9.,]*)(?:/([0-9][0-9.,]*))?"
)
_DECIMAL = re.compile(
    r"[0-9]*\.[0-9]+|[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?"  # 1,234,567.8
)
_MANY = "(?i:hundred|thousand|lakhs?|crores?|million|billion|trillion|mn|bn|mln)"
# What makes another number of the one that stands there as \0, in a short text.
_CHANGED = re.compile(
    rf"""[^\W_]\0 | [-+/^×÷±√∛≠≤≥]\W*\0 | (?<!\w)-[a-zA-Z]  # x7, - 5, -(5), -US$5
    | \0[\s)]*[!^+×÷±π] | \0-(?!\w)  # 5!, 2^n, 5-
    | \0\s*[kK]\b | \0[MB]\b  # 5k and 5M, but 5m is five metres
    | \\  # LaTeX that is not known
    | (?<![a-zA-Z])(?:(?i:minus|negative|sqrt|half|dozen)|{_MANY})""",
    re.VERBOSE,
)
# What shows, in a long text, that the number is a part of something else. Other numbers
# and signs may stand before it: "71-72" and "- 72" end with 72.
_PART_OF = re.compile(
    rf"""[^\W_]\0 | [\^√±{{}}]\0 | [0-9](?:[:/,.'_]+|\*\*|e[-+]|[^\S\n])\0  # 12:30
    | (?<![\w)])-[A-Z]{{0,3}}[^\w\s-]*\0  # -US$5, -(5)
    | (?<![a-zA-Z])(?i:minus|negative)\W?\0
    | \0(?:[)\]}}]?\^|[kKMB]\b|(?:\ and\ a\ half|[\s-]?{_MANY})(?![a-zA-Z]))""",
    re.VERBOSE,
)
_LAST_DIGIT = re.compile(r"\d(?=\D*\Z)")
# What joins two statements. The comma in 1,200 does not.
_JOINS = re.compile(r"(?i)(?<![a-z])(?:or|and)(?![a-z])|;|,(?![0-9]{3})")


def _plain(text: str) -> str:
    """A short text with one kind of minus, and without LaTeX around a number."""
    text = _ESCAPED.sub("", _BOXED.sub(r" \1 ", text.translate(_DASHES)))
    return _FORMULA.sub(" ", text)


def _value(match: re.Match) -> Fraction | None:
    """A number as it is written, None in no known way."""
    sign, second_sign, top, bottom = match.groups(default="")
    values = []
    for numeral in (top, bottom or "1"):
        numeral = numeral.rstrip(".,")  # of the sentence
        if len(numeral) > LONGEST_NUMBER or not _DECIMAL.fullmatch(numeral):
            return None
        values.append(Fraction(numeral.replace(",", "")))
    numerator, denominator = values
    if (sign and second_sign) or not denominator:
        return None
    size = numerator / denominator
    return -size if "-" in (sign, second_sign) else size


def read_number(text: str) -> Fraction | None:
    """The one number that a short text says; None if it says none, or several.

    After an equals sign only the result counts. READINGS shows what is read how. What
    is not known makes no answer, and no part of it does.
    """
    if len(text) > LONGEST_ANSWER:
        return None
    working, _, result = _plain(text).rpartition("=")
    numbers = list(_NUMBER.finditer(result))
    if len(numbers) != 1 or _JOINS.search(working):
        return None
    if _CHANGED.search(_NUMBER.sub("\0", result)):
        return None
    if any(mark.isnumeric() and not mark.isascii() for mark in result):
        return None  # ² and digits of other scripts
    return _value(numbers[0])


def last_number(text: str) -> Fraction | None:
    """The last number of any text, wherever it stands; None if it has none.

    Also None where it is a part of something that is not read: of 2^3, of 2 million.
    """
    last = _LAST_DIGIT.search(text)
    if last is None:
        return None
    start = max(0, last.end() - LONGEST_NUMBER - 50)
    window = _plain(text[start : last.end() + 30])
    *_, match = [None, *_NUMBER.finditer(window)]
    if match is None:
        return None
    before, after = window[: match.start()], window[match.end() :]
    if after[:1].isnumeric() or _PART_OF.search(f"{before}\0{after}"):
        return None
    return _value(match)


def gold_number(answer: str) -> Fraction:
    """The right answer as a number. ValueError if it holds none: the data is wrong."""
    number = read_number(str(answer))
    if number is None:
        raise ValueError(
            f"answer={answer!r} holds no single number. Pass the final answer alone, "
            "the text after #### in GSM8K."
        )
    return number


def tagged_number(completion: str) -> Fraction | None:
    """The number that the tagged answer says; None if it says none, or several."""
    return read_number(extract_answer(completion) or "")


def is_correct(completion: str, answer: str) -> bool:
    """Strict: the tagged answer says the right number."""
    return tagged_number(completion) == gold_number(answer)


def is_leniently_correct(completion: str, answer: str) -> bool:
    """Lenient: the last number is the right one, tags or no tags."""
    return last_number(completion) == gold_number(answer)


def correctness_reward(
    completions: Sequence[Completion], answer: Sequence[str], **kwargs: object
) -> list[float]:
    """1.0 where the number between the answer tags is the right one, else 0.0."""
    return graded(is_correct, completions, answer)


correctness_reward.meaning = tagged_number  # type: ignore[attr-defined]  # 72 is 72.0


def lenient_reward(
    completions: Sequence[Completion], answer: Sequence[str], **kwargs: object
) -> list[float]:
    """1.0 where the last number is the right one, tags or no tags, else 0.0.

    For measuring: beside the strict accuracy it tells arithmetic from format.
    """
    return graded(is_leniently_correct, completions, answer)


def length_reward(
    completions: Sequence[Completion],
    free: int = 800,
    most: int = 1600,
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
