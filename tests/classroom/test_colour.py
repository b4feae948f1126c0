"""The verdict in colour says what the plain one says, and marks what differs."""

import re

import pytest
from IPython import display

from grpo_course.classroom import record
from grpo_course.classroom.check import check, colour

WRONG_SHAPE = [
    "[x] 3.1 center_by_group is not right yet: two groups",
    "    yours:    shape [2], float32",
    "    expected [batch trial]: shape [2, 4], float32",
    "    Keep <both> axes.",
]


def words(page):
    return re.sub(r"<br>", "\n", re.sub(r"</?(?!br)[^>]*>", "", page))


def test_the_words_stay(capsys):
    page = colour.as_html(WRONG_SHAPE)
    kept = "\n".join(WRONG_SHAPE).replace("<", "&lt;").replace(">", "&gt;")
    assert words(page) == kept
    colour.show_verdict(WRONG_SHAPE)
    assert capsys.readouterr().out.splitlines() == WRONG_SHAPE


def test_the_size_that_is_missing_is_marked():
    page = colour.as_html(WRONG_SHAPE)
    assert "shape [2, <b><u>4</u></b>]" in page and page.count("<u>") == 1


def test_another_size_is_marked_on_both_sides():
    lines = ["    yours:    shape [3, 4]", "    expected: shape [2, 4]"]
    assert re.findall(r"<u>(\d)</u>", colour.as_html(lines)) == ["3", "2"]


@pytest.mark.parametrize("other", ["[2, 4], int64", "[2, 4], float32"])
def test_equal_shapes_have_no_mark(other):
    lines = ["    yours:    shape [2, 4], float32", f"    expected: shape {other}"]
    assert "<u>" not in colour.as_html(lines)


@pytest.mark.parametrize("mark", ["[v]", "[x]", "[!]"])
def test_a_verdict_has_its_colour_and_an_untouched_stub_has_none(mark):
    assert colour.COLOURS[mark] in colour.as_html([f"{mark} 3.1 name"])
    assert "color" not in colour.as_html(["[ ] 3.1 name: not attempted yet."])


def test_check_shows_it_to_a_learner(monkeypatch, tmp_path):
    monkeypatch.setattr(record, "learner_is_here", lambda: True)
    monkeypatch.chdir(tmp_path)
    shown = []
    monkeypatch.setattr(display, "display", lambda data, raw: shown.append(data))

    def center_by_group(rewards):
        return rewards.mean(1)

    check(center_by_group)
    assert "<u>" in shown[0]["text/html"] and "[x] 3.1" in shown[0]["text/plain"]
