"""What is told of a defect: samples before, everything after."""

import difflib
import textwrap
from typing import Any

from grpo_course.classroom.hunt.broken import HEALTHY
from grpo_course.classroom.hunt.defect import Defect
from grpo_course.classroom.old_check.report import WIDTH


def three_rows(count: int) -> list[int]:
    """Rows of three groups, each another place in its group."""
    return [1, count // 3 + 2, count * 2 // 3 + 4]


def sample_line(batch: Any, row: int) -> str:
    """A prompt, what was answered, and what it earned."""
    asked = " ".join(str(number) for number in batch.problems[row])
    return (
        f"{asked:>11} -> {batch.texts[row]!r:24} reward {batch.rewards[row]:.1f}  "
        f"delta {batch.deltas[row]:+.2f}"
    )


def show_debriefing(defect: Defect) -> None:
    """Print symptom, cause, probe, line and thread."""
    for name, words in (
        ("symptom", defect.complaint),
        ("first look", defect.first_look),
        ("cause", f"{defect.cause}. {defect.why}"),
        ("probe", f"{defect.probe}; look into {stages_of(defect)}"),
        ("sleeps", defect.knob),
        ("seen in", defect.thread),
    ):
        if words:
            print(labelled(name, words))
    lines = changed_lines(defect)
    margin = min(len(line) - len(line[1:].lstrip()) for line in lines)
    for line in lines:
        text = f"{line[0]} {line[margin:]}"
        print(textwrap.fill(text, WIDTH, subsequent_indent=f"{line[0]}     "))


def labelled(name: str, words: str) -> str:
    """Words behind their label, wrapped."""
    return textwrap.fill(
        words, WIDTH, initial_indent=f"{name + ':':12}", subsequent_indent=" " * 12
    )


def stage_of(text: str) -> str:
    """The method of the trainer in which a text of the script stands."""
    before = HEALTHY[: HEALTHY.index(text) + len(text)]
    return before.rpartition("    def ")[2].partition("(")[0]


def stages_of(defect: Defect) -> str:
    """The methods in which its lines stand."""
    return " and ".join(dict.fromkeys(stage_of(old) for old, _ in defect.edits))


def boxes_of(defect: Defect) -> list[str]:
    """What to mark of the stages: its own place, or the methods of its lines."""
    if defect.box:
        return [defect.box]
    return list(dict.fromkeys(stage_of(old) for old, _ in defect.edits))


def changed_lines(defect: Defect) -> list[str]:
    """The lines of the script that differ: - in the case, + in the healthy one."""
    text = HEALTHY
    for old, new in defect.edits:
        text = text.replace(old, new)
    compared = difflib.unified_diff(
        text.splitlines(), HEALTHY.splitlines(), lineterm="", n=0
    )
    return [line for line in compared if line[:2] not in ("--", "++", "@@")]
