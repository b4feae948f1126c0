"""A run on disk: written whole, read back equal, never mistaken for another."""

import sys
from dataclasses import dataclass, field
from importlib import import_module

import numpy as np
import pytest
import torch

from grpo_course import files
from grpo_course import sort as cache
from grpo_course.sort import (
    run_policy_gradient,
    sort_distance_reward,
    sort_exact_reward,
)


def run(folder, **settings):
    return run_policy_gradient(
        2, 2, use_cache=True, cache_folder=folder, seeds=(0, 1), **settings
    )


def test_a_second_run_is_read_not_trained(tmp_path, monkeypatch):
    first = run(tmp_path)
    monkeypatch.setattr("grpo_course.sort.train", None)
    second = run(tmp_path)
    for name in ("loss", "mean_reward", "expected_reward", "step"):
        assert torch.equal(first.curve(name), second.curve(name))
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".jsonl", ".png"]


def test_every_setting_makes_another_file(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "figure", lambda history: b"")
    for settings in (
        {},
        {"reward_fn": sort_distance_reward},
        {"reward_fn": sort_exact_reward},
        {"learning_rate": 0.1},
        {"deltas_mode": "centered_rewards"},
        {"prompts": torch.tensor([[1, 0, 2]])},
    ):
        run(tmp_path, **settings)
    assert len(list(tmp_path.glob("*.jsonl"))) == 6


def test_a_reward_is_known_by_its_code_and_a_lambda_is_refused():
    def reward(prompt, response):
        return 1.0

    first = cache.cache_key({"reward_fn": reward})

    def reward(prompt, response):
        return 2.0

    assert cache.cache_key({"reward_fn": reward}) != first
    with pytest.raises(ValueError, match="Define it with `def`"):
        cache.cache_key({"reward_fn": lambda p, r: 1.0})


def paying(points, per_place=(1.0, 2.0)):
    def reward(prompt, response):
        return points + sum(SCALE[0] * place for place in per_place) + HALF.item()

    return reward


SCALE, HALF = [1.0], torch.tensor(0.5)


def test_a_reward_is_known_by_the_values_it_reads(monkeypatch):
    """Of a closure, a default, and a global, in a comprehension too."""
    keys = {cache.cache_key({"reward_fn": paying(2.0)})}
    assert cache.cache_key({"reward_fn": paying(2.0)}) in keys
    keys.add(cache.cache_key({"reward_fn": paying(-2.0)}))
    keys.add(cache.cache_key({"reward_fn": paying(2.0, per_place=(3.0,))}))
    monkeypatch.setitem(globals(), "SCALE", [5.0])
    keys.add(cache.cache_key({"reward_fn": paying(2.0)}))
    monkeypatch.setitem(globals(), "HALF", torch.tensor(0.25))
    keys.add(cache.cache_key({"reward_fn": paying(2.0)}))
    assert len(keys) == 5


def test_a_reward_is_known_by_the_functions_it_calls():
    def keyed(points):
        def inner(response):
            return points

        def reward(prompt, response):
            return inner(response)

        return cache.cache_key({"reward_fn": reward})

    assert keyed(1.0) != keyed(2.0)


LONG = torch.zeros(5000)  # print shows its ends


@dataclass
class Hidden:
    points: float = field(repr=False)


@pytest.mark.parametrize(
    "kind", [list, tuple, dict, np.array, Hidden], ids=lambda kind: kind.__name__
)
def test_what_print_leaves_out_is_in_the_key(kind):
    def keyed(values):
        thing = kind({0: values}) if kind is dict else kind([values])

        def reward(prompt, response):
            return float(thing is None)

        return cache.cache_key({"reward_fn": reward})

    other = LONG.clone()
    other[2500] = 1
    assert keyed(LONG) == keyed(LONG.clone()) != keyed(other)


@pytest.fixture
def helper(tmp_path, monkeypatch):
    """A module of the learner's own, which rewards in a notebook call."""
    path = tmp_path / "own_helper.py"
    path.write_text("SCALE = 1.0\ndef scaled(x):\n    return x * SCALE\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = import_module("own_helper")
    yield module
    del sys.modules["own_helper"]


def test_a_reward_is_known_by_the_modules_of_ones_own(helper):
    scaled = helper.scaled

    def by_value(prompt, response):
        return helper.SCALE

    def by_function(prompt, response):
        return scaled(1.0)

    keys = {cache.cache_key({"reward_fn": f}) for f in (by_value, by_function)}
    helper.SCALE = 2.0
    keys |= {cache.cache_key({"reward_fn": f}) for f in (by_value, by_function)}
    assert len(keys) == 4


def test_functions_that_call_each_other_have_a_key():
    def keyed(points):
        def first(response):
            return second(response[1:]) if response else 0

        def second(response):
            return points + first(response)

        def reward(prompt, response):
            return first(response)

        return cache.cache_key({"reward_fn": reward})

    assert keyed(1.0) == keyed(1.0) != keyed(2.0)


class Quiet:
    """An object that says nothing of its state."""

    def __repr__(self):
        return "<object quiet>"


@pytest.mark.parametrize("thing", [object(), torch.nn.Linear(1, 1), Quiet()])
def test_what_has_no_text_of_its_own_is_refused(thing):
    def reward(prompt, response):
        return float(thing is None)

    with pytest.raises(ValueError, match=r"cannot tell (<object|Linear)"):
        cache.cache_key({"reward_fn": reward})


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def stop(beside, path):
        assert beside.read_bytes()
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_log_is_named(tmp_path):
    run(tmp_path)
    log = next(tmp_path.glob("*.jsonl"))
    log.write_text(log.read_text() + "{half a line")
    with pytest.raises(
        ValueError, match=r"line 6 is not what was written.*Delete the file"
    ):
        run(tmp_path)
