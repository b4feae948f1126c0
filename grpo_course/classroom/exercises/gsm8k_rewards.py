"""The exercises of 11_gsm8k_data on rewards: partial credit, and no way around."""

import re
from itertools import takewhile

from grpo_course.classroom.exercise import Case, Exercise, Mistake
from grpo_course.classroom.exercises.gsm8k_data import text_case
from grpo_course.gsm8k.grading import (
    gold_number,
    is_correct,
    is_leniently_correct,
    read_number,
)
from grpo_course.language_model.template import TAGS, extract_answer, format_reward


def _template(completion: str) -> bool:
    template = r"\s*<think>.+</think>\s*<answer>.+</answer>\s*"
    return bool(re.fullmatch(template, completion, re.DOTALL))


def _up_to_the_first_missing(completion: str) -> float:
    return len(list(takewhile(lambda tag: completion.count(tag) == 1, TAGS))) / 4


def _one_behind_another(completion: str) -> float:
    points, rest = 0, completion
    for tag in TAGS:
        if completion.count(tag) == 1 and tag in rest:
            points, rest = points + 1, rest.partition(tag)[2]
    return points / 4


TAG_SHARE = Exercise(
    key="11.2",
    name="tag_share",
    solution=lambda completion: sum(completion.count(tag) == 1 for tag in TAGS) / 4,
    cases=(
        text_case("the template", "<think>3+4=7</think><answer>7</answer>"),
        text_case("no answer tags", "<think>3+4=7</think>7"),
        text_case("the first tag alone", "<think>3+4=7"),
        text_case("the last tag alone", "3+4=7</answer>"),
        text_case("no tags", "7"),
        text_case("a tag three times", "<think><think><think>3+4=7"),
        text_case(
            "two answers",
            "<think></think><answer>7</answer><answer>",
            "Here <answer> stands twice and does not count. The other three tags do.",
        ),
        text_case("the answer first", "<answer>7</answer><think>3+4=7</think>"),
        text_case("closed, then opened", "</answer><answer>7"),
    ),
    mistakes=(
        Mistake(
            lambda completion: float(_template(completion)),
            "All or nothing: a response with three tags earns as little as one with "
            "none, so a group that has not found the template yet is tied. Pay for "
            "each tag.",
        ),
        Mistake(
            lambda completion: sum(tag in completion for tag in TAGS) / 4,
            "A tag that stands three times earns its point. Then a model may repeat "
            "tags for free: count() must be 1.",
        ),
        Mistake(
            lambda completion: sum(completion.count(tag) for tag in TAGS) / 4,
            "You pay for each copy of a tag, so the best response is nothing but "
            "tags. A tag counts when it stands exactly once.",
        ),
        Mistake(
            lambda completion: (
                sum(
                    completion.count(a) == 1 == completion.count(b)
                    for a, b in (TAGS[:2], TAGS[2:])
                )
                / 2
            ),
            "You pay for pairs. The step from no tag to one tag earns nothing then, "
            "and one tag is what a model finds first.",
        ),
        Mistake(
            _up_to_the_first_missing,
            "You stop at the first tag that is missing. Any tag counts, alone or not: "
            "go on with the others.",
        ),
        Mistake(
            _one_behind_another,
            "You count a tag only behind those before it. The order is another matter: "
            "here any tag counts, wherever it stands.",
        ),
        Mistake(
            lambda completion: sum(completion.count(tag) == 1 for tag in TAGS),
            "This is a count from 0 to 4. A share is divided by the number of tags.",
        ),
    ),
    insight="Each tag pays for itself, so most groups have something to compare.",
)


def _reward_case(
    description: str, completion: str, answer: str = "7", hint: str = ""
) -> Case:
    return Case(description, {"completion": completion, "answer": answer}, hint)


def _numbers(completion: str) -> list:
    return [read_number(found) for found in re.findall(r"[0-9][0-9.,]*", completion)]


def _whole(completion: str) -> bool:
    return format_reward([completion]) == [1.0]


