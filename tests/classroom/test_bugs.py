"""Every bug breaks what it says it breaks, and its repair mends exactly that."""

import inspect
from pathlib import Path

import nbformat
import pytest
import torch

from grpo_course.algorithm.losses import LOSS_MODES, clipped_loss
from grpo_course.classroom.bugs import losses, rewards, tokens
from grpo_course.classroom.bugs.sheet import BUGS, debugging_sheet
from grpo_course.sorting.rewards import sort_distance_reward
from grpo_course.sorting.training import run_policy_gradient

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "10_bug_hunt.ipynb"
each_bug = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)


@each_bug
def test_the_probe_finds_the_bug_and_passes_the_repair(bug):
    assert not bug.healthy(bug.broken)
    assert bug.healthy(bug.repaired)


@each_bug
def test_the_repaired_line_is_what_the_broken_piece_lacks(bug):
    def one_line(source):
        return " ".join(source.split())

    line = one_line(bug.repaired_line)
    assert line in one_line(inspect.getsource(inspect.getmodule(bug.repaired)))
    assert line not in one_line(inspect.getsource(bug.broken))


def test_there_are_thirteen_and_no_two_share_a_name():
    assert len({bug.name for bug in BUGS}) == len(BUGS) == 13
    assert len({bug.broken.__name__ for bug in BUGS}) == len(BUGS)


def test_the_notebook_holds_the_sheet_as_the_bugs_say_it():
    sources = [cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells]
    assert any(debugging_sheet() in source for source in sources)


# What each broken piece does, as a number worked out by hand.


@pytest.mark.parametrize(
    ("loss", "ratio", "delta", "expected"),
    [
        # d(-lp / old * delta) at old = -3: the wrong sign, a third as large
        (losses.quotient_loss, 1.0, 1.0, -1 / 3),
        (losses.quotient_loss, 1.0, -1.0, 1 / 3),
        (losses.wrong_side_loss, 0.5, -1.0, -0.5),
        (losses.wrong_side_loss, 2.0, -1.0, 0.0),
        (losses.wrong_side_loss, 2.0, 1.0, 0.0),
        (clipped_loss, 0.5, -1.0, 0.0),
        (clipped_loss, 2.0, -1.0, -2.0),
    ],
)
def test_pull(loss, ratio, delta, expected):
    assert losses.pull(loss, ratio, delta) == pytest.approx(expected, abs=1e-5)


def test_the_quotient_trains_backwards_and_leaves_its_value_at_the_start():
    old = torch.tensor([[[-1.0, -3.0]]])
    value = losses.quotient_loss(old, torch.ones(1, 1, 1), old_log_probs=old)
    assert torch.equal(value, -torch.ones(1, 1, 2))
    setting = dict(reward_fn=sort_distance_reward, init_scale=0.1, seeds=range(4))
    LOSS_MODES["broken"] = losses.quotient_loss
    try:
        run = run_policy_gradient(
            20, 4, deltas_mode="normalized_rewards", loss_mode="broken", **setting
        )
    finally:
        del LOSS_MODES["broken"]
    curve = run.curve("expected_reward")
    assert (curve[-1] < curve[0]).all()


def test_upside_down_k3_is_chi_square_minus_kl():
    p, q = torch.tensor(losses.PROBS), torch.tensor(losses.REF_PROBS)
    chi_square = (p * p / q).sum() - 1
    mean, kl = losses.mean_estimate(losses.upside_down_k3)
    assert mean == pytest.approx(chi_square.item() - kl, abs=1e-5)


def test_k1_has_no_gradient_where_the_kl_has_one():
    gradient, of_kl = losses.mean_gradient(losses.K1_AS_LOSS.broken)
    assert gradient.abs().max() < 1e-6 and of_kl.abs().max() > 0.1


def test_dropout_moves_the_ratio_of_unchanged_weights():
    low, high = losses.ratio_range(losses.dropout_in_between)
    assert low < 0.9 and high > 1.1


def test_unshifted_scores_read_the_forecast_of_the_next_token():
    ids = torch.tensor([[0, 1, 2]])
    logits = tokens.counting_logits(ids)
    likely, unlikely = (torch.tensor([x, 0, 0, 0, 0, 0.0]) for x in (2.0, -0.0))
    total = likely.logsumexp(0)
    right = (likely[0] - total).expand(1, 2)
    wrong = (unlikely[0] - total).expand(1, 2)
    assert torch.allclose(tokens.repaired_scores(logits, ids), right)
    assert torch.allclose(tokens.unshifted_scores(logits, ids), wrong)


def test_the_mask_is_wrong_only_where_padding_is_not_eos():
    assert tokens.mask_counts(tokens.padded_mask) == [6, 3]


def test_shuffled_rows_put_every_prompt_into_the_first_group():
    prompts = torch.tensor([[0, 0], [1, 1]])
    assert tokens.shuffled_rows(prompts, 2)[:2].tolist() == [[0, 0], [1, 1]]
    assert tokens.repaired_rows(prompts, 2)[:2].tolist() == [[0, 0], [0, 0]]


def test_mean_of_means_weighs_a_lonely_token_more():
    per_token, mask = torch.tensor([[4.0, 9.0], [1.0, 1.0]]), torch.ones(2, 2).bool()
    mask[0, 1] = False  # one token of 4; two of 1
    assert tokens.mean_of_means(per_token, mask, 1) == 2.5
    assert tokens.repaired_token_mean(per_token, mask, 1) == 2.0


def test_one_regex_pays_all_or_nothing():
    whole = "<think>a</think><answer>-5</answer>"
    texts = [whole, "Hi " + whole, *(whole.replace(tag, "") for tag in rewards.TAGS)]
    assert {rewards.one_regex_reward(text) for text in texts} == {0.0, 0.5}
    # With a tag of the answer gone, the number is not between tags any more.
    paid = [rewards.repaired_format_reward(text) for text in texts]
    assert paid == [0.5, 0.5, 0.4, 0.4, 0.3, 0.3]


def test_tiny_epsilon_makes_deltas_of_rounding():
    largest = rewards.tiny_epsilon(torch.full((1, 8), 0.1)).abs().max()
    assert largest > 0.1


@pytest.mark.parametrize("size", [2, 4, 8])
def test_the_two_spreads_differ_by_one_factor(size):
    over_g = rewards.mean_square(rewards.population_normalize, size)
    over_g_minus_1 = rewards.mean_square(rewards.SPREAD.repaired, size)
    assert over_g == pytest.approx(1, abs=1e-3)
    assert over_g_minus_1 == pytest.approx((size - 1) / size, abs=1e-3)


def test_the_forgetful_step_fails_at_the_second_inner_step_only():
    assert rewards.log_steps(rewards.forgetful_step, 1) == [2.0, 3.0, 4.0, 5.0]
    assert rewards.forgetful_step(torch.tensor([[3.0, 1.0]]), None) == 2.0
    with pytest.raises(UnboundLocalError):
        rewards.forgetful_step(None, 2.0)
    assert rewards.log_steps(rewards.remembering_step, 2) == [2.0, 2.0, 4.0, 4.0]
