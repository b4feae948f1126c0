"""GSM8K and word problems of its kind: made by rule, or the real data; and the grader.

From top to bottom: the stories that made problems are told in; how problems are made
and split; the grader, which says whether a completion's answer is right; the rewards;
prompts and demonstrations; the real data, from a file or the hub; settings of runs;
the task.

Left out: what any text task has (tasks.py).
"""

import json
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any, ClassVar
from unicodedata import normalize
from zlib import crc32

from pydantic import Field

from grpo_course.checks import require_at_least, require_known, settings
from grpo_course.text.tasks import (
    Completion,
    Problem,
    TextTask,
    completion_texts,
    extract_answer,
    format_reward,
    graded,
    require_count,
)

# A made problem is an opening with the first number, one sentence for each operation,
# and the question, before or after. Sentences of one scene fit together in any mix, so
# problems of any number of steps are told in many ways.

NAMES = ("Mia", "Tom", "Ana", "Ben", "Sue", "Leo")
THINGS = ("apples", "coins", "cards", "pens", "eggs", "stars")
QUESTION_FIRST = 0.25  # the share of the stories that open with their question


@dataclass(frozen=True)
class Scene:
    """Sentences with the places {name}, {things} and {n}, a number."""

    openings: tuple[str, ...]
    plus: tuple[str, ...]
    minus: tuple[str, ...]
    times: tuple[str, ...]
    questions: tuple[str, ...]

    def tell(
        self, rng: random.Random, operations: tuple[str, ...], operands: tuple[int, ...]
    ) -> str:
        """A whole word problem. There is one operand more than operations."""
        words = {"name": rng.choice(NAMES), "things": rng.choice(THINGS)}
        events = {"+": self.plus, "-": self.minus, "*": self.times}
        choices = [self.openings, *(events[operation] for operation in operations)]
        told = [
            rng.choice(sentences).format(n=number, **words)
            for sentences, number in zip(choices, operands, strict=True)
        ]
        question = rng.choice(self.questions).format(**words)
        first = rng.random() < QUESTION_FIRST
        return " ".join([question, *told] if first else [*told, question])


TRAINING_SCENES = (
    Scene(
        openings=("{name} has {n} {things}.", "{name} starts with {n} {things}.",
                  "At first {name} has {n} {things}."),
        plus=("{name} gets {n} more.", "Then {name} finds {n}.", "{name} buys {n}.",
              "Then {name} is given {n} more."),
        minus=("{name} loses {n}.", "Then {name} sells {n}.", "{name} gives away {n}.",
               "Then {name} gives {n} to a friend."),
        times=("Then {name} has {n} times as many.",),
        questions=("How many {things} does {name} have now?",
                   "How many does {name} have in all?",
                   "So how many {things} has {name}?"),
    ),
    Scene(
        openings=("There are {n} {things} in a box.", "A box holds {n} {things}.",
                  "{name} puts {n} {things} in a box."),
        plus=("{name} puts in {n} more.", "Then {n} more are put in.",
              "{name} adds {n} to the box."),
        minus=("{name} takes out {n}.", "Then {n} are taken out.",
               "{name} takes {n} away."),
        times=("Then there are {n} times as many.",),
        questions=("How many {things} are in the box?",
                   "How many {things} does the box hold now?",
                   "How many are there now?"),
    ),
)  # fmt: skip
# Every word of these stands in a training sentence too; the sentences do not.
HELD_OUT_SCENES = (
    Scene(
        openings=("{name} has {n} {things} at first.",),
        plus=("{name} finds {n} more.", "Then {name} buys {n} more."),
        minus=("{name} sells {n}.", "Then {name} gives {n} away."),
        times=("{name} has {n} times as many now.",),
        questions=("How many {things} does {name} have in all?",),
    ),
    Scene(
        openings=("There is a box. {name} puts {n} {things} in.",),
        plus=("{name} adds {n} more to the box.", "{n} more are put in the box."),
        minus=("Then {name} takes {n} out.", "{n} are taken away."),
        times=("Now there are {n} times as many in the box.",),
        questions=("How many {things} are there in the box now?",),
    ),
)

