"""Errors for people: each names the argument, what was given, and the cure."""

import pytest
import torch

from grpo_course.checks import (
    require_axes,
    require_finite,
    require_same_shape,
    unknown_name,
)


def test_an_unknown_name_lists_the_known_ones():
    error = unknown_name("mode", "clip", {"naive": 1, "clipped": 2})
    assert isinstance(error, ValueError)
    assert str(error) == "mode='clip' is not known. Choose one of: 'naive', 'clipped'."


@pytest.mark.parametrize("shape", [(2, 3), (4, 2, 3), (1, 1, 1, 1)])
def test_axes_that_are_there_pass_with_any_in_front(shape):
    require_axes("rewards", torch.zeros(shape), "batch trial")


@pytest.mark.parametrize("given", [[[1.0, 2.0]], 3.0, None])
def test_what_is_no_tensor_is_named(given):
    says = rf"rewards is a {type(given).__name__}.*torch\.tensor.*\[batch trial\]"
    with pytest.raises(TypeError, match=says):
        require_axes("rewards", given, "batch trial")


def test_a_missing_axis_is_named_with_its_cure():
    with pytest.raises(ValueError, match=r"rewards has shape \[5\].*rewards\[None\]"):
        require_axes("rewards", torch.zeros(5), "batch trial")


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 2, 3)])
def test_an_empty_axis_is_named(shape):
    with pytest.raises(ValueError, match=rf"rewards has shape \{list(shape)}.*empty"):
        require_axes("rewards", torch.zeros(shape), "batch trial")


def test_shapes_that_differ_are_both_shown():
    require_same_shape("a", torch.zeros(2, 3), "b", torch.ones(2, 3))
    with pytest.raises(
        ValueError, match=r"a has shape \[2, 3\], but b has shape \[3, 2\]"
    ):
        require_same_shape("a", torch.zeros(2, 3), "b", torch.zeros(3, 2))
    with pytest.raises(ValueError, match=r"a has shape \[1, 3\]"):  # no broadcasting
        require_same_shape("a", torch.zeros(1, 3), "b", torch.zeros(2, 3))


@pytest.mark.parametrize("culprit", [float("nan"), float("inf"), float("-inf")])
def test_the_first_entry_that_is_not_finite_is_named(culprit):
    rewards = torch.zeros(2, 3)
    require_finite("rewards", rewards)
    rewards[1, 1:] = culprit
    with pytest.raises(ValueError, match=rf"rewards\[1, 1\] is {culprit}.*finite"):
        require_finite("rewards", rewards)


def test_whole_numbers_are_finite():
    require_finite("rewards", torch.tensor([1, 2]))
