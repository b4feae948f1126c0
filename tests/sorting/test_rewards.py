"""The sort rewards: worked examples, equal list and tensor paths, the hack."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

from grpo_course.sort import (
    BATCH_REWARDS,
    compute_reward,
    reward_one_by_one,
    sort_distance_reward,
    sort_exact_reward,
    sort_inclusion_ordering_reward,
    sort_multiset_reward,
)

LIST_REWARDS = [
    sort_distance_reward,
    sort_inclusion_ordering_reward,
    sort_multiset_reward,
    sort_exact_reward,
]
each_reward = pytest.mark.parametrize(
    "reward_fn", LIST_REWARDS, ids=lambda f: f.__name__
)


def all_rows(vocab_size, length):
    """Every row of that length over the vocabulary, as lists."""
    return [list(row) for row in product(range(vocab_size), repeat=length)]


def all_answers(prompts, vocab_size):
    """The same full list of responses for each prompt. -> int [batch all pos]"""
    responses = torch.tensor(all_rows(vocab_size, prompts.shape[-1]))
    return responses.expand(len(prompts), *responses.shape)


def best_answers(prompt, reward_fn):
    """All responses over five numbers that no other response beats."""
    rows = all_rows(5, 3)
    rewards = [reward_fn(prompt, row) for row in rows]
    return [row for row, r in zip(rows, rewards, strict=True) if r == max(rewards)]


@pytest.mark.parametrize(
    ("response", "distance", "inclusion_ordering"),
    [([0, 1, 2, 3], 4, 7), ([7, 2, 2, 5], 1, 3), ([0, 3, 1, 2], 1, 6)],
)
def test_worked_examples(response, distance, inclusion_ordering):
    prompt = [3, 1, 0, 2]
    assert sort_distance_reward(prompt, response) == distance
    assert sort_inclusion_ordering_reward(prompt, response) == inclusion_ordering
    prompts, responses = torch.tensor([prompt]), torch.tensor([[response]])
    for reward_fn, reward in (
        (sort_distance_reward, distance),
        (sort_inclusion_ordering_reward, inclusion_ordering),
    ):
        assert compute_reward(prompts, responses, reward_fn).tolist() == [[reward]]


@pytest.mark.parametrize(
    ("response", "multiset", "exact"),
    [([0, 1, 2, 3], 7, 1), ([7, 2, 2, 5], 3, 0), ([0, 3, 1, 2], 6, 0), ([1] * 4, 4, 0)],
)
def test_multiset_and_exact_by_hand(response, multiset, exact):
    assert sort_multiset_reward([3, 1, 0, 2], response) == multiset
    assert sort_exact_reward([3, 1, 0, 2], response) == exact


@each_reward
def test_tensor_path_equals_list_path_on_all_prompts_of_three(reward_fn):
    prompts = torch.tensor(all_rows(5, 3))
    responses = all_answers(prompts, 5)
    by_tensor = compute_reward(prompts, responses, reward_fn)
    by_list = [[reward_fn(p, r) for r in all_rows(5, 3)] for p in prompts.tolist()]
    assert by_tensor.tolist() == by_list
    assert by_tensor.dtype == torch.float32
    assert (
        len(by_tensor.unique()) > 1
    )  # a reward that is always the same passes too easily


@each_reward
def test_tensor_path_equals_list_path_on_prompts_of_four(reward_fn):
    prompts = torch.tensor([[3, 1, 0, 2], [2, 2, 0, 1], [1, 1, 1, 1], [0, 3, 3, 0]])
    by_tensor = compute_reward(prompts, all_answers(prompts, 4), reward_fn)
    by_list = [[reward_fn(p, r) for r in all_rows(4, 4)] for p in prompts.tolist()]
    assert by_tensor.tolist() == by_list


@each_reward
def test_leading_axes_pass_through_both_paths(reward_fn):
    prompts = torch.tensor([[1, 0, 2], [2, 2, 0]])
    generator = torch.Generator().manual_seed(0)
    responses = torch.randint(5, (2, 3, 2, 7, 3), generator=generator)
    by_tensor = compute_reward(prompts, responses, reward_fn)
    assert by_tensor.shape == (2, 3, 2, 7)
    for i, j in product(range(2), range(3)):
        alone = compute_reward(prompts, responses[i, j], reward_fn)
        assert torch.equal(by_tensor[i, j], alone)
    assert torch.equal(by_tensor, reward_one_by_one(prompts, responses, reward_fn))


@each_reward
def test_the_tensor_twin_may_be_passed_itself(reward_fn):
    prompts = torch.tensor([[1, 0, 2], [2, 2, 0]])
    responses = all_answers(prompts, 5)
    twin = compute_reward(prompts, responses, BATCH_REWARDS[reward_fn])
    assert torch.equal(twin, compute_reward(prompts, responses, reward_fn))


@each_reward
@pytest.mark.parametrize("response", [[4, 4, 4], [0, 1, 2]])
def test_rewards_on_lists_are_floats(reward_fn, response):
    assert isinstance(reward_fn([1, 0, 2], response), float)


@each_reward
def test_rewards_on_rows_of_a_tensor_are_those_of_the_lists(reward_fn):
    # Public code passes prompts[i] and responses[i, j] straight to the reward.
    prompt, response = [2, 2, 0], [0, 1, 2]
    on_rows = reward_fn(torch.tensor(prompt), torch.tensor(response))
    assert on_rows == reward_fn(prompt, response)


def test_a_learners_own_reward_goes_through_the_loop():
    def last_minus_first(prompt, response):
        assert type(prompt) is list and type(response[0]) is int
        return response[-1] - response[0] + 10 * prompt[0]

    prompts = torch.tensor([[1, 0, 2], [3, 2, 4]])
    responses = torch.arange(2 * 2 * 4 * 3).reshape(2, 2, 4, 3) ** 2 % 5
    rewards = compute_reward(prompts, responses, last_minus_first)
    offsets = torch.tensor([10.0, 30.0])[:, None]
    assert torch.equal(rewards, responses[..., -1] - responses[..., 0] + offsets)
    assert rewards.dtype == torch.float32


def test_one_number_counted_twice_earns_the_full_score():
    prompt, hack = [2, 2, 0], [0, 0, 2]
    assert sort_inclusion_ordering_reward(prompt, hack) == 5
    assert sort_inclusion_ordering_reward(prompt, sorted(prompt)) == 5
    assert sort_multiset_reward(prompt, hack) == 4
    assert sort_multiset_reward(prompt, sorted(prompt)) == 5


def test_exactly_the_prompts_with_a_repeat_can_be_hacked():
    prompts = all_rows(5, 3)
    hackable = [
        p
        for p in prompts
        if best_answers(p, sort_inclusion_ordering_reward) != [sorted(p)]
    ]
    assert hackable == [p for p in prompts if len(set(p)) < 3]
    assert len(hackable) == 65


@pytest.mark.parametrize(
    "reward_fn", [sort_multiset_reward, sort_distance_reward, sort_exact_reward]
)
def test_only_the_sorted_answer_earns_the_full_score(reward_fn):
    for prompt in all_rows(5, 3):
        assert best_answers(prompt, reward_fn) == [sorted(prompt)]


@each_reward
def test_different_lengths_are_named(reward_fn):
    with pytest.raises(ValueError, match=r"response has 2 numbers, but prompt has 3"):
        reward_fn([1, 0, 2], [0, 1])


@each_reward
@pytest.mark.parametrize(
    ("prompts", "responses", "says"),
    [
        ((2, 3), (2, 4, 5), r"prompts has shape \[2, 3\].*\[2, 4, 5\].*batch and pos"),
        ((3, 3), (2, 4, 3), r"prompts has shape \[3, 3\].*\[2, 4, 3\].*batch and pos"),
        ((2, 2, 3), (2, 2, 4, 3), r"prompts has shape \[2, 2, 3\].*must agree"),
        ((3,), (2, 4, 3), r"prompts has shape \[3\].*prompts\[None\]"),
        ((2, 3), (2, 3), r"responses has shape \[2, 3\].*responses\[None\]"),
        ((2, 3), (2, 0, 3), r"responses has shape \[2, 0, 3\].*at least one"),
    ],
)
def test_shapes_that_do_not_line_up_are_named(reward_fn, prompts, responses, says):
    prompts, responses = (
        torch.zeros(s, dtype=torch.long) for s in (prompts, responses)
    )
    with pytest.raises(ValueError, match=says):
        compute_reward(prompts, responses, reward_fn)


def test_lists_where_tensors_belong_are_named():
    numbers = torch.zeros(1, 2, 3, dtype=torch.long)
    with pytest.raises(TypeError, match=r"prompts is a list.*torch\.tensor"):
        compute_reward([[1, 0, 2]], numbers, sort_distance_reward)
    with pytest.raises(TypeError, match=r"responses is a list.*torch\.tensor"):
        compute_reward(numbers[0, :1], [[[1, 0, 2]]], sort_distance_reward)


PROMPTS = torch.tensor([[1, 0, 2], [2, 2, 0]])
UNUSUAL_NUMBERS = {
    "tensor": torch.tensor,
    "float64 tensor": lambda x: torch.tensor(x, dtype=torch.float64),
    "numpy": np.float64,
    "fraction": Fraction,
    "int": int,
}


@pytest.mark.parametrize("make", UNUSUAL_NUMBERS.values(), ids=UNUSUAL_NUMBERS)
def test_a_reward_may_be_a_number_of_any_type(make):
    def reward_fn(prompt, response):
        return make(sort_multiset_reward(prompt, response))

    rewards = compute_reward(PROMPTS, all_answers(PROMPTS, 5), reward_fn)
    wanted = compute_reward(PROMPTS, all_answers(PROMPTS, 5), sort_multiset_reward)
    assert rewards.dtype == torch.float32
    assert torch.equal(rewards, wanted)


def test_a_reward_with_an_axis_is_no_number():
    with pytest.raises(TypeError, match="a reward is one number"):
        compute_reward(PROMPTS, all_answers(PROMPTS, 5), lambda p, r: torch.ones(1))