# The splits of made problems; the real data has RUN_SPLITS.
SPLITS = ("train", "validation", "unseen_problems", "unseen_phrasings", "unseen_facts")
OPERATIONS = ("+", "-", "*")
MOST_DRAWS = 10_000  # after so many misses, there is no such problem
Fact = tuple[int, str, int]  # a single step without its result, say (3, "+", 4)


@dataclass(frozen=True)
class WordProblem(Problem):
    """A problem and what it is made of.

    `operations` work from left to right on `operands`: ("+", "-") and (3, 4, 2) are
    (3 + 4) - 2. There is one operand more than there are operations. Both are empty
    for a problem that was not made by rule.
    """

    operations: tuple[str, ...] = ()
    operands: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """The operations in a row, "+-" say."""
        return "".join(self.operations)

    @property
    def group(self) -> str:
        """The calculation, shared by problems that differ in the story alone."""
        if not self.operations:
            return self.question
        return problem_key(self.operations, self.operands)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The single steps that solve it, in order; none if it was not made by rule."""
        return work_out(self.operations, self.operands) if self.operations else ()


def compute(left: int, operation: str, right: int) -> int:
    """One step of arithmetic; a division rounds down."""
    if operation == "+":
        return left + right
    if operation == "-":
        return left - right
    return left * right if operation == "*" else left // right


def work_out(
    operations: tuple[str, ...], operands: tuple[int, ...]
) -> tuple[Fact, ...]:
    """The steps from left to right: ("+", "-"), (3, 4, 2) -> 3+4, then 7-2."""
    value, facts = operands[0], []
    for operation, operand in zip(operations, operands[1:], strict=True):
        facts.append((value, operation, operand))
        value = compute(value, operation, operand)
    return tuple(facts)


def fact_key(fact: Fact) -> str:
    """A name for a fact. 3+4 and 4+3 share one: who knows one may know the other."""
    left, operation, right = fact
    if operation != "-":
        left, right = sorted((left, right))
    return f"{left}{operation}{right}"


def problem_key(operations: tuple[str, ...], operands: tuple[int, ...]) -> str:
    """A name for operations and operands: 3+4-2 and 4+3-2 share one."""
    first = fact_key((operands[0], operations[0], operands[1]))
    rest = zip(operations[1:], operands[2:], strict=True)
    return first + "".join(f"{operation}{operand}" for operation, operand in rest)


def share_of(key: str) -> int:
    """A digit 0 to 9 for a name, the same on every machine and in every run."""
    return crc32(key.encode()) % 10


def pool_of(operations: tuple[str, ...], operands: tuple[int, ...]) -> str:
    """Which pool owns a problem. Every problem belongs to exactly one.

    A tenth of the facts is held out: a problem that needs one, in any of its steps, is
    for `unseen_facts`. Of the other problems, two tenths are for `unseen_problems`, one
    for `validation`, and the rest is for training.
    """
    facts = work_out(operations, operands)
    if any(share_of("fact " + fact_key(fact)) == 0 for fact in facts):
        return "unseen_facts"
    share = share_of(problem_key(operations, operands))
    if share < 2:
        return "unseen_problems"
    return "validation" if share == 2 else "train"


def solution_text(facts: tuple[Fact, ...]) -> str:
    """The worked solution, a line for each fact, and the answer after ####."""
    lines = []
    for left, operation, right in facts:
        result = compute(left, operation, right)
        written = f"{left}{operation}{right}"
        lines.append(f"{written}=<<{written}={result}>>{result}")
    return "\n".join([*lines, f"#### {result}"])


