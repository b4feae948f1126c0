"""The five runs of exercise 7.5 show in their logs what each is said to suffer from."""

import pytest

from grpo_course.lessons.silent_runs import run_of

SIGNS = {  # what the log shows: the reward's way, whether ratios leave 1, a gradient
    "A": ("falls", True, True),  # deltas with the wrong sign
    "B": ("stays", False, True),  # no step is taken
    "C": ("rises", True, True),  # healthy
    "D": ("stays", False, False),  # all groups tied
    "E": ("rises", False, True),  # old log-probs noted anew
}


@pytest.mark.parametrize("letter", SIGNS)
def test_a_log_shows_the_signs_of_its_cause(letter):
    log = run_of(letter).frame()
    first, end = log.loc[0, 0], log.loc[19, 0]
    assert log.xs(0, level="step").loss.abs().max() < 1e-5  # this says nothing
    gain = end.mean_reward - first.mean_reward
    way = "rises" if gain > 0.5 else "falls" if gain < -0.4 else "stays"
    leaves = (log.ratio_max - 1).abs().max() > 1e-5
    assert (way, leaves, first.gradient_norm > 1) == SIGNS[letter]
