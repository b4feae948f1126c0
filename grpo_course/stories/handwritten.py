"""Problems that a person wrote in plain English, outside all frames."""

import json
import re
from pathlib import Path

from grpo_course.gsm8k.problems import Fact, solution_text
from grpo_course.stories.problems import Story, answer_to

PATH = Path(__file__).parent / "handwritten.json"
STEP = re.compile(r"(\d+)([-+*/])(\d+)")


def load_handwritten() -> list[Story]:
    """All of them, each with the steps that its author gave. No model trains on them.

    Raises ValueError for a step that is none.
    """
    rows = json.loads(PATH.read_text("utf-8"))
    return [as_story(row["question"], row["steps"]) for row in rows]


def as_story(question: str, steps: list[str]) -> Story:
    """A problem from its text and its steps: ["24-9", "15*2"]."""
    facts = tuple(map(as_fact, steps))
    return Story(question, answer_to(facts), solution_text(facts), facts)


def as_fact(step: str) -> Fact:
    """ "24-9" -> (24, "-", 9)"""
    found = STEP.fullmatch(step)
    if found is None:
        raise ValueError(f"step={step!r} must be two numbers and a sign: 24-9.")
    left, operation, right = found.groups()
    return int(left), operation, int(right)
