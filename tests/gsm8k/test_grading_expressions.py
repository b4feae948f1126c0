"""More hostile answers: expressions, words that change a number, and second guesses."""

import pytest

from grpo_course.gsm8k import is_correct, read_number
from grpo_course.tasks import in_template

# What stands in the answer tag, and whether it says 72.
# Two numbers are several answers or an expression, unless the second says the first
# again.
SEVERAL = [
    ("71-72", False),
    ("71 or 72", False),
    ("71, 72, 73", False),
    ("72, that is 72.0", True),
    ("72 or 72", True),
    ("72 and 72 or 73", False),
    ("72 and 72 + 72", False),
    ("70 + 2", False),
    ("72+72", False),
    ("72 - 72", False),
    ("72 \u2013 72", False),
    ("72x72", False),
    ("72 x 72", False),
    ("72*72", False),
    ("72:72", False),
    ("72 / 72", False),
    ("(72)(72)", False),
    ("72 72", False),
    ("72, 72", False),
    ("72 times 72", False),
    ("72 apples and 72 pears", False),
    ("\\frac{72}{72}", False),
    ("72^72", False),
]
# A sign or a word makes another number of it, or seems to.
CHANGED = [
    ("72^n", False),
    ("n^72", False),
    ("x + 72", False),
    ("72 + x", False),
    ("72!", False),
    ("(72)!", False),
    ("\u221a72", False),
    ("\u221a(72)", False),
    ("\\sqrt{72}", False),
    ("72 million", False),
    ("72 Million dollars", False),
    ("72million", False),
    ("72-thousand", False),
    ("72 billion", False),
    ("72 trillion", False),
    ("72 hundred", False),
    ("72 dozen", False),
    ("72 and a half", False),
    ("72k", False),
    ("72 K", False),
    ("$72M", False),
    ("72m", True),  # metres
    ("72 M&Ms", True),
    ("72 kg", True),
    ("$72/hour", True),
]
# After an equals sign only the result counts.
RESULTS = [
    ("70+2=72", True),
    ("72=x", False),
    ("x = 72", True),
    ("72 = 72.0", True),
    ("70+2=72=72", True),
    ("9+9=18\n18*4=72", True),
    ("1,200 - 1,128 = 72", True),
    ("x = 71 or x = 72", False),
    ("71 or x=72", False),
    ("71or x=72", False),
    ("71 OR x=72", False),
    ("x = 71 and y = 72", False),
    ("a=71, b=72", False),
    ("a=71,b=72", False),
    ("71,72=72", False),
    ("a=71; b=72", False),
    ("oranges and pears = 72", False),
    ("work of Anders in Oregon = 72", True),
]


@pytest.mark.parametrize("said, right", SEVERAL + CHANGED + RESULTS)
def test_what_says_one_number(said: str, right: bool) -> None:
    assert is_correct(in_template("1", said), "72") is right
    assert read_number(said) == (72 if right else None)
