"""A config refuses what a run could not use, and names the knob."""

import math
import re

import pytest

from grpo_course.algorithm.config import TrainConfig

REFUSED = [
    # a name that is not known
    ({"deltas_mode": "centred"}, "is not known.*'centered_rewards'"),
    ({"loss_mode": "clip"}, "is not known.*'clipped'"),
    ({"aggregation": "mean"}, "is not known.*'token_mean'"),
    ({"ratio_level": "group"}, "is not known.*'sequence'"),
    ({"kl_estimator": "k4"}, "is not known.*'corrected_k3'"),
    ({"kl_place": "advantage"}, "is not known.*'reward'"),
    ({"old_log_probs_from": "last"}, "is not known.*'sampler'"),
    # a wrong type
    ({"num_epochs": None}, "of the type whole number"),
    ({"num_steps_per_epoch": 1.5}, "of the type whole number"),
    ({"num_responses": True}, "of the type whole number"),
    ({"minibatch_size": 2.0}, "of the type whole number or None"),
    ({"minibatch_seed": 0.5}, "of the type whole number"),
    ({"mask_truncated": "no"}, "of the type True or False"),
    ({"loss_mode": ["clipped"]}, "of the type text"),
    ({"kl_penalty": "0.1"}, "of the type number"),
    # a number out of range
    ({"num_epochs": -1}, "at least 0"),
    ({"num_steps_per_epoch": 0}, "at least 1"),
    ({"num_responses": 0}, "at least 1"),
    ({"max_length": 0}, "at least 1, or None"),
    ({"epsilon": -1.0}, "out of range"),
    ({"epsilon": 0.0}, "out of range"),
    ({"epsilon": 5.0}, "out of range"),
    ({"epsilon": math.nan}, "out of range"),
    ({"epsilon_high": -1.0}, "above 0"),
    ({"epsilon_high": math.nan}, "above 0"),
    ({"kl_penalty": -0.1}, "at least 0"),
    ({"kl_penalty": math.nan}, "at least 0"),
    ({"kl_penalty": math.inf}, "below inf"),
    ({"compute_ref_model_period": 0}, "at least 1"),
    ({"ref_mixture": 0.0}, "above 0 and at most 1"),
    ({"ref_mixture": 1.1}, "above 0 and at most 1"),
    ({"num_resamples": -1}, "at least 0"),
    ({"sampler_cap": 0.0}, "above 0, or None"),
    ({"sampler_cap": math.nan}, "above 0, or None"),
    ({"minibatch_size": 0}, "at least 1, or None"),
    ({"max_gradient_norm": 0.0}, "above 0"),
    ({"max_gradient_norm": math.inf}, "below inf"),
    ({"micro_batch_size": 0}, "at least 1, or None"),
    ({"stop_kl": 0.0}, "above 0, or None"),
    ({"stop_kl": math.nan}, "above 0, or None"),
    # knobs that need each other
    ({"dual_clip": 0.5, "loss_mode": "dual_clipped"}, "above 1"),
    ({"dual_clip": 1.2, "loss_mode": "dual_clipped"}, "above 1"),
    ({"dual_clip": 3.0, "loss_mode": "dual_clipped", "epsilon_high": 2.5}, "above 1"),
    ({"num_responses": 1}, "deltas_mode='normalized_rewards'.*at least two"),
    ({"num_responses": 1, "deltas_mode": "max_rewards"}, "'max_rewards'"),
    ({"sampler_cap": 2.0, "old_log_probs_from": "sampler"}, "the same.*'policy'"),
    ({"stop_kl": 0.1, "num_steps_per_epoch": 1}, "one step.*more steps"),
    ({"kl_target": 0.0, "kl_penalty": 0.1}, "above 0"),
    ({"kl_target": math.nan, "kl_penalty": 0.1}, "above 0"),
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
        {"sampler_cap": math.inf},
        {"stop_kl": math.inf},
        {"stop_kl": 0.1, "num_steps_per_epoch": 1, "minibatch_size": 5},
    ],
)
def test_what_can_be_is_taken(knobs):
    config = TrainConfig(**knobs)
    assert {name: getattr(config, name) for name in knobs} == knobs
