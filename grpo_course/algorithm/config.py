"""The knobs of the loop, checked when they are set."""

from dataclasses import dataclass

from grpo_course.algorithm.aggregation import AGGREGATIONS
from grpo_course.algorithm.deltas import DELTA_MODES
from grpo_course.algorithm.kl import KL_ESTIMATORS
from grpo_course.algorithm.losses import LOSS_MODES
from grpo_course.algorithm.validation import require_at_least, unknown_name

KL_PLACES = ("loss", "reward")
AT_LEAST_ONE = (
    "num_steps_per_epoch",
    "num_responses",
    "compute_ref_model_period",
    "minibatch_size",
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
    epsilon: float = 0.2  # clip range below 1
    epsilon_high: float | None = None  # clip range above 1; None: the same
    kl_penalty: float = 0.0  # beta; 0 means no reference policy is kept
    kl_estimator: str = "k3"
    kl_place: str = "loss"  # "loss", or "reward" for -beta * k1 in each reward
    kl_target: float | None = None  # adapt beta until the KL is this; None: keep it
    compute_ref_model_period: int = 10  # epochs between two copies of the policy
    minibatch_size: int | None = None  # responses a step; None: all, one step a pass
    minibatch_seed: int = 0  # of the shuffling
    max_gradient_norm: float | None = None  # a longer gradient is scaled down to it

    @property
    def clip_range(self) -> dict[str, float | None]:
        """Both sides of the clip range, as the losses take them."""
        return {"epsilon": self.epsilon, "epsilon_high": self.epsilon_high}

    def __post_init__(self) -> None:
        for name, known in {
            "deltas_mode": DELTA_MODES,
            "loss_mode": LOSS_MODES,
            "aggregation": AGGREGATIONS,
            "kl_estimator": KL_ESTIMATORS,
            "kl_place": KL_PLACES,
        }.items():
            if getattr(self, name) not in known:
                raise unknown_name(name, getattr(self, name), known)
        require_at_least("num_epochs", self.num_epochs, 0)
        require_at_least("kl_penalty", self.kl_penalty, 0)
        for name in AT_LEAST_ONE:
            if getattr(self, name) is not None:
                require_at_least(name, getattr(self, name), 1)
        if self.max_gradient_norm is not None and not self.max_gradient_norm > 0:
            raise ValueError(
                f"max_gradient_norm={self.max_gradient_norm} is out of range: it must "
                "be above 0, or None for no limit."
            )
        if self.kl_target is not None and not (self.kl_target > 0 and self.kl_penalty):
            raise ValueError(
                f"kl_target={self.kl_target} with kl_penalty={self.kl_penalty}: both "
                "must be above 0, since the target moves the penalty from there."
            )
