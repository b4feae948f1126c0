"""A config refuses what a run could not use, and names the knob."""

import math
import re
from dataclasses import FrozenInstanceError

import pytest

from grpo_course.loop import TrainConfig
from grpo_course.sampling import Sampler

REFUSED = [
    # a name that is not known
    ({"deltas_mode": "centred"}, "is not known.*'centered_rewards'"),
    ({"loss_mode": "clip"}, "is not known.*'clipped'"),
    ({"aggregation": "mean"}, "is not known.*'token_mean'"),
    ({"ratio_level": "group"}, "is not known.*'sequence'"),
    ({"kl_estimator": "k4"}, "is not known.*'corrected_k3'"),
    ({"kl_place": "advantage"}, "must be 'loss' or 'reward'"),
    ({"old_log_probs_from": "last"}, "must be 'policy', 'sampler' or"),
    # a wrong type
    ({"num_epochs": None}, "a valid integer"),
    ({"num_steps_per_epoch": 1.5}, "a valid integer"),
    ({"num_responses": True}, "a valid integer"),
    ({"minibatch_size": 2.0}, "a valid integer, or None"),
    ({"minibatch_seed": 0.5}, "a valid integer"),
    ({"mask_truncated": "no"}, "a valid boolean"),
    ({"loss_mode": ["clipped"]}, "is not known.*'clipped'"),
    ({"loss_mode": None}, "is not known.*'clipped'"),
    ({"kl_penalty": "0.1"}, "a valid number"),
    # a number out of range
    ({"num_epochs": -1}, "greater than or equal to 0"),
    ({"num_steps_per_epoch": 0}, "greater than or equal to 1"),
    ({"num_responses": 0}, "greater than or equal to 1"),
    ({"max_length": 0}, "greater than or equal to 1, or None"),
    ({"epsilon": -1.0}, "greater than 0"),
    ({"epsilon": 0.0}, "greater than 0"),
    ({"epsilon": math.nan}, "a finite number"),
    ({"epsilon": math.inf}, "a finite number"),
    ({"epsilon_high": -1.0}, "greater than 0, or None"),
    ({"epsilon_high": math.nan}, "a finite number, or None"),
    ({"kl_penalty": -0.1}, "greater than or equal to 0"),
    ({"kl_penalty": math.nan}, "a finite number"),
    ({"kl_penalty": math.inf}, "a finite number"),
    ({"compute_ref_model_period": 0}, "greater than or equal to 1"),
    ({"ref_mixture": 0.0}, "greater than 0"),
    ({"ref_mixture": 1.1}, "less than or equal to 1"),
    ({"num_resamples": -1}, "greater than or equal to 0"),
    ({"sampler_cap": 0.0}, "greater than 0, or None"),
    ({"sampler_cap": math.nan}, "a finite number, or None"),
    ({"sampler_cap": math.inf}, "a finite number, or None"),
    ({"minibatch_size": 0}, "greater than or equal to 1, or None"),
    ({"minibatch_seed": -1}, "greater than or equal to 0"),
    ({"max_gradient_norm": 0.0}, "greater than 0, or None"),
    ({"max_gradient_norm": math.inf}, "a finite number, or None"),
    ({"micro_batch_size": 0}, "greater than or equal to 1, or None"),
    ({"stop_kl": 0.0}, "greater than 0, or None"),
    ({"stop_kl": math.nan}, "a finite number, or None"),
    ({"stop_kl": math.inf}, "a finite number, or None"),
    ({"dual_clip": 0.5}, "greater than 1"),
    # knobs that need each other
    ({"dual_clip": 1.2, "loss_mode": "dual_clipped"}, "above 1"),
    ({"dual_clip": 3.0, "loss_mode": "dual_clipped", "epsilon_high": 2.5}, "above 1"),
    ({"num_responses": 1}, "deltas_mode='normalized_rewards'.*at least two"),
    ({"num_responses": 1, "deltas_mode": "max_rewards"}, "'max_rewards'"),
    ({"sampler_cap": 2.0, "old_log_probs_from": "sampler"}, "the same.*'policy'"),
    ({"stop_kl": 0.1, "num_steps_per_epoch": 1}, "one step.*more steps"),
    ({"kl_target": 0.0, "kl_penalty": 0.1}, "greater than 0, or None"),
    ({"kl_target": math.nan, "kl_penalty": 0.1}, "a finite number"),
    ({"kl_target": 0.1}, "with kl_penalty=0.0: both must be above 0"),
]


@pytest.mark.parametrize(("knobs", "says"), REFUSED)
def test_what_cannot_be_is_refused_by_name(knobs, says):
    name, value = next(iter(knobs.items()))
    given = re.escape(f"{name}={value!r}")
    with pytest.raises(ValueError, match=f"^{given}.*{says}"):
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


def test_a_name_that_nobody_reads_is_refused_with_the_nearest_one():
    with pytest.raises(
        ValueError, match=r"no 'num_epoch'. Did you mean 'num_epochs'\?"
    ):
        TrainConfig(num_epoch=3)


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(ValueError, match=r"epsilon=0, but.* num_epochs=-1, but"):
        TrainConfig(num_epochs=-1, epsilon=0)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: TrainConfig(5),
            r"TrainConfig\(5\): settings are passed by name. Known:",
        ),
        (lambda: Sampler(0), "max_new_tokens=0, but it must be greater than or equal"),
        (lambda: Sampler(), "Sampler needs max_new_tokens"),
        (lambda: Sampler(1, 2, 3, 4.0, 5, 0.6, 7), "takes 6 settings; 7 is one more"),
    ],
)
def test_settings_without_a_name_are_named(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_a_config_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        TrainConfig().num_epochs = 3