def make_problems(
    split: str,
    count: int,
    seed: int,
    *,
    operands: tuple[int, int] = (1, 9),
    operations: str = "+-",
    steps: tuple[int, ...] = (1, 2),
) -> list[WordProblem]:
    """`count` problems of one split; the same arguments give the same problems.

    The splits differ from "train" in one thing each:
    "validation" and "unseen_problems": operations and operands that no training
    problem has (a single fact may recur). Choose settings on the first, report the
    second. "unseen_phrasings": training problems, told in sentences that training
    never has. "unseen_facts": each problem needs a fact, a single step such as 7-5,
    that no training problem needs in any step.

    `operands` is the smallest and largest number in a question, `operations` holds
    some of + - *, and `steps` the numbers of operations to draw from: (1, 2, 2) makes
    two problems in three have two steps.
    """
    require_choices(split, operands, operations, steps)
    rng = random.Random(f"{split} {seed}")
    told_anew = split == "unseen_phrasings"
    scenes = HELD_OUT_SCENES if told_anew else TRAINING_SCENES
    pool = "train" if told_anew else split
    problems = []
    for _ in range(count):
        length = rng.choice(steps)
        # Of the pool's problems with as many steps, each is equally likely.
        for _ in range(MOST_DRAWS):
            kind = tuple(rng.choices(operations, k=length))
            numbers = tuple(rng.randint(*operands) for _ in range(length + 1))
            facts = work_out(kind, numbers)
            # A story opens with several things, and none of its results is below zero.
            told = numbers[0] >= 2 and min(compute(*fact) for fact in facts) >= 0
            if told and pool_of(kind, numbers) == pool:
                break
        else:
            raise ValueError(
                f"operands={operands} with operations={operations!r} and steps={steps} "
                f"hold no problem for the pool {pool!r}: widen the range of operands."
            )
        question = rng.choice(scenes).tell(rng, kind, numbers)
        answer, solution = str(compute(*facts[-1])), solution_text(facts)
        problems.append(WordProblem(question, answer, solution, kind, numbers))
    return problems


def require_choices(split: str, operands: tuple, operations: str, steps: tuple) -> None:
    """Errors for a learner who asks for problems that cannot be made."""
    require_known("split", split, SPLITS)
    for operation in operations:
        require_known("operations", operation, OPERATIONS)
    if not operations or not steps:
        raise ValueError("operations and steps each need at least one entry.")
    require_at_least("steps", min(steps), 1)
    require_at_least("operands", operands[0], 0)
    require_at_least("operands[1]", operands[1], operands[0])


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


# Prompts and demonstrations.

# For a model that was instructed already: it reads, so tell it.
SYSTEM_PROMPT = """\
Solve the problem. First reason step by step between <think> and </think>. Then write \
the final number, and nothing else, between <answer> and </answer>.

Example
Problem: A box holds 12 pencils. How many pencils do 3 boxes hold?
<think>
Each box holds 12 pencils, so 3 boxes hold 3 * 12 = 36 pencils.
</think>
<answer>36</answer>"""

# For a model that starts from nothing: every token of a prompt costs time.
SHORT_SYSTEM_PROMPT = "Think, then answer."

# How a demonstration may look. The forms leave out tags, never the right answer: it is
# always the last number.
FORMS = {
    "full": "<think>{thinking}</think><answer>{answer}</answer>",
    "no_tags": "{thinking}\n{answer}",
    "no_answer_tag": "<think>{thinking}</think>{answer}",
    "no_think_tag": "{thinking}<answer>{answer}</answer>",
}


def demonstration(problem: Problem, form: str = "full") -> str:
    """The gold response to a problem: its own solution and answer, in one of FORMS."""
    require_known("form", form, FORMS)
    return FORMS[form].format(thinking=worked_lines(problem), answer=problem.answer)


def worked_lines(problem: Problem) -> str:
    """A problem's solution without calculator marks <<...>> and its last line, ####."""
    first, *rest = problem.solution.partition("####")[0].rstrip().split("<<")
    return first + "".join(part.partition(">>")[2] for part in rest)


