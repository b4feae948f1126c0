"""The knobs of the loop: a line each, checked when they are set."""

from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import Field

from grpo_course.algorithm.aggregation import AGGREGATIONS
from grpo_course.algorithm.deltas import DELTA_MODES, MODES_WITHOUT_GROUP
from grpo_course.algorithm.kl import GAIN, KL_ESTIMATORS
from grpo_course.algorithm.losses import LOSS_MODES
from grpo_course.algorithm.ratio import Clip
from grpo_course.algorithm.settings import one_of, settings
from grpo_course.algorithm.variants.bounds import require_dual_clip


@settings()
class TrainConfig(Clip):
    """What the loop does with each rollout; the names are those of the symbol sheet.

    Raises ValueError for a name that is not known, a wrong type, a number out of range
    and knobs that contradict each other.
    """

    # The loop

    num_epochs: int = Field(default=100, ge=0)  # rollouts
    # mu: passes over each rollout, each one step
    num_steps_per_epoch: int = Field(default=10, ge=1)
    num_responses: int = Field(default=10, ge=1)  # G: responses to each prompt

    # Deltas and loss (the ratio and its range stand in `Clip`)

    # how rewards become deltas; PPO's critic makes its own
    deltas_mode: Annotated[str, one_of(DELTA_MODES)] = "normalized_rewards"
    # what the ratio does in the loss
    loss_mode: Annotated[str, one_of(LOSS_MODES)] = "clipped"
    # from a number a token to one number
    aggregation: Annotated[str, one_of(AGGREGATIONS)] = "sequence_mean"
    # tokens, the divisor of aggregation "constant"; None: the pos axis
    max_length: int | None = Field(default=None, ge=1)

    # KL

    # beta; 0 means that no reference policy is kept
    kl_penalty: float = Field(default=0.0, ge=0)
    # of the penalty in the loss
    kl_estimator: Annotated[str, one_of(KL_ESTIMATORS)] = "k3"
    # "loss", or "reward" for -beta * k1 in each reward
    kl_place: Literal["loss", "reward"] = "loss"
    # adapt beta until the KL is this; None: keep it
    kl_target: float | None = Field(default=None, gt=0)
    # K_beta: share of the error of the KL by which beta moves after an epoch
    kl_gain: float = Field(default=GAIN, gt=0, le=1)
    # epochs between two copies of the policy
    compute_ref_model_period: int = Field(default=10, ge=1)
    # share of the policy in its next reference; 1: a copy
    ref_mixture: float = Field(default=1.0, gt=0, le=1)

    # Sampling

    # times that a tied group is asked again (dynamic sampling)
    num_resamples: int = Field(default=0, ge=0)
    # drop the tokens of responses that did not finish
    mask_truncated: bool = False
    # of pi_old / pi_sampler (TIS); None: trust the sampler
    sampler_cap: float | None = Field(default=None, gt=0)

    # Steps

    # responses a step; None: all, one step a pass
    minibatch_size: int | None = Field(default=None, ge=1)
    # of the shuffling
    minibatch_seed: int = Field(default=0, ge=0, lt=2**63)
    # a longer gradient is scaled down to it; None: no limit
    max_gradient_norm: float | None = Field(default=None, gt=0)
    # nats a token: an epoch ends after the step that sees KL(pi_old||pi), `old_kl` in
    # the record, above this (PPO's early stop, for one seed); None: all steps
    stop_kl: float | None = Field(default=None, gt=0)

    # Memory and time

    # where pi_old is from: a forward pass of its own, what the sampler noted, or, where
    # each rollout gets one step, that step's forward pass
    old_log_probs_from: Literal["policy", "sampler", "first_step"] = "policy"
    # a forward pass holds so many prompts with all their responses, so many single
    # responses where minibatch_size is set; None: all at once
    micro_batch_size: int | None = Field(default=None, ge=1)
    # no forward pass for groups without any delta
    skip_tied_groups: bool = False

    @property
    def clip(self) -> dict[str, Any]:
        """The ratio and its range, as the losses take them."""
        return {field.name: getattr(self, field.name) for field in fields(Clip)}

    @property
    def mean(self) -> dict[str, Any]:
        """How tokens become one number, as loss and KL take it."""
        return {"aggregation": self.aggregation, "max_length": self.max_length}

    @property
    def one_step(self) -> bool:
        """Whether a rollout gets a single optimizer step."""
        return self.num_steps_per_epoch == 1 and self.minibatch_size is None

    def __post_init__(self) -> None:
        if self.loss_mode == "dual_clipped":
            require_dual_clip(self.dual_clip, self.high)
        self.check_pairs()
        self.check_old_log_probs()

    def check_pairs(self) -> None:
        """Knobs that need each other."""
        if self.num_responses == 1 and self.deltas_mode not in MODES_WITHOUT_GROUP:
            raise ValueError(
                f"num_responses=1 with deltas_mode={self.deltas_mode!r}: a group of "
                "one response has nothing to be compared with. Sample at least two, "
                "or choose deltas_mode='rewards'."
            )
        if self.stop_kl is not None and self.one_step:
            raise ValueError(
                f"stop_kl={self.stop_kl} with num_steps_per_epoch=1 and no "
                "minibatch_size: an epoch is one step, which is always taken. Take "
                "more steps, or use stop_kl=None."
            )
        if self.kl_target is not None and not self.kl_penalty:
            raise ValueError(
                f"kl_target={self.kl_target} with kl_penalty={self.kl_penalty}: both "
                "must be above 0, since the target moves the penalty from there."
            )

    def check_old_log_probs(self) -> None:
        """Knobs that need pi_old, and where it comes from."""
        source = self.old_log_probs_from
        if source == "first_step" and not (
            self.one_step and self.kl_place == "loss" and self.sampler_cap is None
        ):
            raise ValueError(
                "old_log_probs_from='first_step' needs num_steps_per_epoch=1, no "
                "minibatch_size, no sampler_cap and the KL in the loss: else pi_old is "
                "asked for after the policy has moved, or before its first step. With "
                f"num_steps_per_epoch={self.num_steps_per_epoch}, "
                f"minibatch_size={self.minibatch_size}, kl_place={self.kl_place!r} and "
                f"sampler_cap={self.sampler_cap}, set old_log_probs_from='policy'."
            )
        if source == "sampler" and self.sampler_cap is not None:
            raise ValueError(
                f"sampler_cap={self.sampler_cap} compares pi_old with the sampler; "
                "with old_log_probs_from='sampler' they are the same. Choose 'policy'."
            )


def require_config(config: object, kind: type[TrainConfig] = TrainConfig) -> None:
    """Check that settings are those of that kind. Raises TypeError."""
    if not isinstance(config, kind):
        raise TypeError(
            f"config is a {type(config).__name__}. Pass a {kind.__name__}: "
            f"{kind.__name__}(num_epochs=...)."
        )
