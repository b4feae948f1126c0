"""Which problems a run is measured on, and which groups teach nothing."""

import pytest
import torch

from grpo_course.language_model import held_out
from grpo_course.language_model.build import make_task
from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.held_out import watched_problems
from grpo_course.language_model.samples import split_ties


def test_a_run_is_watched_on_its_validation_split():
    config = GRPOConfig(eval_problems=7)
    expected = make_task(config).problems("validation", 7, config.seed)
    assert watched_problems(config) == expected and len(expected) == 7
    assert watched_problems(GRPOConfig(held_out_every=0)) == []


def test_a_task_without_that_split_gives_its_first(monkeypatch):
    asked = []
    monkeypatch.setattr(held_out, "make_task", lambda config: Splits)
    monkeypatch.setattr(held_out, "load_problems", lambda _, s, n: asked.append(s))
    with pytest.raises(ValueError, match=r"split 'other'.*--held-out-every 0"):
        watched_problems(GRPOConfig())
    assert asked == ["other"]


class Splits:
    splits = ("other", "third")


def test_ties_are_all_right_all_wrong_or_neither():
    rewards = torch.tensor([[1.2, 1.2], [0.2, 0.2], [1.2, 0.2], [1.0, 1.0], [1.2, 1.0]])
    right = torch.tensor([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    shares = split_ties(rewards, right)
    assert shares == pytest.approx({"tied_right": 0.2, "tied_wrong": 0.2})
