"""The exercises of 11_gsm8k_data: from a completion to its answer."""

import re
from collections.abc import Callable

from grpo_course.classroom.exercise import Case, Exercise, Mistake
from grpo_course.language_model.template import extract_answer


def text_case(description: str, completion: str, hint: str = "") -> Case:
    return Case(description, {"completion": completion}, hint)


def _last_found(pattern: str) -> Callable:
    """An answer that takes the last match of a pattern behind the thinking."""

    def answer(completion: str) -> str | None:
        found = re.findall(pattern, completion.rpartition("</think>")[2])
        return found[-1].strip() if found else None

    return answer


def _first_found(completion: str) -> str | None:
    said = completion.rpartition("</think>")[2]
    found = re.search(r"(?s)<answer>(.*?)</answer>", said)
    return found.group(1).strip() if found else None


def _closed_twice(completion: str) -> str | None:
    before = completion.rpartition("</think>")[2].rpartition("</answer>")[0]
    _, opened, inside = before.rpartition("<answer>")
    return inside.strip() if opened else None


def _begun_again(completion: str) -> str | None:
    said = completion.rpartition("</think>")[2]
    _, opened, inside = said.rpartition("<answer>")
    inside, closed, _ = inside.partition("</answer>")
    return inside.strip() if opened and closed else None


def _unclosed(completion: str) -> str | None:
    said = completion.rpartition("</think>")[2]
    _, opened, inside = said.rpartition("<answer>")
    return inside.partition("</answer>")[0].strip() if opened else None


def _unstripped(completion: str) -> str | None:
    before = completion.rpartition("</think>")[2].rpartition("</answer>")[0]
    _, opened, inside = before.rpartition("<answer>")
    return inside.partition("</answer>")[0] if opened else None


def _behind_the_first(completion: str) -> str | None:
    said = completion.split("</think>", 1)[-1]
    return extract_answer(said.replace("</think>", ""))


EXTRACT_ANSWER = Exercise(
    key="11.1",
    name="extract_answer",
    solution=extract_answer,
    # Cases where a known mistake gives a wrong text stand before those where it
    # gives None, which says less.
    cases=(
        text_case("the template", "<think>3+4=7</think><answer>7</answer>"),
        text_case("no thinking", "<answer>7</answer>"),
        text_case(
            "new lines", "<think>a</think><answer>6</answer>No.\n<answer>\n7\n</answer>"
        ),
        text_case("white space inside", "<think>3+4</think>\n<answer>\n 7 </answer>"),
        text_case("two answers", "<answer>7</answer>No.<answer>8</answer>"),
        text_case("a price", "<answer>1200</answer>, or <answer>$1,200</answer>"),
        text_case("a price alone", "<answer>$1,200</answer>"),
        text_case("a minus", "<answer>-3</answer>"),
        text_case("words", "<answer>seven, or 7 pens.</answer>"),
        text_case(
            "a < that opens no tag",
            "<answer>6 < 7</answer>",
            "A `<` inside the answer need not begin a tag: look for whole tags.",
        ),
        text_case("an answer in the thinking", "<think><answer>7</answer></think>8"),
        text_case(
            "thinking closed twice", "<think>a</think><answer>7</answer></think>8"
        ),
        text_case("no tags", "The answer is 7."),
        text_case("cut off in the middle", "<think>3+4=7</think><answer>7"),
        text_case(
            "the tags crossed",
            "</answer>7<answer>",
            "The closing tag stands before the opening one, so this is no pair.",
        ),
        text_case("closed twice", "<answer>7</answer></answer>"),
        text_case("opened twice", "<answer>5<answer>7</answer>"),
        text_case("an answer, and one begun", "<answer>7</answer><answer>8"),
    ),
    mistakes=(
        Mistake(
            lambda completion: extract_answer(completion.replace("</think>", "")),
            "You look into the thinking as well. A model may try an answer there; what "
            "counts comes after the last </think>.",
        ),
        Mistake(
            _behind_the_first,
            "You cut at the first </think>. A model may write it again, so cut at the "
            "last: rpartition, or split(...)[-1].",
        ),
        Mistake(
            _first_found,
            "You take the first pair. A model that corrects itself means its last "
            "answer: search from the end, with rpartition or rfind.",
        ),
        Mistake(
            _last_found("(?s)<answer>(.*)</answer>"),
            "`.*` is greedy: with two answers it takes everything from the first "
            "opening tag to the last closing one.",
        ),
        Mistake(
            _last_found("<answer>(.*?)</answer>"),
            "A `.` in a pattern stops at the end of a line, and an answer may stand "
            "on a line of its own. Add re.DOTALL, or use rpartition.",
        ),
        Mistake(
            _last_found("(?s)<answer>(.*?)</answer>"),
            "Your pattern begins at the first <answer> that it meets and runs over the "
            "next one. Search from the end: the last <answer> before the </answer>.",
        ),
        Mistake(
            _last_found(r"<answer>\s*([0-9]+)\s*</answer>"),
            "You ask for digits, and $1,200, -3 or words are answers too. Return the "
            "text as it stands; what number it says is judged later.",
        ),
        Mistake(
            _unstripped,
            "White space is left around the answer: strip() it.",
        ),
        Mistake(
            _closed_twice,
            "A closing tag is left in the answer of a model that closes it twice. Cut "
            "at the first </answer> behind the <answer>: partition.",
        ),
        Mistake(
            _begun_again,
            "An <answer> that is never closed hides the pair before it. Cut at the "
            "last </answer> first, then look for the <answer> before that.",
        ),
        Mistake(
            lambda completion: (
                extract_answer(completion) if "</think>" in completion else None
            ),
            "Without any </think> you return None, but then nothing is thinking: the "
            "whole text may answer.",
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