def with_slip(problem: WordProblem, rng: random.Random) -> WordProblem:
    """The made problem with one result off by one; the later ones follow from it.

    Its solution has no calculator marks; a result that would be negative goes up.
    Raises ValueError for a problem that was not made by rule.
    """
    if not problem.operations:
        raise ValueError(
            f"problem {problem.question[:40]!r} was not made by rule, so its steps are "
            "not known. Slips are for make_problems: set slips=0."
        )
    step, slip = rng.randrange(len(problem.operations)), rng.choice((-1, 1))
    for change in (slip, 1):
        value, results, lines = problem.operands[0], [], []
        pairs = zip(problem.operations, problem.operands[1:], strict=True)
        for i, (operation, operand) in enumerate(pairs):
            result = compute(value, operation, operand) + (change if i == step else 0)
            lines.append(f"{value}{operation}{operand}={result}")
            results.append(result)
            value = result
        if min(results) >= 0:
            break
    solution = "\n".join([*lines, f"#### {value}"])
    return replace(problem, solution=solution, answer=str(value))


# The real data.

HUB_NAME, FOLDER_VARIABLE = "openai/gsm8k", "GSM8K_DIR"
GSM8K_SPLITS = ("train", "test")
# What a run sees; the first is the one to report. Its "train" lacks "validation".
RUN_SPLITS = ("test", "validation", "train")
VALIDATION, VALIDATION_SHARE = 256, 10  # rows; at most one row in so many


def load_gsm8k(split: str, path: str | Path | None = None) -> list[WordProblem]:
    """GSM8K's "train" (7,473 rows) or "test" (1,319): question, solution, answer.

    `path` is a JSONL file, or a folder with SPLIT.jsonl, in the data set's own format:
    a line {"question": ..., "answer": "... #### 72"} for each row. Without `path` the
    folder that GSM8K_DIR names is taken, and without that the hub, through
    `datasets`, which keeps a copy for later use without a network.

    ValueError for a file or a row that cannot be used, and it says where;
    FileNotFoundError or ConnectionError where there is no data.
    """
    require_known("split", split, GSM8K_SPLITS)
    path = path or os.environ.get(FOLDER_VARIABLE)
    problems = []
    for number, row in _rows(split, Path(path) if path else None):
        given = row if isinstance(row, dict) else {}
        question, answer = given.get("question"), given.get("answer")
        if not (isinstance(question, str) and isinstance(answer, str)):
            raise ValueError(
                f'Row {number} needs the texts "question" and "answer", but is '
                f"{str(row)[:80]}. Correct the row, or delete it."
            )
        _, mark, final = answer.rpartition("####")
        if not mark or read_number(final) is None:
            raise ValueError(
                f"Row {number} has no final answer: its worked solution must end with "
                f"#### and a number. It ends with {answer[-40:]!r}."
            )
        problems.append(WordProblem(question, final.strip(), answer))
    if not problems:
        raise ValueError(f"{path or HUB_NAME}: the split {split!r} holds no row.")
    return problems


