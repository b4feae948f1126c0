"""A policy that scores, and an engine beside it that draws its responses."""

import copy


class EngineSampler:
    """What it notes of its responses is of the engine; `log_probs` is the policy's."""

    def __init__(self, policy, engine):
        self.policy, self.engine = policy, engine

    def sample(self, prompts, num_responses):
        writer = copy.copy(self.policy)  # the same weights and random numbers
        writer.sampler = self.engine
        return writer.sample(prompts, num_responses)

    def log_probs(self, rollout):
        return self.policy.log_probs(rollout)