HONEST_REWARD = Exercise(
    key="11.3",
    name="honest_reward",
    solution=lambda completion, answer: float(
        _whole(completion) and is_correct(completion, answer)
    ),
    cases=(
        _reward_case(
            "a right response",
            "<think>3+4=7</think><answer>7</answer>",
            hint="This one earns 1. Both functions return lists, and [1.0] == 1.0 is "
            "False: compare with [1.0], or take the one entry with [0].",
        ),
        _reward_case(
            "a wrong response",
            "<think>3+4=8</think><answer>8</answer>",
            hint="The form is whole and the number wrong: that earns nothing. Mind "
            "that a list is true even as [0.0]: compare it with [1.0].",
        ),
        _reward_case("a digit of it", "<think>8+9=17</think><answer>17</answer>"),
        _reward_case("right, then wrong", "<think>7</think><answer>8</answer>"),
        _reward_case("no number in the tag", "<think>7</think><answer>?</answer>"),
        _reward_case("$1,200.00", "<think>a</think><answer>$1,200.00</answer>", "1200"),
        _reward_case(
            "a minus",
            "<think>2-5</think><answer>-3</answer>",
            "-3",
            "A number may be negative, so the minus belongs to it.",
        ),
        _reward_case(
            "a minus lost",
            "<think>2-5</think><answer>3</answer>",
            "-3",
            "The minus of the right answer is missing here: 3 is not -3.",
        ),
        _reward_case("two guesses", "<think>3+4=7</think><answer>6 or 7</answer>"),
        _reward_case("no tags", "3+4=7"),
        _reward_case("no thinking", "<answer>7</answer>"),
        _reward_case(
            "two answers", "<think>x</think><answer>6</answer><answer>7</answer>"
        ),
        _reward_case("empty thinking", "<think></think><answer>7</answer>"),
        _reward_case("words around", "So: <think>3+4=7</think><answer>7</answer>"),
        _reward_case(
            "tags in the thinking",
            "<think>a<answer>6</answer></think><answer>7</answer>",
            hint="The thinking holds a pair of tags of its own. `.+` in a pattern runs "
            "over tags: the whole form has each tag once.",
        ),
        _reward_case(
            "a new line between the pairs",
            "<think>3+4=7</think>\n<answer>7</answer>\n",
            hint="White space between the pairs, or behind them, breaks no form.",
        ),
        _reward_case(
            "a < in the thinking",
            "<think>3 < 4, so 7</think><answer>7</answer>",
            hint="A `<` alone is no tag. Look for whole tags, as format_reward does.",
        ),
        _reward_case(
            "lines of thinking",
            "<think>3+4\n= 7</think><answer>7</answer>",
            hint="Thinking may have several lines. A `.` in a pattern stops at the end "
            "of one: re.DOTALL.",
        ),
    ),
    # The narrow mistakes stand first: where two explain as many wrong cases, the
    # first is named.
    mistakes=(
        Mistake(
            lambda completion, answer: float(
                format_reward([completion])[0] >= 0.8 and is_correct(completion, answer)
            ),
            "You let a broken form pass: four tags, but words around them, or nothing "
            "inside. The whole form is format_reward([completion]) == [1.0].",
        ),
        Mistake(
            lambda completion, answer: float(
                _template(completion) and is_correct(completion, answer)
            ),
            "`.+` in a pattern runs over tags, so a second answer hides inside it. The "
            "whole form has each tag once: format_reward([completion]) == [1.0].",
        ),
        Mistake(
            lambda completion, answer: float(
                _whole(completion) and is_leniently_correct(completion, answer)
            ),
            "You take the last number, even of `6 or 7`, and even one outside the "
            "answer. Grade the answer as a whole: correctness_reward does.",
        ),
        Mistake(
            lambda completion, answer: float(is_correct(completion, answer)),
            "You judge the answer and not the form: no thinking, and several answers, "
            "are paid in full. Ask for format_reward([completion]) == [1.0] as well.",
        ),
        Mistake(
            lambda completion, answer: float(is_leniently_correct(completion, answer)),
            "You take the last number wherever it stands. It is a fine measure of "
            "arithmetic, but as a reward it teaches no form.",
        ),
        Mistake(
            lambda completion, answer: (
                format_reward([completion])[0] * is_correct(completion, answer)
            ),
            "The right answer in a broken form earns part of the reward. Here it is "
            "all or nothing: ask for format_reward([completion]) == [1.0].",
        ),
        Mistake(
            lambda completion, answer: (
                (format_reward([completion])[0] + is_correct(completion, answer)) / 2
            ),
            "You add the two. The right form around a wrong answer earns half, for no "
            "work at all. Here only both together pay.",
        ),
        Mistake(
            lambda completion, answer: float(
                _whole(completion) and extract_answer(completion) == answer
            ),
            "You compare texts, so $1,200.00 is not 1200. Compare numbers: "
            "read_number(...) on both sides.",
        ),
        Mistake(
            lambda completion, answer: float(
                gold_number(answer) in _numbers(completion)
            ),
            "Any number of the response may be the right one, so listing many numbers "
            "pays. Judge one answer.",
        ),
        Mistake(
            lambda completion, answer: float(answer in completion),
            "You ask whether the digits occur somewhere: 17 holds a 7, and a list of "
            "all numbers holds every answer.",
        ),
    ),
    insight="Nothing but the right answer in the right form pays. It is also sparse: "
    "training starts better with partial credit for the form.",
)

EXERCISES = (TAG_SHARE, HONEST_REWARD)
