"""The grader: whether the number that a completion gives is the right one."""

import re
from collections.abc import Sequence
from fractions import Fraction
from unicodedata import normalize

from grpo_course.text.responses import (
    Completion,
    completion_texts,
    extract_answer,
    graded,
)

# The grader. It reads what stands between the answer tags and compares two fractions.

# What is read, and how; None: no answer. More or less than the whole is never read.
READINGS: tuple[tuple[str, int | Fraction | None], ...] = (
    ("72", 72), ("72.0", 72), ("**72**.", 72), ("x = 72", 72), ("72/1", 72),
    ("$1,234.50", Fraction("1234.5")), ("1'234 km", 1234), ("1,00,000", 100_000),
    ("50%", 50), (".5", Fraction(1, 2)), ("...72", 72), ("72 m²", 72), ("72 m^2", 72),
    ("1/2", Fraction(1, 2)), ("3 1/2", Fraction(7, 2)), ("3½", Fraction(7, 2)),
    ("-3 apples", -3), ("−3", -3), ("-$5", -5), ("$-5", -5), ("-US$5", -5),
    (r"\boxed{10{,}000}", 10_000), (r"1\,000\text{ km}", 1000), (r"\$72", 72),
    (r"\frac{1}{2}", Fraction(1, 2)), (r"3\frac12", Fraction(7, 2)),
    ("5 or 7", None), ("5-7", None), ("9+9", None), ("- 5", None), ("($5)", None),
    ("5!", None), ("7²", None), ("2 million", None), ("1,23", None), ("1 000", None),
    ("1.234,5", None), ("1e3", None), (r"7\cdot10^3", None), (r"\sqrt{4}", None),
    ("12:30", None), ("٧٢", None), ("seven", None),
)  # fmt: skip

