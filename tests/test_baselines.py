"""What notebook 03 says of the evidence against "a baseline always saves noise"."""

import pytest

from grpo_course.lessons.baselines import evidence


def noises(p, size, points):
    """As with infinitely large groups: raw rewards, and the mean as a baseline."""
    return p * (1 - p) * (1 - p + points) ** 2, p * (1 - p) * (1 - 2 * p) ** 2


@pytest.mark.parametrize(
    "findings, told",
    [
        ((0.9, 0.6, 0.67, 1.0), "[v] edge = 0.67"),
        ((0.9, 0.6, 0.66, 1.0), "[x] edge = 0.66"),
        ((0.9, 0.6, 0.6699999999, 1.0), "[v] edge = 0.67"),
        ((0.9, 0.6, 0.675, 1.0), "[x] edge = 0.675: round it"),
        ((1.5, 0.6, 0.67, 1.0), "[x] always = 1.5: take a p"),
        ((1.0, 0.6, 0.67, 1.0), "[x] always = 1: take a p"),
        ((0.9, 0.0, 0.67, 1.0), "[x] sometimes = 0: take a p"),
        ((0.9, 0.6, 0.67, 1.0), "[v] more = 1"),
        ((0.9, 0.6, 0.67, 0.1), "[x] more = 0.1"),
    ],
)
def test_each_finding_is_marked_and_what_is_no_chance_is_named(capsys, findings, told):
    evidence(noises, *findings)
    assert told in capsys.readouterr().out
