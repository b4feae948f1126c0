"""Problems that a model was not trained on, beside the model that is measured."""

from dataclasses import replace
from pathlib import Path

from grpo_course.language_model.build import (
    load_problems,
    make_environment,
    make_policy,
    make_task,
)
from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.environment import Environment
from grpo_course.language_model.policy import CausalPolicy
from grpo_course.language_model.pretrained import (
    find_device,
    load_model,
    load_tokenizer,
)
from grpo_course.language_model.text_task import Problem


def load_trained(
    config: GRPOConfig, path: str | Path, split: str
) -> tuple[CausalPolicy, Environment]:
    """A saved model, and the problems of one split to measure it on.

    `path` is a folder or a name on the hub. Raises ValueError or OSError for a model or
    problems that cannot be loaded.
    """
    tokenizer = load_tokenizer(path)
    model = load_model(path, find_device(config.device))
    problems = load_problems(config, split, config.eval_problems)
    # Nothing is trained here, so nothing needs to be made again.
    config = replace(config, gradient_checkpointing=False)
    policy = make_policy(config, model, tokenizer)
    return policy, make_environment(config, problems, tokenizer)


def watched_problems(config: GRPOConfig) -> list[Problem]:
    """The problems that a run is measured on while it goes on; none if it never is.

    Those of the split "validation", so that the one to report stays unseen; a task that
    has no such split gives its first. Raises ValueError where there is no problem.
    """
    if not config.held_out_every:
        return []
    splits = make_task(config).splits
    split = "validation" if "validation" in splits else splits[0]
    problems = load_problems(config, split, config.eval_problems)
    if not problems:
        raise ValueError(
            f"task={config.task!r} has no problem in its split {split!r} to measure on "
            "while training. Give it some, or say --held-out-every 0."
        )
    return problems
