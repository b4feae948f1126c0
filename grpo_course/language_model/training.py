"""GRPO in memory: the one loop with all that a config says, and nothing on the disk.

`Run` does the same in a folder, and can be stopped; a notebook needs less.
"""

from collections.abc import Callable

from torch import Tensor
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

    Adds the column `held_out`, the accuracy of `num_samples` responses a problem, and
    keeps what each of them earned: `rewards[epoch]` is [problem sample]. `calls` is the
    epoch that a resumed run begins with.
    """

    def __init__(
        self,
        environment: Environment,
        every: int = 10,
        calls: int = 0,
        num_samples: int = 1,
    ):
        self.environment, self.every, self.calls = environment, every, calls
        self.num_samples = num_samples
        self.rewards: dict[int, Tensor] = {}

    def __call__(self, policy: CausalPolicy) -> dict:
        """What joins the record of the epoch that begins."""
        record = self.look(policy) if self.calls % self.every == 0 else {}
        self.calls += 1
        return record

    def look(self, policy: CausalPolicy) -> dict:
        """The accuracy now; after a run, that of the policy it ended with."""
        scores = sampled_scores(policy, self.environment, self.num_samples)
        self.rewards[self.calls] = scores.accuracy
        return {"held_out": scores.accuracy.mean()}
