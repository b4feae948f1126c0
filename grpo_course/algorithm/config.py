"""The knobs of the loop, checked when they are set."""

from dataclasses import dataclass

from grpo_course.algorithm.aggregation import AGGREGATIONS
from grpo_course.algorithm.deltas import DELTA_MODES, MODES_WITHOUT_GROUP
from grpo_course.algorithm.kl import KL_ESTIMATORS
from grpo_course.algorithm.loss_inputs import clip_range, require_dual_clip
from grpo_course.algorithm.losses import LOSS_MODES
from grpo_course.algorithm.ratio import RATIO_LEVELS
from grpo_course.algorithm.validation import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    check_choices,
    check_ranges,
    check_types,
)

CHOICES = {
    "deltas_mode": DELTA_MODES,
    "loss_mode": LOSS_MODES,
    "aggregation": AGGREGATIONS,
    "ratio_level": RATIO_LEVELS,
    "kl_estimator": KL_ESTIMATORS,
    "kl_place": ("loss", "reward"),
    "old_log_probs_from": ("policy", "sampler", "first_step"),
}
RANGES = {
    "num_epochs": {"at least": 0},
    "num_steps_per_epoch": COUNT,
    "num_responses": COUNT,
    "max_length": COUNT,
    "kl_penalty": NOT_NEGATIVE,
    "kl_target": POSITIVE,
    "compute_ref_model_period": COUNT,
    "ref_mixture": {"above": 0, "at most": 1},  # at 0 the reference never moves
    "num_resamples": {"at least": 0},
    "sampler_cap": {"above": 0},
    "minibatch_size": COUNT,
    "max_gradient_norm": POSITIVE,
    "stop_kl": {"above": 0},
    "micro_batch_size": COUNT,
}


@dataclass(frozen=True)
class TrainConfig:
    """What the loop does with each rollout; the names are those of the symbol sheet.

    Raises ValueError for a name that is not known, a wrong type, a number out of range
    and knobs that contradict each other.
    """

    # The loop
    num_epochs: int = 100  # rollouts
    num_steps_per_epoch: int = 10  # mu: passes over each rollout, each one step
    num_responses: int = 10  # G: responses to each prompt

    # Deltas and loss
    deltas_mode: str = "normalized_rewards"  # not read where a judge makes the deltas
    loss_mode: str = "clipped"
    aggregation: str = "sequence_mean"
    max_length: int | None = None  # tokens, for "constant"; None: the pos axis
    epsilon: float = 0.2  # clip range below 1
    epsilon_high: float | None = None  # clip range above 1; None: the same
    ratio_level: str = "token"  # "sequence": one ratio a response (GSPO)
    dual_clip: float = 3.0  # upper bound of any ratio, for "dual_clipped"

    # KL
    kl_penalty: float = 0.0  # beta; 0 means no reference policy is kept
    kl_estimator: str = "k3"
    kl_place: str = "loss"  # "loss", or "reward" for -beta * k1 in each reward
    kl_target: float | None = None  # adapt beta until the KL is this; None: keep it
    compute_ref_model_period: int = 10  # epochs between two copies of the policy
    ref_mixture: float = 1.0  # share of the policy in its next reference; 1: a copy

    # Sampling
    num_resamples: int = 0  # times a tied group is asked again (dynamic sampling)
    mask_truncated: bool = False  # drop the tokens of responses that did not finish
    sampler_cap: float | None = None  # of pi_old / pi_sampler (TIS); None: trust it

    # Steps
    minibatch_size: int | None = None  # responses a step; None: all, one step a pass
    minibatch_seed: int = 0  # of the shuffling
    max_gradient_norm: float | None = None  # a longer gradient is scaled down to it
    # An epoch ends after the step that sees KL(pi_old||pi), the record's `old_kl`,
    # above this many nats a token (PPO's early stop, for one seed); None: all steps
    stop_kl: float | None = None

    # Memory and time
    # pi_old from a forward pass, from what the sampler noted, or, where each rollout
    # gets one step, from that step's own forward pass
    old_log_probs_from: str = "policy"
    # A forward pass holds so many prompts with all their responses; so many single
    # responses where minibatch_size is set; all at once with None
    micro_batch_size: int | None = None
    skip_tied_groups: bool = False  # no forward pass for groups without any delta

    @property
    def ratio_settings(self) -> dict[str, float | str | None]:
        """Which ratio, and both sides of its range, as the losses take them."""
        names = ("epsilon", "epsilon_high", "ratio_level")
        return {name: getattr(self, name) for name in names}

    @property
    def one_step(self) -> bool:
        """Whether a rollout gets a single optimizer step."""
        return self.num_steps_per_epoch == 1 and self.minibatch_size is None

    def __post_init__(self) -> None:
        check_types(self)
        check_choices(self, CHOICES)
        check_ranges(self, RANGES)
        clip = clip_range(self.epsilon, self.epsilon_high)
        if self.loss_mode == "dual_clipped":
            require_dual_clip(self.dual_clip, clip["epsilon_high"])
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
                "asked for after the policy has moved, or before its first step. "
                "Choose 'policy'."
            )
        if source == "sampler" and self.sampler_cap is not None:
            raise ValueError(
                f"sampler_cap={self.sampler_cap} compares pi_old with the sampler; "
                "with old_log_probs_from='sampler' they are the same. Choose 'policy'."
            )
