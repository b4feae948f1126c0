"""What a completion answers, and whether that is the number that was asked for.

The rules, in short. The answer stands between the last <answer> and its </answer>,
after the thinking. It says one number, which is compared exactly, as a fraction.
Signs of currency, %, units and other words are not read. After an equals sign only
the result counts. A result is no answer where it
- holds two numbers, but the same one may come twice, with "and", "or" or "that is"
  between;
- changes its number by a sign or word beside it: "- 5", "5!", "minus 5", "5 million";
- is written in no known way.
Nor is there one where "or", "and", a semicolon or a comma outside a number stands
before the last equals sign: two guesses joined by one of these earn nothing.

Every step is a search through the text or works on a few hundred characters, so the
time is linear in the length, and nothing of the text is ever run.
"""

import re
from fractions import Fraction

from grpo_course.language_model.template import extract_answer

LONGEST_ANSWER = 200  # characters; a longer one is a text, not a number
LONGEST_NUMBER = 100  # digits and commas; Python takes long over thousands of digits

# Hyphens, dashes and minus signs that stand for a minus.
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212\uff0d"), "-")
# It is a sign unless it stands right behind a number, word or bracket: not in "5-7".
_SIGN = r"((?<![\w)])[-+])?"
_NUMERAL = r"(?:(?<!\w)\.)?[0-9][0-9.,]*"
_NUMBER = re.compile(
    rf"{_SIGN}[$€£¥]?{_SIGN}({_NUMERAL}(?:/[0-9][0-9.,]*)*)([eE][-+]?[0-9])?"
)
_PLAIN = re.compile(r"[0-9]*\.[0-9]+|[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
# What makes other numbers of those that a result shows. Each number is a \0 here.
_CHANGED = re.compile(
    r"""\0(?!\s+(?:and|or|that\ is)\s+\0)[^\0]*\0  # 9+9, 7:7, but not "7 or 7"
    | [-+/^×÷±√∛]\W*\0  # - 5, -(5), √16
    | \0[\s)\]}]*[!^+×÷±]  # 5!, 2^n
    | \0\s*[kK]\b | \0[MB]\b  # 5k and 5M, but 5m is five metres
    | (?i:(?<![a-z])(?:minus|negative|half|sqrt|dozen|hundred|thousand|million
        |billion|trillion))""",
    re.VERBOSE,
)
# What joins two statements. The comma in 1,200 does not.
_JOINS = re.compile(r"(?i)(?<![a-z])(?:or|and)(?![a-z])|;|,(?![0-9]{3})")


def read_number(text: str) -> Fraction | None:
    """The one number that a short text says; None if it says none, or several.

    "$1,234.50", "-3 apples", "50%", "7.", "1/2" and "3+4 = 7" each say one: after an
    equals sign only the result counts. "5 or 7", "3 or x = 7", "9+9", "- 5", "5!",
    "2 million", "1,23", "1e3" and "3½" are not read.
    """
    if len(text) > LONGEST_ANSWER:
        return None
    working, _, result = text.translate(_DASHES).rpartition("=")
    if _JOINS.search(working) or _CHANGED.search(_NUMBER.sub("\0", result)):
        return None
    if any(mark.isnumeric() and not mark.isascii() for mark in result):
        return None  # ½, ² and digits of other scripts
    said = set(_numbers(result))
    return said.pop() if len(said) == 1 else None


def last_number(text: str) -> Fraction | None:
    """The last number of any text, wherever it stands; None if it has none."""
    end = max(text.rfind(digit) for digit in "0123456789") + 1
    window = text[max(0, end - LONGEST_NUMBER - 5) : end]
    numbers = _numbers(window.translate(_DASHES))
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
    above, slash, below = written.partition("/")
    top, bottom = _decimal(above), _decimal(below) if slash else Fraction(1)
    if power or (sign and second_sign) or top is None or not bottom:
        return None
    value = top / bottom
    return -value if "-" in (sign, second_sign) else value


def _decimal(numeral: str) -> Fraction | None:
    """1234, 1,234 and 1234.50, with a trailing period or comma of the sentence."""
    numeral = numeral.rstrip(".,")
    if len(numeral) > LONGEST_NUMBER or not _PLAIN.fullmatch(numeral):
        return None
    return Fraction(numeral.replace(",", ""))
