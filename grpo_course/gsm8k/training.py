"""GRPO in memory: the one loop with all that a config says, and nothing on the disk.

`Run` does the same in a folder, and can be stopped; a notebook needs less.
"""

from collections.abc import Callable

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.algorithm.history import History
from grpo_course.algorithm.loop import train
from grpo_course.gsm8k.config import GRPOConfig
from grpo_course.gsm8k.evaluation import sampled_scores
from grpo_course.gsm8k.policy import CausalPolicy
from grpo_course.gsm8k.setting_up import (
    make_optimizer,
    make_policy,
    make_schedule,
)
from grpo_course.gsm8k.task import Task


def train_policy(
    config: GRPOConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    task: Task,
    watch: Callable[[History], None] | None = None,
    observe: Callable[[CausalPolicy], dict] | None = None,
) -> tuple[CausalPolicy, History]:
    """Train `model` itself, not a copy of it; returns its policy and what was seen.

    The first record of each epoch holds accuracy, lenient_accuracy and format of its
    responses beside the columns of every run. `watch` and `observe` as in `train`.
    """
    policy = make_policy(config, model, tokenizer)
    optimizer = make_optimizer(config, policy)
    schedule = make_schedule(config, optimizer)

    def after_epoch(history: History) -> None:
        task.note(history)
        schedule.step()
        if watch:
            watch(history)

    history = train(
        policy,
        task.prompts,
        task.reward,
        optimizer,
        config,
        observe=observe,
        watch=after_epoch,
    )
    return policy, history


class HeldOutProbe:
    """Measures other problems every so many epochs: pass it as `observe`.

    Adds the column `held_out`, strict accuracy of one sampled response a problem.
    """

    def __init__(self, task: Task, every: int = 10):
        self.task, self.every, self.calls = task, every, 0

    def __call__(self, policy: CausalPolicy) -> dict:
        """What joins the record of the epoch that begins."""
        due, self.calls = self.calls % self.every == 0, self.calls + 1
        if not due:
            return {}
        scores = sampled_scores(policy, self.task, 1)
        return {"held_out": scores.accuracy.mean()}
