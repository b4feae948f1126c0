"""This course's knobs, and what TRL and verl call them.

`NAMES` is the one table: `names_table` shows it in the lesson, `to_trl_config` follows
it, and tests hold it against TRL's fields and a list of verl's. TRL 1.16; verl 0.9.1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grpo_course.algorithm.config import TrainConfig
from grpo_course.engines import translate
from grpo_course.engines.require import require_trl


@dataclass(frozen=True)
class Name:
    """One knob: here, in TRL's GRPOConfig, in verl's configuration.

    Where a name alone would mislead, a note in brackets follows it.
    """

    ours: str
    trl: str
    verl: str
    arguments: Callable[[TrainConfig], dict[str, Any]]


def row(ours: str, trl: str, verl: str, arguments: Callable | None = None) -> Name:
    """A row whose number only changes its name, unless told otherwise."""
    return Name(ours, trl, verl, arguments or translate.same(ours, trl))


def alone(ours: str, default: object, verl: str = "-") -> Name:
    """A row for what TRL does not have."""
    return Name(ours, "-", verl, translate.only(ours, default))


def silent(ours: str, trl: str = "-", verl: str = "-") -> Name:
    """A row for what another row translates, or what changes no result."""
    return Name(ours, trl, verl, lambda _: {})


NAMES = (
    row("num_epochs", "max_steps", "trainer.total_training_steps", translate.steps),
    row("num_steps_per_epoch", "num_iterations", "actor.ppo_epochs"),
    row("num_responses", "num_generations", "rollout.n"),
    row(
        "deltas_mode",
        "scale_rewards",
        "algorithm.adv_estimator",
        translate.scale_rewards,
    ),
    row("loss_mode", "loss_type", "actor.policy_loss.loss_mode", translate.loss_type),
    silent("aggregation", "loss_type", "actor.loss_agg_mode"),
    row(
        "max_length",
        "max_completion_length",
        "actor.loss_scale_factor",
        translate.length,
    ),
    row("epsilon", "epsilon", "actor.clip_ratio_low (1 for cispo)"),
    row("epsilon_high", "epsilon_high", "actor.clip_ratio_high", translate.upper_bound),
    row(
        "ratio_level",
        "importance_sampling_level",
        "actor.policy_loss.loss_mode (gspo)",
    ),
    row("dual_clip", "delta", "actor.clip_ratio_c", translate.dual_clip),
    row("kl_penalty", "beta", "actor.kl_loss_coef (with use_kl_loss)"),
    row(
        "kl_estimator",
        "use_bias_correction_kl",
        "actor.kl_loss_type (k3 is clamped at 10; k3+; no r k3)",
        translate.estimator,
    ),
    alone(
        "kl_place",
        "loss",
        "algorithm.use_kl_in_reward (beta is kl_ctrl.kl_coef)",
    ),
    alone(
        "kl_target",
        None,
        "algorithm.kl_ctrl.target_kl (with use_kl_in_reward, type: adaptive)",
    ),
    silent("kl_gain", "-", "algorithm.kl_ctrl.horizon"),
    row("compute_ref_model_period", "ref_model_sync_steps", "-", translate.reference),
    row("ref_mixture", "ref_model_mixup_alpha", "-"),
    alone("num_resamples", 0, "algorithm.filter_groups"),
    row("mask_truncated", "mask_truncated_completions", "-"),
    row(
        "sampler_cap",
        "vllm_importance_sampling_clip_max",
        "algorithm.rollout_correction.rollout_is_threshold (token)",
        translate.truncated_sampling,
    ),
    row(
        "minibatch_size",
        "steps_per_generation (counts parts)",
        "actor.ppo_mini_batch_size (counts prompts)",
        translate.minibatches,
    ),
    silent("minibatch_seed", "-", "actor.data_loader_seed"),
    row("max_gradient_norm", "max_grad_norm", "actor.grad_clip", translate.norm),
    alone("stop_kl", None),
    silent(
        "old_log_probs_from",
        "-",
        "algorithm.rollout_correction.bypass_mode (sampler's)",
    ),
    silent(
        "micro_batch_size",
        "per_device_train_batch_size, gradient_accumulation_steps",
        "actor.ppo_micro_batch_size_per_gpu",
    ),
    silent("skip_tied_groups"),
)


def to_trl_arguments(config: TrainConfig) -> dict[str, Any]:
    """The keyword arguments of TRL's GRPOConfig that say the same. Needs no TRL.

    Raises ValueError for a setting that TRL's GRPOTrainer does not have, or would
    take in another way.
    """
    translated: dict[str, Any] = {}
    for name in NAMES:
        translated |= name.arguments(config)
    return translated


def to_trl_config(config: TrainConfig, **trl_only: Any) -> Any:
    """A trl.GRPOConfig that trains as `config` does.

    `trl_only` are TRL's own arguments: output_dir, learning_rate, batch sizes, ...
    They win over what is translated. A sampler_cap needs use_vllm=True there: TRL
    corrects for no other sampler. Raises MissingExtra where TRL is not installed,
    ValueError as `to_trl_arguments` does.
    """
    arguments = to_trl_arguments(config) | trl_only
    return require_trl().GRPOConfig(**arguments)


def names_table() -> str:
    """The table in Markdown, one knob a line."""
    rows = [f"| {name.ours} | {name.trl} | {name.verl} |" for name in NAMES]
    return "\n".join(["| here | TRL | verl |", "|---|---|---|", *rows])
