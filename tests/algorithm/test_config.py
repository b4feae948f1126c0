"""A config refuses what a run could not use, and names the knob."""

import math
from dataclasses import FrozenInstanceError

import pytest

from grpo_course.loop import TrainConfig

REFUSED = [
    # a name that is not known
    ({"deltas_mode": "centred"}, "is not known.*'centered_rewards'"),
    ({"loss_mode": "clip"}, "is not known.*'clipped'"),
    ({"aggregation": "mean"}, "is not known.*'token_mean'"),
    ({"ratio_level": "group"}, "is not known.*'sequence'"),
    ({"kl_estimator": "k4"}, "is not known.*'corrected_k3'"),
    ({"kl_place": "advantage"}, "'loss' or 'reward'"),
    # a wrong type, a number out of range
    ({"num_responses": True}, "a valid integer"),
    ({"loss_mode": ["clipped"]}, "is not known.*'clipped'"),
    ({"kl_penalty": "0.1"}, "a valid number"),
    ({"num_epochs": -1}, "greater than or equal to 0"),
    ({"epsilon": math.nan}, "a finite number"),
    ({"minibatch_size": 0}, "greater than or equal to 1"),
    # knobs that need each other
    ({"dual_clip": 1.2, "loss_mode": "dual_clipped"}, "above 1"),
    ({"num_responses": 1}, "deltas_mode='normalized_rewards'.*at least two"),
    ({"sampler_cap": 2.0, "old_log_probs_from": "sampler"}, "the same.*'policy'"),
    ({"stop_kl": 0.1, "num_steps_per_epoch": 1}, "one step.*more steps"),
    ({"kl_target": 0.1}, "with kl_penalty=0.0: both must be above 0"),
    ({"old_log_probs_from": "first_step"}, "needs num_steps_per_epoch=1"),
]


@pytest.mark.parametrize(("knobs", "says"), REFUSED)
def test_what_cannot_be_is_refused_by_name(knobs, says):
    name = next(iter(knobs))
    with pytest.raises(ValueError, match=rf"(?s){name}.*{says}"):
        TrainConfig(**knobs)


@pytest.mark.parametrize(
    "knobs",
    [
        {"loss_mode": "cispo", "epsilon_high": 4.0},
        {"dual_clip": 3.0, "epsilon_high": 4.0},  # not read
        {"loss_mode": "dual_clipped", "dual_clip": 1.3, "epsilon_high": 0.28},
        {"num_responses": 1, "deltas_mode": "rewards"},
        {"epsilon": 1.0},
        {"kl_penalty": 1},
        {"num_epochs": 0},
        {"stop_kl": 0.1, "num_steps_per_epoch": 1, "minibatch_size": 5},
    ],
)
def test_what_can_be_is_taken(knobs):
    config = TrainConfig(**knobs)
    assert {name: getattr(config, name) for name in knobs} == knobs


def test_a_name_that_nobody_reads_is_refused():
    with pytest.raises(ValueError, match="num_epoch"):
        TrainConfig(num_epoch=3)


def test_a_config_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        TrainConfig().num_epochs = 3
