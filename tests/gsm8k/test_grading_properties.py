"""What holds for every answer: round trips, no error, linear time."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_course.gsm8k import (
    LONGEST_ANSWER,
    LONGEST_NUMBER,
    is_correct,
    is_leniently_correct,
    last_number,
    read_number,
)
from grpo_course.tasks import extract_answer, in_template

NUMBERS = st.integers(-(10**9), 10**9)
DECIMALS = st.decimals(-(10**6), 10**6, places=3, allow_nan=False)
HOSTILE = (
    st.text(alphabet=st.sampled_from("0123456789.,-/=$%eE<>answerthik ½²\u2212٣\n"))
    | st.text()
)
TAGGED = st.lists(
    st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "7", "-1,0", " "])
).map("".join)


@given(NUMBERS)
def test_each_way_to_write_a_number_says_that_number(number: int) -> None:
    ways = [f"{number}", f"{number:,}", f"{number}.", f"{number}.00", f" {number} km"]
    sign, size = ("-" if number < 0 else ""), abs(number)
    ways += [f"{sign}${size:,}", f"{number}%", f"x = {number}", f"\\boxed{{{number}}}"]
    for way in ways:
        assert read_number(way) == number
        assert is_correct(in_template("1+1=2", way), f"{number:,}")
        assert not is_correct(in_template(f"{number}", way), str(number + 1))


@given(DECIMALS)
def test_decimals_are_compared_exactly(number: object) -> None:
    assert read_number(f"{number:,f}") == Fraction(str(number))
    assert read_number(f"{number:f}00") == read_number(f"{number:f}")


@given(NUMBERS, NUMBERS)
def test_two_numbers_are_an_answer_only_if_they_are_one(a: int, b: int) -> None:
    said = read_number(f"{a} and {b}")
    assert said == (a if a == b else None)


@given(
    NUMBERS, st.sampled_from(["+", "-", "\u2013", "*", "/", "^", ":", "x", ", ", " "])
)
def test_two_numbers_side_by_side_are_no_answer(number: int, between: str) -> None:
    for way in (f"{number}{between}({number})", f"{number} {between} {number}"):
        assert read_number(way) is None
        assert not is_correct(in_template("1+1=2", way), str(number))


@given(NUMBERS, NUMBERS, st.sampled_from([" or ", " and ", ", ", "; ", "\nor "]))
def test_a_second_guess_before_an_equals_sign_is_no_answer(
    first: int, second: int, join: str
) -> None:
    assert read_number(f"x = {first}{join}x = {second}") is None
    assert read_number(f"{first}{join}x = {second}") is None
    assert read_number(f"x = {first} = {second}") == second


@given(st.text(max_size=300).filter(lambda text: not any(map(str.isdigit, text))))
def test_the_last_number_is_found_behind_any_text(text: str) -> None:
    assert last_number(f"5 {text} 7") == 7
    assert last_number(f"7 {text}") == 7


@given(HOSTILE | TAGGED, HOSTILE)
def test_nothing_raises(completion: str, inside: str) -> None:
    for text in (completion, in_template(completion, inside)):
        assert is_correct(text, "7") in (True, False)
        assert is_leniently_correct(text, "7") in (True, False)


@given(TAGGED, TAGGED)
def test_only_what_follows_the_thinking_is_an_answer(before: str, after: str) -> None:
    alone = extract_answer("</think>" + after)
    assert extract_answer(before + "</think>" + after) == alone


class Counted(str):
    """A text that counts the characters that a search in it may look at."""

    looked_at = 0

    def _look(self, name: str, *args: object) -> object:
        Counted.looked_at += len(self)
        found = getattr(str, name)(self, *args)
        return tuple(map(Counted, found)) if isinstance(found, tuple) else found

    def rfind(self, *args: object) -> int:
        return self._look("rfind", *args)

    def partition(self, sep: str) -> tuple:
        return self._look("partition", sep)

    def rpartition(self, sep: str) -> tuple:
        return self._look("rpartition", sep)


@pytest.mark.parametrize(
    "piece",
    ["<answer>", "</answer>", "<answer>7</answer>", "</think><answer>", "7", "1,", "<"],
)
def test_the_number_of_characters_looked_at_is_linear(piece: str) -> None:
    """A count, not a clock: twice the text, at most twice the searching."""
    counts = []
    for times in (1000, 2000, 4000):
        Counted.looked_at = 0
        text = Counted(piece * times)
        is_correct(text, "7"), is_leniently_correct(text, "7")
        counts.append(Counted.looked_at)
        assert len(text) <= Counted.looked_at <= 15 * len(text)
    assert counts[1] <= 2 * counts[0] + 100 and counts[2] <= 2 * counts[1] + 100


def test_what_is_read_closely_is_short() -> None:
    """The pattern runs on bounded text only, so its own speed does not matter."""
    assert read_number("7" + " " * LONGEST_ANSWER) is None
    assert read_number("7" * LONGEST_NUMBER) == int("7" * LONGEST_NUMBER)
    assert read_number("7" * (LONGEST_NUMBER + 1)) is None
    assert last_number("7" * (LONGEST_NUMBER + 1)) is None