LONGEST_ANSWER = 200  # characters; a longer one is a text, not a number
LONGEST_NUMBER = 100  # digits and commas; Python takes long over thousands of digits
# How others write these: hyphens, dashes and minus signs; signs of plus; slashes; and
# what cannot be seen.
_SAME = {
    "-": "\u02d7\u058a\u1806\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u207b\u208b"
    "\u2212\u2796\u2e3a\u2e3b\ufe58\ufe63\uff0d",
    "+": "\u207a\ufe62\uff0b",
    "/": "\u2044\u2215\uff0f",
    "=": "\u2248\uff1d",
    "'": "\u02bc\u2019\uff07",
    "": "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff",
}
_TRANSLATED = {ord(c): plain for plain, others in _SAME.items() for c in others}
_PART = r"(?:\{\s*(-?[0-9.,]+)\s*\}|\s*([0-9]))"  # what \frac takes
_FRACTION = rf"\\[dtc]?frac{_PART}{_PART}(?![0-9])"
_UNIT = (
    r"(?:[kcdmµ]?m|(?:kilo|centi|milli)?met(?:er|re)s?|ft|feet|foot|in|inch|inches|yd"
    r"|yards?|mi|miles?|s|sec|units?)"
)
# LaTeX and typography, and what stands there in plain text; in this order.
_REWRITTEN = [
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"\\!", ""), (r"\{,\}", ","),
        (r"(?<=[0-9])(?:\\[,;: ]|[\u00a0\u2007\u2009\u202f])(?=[0-9])(?![0-9]+\s*/)",
         ","),
        (r"(?<=[0-9])'(?=[0-9]{3}(?![0-9]))", ","),
        (r"\\[,;:() \[\]]|[\u00a0\u2000-\u200a\u202f]", " "), (r"\\([$%&#])", r"\1"),
        (r"\\(?:boxed|fbox|mbox|text[a-z]*|math[a-z]*|left|right|displaystyle|quad"
         r"|qquad|l?dots|to|(?:long)?[rR]ightarrow|implies|therefore)(?![a-zA-Z])", ""),
        (r"\\approx(?![a-zA-Z])", "="), (r"\\(?:cdot|times)(?![a-zA-Z])", "×"),
        (r"\\div(?![a-zA-Z])", "÷"), (r"\\pm(?![a-zA-Z])", "±"),
        (r"\\sqrt(?![a-zA-Z])", "√"), (r"\\pi(?![a-zA-Z])", "π"),
        (r"\^\s*(?:\{\s*)?\\circ(?:\s*\})?", "°"),
        (rf"(?<=[0-9])\s*{_FRACTION}", r" \1\2/\3\4"), (_FRACTION, r"\1\2/\3\4"),
        (rf"(?<=[0-9 /{{($~]){_UNIT}\s*\}}?\s*(?:[²³]|\^\s*\{{?\s*[23]\b\s*\}}?)", "m"),
    )
]  # fmt: skip
_VULGAR = re.compile("([0-9]?)\\s?([¼-¾⅐-⅞])")
# It is a sign unless it stands right behind a number, word or bracket: not in "5-7".
_SIGN = r"((?<![^\W_])(?<!\))[-+])?"
_MONEY = r"[$€£¥₹₩₽₺₱฿]"
# Behind a sign the currency may have letters, too: -US$5, -USD 5, -Rs.500.
_SIGNED = rf"(?<=[-+])(?:(?:[A-Z]{{1,3}}\s?)?{_MONEY}\s?|(?:[A-Z]{{3}}|Rs\.?|kr)\s?)"
_NUMERAL = r"(?:(?<![\w.…])\.)?[0-9][0-9.,]*"
_NUMBER = re.compile(
    rf"{_SIGN}(?:{_SIGNED}|{_MONEY})?{_SIGN}(?:([0-9][0-9,]*)[ \t]+(?=[0-9]+/[0-9]))?"
    rf"({_NUMERAL}(?:/[0-9][0-9.,]*)*)([eE][-+]?[0-9][0-9.,]*)?"
)
_PLAIN = re.compile(
    r"[0-9]*\.[0-9]+|[0-9]+|(?:[0-9]{1,3}(?:,[0-9]{3})+|"
    r"[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3})(?:\.[0-9]+)?"  # 1,234,567 and 12,34,567
)
_MANY = "(?i:hundred|thousand|lakhs?|crores?|million|billion|trillion|mn|bn|mln)"
# What makes other numbers of those that a result shows. Each number is a \0 here.
_CHANGED = re.compile(
    rf"""\0(?!\s+(?:and|or|that\ is)\s+\0)[^\0]*\0  # 9+9, 7:7, but not "7 or 7"
    | [-+/^×÷±√∛≠≤≥]\W*\0  # - 5, -(5), √16
    | \0[\s)\]}}]*[!^+×÷±π] | \0-(?!\w)  # 5!, 2^n, 5-
    | \0\s*[kK]\b | \0[MB]\b  # 5k and 5M, but 5m is five metres
    | \\[a-zA-Z]  # LaTeX that is not known
    | (?<![^\W_])(?<!\))-[^\W\d_]{{1,4}}\.?\s?\0  # -abc 5
    | (?<![a-zA-Z])(?:(?i:minus|negative|sqrt|half|dozen)|{_MANY})""",
    re.VERBOSE,
)
_DEBT = re.compile(rf"\(\s*{_MONEY}\s*[0-9.,]+\s*\)")  # ($5): books mean -5 by it
# The same around the last number of a long text, where other numbers and signs stand
# before it: what shows, without a space, that it is a part of something that is not
# read. "71-72" and "- 72" do not.
_PART_OF = re.compile(
    rf"""(?:[\^√∛±][({{-]* | [0-9]\*\* | \}}\{{ | \\[a-zA-Z]+\{{)\0  # 2^3, 10**3
    | \d(?:[:/,.'·\u066b\u066c\uff0c\uff0e_]|\s?[^\W\d_]{{1,3}})?\0  # 12:30, 25 m2
    | \\[dtc]?frac[^\0a-zA-Z\s]{{0,30}}\0
    | (?<![^\W_])(?<!\))-(?:[^\W\d_]{{1,4}}\.?|[(\[{{*\\.…{_MONEY[1:-1]}]+)\0  # -(5)
    | (?i:(?<![a-z])(?:minus|negative))\W?\0
    | \0(?:\d|[²³¹⁰-⁹π万萬亿億千百兆]|[)\]}}]?\^|[kKMB]\b)
    | \0(?:\ and\ a\ half|[\s-]?{_MANY})(?![a-zA-Z])""",
    re.VERBOSE,
)
_LAST_DIGIT = re.compile(r"[\d¼-¾⅐-⅞](?=[^\d¼-¾⅐-⅞]*\Z)")
# What joins two statements. The comma in 1,200 does not.
_JOINS = re.compile(r"(?i)(?<![a-z])(?:or|and)(?![a-z])|;|,(?![0-9]{3})")


