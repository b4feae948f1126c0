"""A learner, as the tests play one: writes a function's body and has it checked."""

import linecache
import textwrap
from collections import Counter, namedtuple

import einops
import pytest
import torch

from grpo_course.classroom import check as checking
from grpo_course.classroom.exercises import EXERCISES

Verdict = namedtuple("Verdict", "text returned function")


@pytest.fixture
def judge(capsys, monkeypatch):
    """judge(name, body) -> what check printed, in one line; what it returned."""
    monkeypatch.setattr(checking, "_session", {})

    def judge_body(name: str, body: str) -> Verdict:
        function = write(name, body)
        returned = checking.check(function)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 10, lines
        assert max(map(len, lines)) <= 75, lines
        return Verdict(" ".join(" ".join(lines).split()), returned, function)

    return judge_body


def write(name: str, body: str):
    """The function that a notebook cell with this body would define."""
    exercise = next((e for e in EXERCISES if e.name == name), None)
    parameters = ", ".join(exercise.cases[0].args) if exercise else "x"
    source = f"def {name}({parameters}):\n{textwrap.indent(body, '    ')}\n"
    place = f"<cell {hash(source)}>"
    linecache.cache[place] = (len(source), None, source.splitlines(True), place)
    names = {"torch": torch, "Counter": Counter, **vars(einops)}
    exec(compile(source, place, "exec"), names)
    return names[name]
