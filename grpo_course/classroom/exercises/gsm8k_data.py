"""The exercises of 11_gsm8k_data: from a completion to its answer."""

import re

from grpo_course.classroom.exercise import Case, Exercise, Mistake
from grpo_course.gsm8k.grading import extract_answer


def text_case(description: str, completion: str, hint: str = "") -> Case:
    return Case(description, {"completion": completion}, hint)


def _between(text: str) -> str | None:
    """Between the last pair of tags of a text that is all answer."""
    before = text.rpartition("</answer>")[0]
    return before.rpartition("<answer>")[2].strip() if "<answer>" in before else None


def _first(completion: str) -> str | None:
    said = completion.rpartition("</think>")[2]
    found = re.search(r"<answer>(.*?)</answer>", said, re.DOTALL)
    return found.group(1).strip() if found else None


def _greedy(completion: str) -> str | None:
    said = completion.rpartition("</think>")[2]
    found = re.search(r"<answer>(.*)</answer>", said, re.DOTALL)
    return found.group(1).strip() if found else None


def _unclosed(completion: str) -> str | None:
    said = completion.rpartition("</think>")[2]
    _, opened, inside = said.rpartition("<answer>")
    return inside.partition("</answer>")[0].strip() if opened else None


EXTRACT_ANSWER = Exercise(
    key="11.1",
    name="extract_answer",
    solution=extract_answer,
    cases=(
        text_case("the template", "<think>3+4=7</think><answer>7</answer>"),
        text_case("white space inside", "<think>3+4</think>\n<answer>\n 7 </answer>"),
        text_case("two answers", "<answer>7</answer>No.<answer>8</answer>"),
        text_case("an answer in the thinking", "<think><answer>7</answer></think>8"),
        text_case("no thinking", "<answer>7</answer>"),
        text_case("no tags", "The answer is 7."),
        text_case("cut off in the middle", "<think>3+4=7</think><answer>7"),
        text_case("the tags crossed", "</answer>7<answer>"),
    ),
    mistakes=(
        Mistake(
            _between,
            "You look into the thinking as well. A model may try an answer there; what "
            "counts comes after the last </think>.",
        ),
        Mistake(
            _first,
            "You take the first pair. A model that corrects itself means its last "
            "answer: search from the end, with rpartition or rfind.",
        ),
        Mistake(
            _greedy,
            "`.*` is greedy: with two answers it takes everything from the first "
            "opening tag to the last closing one.",
        ),
        Mistake(
            _unclosed,
            "You accept an answer that is never closed. It may have been cut off in "
            "the middle of a number: without </answer> return None.",
        ),
        Mistake(
            lambda completion: extract_answer(completion) or "",
            "Without a pair of tags you return an empty text. Return None, so that "
            "nobody takes it for an answer that was given.",
        ),
    ),
    insight="Plain searches from the end: one pass, whatever a model writes.",
)

EXERCISES = (EXTRACT_ANSWER,)
