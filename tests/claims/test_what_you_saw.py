"""Each line of "What you saw" that speaks about learning stands in the ledger."""

import re
from pathlib import Path

import nbformat
import pytest

from grpo_course.claims import ledger
from grpo_course.workshop.form import CLOSING

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
LEARNING = re.compile(
    r"\b(learn(s|ed|ing)?|train(s|ing)|collapses?|ruins?|helps?|harm|leads?|led|ahead"
    r"|(falls?|fell) behind|beats?|wins?|certain|becomes?|early on|moved|more often"
    r"|raised|passes|climbs|landed|dial|held|holds back|holes?)\b",
    re.IGNORECASE,
)
FORMULA_OR_CODE = re.compile(r"\$[^$]*\$|`[^`]*`")
# The beginning of a line -> why the ledger does not run it.
MINUTES = "a run takes minutes for each seed; the notebook shows those it speaks of"
NO_CLAIM = {
    "A policy becomes what its reward pays most": "an exact gradient, climbed once",
    "Training accuracy alone cannot tell learning from memory": MINUTES,
    "The policy looks for holes in your reward at once": MINUTES,
    "Words reversed: GRPO": MINUTES,
}


def lines_of(closing: str) -> list[str]:
    """The items of the list, each on one line."""
    items = re.split(r"^- ", closing.split("\n\n**Next")[0], flags=re.MULTILINE)[1:]
    return [" ".join(item.split("\n\n")[0].split()) for item in items]


def about_learning(line: str) -> bool:
    return bool(LEARNING.search(FORMULA_OR_CODE.sub("", line)))


def without_entry(closing: str, sentences: list[str]) -> list[str]:
    """The lines about learning in which none of the ledger's sentences stands."""
    return [
        line
        for line in lines_of(closing)
        if about_learning(line) and not line.startswith(tuple(NO_CLAIM))
        if not any(sentence in line for sentence in sentences)
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem[:2])
def test_what_was_seen_of_learning_has_an_entry(path):
    """The cure: a Claim whose sentence stands in the line, word for word."""
    cells = nbformat.read(path, as_version=4).cells
    (closing,) = (c.source for c in cells if c.source.startswith(f"## {CLOSING}"))
    known = ledger.all_claims().items()
    mine = [claim.sentence for key, claim in known if key[:2] == path.stem[:2]]
    missing = without_entry(closing, mine)
    assert not missing, "no claim quotes: " + "; ".join(missing)


def test_what_is_let_off_stands_in_a_notebook():
    texts = [path.read_text(encoding="utf-8") for path in NOTEBOOKS]
    assert all(any(line in text for text in texts) for line in NO_CLAIM)


@pytest.mark.parametrize(
    "line",
    [
        "Initial entropy decides what can be learned.",
        "A reward can have dead ends. Training gets stuck in them.",
        "Clipped falls behind where steps are large.",
        "With $\\beta = 0$ the toy passes 0.9.",
    ],
)
def test_a_line_about_learning_needs_an_entry(line):
    closing = f"## {CLOSING}\n\n- {line}\n\n**Next:** more."
    assert without_entry(closing, []) == [line]
    assert without_entry(closing, ["Another sentence."]) == [line]
    assert not without_entry(closing, [line.split(". ")[-1]])


@pytest.mark.parametrize(
    "line",
    [
        "Tied groups must give exactly zero.",
        "At $\\pi = \\pi_\\text{old}$ all three losses have the same gradient.",
        "GRPO keeps one trained model; the scored tokens begin behind the prompt.",
        "Leave-one-out does not shorten it; `train` calls it.",
        "Clipping removes gradient. It does not bound the ratio.",
    ],
)
def test_an_exact_fact_needs_none(line):
    assert not without_entry(f"## {CLOSING}\n\n- {line}\n\n**Next:** train.", [])
