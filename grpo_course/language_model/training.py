"""GRPO in memory: the one loop with all that a config says, and nothing on the disk.

`Run` does the same in a folder, and can be stopped; a notebook needs less.
"""

from collections.abc import Callable

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.algorithm.history import History
from grpo_course.algorithm.train import train
from grpo_course.language_model.build import make_optimizer, make_policy, make_schedule
from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.environment import Environment
from grpo_course.language_model.evaluation import sampled_scores
from grpo_course.language_model.policy import CausalPolicy


def train_policy(
    config: GRPOConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    environment: Environment,
    watch: Callable[[History], None] | None = None,
    observe: Callable[[CausalPolicy], dict] | None = None,
) -> tuple[CausalPolicy, History]:
    """Train `model` itself, not a copy of it; returns its policy and what was seen.

    The first record of each epoch holds the mean of each of the task's rewards beside
    the columns of every run. `watch` and `observe` as in `train`.
    """
    policy = make_policy(config, model, tokenizer)
    optimizer = make_optimizer(config, policy)
    schedule = make_schedule(config, optimizer)

    def after_epoch(history: History) -> None:
        environment.note(history)
        schedule.step()
        if watch:
            watch(history)

    history = train(
        policy,
        environment.prompts,
        environment.reward,
        optimizer,
        config,
        observe=observe,
        watch=after_epoch,
    )
    return policy, history


class HeldOutProbe:
    """Measures other problems every so many epochs: pass it as `observe`.

    Adds the column `held_out`, the accuracy of one sampled response a problem. `calls`
    is the epoch that a resumed run begins with.
    """

    def __init__(self, environment: Environment, every: int = 10, calls: int = 0):
        self.environment, self.every, self.calls = environment, every, calls

    def __call__(self, policy: CausalPolicy) -> dict:
        """What joins the record of the epoch that begins."""
        due, self.calls = self.calls % self.every == 0, self.calls + 1
        return self.look(policy) if due else {}

    def look(self, policy: CausalPolicy) -> dict:
        """The accuracy now."""
        scores = sampled_scores(policy, self.environment, 1)
        return {"held_out": scores.accuracy.mean()}
