"""Hostile answers, one by one: what is accepted, and what is not."""

import pytest

from grpo_course.gsm8k import gold_number, is_correct, is_leniently_correct

MEGABYTE = 1_000_000

# What stands in the answer tag, the right answer, and whether it is accepted.
IN_THE_TAG = [
    ("72", "72", True),
    (" 72 ", "72", True),
    ("\n72\n", "72", True),
    ("72.", "72", True),
    ("72.0", "72", True),
    ("72.00", "72", True),
    ("72.5", "72", False),
    ("72.50", "72.5", True),
    ("072", "72", True),
    ("7 2", "72", False),
    ("720", "72", False),
    ("7", "72", False),
    ("2", "72", False),
    ("-72", "72", False),
    ("- 72", "-72", False),  # a dash with a space is a sign or a bullet: not known
    ("- 72", "72", False),
    ("- $72", "72", False),
    ("-$ 72", "72", False),
    ("-\\$72", "72", False),
    ("-(72)", "72", False),
    ("-**72**", "72", False),
    ("-> 72", "72", False),
    ("minus 72", "72", False),
    ("Minus $72", "72", False),
    ("negative 72", "72", False),
    ("\u00b172", "72", False),
    ("x-72", "72", False),
    ("x = - 72", "72", False),
    ("x = -72", "-72", True),
    ("-3", "-3", True),
    ("\u22123", "-3", True),  # the minus sign of typesetters
    ("\u22123", "3", False),
    ("\u20133", "-3", True),  # a dash
    ("\u20133", "3", False),
    ("\u2013$3", "-3", True),
    ("\u20113", "-3", True),  # a hyphen that does not break
    ("\u20113", "3", False),
    ("71\u201372", "72", False),
    ("3", "-3", False),
    ("+3", "3", True),
    ("--3", "3", False),
    ("-+3", "3", False),
    ("+-3", "-3", False),
    ("-0", "0", True),
    (".5", "0.5", True),
    ("-.5", "-0.5", True),
    ("$.50", "0.5", True),
    ("1,200", "1200", True),
    ("1200", "1,200", True),
    ("$1,200.00", "1200", True),
    ("1,200,000", "1200000", True),
    ("1,20", "120", False),
    ("1,2000", "12000", False),
    ("12,00,000", "1200000", False),  # other groups of digits are not guessed at
    ("1.200,50", "1200.5", False),
    ("1 200", "1200", False),
    ("1_200", "1200", False),
    ("$5", "5", True),
    ("-$5", "-5", True),
    ("$-5", "-5", True),
    ("-$-5", "5", False),
    ("-$-5", "-5", False),
    ("5$", "5", True),
    ("5 dollars", "5", True),
    ("€5", "5", True),
    ("Rs.500", "500", True),
    ("50 cents", "0.5", False),  # units are not converted
    ("50%", "50", True),
    ("50 %", "50", True),
    ("50%", "0.5", False),
    ("5 km/h", "5", True),
    ("5kg", "5", True),
    ("25 m2", "25", False),  # a second number
    ("25 m\u00b2", "25", False),
    ("3\u00bd", "3", False),
    ("\u0667\u0662", "72", False),
    ("7\uff12", "7", False),
    ("1/2", "0.5", True),
    ("-1/2", "-0.5", True),
    ("6/3", "2", True),
    ("1/0", "0", False),
    ("1/3", "0.333", False),
    ("3/4/2024", "3", False),
    ("2 1/2", "2.5", False),
    ("\\frac{1}{2}", "0.5", False),
    ("\\boxed{72}", "72", True),
    ("**72**", "72", True),
    ("(72)", "72", True),
    ("#### 72", "72", True),
    ("-72 -72", "-72", False),
    ("7x2", "7", False),
    ("2^3", "2", False),
    ("12:30", "12", False),
    ("7.2e1", "72", False),
    ("72e0", "72", False),
    ("0x48", "72", False),
    ("seventy-two", "72", False),
    ("", "72", False),
    (".", "72", False),
    ("-", "72", False),
    ("NaN", "72", False),
    ("Infinity", "72", False),
    ("__import__('os').getpid()", "72", False),
    ("36*2", "72", False),
    ("1.2.3", "1.2", False),
    ("72" + " " * MEGABYTE, "72", True),
    ("7" * MEGABYTE, "7", False),
    ("0" * MEGABYTE + "7", "7", False),
    ("72 " * MEGABYTE, "72", False),  # a text, not a number
]

# Whole completions: where is the answer?
WHOLE = [
    ("<answer>72</answer>", True),
    ("<think>3</think><answer>72</answer>", True),
    ("<think>3<answer>72</answer>", True),  # format is another reward
    ("72", False),
    ("#### 72", False),
    ("<answer>72", False),
    ("72</answer>", False),
    ("</answer>72<answer>", False),
    ("<Answer>72</Answer>", False),
    ("< answer >72</ answer >", False),
    ("<answer>72</answer", False),
    ("<answer>1</answer><answer>72</answer>", True),  # the last one counts
    ("<answer>72</answer><answer>1</answer>", False),
    ("<answer>72</answer><answer></answer>", False),
    ("<answer>72</answer> or <answer>", True),
    ("<answer>72</answer></answer>", True),
    ("<answer>1<answer>72</answer>", True),
    ("<answer><answer>72</answer></answer>", True),
    ("<answer>72</answer> I mean 73.", True),
    ("<think><answer>72</answer></think>", False),  # thinking is no answer
    ("<think><answer>72</answer></think><answer>1</answer>", False),
    ("<think></think></think><answer>72</answer>", True),
    ("<answer>72</answer></think>", False),
    ("<answer>" * 100_000 + "72</answer>", True),
    ("<answer>72</answer>" * 50_000, True),
    ("<answer>" * 100_000, False),
    ("", False),
]

LENIENT = [
    ("72", True),
    ("The answer is $72.00.", True),
    ("#### 72", True),
    ("<answer>72</answer>", True),
    ("72 of 100", False),
    ("70+2=72", True),
    ("It is 71-72", True),
    ("72" + " so" * MEGABYTE, True),
    ("1" * MEGABYTE, False),
    ("no number", False),
    ("-72", False),
    ("\u201372", False),
    ("It is 71\u201372", True),
    ("- 72", True),  # a bullet
    ("1,72", False),
]


def test_the_table_is_long_enough() -> None:
    assert len(IN_THE_TAG) + len(WHOLE) + len(LENIENT) >= 120


@pytest.mark.parametrize("said, gold, right", IN_THE_TAG, ids=lambda x: str(x)[:25])
def test_what_stands_in_the_tag(said: str, gold: str, right: bool) -> None:
    assert is_correct(f"<think>1</think>\n<answer>{said}</answer>", gold) is right


@pytest.mark.parametrize("completion, right", WHOLE, ids=lambda x: str(x)[:40])
def test_where_the_answer_stands(completion: str, right: bool) -> None:
    assert is_correct(completion, "72") is right


@pytest.mark.parametrize("completion, right", LENIENT, ids=lambda x: str(x)[:25])
def test_the_last_number(completion: str, right: bool) -> None:
    assert is_leniently_correct(completion, "72") is right


@pytest.mark.parametrize("gold", ["", "seven", "5 or 7", "1,23"])
def test_a_gold_answer_that_is_no_number_is_an_error(gold: str) -> None:
    with pytest.raises(ValueError, match="holds no single number"):
        gold_number(gold)
