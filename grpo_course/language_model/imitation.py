"""Imitating one's own right answers: what GRPO is to be compared with.

Rejection-sampling fine-tuning: sample, keep what the task finds right, and train on it
as on demonstrations (Yuan et al. 2023, arXiv 2308.01825; Zelikman et al. 2022, arXiv
2203.14465). Wrong answers teach nothing here; in GRPO they do.
"""

from collections.abc import Callable

from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.environment import Environment
from grpo_course.language_model.evaluation import sampled_scores
from grpo_course.language_model.policy import CausalPolicy
from grpo_course.language_model.text_task import Problem
from grpo_course.language_model.warm_start import warm_start

RightAnswers = dict[str, list[str]]  # question -> different right responses to it


def sample_right(
    policy: CausalPolicy, environment: Environment, num_samples: int = 8, seed: int = 0
) -> RightAnswers:
    """What is right among so many samples of each problem; none twice.

    Right is what earns all of the first of the environment's rewards. A question
    without a right sample is left out.
    """
    scores = sampled_scores(policy, environment, num_samples, seed=seed)
    right: RightAnswers = {}
    rows = zip(environment.problems, scores.texts, scores.accuracy, strict=True)
    for problem, texts, earned in rows:
        kept = {text for text, x in zip(texts, earned, strict=True) if x >= 1}
        if kept:
            right[problem.question] = sorted(kept)
    return right


def imitate_right(
    config: GRPOConfig,
    policy: CausalPolicy,
    environment: Environment,
    watch: Callable[[list[float]], None] | None = None,
) -> list[float]:
    """Train the policy on its own right answers, sampled once; the loss of each step.

    Of `config`, num_responses is the number of samples a problem, and what begins with
    warm_start says how to train. Raises ValueError where fewer problems than a step
    takes have a right sample.
    """
    right = sample_right(policy, environment, config.num_responses, config.seed)
    solved = [p for p in environment.problems if p.question in right]

    def one_of_them(problem: Problem, rng) -> str:
        return rng.choice(right[problem.question])

    return warm_start(policy, environment.tokenizer, solved, one_of_them, config, watch)
