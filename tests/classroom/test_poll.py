"""A question to a class: counted by buttons, or given, as text and as a table."""

import pytest
from IPython import display
from ipywidgets import VBox

from grpo_course.classroom import poll as polling
from grpo_course.classroom import record
from grpo_course.classroom.poll import poll

QUESTION = "Does R < 0 <b>help</b>?"


@pytest.fixture
def shown(monkeypatch):
    """What is displayed to somebody who can click; boxes as they are made."""
    monkeypatch.setattr(record, "learner_is_here", lambda: True)
    monkeypatch.setattr(VBox, "_repr_mimebundle_", lambda box: {"box": box})
    found = []
    monkeypatch.setattr(display, "display", lambda data, raw: found.append(data))
    return found


def test_as_text_the_longest_bar_is_full(capsys):
    poll("Which way?", "up", "down", "stays", counts=(6, 3, 0))
    assert capsys.readouterr().out.splitlines() == [
        "Which way?",
        f"  up       6 {'#' * polling.BAR}",
        f"  down     3 {'#' * (polling.BAR // 2)}",
        "  stays    0",
    ]


def test_nobody_has_raised_a_hand_yet(capsys):
    poll("Which way?", "up", "down")
    assert "#" not in capsys.readouterr().out


def test_a_click_is_a_hand_and_can_be_taken_back(shown):
    poll(QUESTION, "yes", "no")
    chart, yes, no = shown[0]["box"].children
    more, less = yes.children
    assert more.description == "yes" and no.children[0].description == "no"
    more.click()
    more.click()
    assert "<td>yes</td><td>2</td>" in chart.value
    assert "<td>no</td><td>0</td>" in chart.value
    for _ in range(3):
        less.click()
    assert "<td>yes</td><td>0</td>" in chart.value


def test_given_counts_need_no_buttons_and_words_are_words(shown):
    poll(QUESTION, "a < b", "no", counts=(1, 4))
    assert set(shown[0]) == {"text/html", "text/plain"}
    page = shown[0]["text/html"]
    assert "a &lt; b</td><td>1<" in page and "<b>" not in page
    assert QUESTION in shown[0]["text/plain"]


@pytest.mark.parametrize(
    "choices, counts", [((), None), (("up", "down"), (1,)), (("up", "down"), (-1, 2))]
)
def test_each_choice_needs_a_number_of_hands(choices, counts):
    with pytest.raises(ValueError, match="give a number of hands for each"):
        poll(QUESTION, *choices, counts=counts)
