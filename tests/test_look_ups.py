"""Notebook 16's chain of look-ups: what is listed adds up, and agrees with samples."""

import math

import pytest
import torch

from grpo_course.lessons.exercises.nb16 import for_the_turn
from grpo_course.lessons.look_ups import (
    BOXES,
    all_prompts,
    converse,
    copying,
    credit_pushes,
    final_reward,
    list_all,
    pushes,
    read_before,
    right_answers,
    same_place,
    score,
    success,
    token_push,
    tokens,
    train_chain,
    train_one_table,
    turn_rewards,
)

CALLS = (0, 1, 2, 3)


def any_policy(calls):
    generator = torch.Generator().manual_seed(calls)
    shape = (calls + 1, BOXES, BOXES)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def test_a_chain_is_followed_box_by_box():
    prompt = torch.tensor([[2, 0, 3, 1, 0]])  # from box 0 to 2, to 3, to 1
    assert [right_answers(prompt, calls).item() for calls in CALLS] == [0, 2, 3, 1]
    written = torch.tensor([[[0, 2, 3, 1], [1, 0, 2, 2]]])
    read = [[[0, 2, 3, 1], [0, 0, 2, 3]]]
    assert read_before(prompt, written).tolist() == read
    assert final_reward(prompt, written).tolist() == [[1, 0]]
    assert turn_rewards(prompt, written).tolist() == [[[0.25] * 4, [0.0] * 4]]
    written = torch.tensor([[[0, 1, 0]]])  # nothing is earned behind a wrong call
    assert turn_rewards(prompt, written)[0, 0].tolist() == pytest.approx([1 / 3, 0, 0])


@pytest.mark.parametrize("calls", CALLS)
def test_every_conversation_is_listed_once_and_their_chances_add_up(calls):
    world = list_all(calls)
    assert world.written.shape == (96, BOXES ** (calls + 1), calls + 1)
    assert len({*map(tuple, world.written[5].tolist())}) == BOXES ** (calls + 1)
    assert len({*map(tuple, world.prompts.tolist())}) == len(all_prompts()) == 96
    chances = world.chance(any_policy(calls)).sum(dim=-1)
    torch.testing.assert_close(chances, torch.ones_like(chances))


@pytest.mark.parametrize("share", [0.25, 0.4, 0.9])
def test_the_exact_success_is_that_of_paper_and_pencil(share):
    """With one call: both copies right, or both wrong and right by luck."""
    luck = (1 - share) ** 2 / (BOXES - 1)
    right = [success(copying(calls, share, seeds=(0,))).item() for calls in (0, 1)]
    assert right == pytest.approx([share, share**2 + luck])


@pytest.mark.parametrize("calls", CALLS)
def test_the_mean_push_is_the_gradient_of_success(calls):
    logits, world = any_policy(calls).requires_grad_(), list_all(calls)
    success(logits[None]).sum().backward()
    deltas = world.reward.double()[..., None].expand(world.written.shape)
    for each in (deltas, deltas - 0.3):  # a baseline of the prompt changes no mean
        mean, _ = pushes(world, logits.detach(), each)
        torch.testing.assert_close(mean, logits.grad, rtol=0, atol=1e-7)


def test_mean_and_noise_are_those_of_many_samples():
    calls, count = 2, 2000
    logits, world = any_policy(calls).float(), list_all(calls)
    reward = final_reward(world.prompts, world.written)
    mean, noise = pushes(world, logits, reward[..., None].expand(world.written.shape))
    written = converse(
        logits[None], world.prompts, count, [torch.Generator().manual_seed(0)]
    )[0]
    reward = final_reward(world.prompts, written)
    read = read_before(world.prompts, written)
    for turn, table in enumerate(logits.softmax(dim=-1)):
        gradient = torch.eye(BOXES)[written[..., turn]] - table[read[..., turn]]
        push = torch.zeros(*reward.shape, BOXES, BOXES)
        rows = read[..., turn, None, None].expand(-1, -1, 1, BOXES)
        push.scatter_(2, rows, (reward[..., None] * gradient)[..., None, :])
        push = push.flatten(0, 1)
        torch.testing.assert_close(
            push.mean(dim=0).double(), mean[turn], rtol=0, atol=0.004
        )
        sampled = push.var(dim=0).sum().item()
        assert sampled == pytest.approx(noise[turn].item(), rel=0.03)