def load_run_split(split: str, path: str | Path | None = None) -> list[WordProblem]:
    """One of RUN_SPLITS: "validation" is the end of GSM8K's own "train".

    It takes the last 256 rows, a tenth at most, and the run's "train" the others. So
    settings can be chosen without a look at "test". `path` and errors as in
    `load_gsm8k`.
    """
    require_known("split", split, RUN_SPLITS)
    if split == "test":
        return load_gsm8k(split, path)
    rows = load_gsm8k("train", path)
    first = len(rows) - min(VALIDATION, len(rows) // VALIDATION_SHARE)
    return rows[:first] if split == "train" else rows[first:]


def _rows(split: str, path: Path | None) -> Iterator[tuple[int, Any]]:
    """The rows with their lines in the file, or their places on the hub, from 1."""
    ways = (
        "There are two ways to the data. With a network: leave out path and "
        f'{FOLDER_VARIABLE}; datasets.load_dataset("{HUB_NAME}", "main") loads it once '
        "and keeps a copy. Without: copy the data set's "
        f"{split}.jsonl (github.com/openai/grade-school-math) into a folder, and pass "
        f"path=FOLDER or set {FOLDER_VARIABLE}=FOLDER."
    )
    if path is None:
        import datasets  # slow to import, and not needed for files

        try:
            rows = datasets.load_dataset(HUB_NAME, "main", split=split)
        except (OSError, ValueError, RuntimeError) as error:
            # Offline it is a ConnectionError, or a ValueError about a missing copy.
            raise ConnectionError(
                f"GSM8K could not be loaded from the hub ({type(error).__name__}: "
                f"{str(error)[:200]}). {ways}"
            ) from error
        yield from enumerate(rows, start=1)
        return

    file = path / f"{split}.jsonl" if path.is_dir() else path
    for each in path.iterdir() if path.is_dir() and not file.is_file() else ():
        if each.name.lower() in (f"{split}.jsonl", f"{split}.ndjson"):
            file = each
    if not file.is_file():
        there = sorted(p.name for p in path.glob("*")) if path.is_dir() else []
        holds = f" The folder holds: {', '.join(there[:8])}." if there else ""
        raise FileNotFoundError(f"There is no {file}.{holds} {ways}")
    number = 0
    try:
        # "-sig": editors on Windows put a mark before the first character.
        with file.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, json.loads(line)
    except (ValueError, RecursionError) as error:  # also of bytes that are no UTF-8
        raise ValueError(
            f"{file} is no JSON in UTF-8 after line {number - 1}: {error}. If it is "
            "compressed, unpack it first."
        ) from error


# Settings of whole runs, where they differ from GRPOConfig's.

# A tiny model from nothing, on generated problems. One demonstration in four has a
# slip, and six in ten lack a tag. So the warm start knows its sums, but loosely, and
# the format, but not as a habit.
LAPTOP: dict[str, Any] = {
    "task_settings": {"slips": 0.25, "forms": (4, 2, 3, 1)},
    "num_problems": 8192,
    "warm_start_steps": 1200,
    "warm_start_learning_rate": 3e-3,
    "num_epochs": 250,
    "learning_rate": 3e-4,
    "kl_penalty": 0.02,
}

# As published (Shao et al. 2024, arXiv 2402.03300): deltas divided by the spread of
# their group, the mean of each response, and k3 in the loss.
PUBLISHED: dict[str, Any] = {
    "deltas_mode": "normalized_rewards",
    "aggregation": "sequence_mean",
    "kl_penalty": 0.04,
}
# As notebooks 05 and 14 advise where the reward is a rule that cannot be fooled. Of the
# two means that 14 finds close, the one that needs no divisor beside max_new_tokens.
ADVISED: dict[str, Any] = {
    "deltas_mode": "centered_rewards",
    "aggregation": "token_mean",
    "kl_penalty": 0.0,
}

# A pretrained model on the real data. Four prompts with their responses are read at a
# time, so that one GPU with 24 GB holds it. No preset for a GPU has been run to its end
# for this course; tests run each with a small random model of its architecture.
GPU: dict[str, Any] = ADVISED | {
    "model": "Qwen/Qwen2.5-0.5B-Instruct",
    "task_settings": {"data": "gsm8k"},
    "num_problems": None,
    "system_prompt": SYSTEM_PROMPT,
    "num_epochs": 300,
    "micro_batch_size": 4,
    "max_new_tokens": 300,
    "learning_rate": 2e-6,
    "warmup_epochs": 10,
    "adam_beta2": 0.999,
    "dtype": "bfloat16",
    "num_threads": None,
    "gradient_checkpointing": True,
    "eval_temperature": 0.7,
}

PRESETS = {
    "sums": LAPTOP,
    "gpu": GPU,
    # Pramodith B. 2025, "The One Big Beautiful Blog on GRPO": 200 updates, each from
    # four prompts that were read one at a time. Its format reward is 0.5 at most. The
    # rest is as GPU, and the loss as published. All weights learn: that needs 38 GB.
    # With lora_rank=16 it is 11 GB, so that 24 hold it, and 16 as well.
    "gpu-smollm2": GPU
    | PUBLISHED
    | {
        "model": "HuggingFaceTB/SmolLM2-1.7B-Instruct",
        "num_epochs": 200,
        "num_prompts": 4,
        "micro_batch_size": 1,
        "learning_rate": 5e-5,
        "warmup_epochs": 0,
        "temperature": 0.9,
        "top_p": 0.9,
        "top_k": 50,
        "reward_weights": {"format": 0.5},
    },
    # With one prompt and its responses at a time, 16 GB hold it.
    "gpu-16gb": GPU | {"micro_batch_size": 1},
    # A free Colab T4 has 15 GB, is slow, and multiplies bfloat16 no faster than
    # float32. So an adapter learns (LoRA), at ten times the rate, from fewer and
    # shorter responses, in a run that ends before the session does. Nobody has timed
    # it.
    "colab-t4": GPU
    | {
        "lora_rank": 16,
        "dtype": "float32",
        "num_prompts": 8,
        "max_new_tokens": 200,
        "num_epochs": 100,
        "learning_rate": 2e-5,
        "eval_problems": 64,
        "save_every": 20,
    },
}


@settings()
class GSM8K(TextTask[WordProblem]):
    """Word problems. Raises ValueError for settings that no problem fits."""

    # "generated", "gsm8k" (hub or GSM8K_DIR), or a folder with JSONL
    data: str = "generated"
    # smallest and largest number in a generated problem
    operands: tuple[int, int] = Field(default=(1, 9), strict=False)
    operations: str = "+-"  # those in a generated problem, of + - *
    # operations in a generated problem; (1, 2, 2): two in three have two
    steps: tuple[int, ...] = Field(default=(1, 2), strict=False)
    # how often a demonstration has each of FORMS, as weights
    forms: tuple[float, ...] = Field(default=(3, 3, 3, 1), strict=False)
    # share of demonstrations with a wrong result
    slips: float = Field(default=0.0, ge=0, le=1)

    rewards: ClassVar = {
        "accuracy": (correctness_reward, 1.0),
        "lenient_accuracy": (lenient_reward, 0.0),
        "format": (format_reward, 0.2),
        "length_reward": (length_reward, 0.0),
    }
    measures: ClassVar[Sequence[str]] = ("accuracy", "lenient_accuracy", "format")
    presets: ClassVar = PRESETS

    def __post_init__(self) -> None:
        require_choices("train", self.operands, self.operations, self.steps)
        weights = self.forms
        if len(weights) != len(FORMS) or min(weights) < 0 or not 0 < sum(weights) < inf:
            raise ValueError(
                f"forms={weights}, but it must hold {len(FORMS)} weights, none below 0 "
                "and one above."
            )

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits there are; the first is the one to report."""
        if self.data != "generated":
            return RUN_SPLITS
        return ("unseen_problems", *(s for s in SPLITS if s != "unseen_problems"))

    def problems(self, split: str, count: int | None, seed: int) -> list[WordProblem]:
        """At most `count` problems of one split; GSM8K's own depend on no seed."""
        if self.data != "generated":
            path = None if self.data == "gsm8k" else self.data
            return load_run_split(split, path)[:count]
        return make_problems(
            split,
            require_count(count),
            seed,
            operands=self.operands,
            operations=self.operations,
            steps=self.steps,
        )

    def gold(self, problem: WordProblem) -> str:
        """The problem's own solution and answer in the full form."""
        return demonstration(problem)

    def demonstration(self, problem: WordProblem, rng: random.Random) -> str:
        """Now and then with a slip, in a form that lacks tags or does not."""
        if rng.random() < self.slips:
            problem = with_slip(problem, rng)
        return demonstration(problem, rng.choices([*FORMS], weights=self.forms)[0])
