"""The knobs of the loop, checked when they are set."""

from dataclasses import dataclass

from grpo_course.algorithm.aggregation import AGGREGATIONS
from grpo_course.algorithm.deltas import DELTA_MODES
from grpo_course.algorithm.kl import KL_ESTIMATORS
from grpo_course.algorithm.losses import LOSS_MODES
from grpo_course.algorithm.ratio import RATIO_LEVELS
from grpo_course.algorithm.validation import require_at_least, unknown_name

KL_PLACES = ("loss", "reward")
OLD_LOG_PROBS_FROM = ("policy", "sampler", "first_step")
AT_LEAST_ONE = (
    "num_steps_per_epoch",
    "num_responses",
    "compute_ref_model_period",
    "minibatch_size",
    "micro_batch_size",
    "max_length",
)


@dataclass(frozen=True)
class TrainConfig:
    """What the loop does with each rollout; the names are those of the symbol sheet.

    Raises ValueError for a name that is not known and a number out of range.
    """

    num_epochs: int = 100  # rollouts
    num_steps_per_epoch: int = 10  # mu: passes over each rollout, each one step
    num_responses: int = 10  # G: responses to each prompt
    deltas_mode: str = "normalized_rewards"
    loss_mode: str = "clipped"
    aggregation: str = "sequence_mean"
    max_length: int | None = None  # tokens, for "constant"; None: the pos axis
    epsilon: float = 0.2  # clip range below 1
    epsilon_high: float | None = None  # clip range above 1; None: the same
    ratio_level: str = "token"  # "sequence": one ratio a response (GSPO)
    dual_clip: float = 3.0  # upper bound of any ratio, for "dual_clipped"
    kl_penalty: float = 0.0  # beta; 0 means no reference policy is kept
    kl_estimator: str = "k3"
    kl_place: str = "loss"  # "loss", or "reward" for -beta * k1 in each reward
    kl_target: float | None = None  # adapt beta until the KL is this; None: keep it
    compute_ref_model_period: int = 10  # epochs between two copies of the policy
    ref_mixture: float = 1.0  # share of the policy in its next reference; 1: a copy
    num_resamples: int = 0  # times a tied group is asked again (dynamic sampling)
    mask_truncated: bool = False  # drop the tokens of responses that did not finish
    sampler_cap: float | None = None  # of pi_old / pi_sampler (TIS); None: trust it
    minibatch_size: int | None = None  # responses a step; None: all, one step a pass
    minibatch_seed: int = 0  # of the shuffling
    max_gradient_norm: float | None = None  # a longer gradient is scaled down to it
    # pi_old from a forward pass, from what the sampler noted, or, where each rollout
    # gets one step, from that step's own forward pass
    old_log_probs_from: str = "policy"
    micro_batch_size: int | None = None  # rows of a forward pass; None: all at once
    skip_tied_groups: bool = False  # no forward pass for groups without any delta

    @property
    def clip_range(self) -> dict[str, float | None]:
        """Which ratio, and both sides of its range, as the losses take them."""
        names = ("epsilon", "epsilon_high", "ratio_level")
        return {name: getattr(self, name) for name in names}

    def __post_init__(self) -> None:
        for name, known in {
            "deltas_mode": DELTA_MODES,
            "loss_mode": LOSS_MODES,
            "aggregation": AGGREGATIONS,
            "ratio_level": RATIO_LEVELS,
            "kl_estimator": KL_ESTIMATORS,
            "kl_place": KL_PLACES,
            "old_log_probs_from": OLD_LOG_PROBS_FROM,
        }.items():
            if getattr(self, name) not in known:
                raise unknown_name(name, getattr(self, name), known)
        require_at_least("num_epochs", self.num_epochs, 0)
        require_at_least("kl_penalty", self.kl_penalty, 0)
        require_at_least("num_resamples", self.num_resamples, 0)
        for name in AT_LEAST_ONE:
            if getattr(self, name) is not None:
                require_at_least(name, getattr(self, name), 1)
        self.check_ranges()
        self.check_pairs()

    def check_ranges(self) -> None:
        """Numbers that are above 0, or None for no limit; and the one share."""
        for name in ("max_gradient_norm", "sampler_cap"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(
                    f"{name}={value} is out of range: it must be above 0, or None for "
                    "no limit."
                )
        if not 0 < self.ref_mixture <= 1:
            raise ValueError(
                f"ref_mixture={self.ref_mixture} is out of range: it must be above 0, "
                "or the reference never moves, and at most 1, a plain copy."
            )

    def check_pairs(self) -> None:
        """Knobs that need each other."""
        one_step = self.num_steps_per_epoch == 1 and self.minibatch_size is None
        if self.old_log_probs_from == "first_step" and not (
            one_step and self.kl_place == "loss" and self.sampler_cap is None
        ):
            raise ValueError(
                "old_log_probs_from='first_step' needs num_steps_per_epoch=1, no "
                "minibatch_size, no sampler_cap and the KL in the loss: else pi_old is "
                "asked for after the policy has moved, or before its first step. "
                "Choose 'policy'."
            )
        if self.kl_target is not None and not (self.kl_target > 0 and self.kl_penalty):
            raise ValueError(
                f"kl_target={self.kl_target} with kl_penalty={self.kl_penalty}: both "
                "must be above 0, since the target moves the penalty from there."
            )
