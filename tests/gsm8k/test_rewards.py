"""Rewards: values, partial credit, and the shapes that TRL calls them with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_course.gsm8k import correctness_reward, length_reward, lenient_reward
from grpo_course.tasks import TAGS, format_reward, in_template

GOOD = in_template("3+4=7", "7")
REWARDS = [correctness_reward, lenient_reward, format_reward, length_reward]


def chat(text: str) -> list[dict]:
    return [{"role": "assistant", "content": text}]


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("form", [str, chat])
def test_lists_in_lists_of_floats_out_as_trl_calls_them(
    reward: object, form: object
) -> None:
    completions = [form(GOOD), form("no"), form("")]
    given = {
        "prompts": ["?", "?", "?"],
        "completion_ids": [[1], [2], [3]],
        "answer": ["7", "7", "7"],
        "question": ["?", "?", "?"],
        "trainer_state": object(),
        "log_metric": print,
    }
    rewards = reward(completions=completions, **given)
    assert isinstance(rewards, list) and len(rewards) == 3
    assert all(type(r) is float for r in rewards)
    assert reward.__name__ == reward.__qualname__  # TRL names its metrics by it
    assert rewards == reward(completions=[GOOD, "no", ""], **given)
    assert reward(completions=[], **(given | {"answer": []})) == []


def test_each_completion_has_its_own_answer() -> None:
    assert correctness_reward([GOOD, GOOD, "7"], ["7", "8", "7"]) == [1.0, 0.0, 0.0]
    assert lenient_reward([GOOD, GOOD, "7"], ["7", "8", "7"]) == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "text, share",
    [
        ("", 0.0),
        ("7", 0.0),
        ("<think>", 0.2),
        ("</answer>", 0.2),
        ("<think>3+4=7</think>7", 0.4),
        ("<answer>7</answer>", 0.4),
        ("<think>3+4=7<answer>7</answer>", 0.6),
        (GOOD, 1.0),
        (f"\n {GOOD} \n", 1.0),
        (GOOD.replace("><", ">\n<"), 1.0),
        (GOOD + "!", 0.8),
        ("Well. " + GOOD, 0.8),
        (GOOD.replace("><", ">so<"), 0.8),
        ("<think></think><answer>7</answer>", 0.8),
        ("<think>3+4=7</think><answer> </answer>", 0.8),
        ("<answer>7</answer><think>3+4=7</think>", 0.8),
        ("<think><answer>7</answer></think>", 0.8),
        ("</answer><answer></think><think>", 0.8),
        ("<think>3</answer></think><answer>7", 0.8),
        (GOOD + "<answer>7</answer>", 0.4),
        (GOOD + GOOD, 0.0),
        ("<think>" * 1000, 0.0),
    ],
)
def test_format_pays_for_each_tag(text: str, share: float) -> None:
    assert format_reward([text]) == [pytest.approx(share)]


@given(st.sets(st.sampled_from(TAGS), max_size=3))
def test_any_of_the_tags_alone_is_partial_credit(tags: set[str]) -> None:
    text = " 3 ".join(tag for tag in TAGS if tag in tags)
    assert format_reward([text]) == [pytest.approx(0.2 * len(tags))]


@given(st.lists(st.sampled_from([*TAGS, "7", " ", "<", "think>"])).map("".join))
def test_full_format_only_in_the_template(text: str) -> None:
    (reward,) = format_reward([text])
    assert 0.0 <= reward <= 1.0
    if reward == 1.0:
        thinking = text.partition("<think>")[2].partition("</think>")[0]
        given_answer = text.partition("<answer>")[2].partition("</answer>")[0]
        assert "".join(text.split()) == "".join(
            in_template(thinking, given_answer).split()
        )


def test_length_costs_nothing_then_a_line_then_one() -> None:
    texts = ["x" * n for n in (0, 10, 15, 20, 1000)]
    assert length_reward(texts, free=10, most=20) == [0.0, 0.0, -0.5, -1.0, -1.0]
    with pytest.raises(ValueError, match="free=20 and most=20"):
        length_reward(texts, free=20, most=20)


def test_wrong_shapes_are_named() -> None:
    with pytest.raises(ValueError, match="one right answer for each of the 2"):
        correctness_reward([GOOD, GOOD], ["7"])
    with pytest.raises(ValueError, match="answer must be a list"):
        correctness_reward([GOOD], "7")
    with pytest.raises(TypeError, match="A completion is a int"):
        format_reward([7])
    with pytest.raises(ValueError, match="holds no single number"):
        correctness_reward([GOOD], ["none"])


def test_chat_completions_of_several_or_empty_messages() -> None:
    parts = [{"role": "assistant", "content": p} for p in ("<answer>", "7</answer>")]
    nothing = [{"role": "assistant", "content": None}]
    assert correctness_reward([parts, nothing], ["7", "7"]) == [1.0, 0.0]
