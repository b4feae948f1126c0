"""What notebook 04's evidence says of a changed push."""

import pytest
import torch

from grpo_course.lessons.four_kinds import KINDS, evidence


def naive(ratio, good):
    return torch.ones_like(ratio)


def pushed(kind, size):
    return lambda ratio, good: torch.where(KINDS[kind](ratio, good), size, 1.0)


def learned_if(better):
    """P(sorted) of 16 seeds, higher where `better` says so of a weight."""
    noise = torch.linspace(-0.01, 0.01, 16)
    return lambda weight, rate: noise * rate + (0.9 if better(weight) else 0.3)


@pytest.mark.parametrize(
    ("weight", "helps", "words"),
    [
        (pushed("bad, fallen", 0.0), True, "Convicted: bad, fallen."),
        (pushed("good, risen", 0.5), False, "Acquitted: good, risen."),
        (pushed("bad, fallen", 2.0), False, "Nobody is acquitted"),
        (pushed("bad, fallen", -1.0), False, "Nobody is acquitted"),
        (lambda ratio, good: torch.where(good, 0.0, 1.0), True, "Several kinds"),
        (naive, True, "Nothing follows"),
    ],
)
def test_what_follows_from_a_changed_push(capsys, weight, helps, words):
    evidence(weight, naive, learned_if(lambda tried: helps and tried is weight))
    assert words in capsys.readouterr().out.splitlines()[-1]
