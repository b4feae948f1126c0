"""A learner, as the tests play one: gives a function an exercise's name, and checks."""

from collections import namedtuple
from collections.abc import Callable

import pytest

from grpo_course.classroom import old_check as checking

Verdict = namedtuple("Verdict", "text advice returned")


@pytest.fixture
def judge(capsys, monkeypatch):
    """judge(name, function) -> what check printed, in one line, and what it returned.

    `advice` is the text without the learner's own line, which may hold any words.
    """
    monkeypatch.setattr(checking, "_session", {})

    def judge_answer(name: str, function: Callable) -> Verdict:
        function.__name__ = name
        returned = checking.check(function)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 12, lines
        assert max(map(len, lines)) <= 75, lines
        told = [line for line in lines if "your line:" not in line]
        return Verdict(one_line(lines), one_line(told), returned)

    return judge_answer


def one_line(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
