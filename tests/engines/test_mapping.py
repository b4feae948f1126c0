"""The table of names, held against the fields of both sides."""

import sys
from dataclasses import fields

import pytest

from grpo_course.formulas import Clip
from grpo_course.loop import TrainConfig
from grpo_course.trl import NAMES, names_table, to_trl_arguments, to_trl_config

TRL_ONLY = {"use_cpu": True, "bf16": False, "report_to": "none"}


@pytest.fixture
def trl():
    return pytest.importorskip("trl", reason="TRL is the optional extra `scale`")


def test_every_knob_of_ours_is_in_the_table_once_and_in_order():
    ours = [name.ours for name in NAMES]
    clip = [field.name for field in fields(Clip)]  # TrainConfig begins with these
    assert clip + [name for name in ours if name not in clip] == [
        field.name for field in fields(TrainConfig)
    ]
    assert [name for name in ours if name in clip] == clip


def test_every_name_of_trl_is_a_field_of_its_config(trl):
    known = {f.name for f in fields(trl.GRPOConfig)}
    cells = [name.trl.partition(" (")[0] for name in NAMES if name.trl != "-"]
    named = {name for cell in cells for name in cell.split(", ")}
    assert named <= known and len(named) > 10
    assert to_trl_arguments(TrainConfig(max_length=9)).keys() <= known


def test_a_row_translates_to_the_name_it_shows():
    """Whatever a row produces includes the name in its column."""
    config = TrainConfig(max_length=9, kl_penalty=0.1, sampler_cap=2.0)
    for name in NAMES:
        made = name.arguments(config)
        assert not made or name.trl in made, name.ours


CHANGES = {  # one knob changed: what changes in TRL's arguments
    ("num_epochs", 7): {"max_steps": 70, "sync_ref_model": False},
    ("num_steps_per_epoch", 2): {
        "num_iterations": 2, "max_steps": 200, "ref_model_sync_steps": 20},
    ("num_responses", 8): {"num_generations": 8},
    ("deltas_mode", "centered_rewards"): {"scale_rewards": "none"},
    ("deltas_mode", "batch_normalized_rewards"): {"scale_rewards": "batch"},
    ("aggregation", "token_mean"): {"loss_type": "dapo"},
    ("aggregation", "sequence_sum"): {"loss_type": "luspo"},
    ("loss_mode", "dual_clipped"): {"delta": 3.0},
    ("loss_mode", "sapo"): {"loss_type": "sapo"},
    ("max_length", 9): {"max_completion_length": 9},
    ("epsilon", 0.1): {"epsilon": 0.1, "epsilon_high": 0.1},
    ("epsilon", 1.5): {"epsilon": 1.5, "epsilon_high": 1.5},
    ("epsilon_high", 0.28): {"epsilon_high": 0.28},
    ("ratio_level", "sequence"): {"importance_sampling_level": "sequence"},
    ("dual_clip", 5.0): {},
    ("kl_penalty", 0.2): {"beta": 0.2},
    ("kl_estimator", "corrected_k3"): {"use_bias_correction_kl": True},
    ("compute_ref_model_period", 3): {"ref_model_sync_steps": 30},
    ("ref_mixture", 0.6): {"ref_model_mixup_alpha": 0.6},
    ("mask_truncated", True): {"mask_truncated_completions": True},
    ("sampler_cap", 2.0): {
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_max": 2.0},
    ("max_gradient_norm", 1.0): {"max_grad_norm": 1.0},
}  # fmt: skip


@pytest.mark.parametrize(("ours", "value"), CHANGES)
def test_one_knob_at_a_time(ours, value):
    base = {"kl_penalty": 0.1}
    before = to_trl_arguments(TrainConfig(**base))
    after = to_trl_arguments(TrainConfig(**base | {ours: value}))
    changed = {k: v for k, v in after.items() if k not in before or before[k] != v}
    assert changed == CHANGES[ours, value]


def test_what_dr_grpo_divides_by():
    knobs = {"aggregation": "constant", "max_length": 9}
    arguments = to_trl_arguments(TrainConfig(**knobs))
    assert arguments["loss_type"] == "dr_grpo"
    assert arguments["max_completion_length"] == 9


def test_the_bound_of_cispo_is_absolute_in_trl():
    config = TrainConfig(loss_mode="cispo", aggregation="token_mean", epsilon_high=4.0)
    arguments = to_trl_arguments(config)
    assert arguments["loss_type"] == "cispo" and arguments["epsilon_high"] == 5.0


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"loss_mode": "naive"}, "loss_mode, aggregation.*'naive'.*not known"),
        ({"deltas_mode": "max_rewards"}, "deltas_mode='max_rewards'.*'normalized"),
        ({"kl_penalty": 0.1, "kl_estimator": "k1"}, "kl_estimator='k1'.*corrected_k3"),
        ({"kl_penalty": 0.1, "kl_place": "reward"}, "nothing like kl_place='reward'"),
        ({"kl_penalty": 0.1, "kl_target": 0.1}, "nothing like kl_target=0.1"),
        (
            {
                "kl_penalty": 0.1,
                "kl_estimator": "corrected_k3",
                "ratio_level": "sequence",
            },
            "TRL would weigh the KL of each token.*kl_estimator='k3'",
        ),
        ({"num_resamples": 2}, "nothing like num_resamples=2"),
        ({"stop_kl": 0.1}, "nothing like stop_kl=0.1"),
        ({"minibatch_size": 4}, "steps_per_generation.*minibatch_size=None here"),
        ({"aggregation": "constant"}, "needs max_length for TRL"),
        ({"num_epochs": 0}, "num_epochs=0, but TRL takes a step"),
    ],
)
def test_what_trl_does_not_have_is_refused(knobs, message):
    with pytest.raises(ValueError, match=message):
        to_trl_arguments(TrainConfig(**knobs))


def test_a_config_of_trl(trl):
    config = TrainConfig(num_responses=4, num_epochs=3, num_steps_per_epoch=2)
    only = TRL_ONLY | {"per_device_train_batch_size": 8, "learning_rate": 3e-4}
    made = to_trl_config(config, **only, max_grad_norm=0.5)
    assert isinstance(made, trl.GRPOConfig)
    assert (made.num_generations, made.max_steps, made.learning_rate) == (4, 6, 3e-4)
    assert made.max_grad_norm == 0.5  # what is given for TRL only wins


def test_without_trl_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "trl", None)
    with pytest.raises(ImportError, match=r"needs TRL.*\.\[scale\]"):
        to_trl_config(TrainConfig())


def test_the_table_in_markdown_has_a_line_a_knob():
    head, rule, *rows = names_table().splitlines()
    assert head == "| here | TRL | verl |" and rule == "|---|---|---|"
    assert rows[0] == "| num_epochs | max_steps | trainer.total_training_steps |"
    assert len(rows) == len(NAMES)
