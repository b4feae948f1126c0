"""The presets are complete, and each failure differs in what its name says."""

from dataclasses import asdict, replace

import pytest

from grpo_course.gsm8k import FAILURES, PRESETS, TINY
from grpo_course.training import make_task, weigh

CHANGED = {
    "rate too high": {"learning_rate"},
    "no KL": {"kl_penalty"},
    "format alone": {"weight of accuracy"},
    "too hard": {"operands", "steps", "weight of format"},
}


def flat(config):
    """The settings of a run, of its task, and the weights of its rewards."""
    task = make_task(config)
    rewards = weigh(task.rewards, config.reward_weights)
    weights = {f"weight of {name}": weight for name, (_, weight) in rewards.items()}
    plain = asdict(replace(config, task_settings={}, reward_weights={}))
    return plain | asdict(task) | weights


def changes(config):
    ours, others = flat(TINY), flat(config)
    return {name for name in ours if ours[name] != others[name]}


def test_a_failure_changes_what_it_says_and_how_long_it_takes():
    assert CHANGED.keys() == FAILURES.keys()
    for name, config in FAILURES.items():
        assert changes(config) == CHANGED[name] | {"num_epochs"}
        assert config.num_epochs < TINY.num_epochs


@pytest.mark.parametrize("name", PRESETS)
def test_the_task_of_a_preset_can_be_made(name):
    assert PRESETS[name].task == "gsm8k" and flat(PRESETS[name])
