"""What one knob of this course is in TRL: from a config to TRL's arguments."""

from collections.abc import Callable
from typing import Any

from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.validation import unknown_name

# (loss_mode, aggregation): TRL's loss_type
LOSS_TYPES = {
    ("clipped", "sequence_mean"): "grpo",
    ("clipped", "token_mean"): "dapo",
    ("clipped", "constant"): "dr_grpo",
    ("clipped", "sequence_sum"): "luspo",
    ("dual_clipped", "sequence_mean"): "grpo",
    ("dual_clipped", "token_mean"): "dapo",
    ("dual_clipped", "constant"): "dr_grpo",
    ("dual_clipped", "sequence_sum"): "luspo",
    ("cispo", "token_mean"): "cispo",
    ("sapo", "sequence_mean"): "sapo",
}
SCALES = {
    "normalized_rewards": "group",
    "centered_rewards": "none",
    "batch_normalized_rewards": "batch",
}
ESTIMATORS = {"k3": False, "corrected_k3": True}
PER_TOKEN = ("corrected_k3", "sequence")  # here the ratio is a token's all the same


def loss_type(config: TrainConfig) -> dict[str, Any]:
    """The loss and its mean are one name."""
    pair = (config.loss_mode, config.aggregation)
    if pair not in LOSS_TYPES:
        raise unknown_name("(loss_mode, aggregation)", pair, LOSS_TYPES)
    return {"loss_type": LOSS_TYPES[pair]}


def scale_rewards(config: TrainConfig) -> dict[str, Any]:
    """How the deltas are scaled."""
    if config.deltas_mode not in SCALES:
        raise unknown_name("deltas_mode", config.deltas_mode, SCALES)
    return {"scale_rewards": SCALES[config.deltas_mode]}


def upper_bound(config: TrainConfig) -> dict[str, Any]:
    """epsilon_high; CISPO's is the bound itself, not its distance from 1."""
    high = config.epsilon if config.epsilon_high is None else config.epsilon_high
    return {"epsilon_high": 1 + high if config.loss_mode == "cispo" else high}


def dual_clip(config: TrainConfig) -> dict[str, Any]:
    """delta, or None for a loss that has no second bound."""
    has_bound = config.loss_mode == "dual_clipped"
    return {"delta": config.dual_clip if has_bound else None}


def estimator(config: TrainConfig) -> dict[str, Any]:
    """k3, with or without the ratio; without a penalty nobody reads it."""
    if config.kl_penalty and config.kl_estimator not in ESTIMATORS:
        raise unknown_name("kl_estimator", config.kl_estimator, ESTIMATORS)
    if config.kl_penalty and (config.kl_estimator, config.ratio_level) == PER_TOKEN:
        raise ValueError(
            "kl_estimator='corrected_k3' with ratio_level='sequence': TRL would weigh "
            "the KL of each token with the ratio of its whole response, which bends "
            "the gradient. Choose kl_estimator='k3' or ratio_level='token' there."
        )
    return {"use_bias_correction_kl": ESTIMATORS.get(config.kl_estimator, True)}


def reference(config: TrainConfig) -> dict[str, Any]:
    """TRL counts optimizer steps between two references, this course epochs."""
    steps = config.compute_ref_model_period * config.num_steps_per_epoch
    moves = config.compute_ref_model_period < config.num_epochs
    return {
        "sync_ref_model": bool(config.kl_penalty) and moves,
        "ref_model_sync_steps": steps,
    }


def truncated_sampling(config: TrainConfig) -> dict[str, Any]:
    """TRL corrects for vLLM only, and by default: without a cap, as it likes to.

    Here the sampler is the policy itself, so None corrects nothing. vLLM never is, and
    TRL then drops whole responses (mode sequence_mask, at 3).
    """
    if config.sampler_cap is None:
        return {}
    return {
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_max": config.sampler_cap,
    }


def steps(config: TrainConfig) -> dict[str, Any]:
    """The number of optimizer steps in all."""
    if not config.num_epochs:
        raise ValueError(
            "num_epochs=0, but TRL takes a step even with max_steps=0. Choose 1 or "
            "more there."
        )
    return {"max_steps": config.num_epochs * config.num_steps_per_epoch}


def minibatches(config: TrainConfig) -> dict[str, Any]:
    """TRL counts the parts of a rollout, which this config does not know the size of"""
    if config.minibatch_size is not None:
        raise ValueError(
            f"minibatch_size={config.minibatch_size} counts responses; TRL cuts a "
            "rollout into steps_per_generation parts. Set TRL's steps_per_generation, "
            "per_device_train_batch_size and max_steps yourself, and "
            "minibatch_size=None here."
        )
    return {}


def length(config: TrainConfig) -> dict[str, Any]:
    """The most tokens of a response; TRL's default unless set, or divided by."""
    tokens = config.max_length
    if tokens is None and config.aggregation == "constant":
        raise ValueError(
            "aggregation='constant' needs max_length for TRL, which divides by a "
            "default of its own: give the most tokens of a response."
        )
    return {} if tokens is None else {"max_completion_length": tokens}


def norm(config: TrainConfig) -> dict[str, Any]:
    """TRL's word for no limit is 0."""
    return {"max_grad_norm": config.max_gradient_norm or 0.0}


def same(ours: str, trl: str) -> Callable[[TrainConfig], dict[str, Any]]:
    """The same number under another name."""
    return lambda config: {trl: getattr(config, ours)}


def only(ours: str, default: object) -> Callable[[TrainConfig], dict[str, Any]]:
    """What TRL cannot do: nothing to say while it is off, an error else."""

    def check(config: TrainConfig) -> dict[str, Any]:
        if getattr(config, ours) != default:
            raise ValueError(
                f"TRL's GRPOTrainer has nothing like {ours}={getattr(config, ours)!r}. "
                f"Use {ours}={default!r} there."
            )
        return {}

    return check