@pytest.mark.parametrize("calls", [0, 1])
def test_credit_pushes_by_what_it_gives_above_the_mean_of_the_prompt(calls):
    logits, world, credit = any_policy(calls), list_all(calls), for_the_turn.solution
    # [prompt all turn, turn read write]
    gradients = torch.autograd.functional.jacobian(
        lambda each: score(each, world.read, world.written), logits, vectorize=True
    )
    chance, given = world.chance(logits), credit(world.prompts, world.written).double()
    deltas = given.clone()
    for prompt in range(96):
        for turn in range(calls + 1):
            deltas[prompt, :, turn] -= chance[prompt] @ given[prompt, :, turn]
    each = (deltas[..., None, None, None] * gradients).sum(dim=2)
    share = (chance / 96)[..., None, None, None]
    mean = (share * each).sum(dim=(0, 1))
    noise = (share * (each - mean).square()).sum(dim=(0, 1, 3, 4))
    found = credit_pushes(logits, credit)
    torch.testing.assert_close(found, (mean, noise), rtol=0, atol=1e-7)


def test_seeds_write_side_by_side_and_each_is_scored_by_its_own_tables():
    logits = torch.stack([any_policy(1), any_policy(3)[:2]]).float()
    prompts = all_prompts()[:7]
    alone = [
        converse(each[None], prompts, 5, [torch.Generator().manual_seed(seed)])
        for seed, each in enumerate(logits)
    ]
    both = [torch.Generator().manual_seed(seed) for seed in (0, 1)]
    written = converse(logits, prompts, 5, both)
    assert torch.equal(written, torch.cat(alone))
    read = read_before(prompts, written)
    for seed, each in enumerate(logits):
        expected = score(each, read[seed], written[seed])
        assert torch.equal(score(logits, read, written)[seed], expected)


def test_training_shares_its_updates_among_the_problems_of_its_plan():
    seen = []

    def credit(asked, written):
        seen.append(written.shape)
        return for_the_turn.solution(asked, written)

    how = {"prompts": 5, "group": 4, "seeds": (0, 1), "rate": 0.3}
    logits = train_chain(credit, plan=(1, 2), updates=100, **how)
    one, two = ((2, 5, 4, turns) for turns in (2, 3))
    assert seen == [one] * 50 + [two] * 50
    assert logits.shape == (2, 3, 4, 4) and (success(logits) > 0.9).all()


def test_the_same_place_is_that_of_those_who_have_read_the_same():
    prompt = torch.tensor([[2, 0, 3, 1, 0]])  # from box 0 to 2
    written = torch.tensor([[[0, 2], [0, 1], [1, 2], [3, 2]]])
    given = same_place(prompt, written)  # all begin at 0; then they read 2, 2, 0 and 1
    reward = torch.tensor([1, 0, 1, 1.0])
    assert torch.equal(given[0, :, 0], 2 * reward - 0.75)
    assert torch.equal(given[0, :, 1], 2 * reward - torch.tensor([0.5, 0.5, 1, 1]))


def test_one_table_is_pushed_by_every_token_that_counts():
    mine, all_tokens = torch.tensor([True, False, True]), torch.ones(3).bool()
    table = any_policy(0)[0].requires_grad_()
    success(table.expand(1, 2, -1, -1)).sum().backward()
    mean, _ = token_push(table.detach(), mine)
    torch.testing.assert_close(mean, table.grad, rtol=0, atol=1e-7)
    start = copying(0)[0]  # where the tool's number says nothing of the reward
    (mean, noise), (same, more) = (
        token_push(start, keep) for keep in (mine, all_tokens)
    )
    torch.testing.assert_close(mean, same)
    assert more > 1.4 * noise
    prompt, written = torch.tensor([[2, 0, 3, 1, 0]]), torch.tensor([[[1, 3]]])
    before, token = tokens(prompt, written)  # box 1, its 0 and the answer
    assert before.tolist() == [[[0, 1, 0]]] and token.tolist() == [[[1, 0, 3]]]


def test_a_forgotten_mask_shows_in_the_log():
    masks = torch.tensor([[True, False, True], [True, True, True]])
    (right, logged), (_, forgot) = (train_one_table(m, seeds=(0, 1)) for m in masks)
    assert right.shape == (40, 2) and (right[-1] > 0.9).all()
    assert logged.shape == (40, 2, 2) and (logged[-1] < 0.2).all()
    assert (forgot[-1, :, 1] > math.log(4)).all()  # the tool's token


def test_a_world_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="calls=-1, but it must be at least 0"):
        list_all(-1)
    with pytest.raises(ValueError, match="share=1, but it must be"):
        copying(1, share=1)
