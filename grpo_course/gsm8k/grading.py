"""What a completion answers, and whether that is the number that was asked for.

The rules, in short. The answer stands between the last <answer> and its </answer>,
after the thinking. It says one number, which is compared exactly, as a fraction.
Signs of currency, %, units and other words are not read. Two different numbers, or
one written in no known way, are no answer: a guess that hedges earns nothing.

Every step is a search through the text or works on a few hundred characters, so the
time is linear in the length, and nothing of the text is ever run.
"""

import re
from fractions import Fraction

from grpo_course.gsm8k.prompts import ANSWER, CLOSE_ANSWER, CLOSE_THINK

LONGEST_ANSWER = 200  # characters; a longer one is a text, not a number
LONGEST_NUMBER = 100  # digits and commas; Python takes long over thousands of digits

# A minus is a sign unless it stands right behind a number, word or bracket: not in
# "5-7".
_SIGN = r"((?<![\w)])[-\u2212])?"
_NUMERAL = r"(?:(?<!\w)\.)?[0-9][0-9.,]*"
_NUMBER = re.compile(
    rf"{_SIGN}[$€£¥]?{_SIGN}({_NUMERAL}(?:/[0-9][0-9.,]*)*)([eE][-+]?[0-9])?"
)
_PLAIN = re.compile(r"[0-9]*\.[0-9]+|[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")


def extract_answer(completion: str) -> str | None:
    """The text between the last <answer> and its </answer>; None if there is none.

    Whatever stands before the last </think> is thinking, and no answer.
    """
    said = completion.rpartition(CLOSE_THINK)[2]
    before, _, _ = said.rpartition(CLOSE_ANSWER)
    _, opened, inside = before.rpartition(ANSWER)
    return inside.partition(CLOSE_ANSWER)[0].strip() if opened else None


def read_number(text: str) -> Fraction | None:
    """The one number that a short text says; None if it says none, or several.

    "$1,234.50", "-3 apples", "50%", "7.", "1/2" and "3+4 = 7" each say one: after an
    equals sign only the result counts. "5 or 7", "1,23", "1e3" and "3½" are not read.
    """
    if len(text) > LONGEST_ANSWER:
        return None
    result = text.rpartition("=")[2]
    if any(mark.isnumeric() and not mark.isascii() for mark in result):
        return None  # ½, ² and digits of other scripts
    said = set(_numbers(result))
    return said.pop() if len(said) == 1 else None


def last_number(text: str) -> Fraction | None:
    """The last number of any text, wherever it stands; None if it has none."""
    end = max(text.rfind(digit) for digit in "0123456789") + 1
    numbers = _numbers(text[max(0, end - LONGEST_NUMBER - 5) : end])
    return numbers[-1] if numbers else None


def gold_number(answer: str) -> Fraction:
    """The right answer as a number. ValueError if it holds none: the data is wrong."""
    number = read_number(str(answer))
    if number is None:
        raise ValueError(
            f"answer={answer!r} holds no single number. Pass the final answer alone, "
            "the text after #### in GSM8K."
        )
    return number


def is_correct(completion: str, answer: str) -> bool:
    """Strict: the tagged answer says the right number."""
    given = extract_answer(completion)
    return given is not None and read_number(given) == gold_number(answer)


def is_leniently_correct(completion: str, answer: str) -> bool:
    """Lenient: the last number is the right one, tags or no tags."""
    return last_number(completion) == gold_number(answer)


def _numbers(text: str) -> list[Fraction | None]:
    """Each number in a short text, None for one written in no known way."""
    return [_value(*match.groups()) for match in _NUMBER.finditer(text)]


def _value(
    sign: str | None, second_sign: str | None, written: str, power: str | None
) -> Fraction | None:
    """One number from its parts; a fraction a/b has two."""
    parts = [_decimal(part) for part in written.split("/")]
    if power or (sign and second_sign) or None in parts or len(parts) > 2:
        return None
    if len(parts) == 2 and parts[1] == 0:
        return None
    value = parts[0] / parts[1] if len(parts) == 2 else parts[0]
    return -value if sign or second_sign else value


def _decimal(numeral: str) -> Fraction | None:
    """1234, 1,234 and 1234.50, with a trailing period or comma of the sentence."""
    numeral = numeral.rstrip(".,")
    if len(numeral) > LONGEST_NUMBER or not _PLAIN.fullmatch(numeral):
        return None
    return Fraction(numeral.replace(",", ""))
