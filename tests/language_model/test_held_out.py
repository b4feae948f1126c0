"""Which problems a run is measured on, and which groups teach nothing."""

from types import SimpleNamespace

import pytest
import torch

from grpo_course import training
from grpo_course.tasks import split_ties
from grpo_course.training import GRPOConfig, HeldOutProbe, make_task, watched_problems


def test_a_run_is_watched_on_its_validation_split():
    config = GRPOConfig(eval_problems=7)
    expected = make_task(config).problems("validation", 7, config.seed)
    assert watched_problems(config) == expected and len(expected) == 7
    assert watched_problems(GRPOConfig(held_out_every=0)) == []


def test_a_task_without_that_split_gives_its_first(monkeypatch):
    asked = []
    monkeypatch.setattr(training, "make_task", lambda config: Splits)
    monkeypatch.setattr(training, "load_problems", lambda _, s, n: asked.append(s))
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


def test_a_probe_keeps_what_each_look_saw_by_its_epoch(monkeypatch):
    def scores(policy, problems, num_samples):
        return SimpleNamespace(accuracy=torch.full((3, num_samples), policy))

    monkeypatch.setattr(training, "sampled_scores", scores)
    probe = HeldOutProbe(None, every=2, num_samples=8)
    records = [probe(float(policy)) for policy in range(4)]
    probe.look(4.0)  # the policy that a run of four epochs ends with
    assert records == [{"held_out": 0.0}, {}, {"held_out": 2.0}, {}]
    assert {k: v[0].tolist() for k, v in probe.rewards.items()} == {
        epoch: [float(epoch)] * 8 for epoch in (0, 2, 4)
    }
