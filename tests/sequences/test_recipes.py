"""The two tasks are learned, capped and hacked as the course says; all by seeds.

Long runs differ with the processor, which adds in another order. So a bound here lies
three times the spread away from the mean, over seeds and six kinds of arithmetic
(ATEN_CPU_CAPABILITY and MKL_CBWR). Notebook 09 trains longer, and asks for more.
"""

import copy

import pytest
import torch

from grpo_course.loop import Rollout
from grpo_course.sampling import Sampler
from grpo_course.sequences import (
    ASK,
    SHARE_LENGTH,
    all_sort_prompts,
    draw_prompts,
    found_and_ordered_reward,
    has_repeat,
    is_sorted,
    place_reward,
    share_reward,
    token_share,
    train_share,
    train_sort,
)


def sort_rollout(prompt, *responses):
    return Rollout(torch.tensor([[*prompt, ASK]]), torch.tensor([responses]))


def test_token_share_counts_what_the_policy_wrote():
    responses = torch.tensor([[[1, 1, 2, 1], [0, 3, 3, 2], [1, 1, 1, 1]]])
    mask = torch.tensor([[[1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]]]).bool()
    expected = torch.tensor([[2 / 3, 0.0, 0.0]])
    torch.testing.assert_close(token_share(responses, mask, 1), expected)
    unmasked = share_reward(1)(Rollout(responses[:, 0], responses))
    torch.testing.assert_close(unmasked, torch.tensor([[0.75, 0.0, 1.0]]))


def test_the_sort_rewards_on_worked_examples():
    rollout = sort_rollout([3, 1, 2], [1, 2, 3], [1, 3, 2], [5, 5, 5])
    torch.testing.assert_close(place_reward(rollout), torch.tensor([[1.0, 1 / 3, 0.0]]))
    points = found_and_ordered_reward(rollout) * 5
    torch.testing.assert_close(points, torch.tensor([[5.0, 4.0, 2.0]]))
    hacked = sort_rollout([0, 0, 0], [0, 0, 0], [0, 1, 3])
    assert found_and_ordered_reward(hacked).tolist() == [[1.0, 1.0]]
    assert place_reward(hacked)[0, 1] < 0.5


def test_all_prompts_and_repeats():
    prompts = all_sort_prompts()
    assert prompts.shape == (216, 4) and (prompts[:, -1] == ASK).all()
    assert len(prompts.unique(dim=0)) == 216
    assert has_repeat(prompts).sum() == 216 - 6 * 5 * 4
    assert is_sorted(prompts, prompts[:, :-1].sort(-1).values).all()
    assert is_sorted(prompts, prompts[:, :-1]).sum() == 56  # 6 + 2 choose 3


def test_prompts_are_drawn_by_epoch_without_repetition():
    draw = draw_prompts(all_sort_prompts(), 16, seed=0)
    assert torch.equal(draw(3), draw(3)) and not torch.equal(draw(3), draw(4))
    assert len(draw(0).unique(dim=0)) == 16
    with pytest.raises(ValueError, match=r"count=217, but there are 216"):
        draw_prompts(all_sort_prompts(), 217, seed=0)


def test_a_run_can_be_repeated_and_a_seed_does_not_see_the_others():
    _, together = train_share((0, 3), 2)
    _, again = train_share((0, 3), 2)
    _, alone = train_share((3,), 2)
    curve = together.curve("mean_reward")
    assert torch.equal(curve, again.curve("mean_reward"))
    assert torch.equal(curve[:, 1:], alone.curve("mean_reward"))


def test_what_observes_a_run_leaves_it_alone_and_joins_its_history():
    def write(policy):
        asked = torch.zeros(1, 5).long()
        return {"texts": copy.deepcopy(policy).sample(asked, 2).responses[:, 0]}

    _, usual = train_share((0, 3), 2)
    _, seen = train_share((0, 3), 2, observe=write)
    assert torch.equal(usual.curve("mean_reward"), seen.curve("mean_reward"))
    assert seen.epochs("texts").shape == (2, 2, 2, SHARE_LENGTH)


def test_the_toy_is_learned_within_15_epochs():
    _, history = train_share(range(4), num_epochs=16)
    shares = history.epochs("mean_reward")
    assert shares[0].max() < 0.25
    assert shares[15].mean() > 0.93  # 0.98 to 0.99


def test_an_end_is_learned_alike_whatever_the_padding_is():
    def curves(pad, aggregation):
        ends = Sampler(SHARE_LENGTH, eos=2, pad=pad)
        knobs = {"sampler": ends, "aggregation": aggregation}
        _, history = train_share((0, 1), 2, **knobs)
        return torch.stack([history.curve(n) for n in ("mean_reward", "mean_length")])

    for aggregation in ("sequence_mean", "token_mean", "constant"):
        own, other = (curves(pad, aggregation) for pad in (2, 9))
        assert torch.equal(own, other)
        assert 1 < own[1, 0].mean() < SHARE_LENGTH


@pytest.mark.slow
def test_the_reference_caps_the_toy():
    _, history = train_share(range(4), num_epochs=30, kl_penalty=0.1)
    shares = history.epochs("mean_reward")[-10:]
    assert 0.68 < shares.mean() < 0.84
    assert history.final("kl").min() > 0.1


@pytest.mark.slow
def test_sorting_is_learned_token_by_token():
    policy, history = train_sort(place_reward, range(3), num_epochs=80)
    prompts = all_sort_prompts()
    right = is_sorted(prompts, policy.answer(prompts)).float().mean(-1)
    assert history.epochs("mean_reward")[0].mean() < 0.3  # by chance
    assert right.mean() > 0.65  # all three places; by chance 0.01


@pytest.mark.slow
def test_the_reward_with_a_hole_is_hacked():
    policy, _ = train_sort(found_and_ordered_reward, range(3), num_epochs=60)
    prompts = all_sort_prompts()
    answers, repeat = policy.answer(prompts), has_repeat(prompts)
    paid = found_and_ordered_reward(Rollout(prompts, answers[:, :, None]))
    right = is_sorted(prompts, answers).float()
    assert paid.mean() > 0.96
    assert right[:, ~repeat].mean() > 0.75 and right[:, repeat].mean() < 0.25


def test_a_sampler_of_ones_own_lets_responses_end():
    limit = Sampler(6, eos=ASK, pad=ASK)
    few = {"num_epochs": 1, "num_steps_per_epoch": 1, "sampler": limit}
    policy, history = train_sort(lambda rollout: rollout.finished.float(), **few)
    assert policy.sampler == limit
    assert 1 < history.final("mean_length").item() < 6