def _rewritten(text: str) -> str:
    """A short text without LaTeX, typography and vulgar fractions, as far as known."""

    def spelled(match: re.Match) -> str:
        whole, fraction = match.groups()
        return f"{whole} " * bool(whole) + normalize("NFKC", fraction)

    text = _VULGAR.sub(spelled, text).translate(_TRANSLATED)
    for pattern, plain in _REWRITTEN:
        text = pattern.sub(plain, text)
    return text


def _value(match: re.Match) -> Fraction | None:
    """A number as it is written, None in no known way."""

    def decimal(numeral: str) -> Fraction | None:
        """1234, 1,234 and 1234.50, with a trailing period or comma of the sentence."""
        numeral = numeral.rstrip(".,")
        if len(numeral) > LONGEST_NUMBER or not _PLAIN.fullmatch(numeral):
            return None
        return Fraction(numeral.replace(",", ""))

    sign, second_sign, whole, written, power = match.groups(default="")
    above, slash, below = written.partition("/")
    top, bottom = decimal(above), decimal(below) if slash else Fraction(1)
    units = decimal(whole) if whole else Fraction(0)
    if power or (sign and second_sign) or top is None or not bottom or units is None:
        return None
    if whole and not top < bottom:  # 3 4/2 is no mixed number
        return None
    size = units + top / bottom
    return -size if "-" in (sign, second_sign) else size


def read_number(text: str) -> Fraction | None:
    """The one number that a short text says; None if it says none, or several.

    After an equals sign only the result counts. READINGS shows what is read how. What
    is not known makes no answer, and no part of it does.
    """
    if len(text) > LONGEST_ANSWER:
        return None
    working, _, result = _rewritten(text).rpartition("=")
    if _JOINS.search(working) or _CHANGED.search(_NUMBER.sub("\0", result)):
        return None
    if any(mark.isnumeric() and not mark.isascii() for mark in result):
        return None  # ² and digits of other scripts
    if _DEBT.search(result):
        return None
    said = {_value(match) for match in _NUMBER.finditer(result)}
    return said.pop() if len(said) == 1 else None


def last_number(text: str) -> Fraction | None:
    """The last number of any text, wherever it stands; None if it has none.

    Also None where it is a part of something that is not read: of 2^3, of 2 million.
    """
    last = _LAST_DIGIT.search(text)
    if last is None or (last[0].isdecimal() and not last[0].isascii()):
        return None
    start = max(0, last.end() - LONGEST_NUMBER - 50)
    window = _rewritten(text[start : last.end() + 30])
    *_, match = [None, *_NUMBER.finditer(window)]
    if match is None:
        return None
    before, after = window[: match.start()], window[match.end() :]
    # 10 000, and 3 and 1/2
    groups = re.search(r"[0-9]\s$", before) and re.match(r"[0-9]{3}", match[0])
    mixed = re.search(r"[0-9]\s?(?:and|&|-)\s?$", before) and "/" in match[0]
    if groups or mixed or _PART_OF.search(f"{before}\0{after}"):
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


def is_correct(completion: str, answer: str) -> bool:
    """Strict: the tagged answer says the right number."""
    given = extract_answer(completion)
    return given is not None and read_number(given) == gold_number(answer)


def is_leniently_correct(completion: str, answer: str) -> bool:
    """Lenient: the last number is the right one, tags or no tags."""
    return last_number(completion) == gold_number(answer)


def correctness_reward(
    completions: Sequence[Completion], answer: Sequence[str], **kwargs: object
) -> list[float]:
    """1.0 where the number between the answer tags is the right one, else 0.0."""
    return graded(is_correct, completions, answer)


correctness_reward.meaning = read_number  # type: ignore[attr-defined]  # 72 is 72.0


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
