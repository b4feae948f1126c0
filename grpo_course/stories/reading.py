"""Whether a response read its story right: the right steps, whatever their results."""

import re
from fractions import Fraction
from itertools import pairwise

from grpo_course.language_model.template import TAGS
from grpo_course.stories.problems import Story

LINE = re.compile(r"(\d{1,6})([-+*/])(\d{1,6})=(\d{1,6})")
TAG = re.compile("|".join(map(re.escape, TAGS)))


def reads_right(text: str, story: Story) -> bool:
    """Whether the response's own steps, worked out rightly, lead to the answer.

    Where a step takes up the result of an earlier one, it is given the right result.
    So a slip in a sum is none in reading. A text without steps is not right.
    """
    true: dict[str, Fraction] = {}
    last = None
    for left, operation, right, said in LINE.findall(TAG.sub("\n", text)):
        a, b = (true.get(number, Fraction(number)) for number in (left, right))
        if operation == "/" and b == 0:
            return False
        last = {"+": a + b, "-": a - b, "*": a * b}.get(operation)
        last = a / b if last is None else last
        true[said] = last
    return last == Fraction(story.answer)


def is_miscopied(text: str, story: Story) -> bool:
    """Whether the story was read right, but for a result that the next step miscopies.

    That is, with this one number put right, `reads_right` holds, and not before.
    """
    steps = LINE.findall(text)
    mended = (
        text.replace(f"{result}\n{copied}", f"{result}\n{result}")
        for (*_, result), (copied, *_) in pairwise(steps)
    )
    wrong = not reads_right(text, story)
    return wrong and any(reads_right(each, story) for each in mended)
