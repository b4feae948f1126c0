"""The simulated queue, held against what can be computed by hand."""

import pytest

from grpo_course.off_policy import LEARNER, simulate_queue, trace_queue


def test_taking_turns_adds_the_times_and_keeps_batches_fresh():
    ages, seconds = simulate_queue([3.0, 1.0, 2.0], 1.0, writers=4, sync=0.5)
    assert ages == [0, 0, 0]
    assert seconds == pytest.approx(3 + 1 + 2 + 3 * 1.5)


@pytest.mark.parametrize("ahead", [1, 2, 3, 4, 5, 8, 12])
def test_equal_times_give_the_rate_and_the_age_of_the_closed_form(ahead):
    """With writers enough: a batch in n waits for n - 1 others, or the learner does."""
    batches, write, update = 600, 3.0, 1.0
    ages, seconds = simulate_queue([write] * batches, update, writers=99, ahead=ahead)
    each = max(update, (write + update) / ahead)
    assert seconds / batches == pytest.approx(each, rel=0.02)
    assert set(ages[ahead:]) == {ahead - 1}


@pytest.mark.parametrize("writers", [1, 2])
def test_slow_writers_set_the_rate_whatever_may_wait(writers):
    ages, seconds = simulate_queue([3.0] * 600, 1.0, writers, ahead=50)
    assert 600 / seconds == pytest.approx(writers / 3, rel=0.02)
    assert max(ages) == 2 * writers - 1  # both begin and end together


def test_batches_that_wait_are_as_old_as_the_queue_is_long():
    """The learner is the slow one, so all that may wait does."""
    ages, seconds = simulate_queue([3.0] * 600, 1.0, writers=4, ahead=20)
    assert seconds / 600 == pytest.approx(1, rel=0.02)
    assert set(ages[100:]) == {19}


def test_uneven_times_keep_the_mean_age():
    """What is begun at an update is one of `ahead`: the others come before it."""
    write = [float(1 + 5 * (i * 7 % 11 == 0)) for i in range(2000)]
    ages, _ = simulate_queue(write, 1.0, writers=99, ahead=4)
    assert sum(ages) / len(ages) == pytest.approx(3, rel=0.02)
    assert len(set(ages)) > 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"writers": 0}, "writers=0"),
        ({"ahead": 0}, "ahead=0"),
        ({"update": -1.0}, "update=-1"),
        ({"write": []}, "batches=0"),
        ({"write": [1.0, -2.0]}, "write=-2"),
    ],
)
def test_impossible_numbers_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        simulate_queue(**({"write": [1.0], "update": 1.0} | change))


def test_a_trace_says_when_each_is_busy():
    """Two writers, a queue of two: the learner updates while the other still writes."""
    _, seconds, spans = trace_queue([3.0, 5.0, 2.0], 1.0, writers=2, ahead=2)
    assert [span for span in spans if span.who != LEARNER] == [
        (0, 0.0, 3.0),
        (1, 0.0, 5.0),
        (0, 4.0, 6.0),
    ]
    learned = [(span.start, span.end) for span in spans if span.who == LEARNER]
    assert learned == [(3.0, 4.0), (5.0, 6.0), (6.0, 7.0)] and seconds == 7.0
