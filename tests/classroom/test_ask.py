"""Asking a model a problem of one's own: what is printed, and what is refused."""

import pytest

from grpo_course.classroom.ask import ask, bare
from grpo_course.reader import load_reader

EASY = "Mia has 12 apples. Mia buys 5 more apples. How many apples does Mia have now?"


@pytest.fixture(scope="module")
def reader():
    return load_reader()


def printed(capsys, question, reader, **how):
    policy, tokenizer = reader
    ask(question, {"before": policy}, tokenizer, **how)
    return capsys.readouterr().out.splitlines()


def test_samples_are_counted_and_rewarded(capsys, reader):
    lines = printed(capsys, EASY, reader, answer=17)
    assert lines[:2] == ["every word is in training", "before"]
    assert lines[2] == "  greedy   R 1  12+5=17 -> 17"
    counts = [int(line.split(" of 8 ")[0]) for line in lines[3:]]
    assert sum(counts) == 8 and counts == sorted(counts, reverse=True)
    # Against another answer the same response earns nothing.
    wrong = printed(capsys, EASY, reader, answer=18)
    assert wrong[2] == "  greedy   R 0  12+5=17 -> 17"


def test_without_an_answer_there_is_no_reward(capsys, reader):
    lines = printed(capsys, EASY, reader)
    assert lines[2] == "  greedy   12+5=17 -> 17"


def test_words_that_training_lacks_are_named(capsys, reader):
    asked = EASY.replace("buys", "juggles").replace("12", "0.5")
    line = printed(capsys, asked, reader)[0]
    assert line == "not in training: 0.5, juggles"


def test_a_response_on_one_line():
    assert bare("<think>1+2=3\n3*4=12</think><answer>12</answer>") == (
        "1+2=3, 3*4=12 -> 12"
    )
    assert bare("1+2=3\n3") == "'1+2=3\\n3'"


@pytest.mark.parametrize("question", ["", "  ", 3, None])
def test_an_empty_question_is_refused(reader, question):
    policy, tokenizer = reader
    with pytest.raises(ValueError, match=r"question=.* must be a text: ask\("):
        ask(question, {"before": policy}, tokenizer)


def test_an_answer_that_is_no_number_is_refused(reader):
    policy, tokenizer = reader
    with pytest.raises(ValueError, match=r"answer='many', but it must be one number"):
        ask(EASY, {"before": policy}, tokenizer, answer="many")


def test_a_question_that_is_too_long_is_refused(reader):
    policy, tokenizer = reader
    with pytest.raises(ValueError, match="the model knows 256 positions"):
        ask(EASY * 20, {"before": policy}, tokenizer)
