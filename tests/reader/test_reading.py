"""What a response is said to have read rightly."""

import pytest

from grpo_course.reader import as_story, reads_right

STORY = as_story("A box has 4 rows of 8. 20 are sold.", ["4*8", "32-20"])


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<think>4*8=32\n32-20=12</think><answer>12</answer>", True),
        ("<think>4*8=36\n36-20=16</think><answer>16</answer>", True),
        ("<think>4*8=36\n36-20=12</think><answer>12</answer>", True),
        ("<think>4*8=32\n32+20=52</think><answer>52</answer>", False),
        ("<think>4*8=32</think><answer>12</answer>", False),
        ("<think>8*4=32\n32-20=12", True),
        ("<answer>12</answer>", False),
        ("7/0=3", False),
        ("", False),
    ],
)
def test_a_slip_is_none_in_reading(text, read):
    assert reads_right(text, STORY) is read


def test_gold_is_read_right():
    half = as_story("Mona has 14 dolls and gives half away.", ["14/2"])
    assert reads_right("14/2=7", half) and not reads_right("14-2=12", half)
