"""Other sources of pi_old than a forward pass of its own."""

from torch import Tensor

from grpo_course.algorithm.loop import Trainer
from grpo_course.algorithm.rollout import Rollout


class SamplerOld(Trainer):
    """pi_old is what the sampler noted while it wrote."""

    def old_log_probs(self, rollout: Rollout) -> Tensor:
        """Raises ValueError if the policy's rollouts do not hold it."""
        if rollout.sampled_log_probs is None:
            raise ValueError(
                "old_log_probs_from='sampler', but this policy's rollouts have no "
                "sampled_log_probs. Choose 'policy': one more forward pass."
            )
        return rollout.sampled_log_probs


class FirstStepOld(Trainer):
    """With one step a rollout, pi is still pi_old there: its scores serve as both."""

    def old_log_probs(self, rollout: Rollout) -> None:
        """Nobody asks before the step."""
