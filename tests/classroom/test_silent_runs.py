"""The five runs of exercise 7.5 show in their logs what its words say of them."""

import pytest

from grpo_course.classroom.exercises.nb07_zero_loss import LOG, SIGNS, cause_of_run
from grpo_course.classroom.silent_runs import nothing_found, run_of, short_run


def signs(history):
    """The log's numbers in the words of the exercise; room between any two of them."""
    log = history.frame()
    first, later, end = (log.loc[epoch, 0] for epoch in (0, 5, 19))
    loss, gain = abs(later.loss), end.mean_reward - first.mean_reward
    ratio, norm = log.loc[0, 3].ratio_max, first.gradient_norm
    found = {
        "loss": {"zero": loss < 1e-5, "grows": loss > 0.02},
        "reward": {"rises": gain > 0.5, "falls": gain < -0.4, "stays": abs(gain) < 0.2},
        "gradient": {"some": norm > 1, "none": norm == 0},
        "ratio": {"leaves 1": ratio > 1.1, "one": abs(log.ratio_max - 1).max() < 1e-5},
        "entropy": {
            "slow": later.sampled_entropy > 0.4,
            "gone": later.sampled_entropy < 0.15,
        },
    }
    return {name: [s for s, is_so in of.items() if is_so] for name, of in found.items()}


RUNS = {cause_of_run(letter): lambda x=letter: run_of(x) for letter in "ABCDE"} | {
    "KL weight far too large": lambda: short_run(kl_penalty=10.0),
    "learning rate far too large": lambda: short_run(learning_rate=0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("cause", SIGNS)
def test_a_log_shows_the_signs_of_its_cause(cause):
    assert signs(RUNS[cause]()) == {name: [s] for name, s in SIGNS[cause].items()}


def test_no_two_causes_look_alike():
    assert len({tuple(sorted(each.items())) for each in SIGNS.values()}) == len(SIGNS)
    assert all({*each} == {*LOG} for each in SIGNS.values())


def test_a_reward_that_finds_nothing_ties_every_group():
    assert nothing_found([1, 0], [0, 1]) == nothing_found([1, 0], [1, 1])
