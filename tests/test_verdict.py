"""A claim held against the runs of a few seeds."""

import pytest
import torch

from grpo_course.classroom import record
from grpo_course.classroom.verdict import expect, verdict

LOW = [0.1, 0.3, 0.2, 0.4]


def said(capsys, higher, lower):
    verdict("A learns more than B", higher, lower)
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == '"A learns more than B"'
    assert max(map(len, rest)) <= 75
    return " ".join(rest)


def test_a_claim_holds_seed_by_seed(capsys):
    """The spread between seeds, which both share, does not count."""
    higher = torch.tensor(LOW) + torch.tensor([0.1, 0.1, 0.2, 0.2])
    told = said(capsys, higher, LOW)  # mean 0.15, std 0.0577, error 0.0289
    assert told == (
        "It holds: 0.400 against 0.250, a difference of +0.150 or 5.2 standard "
        "errors of 0.029, 4 seeds."
    )


def test_a_claim_is_turned_round_or_undecided(capsys):
    assert "other way round" in said(capsys, LOW, torch.tensor(LOW) * 2)
    told = said(capsys, LOW, [0.3, 0.1, 0.4, 0.2])  # mean 0, error 0.1155
    assert told.startswith("Undecided: 0.250 against 0.250") and "0.231 on" in told


@pytest.mark.parametrize(
    "more, answer", [(0.5, "It holds"), (-0.5, "other way"), (0.0, "Undecided")]
)
def test_seeds_that_all_agree(capsys, more, answer):
    told = said(capsys, torch.ones(3) + more, torch.ones(3))
    assert answer in told and f"{more:+.3f} in every seed" in told


@pytest.mark.parametrize("higher", [[1.0], [1.0, 2.0], [1.0, 2.0, 3.0], 1.0])
def test_too_few_seeds_are_named(higher):
    with pytest.raises(ValueError, match="at least 3"):
        verdict("A", higher, [1.0, 2.0])


def test_a_learner_is_told_what_moved_and_a_stored_run_stops(capsys, monkeypatch):
    expect(torch.tensor(True), "nothing to say")
    with pytest.raises(AssertionError, match=r"over 0\.9, got 0\.50"):
        expect(0.5 > 0.9, "expected over 0.9, got 0.50: another rate?")
    monkeypatch.setattr(record, "learner_is_here", lambda: True)
    expect(0.5 > 0.9, "expected over 0.9, got 0.50: another rate?")
    told = "Not as the text tells: expected over 0.9, got 0.50: another rate?"
    assert capsys.readouterr().out.split() == told.split()
