"""Imitating one's own right answers: what is kept, and that it is learned."""

from dataclasses import replace

import pytest
import torch

from grpo_course.evaluation import sampled_scores
from grpo_course.reader import LAPTOP, Stories, load_reader
from grpo_course.training import imitate_right, make_environment, sample_right

CONFIG = replace(
    LAPTOP, warm_start_steps=6, warm_start_batch_size=8, warm_start_learning_rate=1e-4
)


@pytest.fixture
def asked():
    policy, tokenizer = load_reader()
    stories = Stories().problems("train", 16, 3)
    return policy, make_environment(CONFIG, stories, tokenizer)


def test_what_is_kept_is_right_and_different(asked):
    policy, environment = asked
    right = sample_right(policy, environment, 8, seed=5)
    scores = sampled_scores(policy, environment, 8, seed=5)
    rows = zip(environment.problems, scores.texts, scores.accuracy, strict=True)
    for problem, texts, earned in rows:
        expected = {t for t, x in zip(texts, earned, strict=True) if x == 1}
        assert set(right.get(problem.question, [])) == expected
        assert len(expected) == len(right.get(problem.question, []))
    assert right and len(right) < len(environment.problems)  # one is never right


def test_imitation_makes_right_answers_likelier(asked):
    policy, environment = asked
    before = [p.detach().clone() for p in policy.model.parameters()]
    losses = imitate_right(CONFIG, policy, environment)
    assert len(losses) == CONFIG.warm_start_steps and losses[-1] < losses[0]
    after = policy.model.parameters()
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_too_few_solved_problems_are_said(asked):
    policy, environment = asked
    more = replace(CONFIG, warm_start_batch_size=17)
    with pytest.raises(ValueError, match="the number of problems"):
        imitate_right(more, policy, environment)
