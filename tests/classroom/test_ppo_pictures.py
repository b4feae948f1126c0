"""The pictures of PPO's terms: what is drawn is what the package computes."""

import matplotlib.pyplot as plt
import pytest
import torch

from grpo_course.classroom.alt_text import alternative_text
from grpo_course.lessons.pictures.nb08 import (
    PLACES,
    draw_entropy_push,
    draw_overrated,
    draw_token_pay,
    draw_value_clip,
    entropy_push,
    losses_and_pulls,
    pay_and_returns,
    plot_climbs_by_beta,
    plot_critic_and_truth,
    plot_entropy_push,
    plot_overrated,
    plot_reads,
    plot_token_pay,
    plot_value_clip,
    plot_value_steps,
    tempting,
    what_moves,
    wrong_signs,
)
from grpo_course.loop import Rollout
from grpo_course.ppo import Critic, ValueHead, generalized_advantages
from grpo_course.sort import SORT_PROMPTS, make_policy

VALUES = torch.tensor([1.0, 0.8, 1.5, 1.2])
FOUR = torch.tensor([0.1, 0.5, -0.5, 2.5])
LOG_RATIOS = torch.tensor([1.0, -0.4, 0.4])
LOGITS = torch.tensor([2.0, 1.0, 0.0])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_the_steps_of_the_stair_are_td_errors():
    ax = plot_value_steps(VALUES, 2.0)
    paid = torch.tensor([[0.0, 0.0, 0.0, 2.0]])
    errors = generalized_advantages(paid, VALUES[None], 1.0, 0.0)[0]
    written = [text.get_text() for text in ax.texts]
    assert [t for t in written if t[:1] in "+-" and t] == [f"{e:+.1f}" for e in errors]
    assert "1: +0.7" in alternative_text(ax.figure)


def test_the_bars_end_with_what_each_token_truly_changed():
    exact = torch.tensor([1.0, 1.5, 1.2, 2.0])
    values = torch.tensor([0.5, 0.25, 1.0])
    _, right = plot_critic_and_truth(values, exact, {"λ = 1": 2.0 - values})
    heights = [[bar.get_height() for bar in bars] for bars in right.containers]
    assert heights[1] == pytest.approx([0.5, -0.3, 0.8])
    assert "critic +0.5, +0.2, +1.0" in alternative_text(right.figure)
    assert wrong_signs(2.0 - values, exact.diff()) == "token 1"
    assert wrong_signs(exact.diff(), exact.diff()) == "no token"
    silent = torch.tensor([0.0, 0.0, 1.0])
    assert wrong_signs(silent, exact.diff()) == "token 0 and token 1"
    assert wrong_signs(silent, torch.tensor([0.0, 0.7, 1.3])) == "token 1"
    blamed, none = torch.tensor([0.1, -0.5, -0.8]), torch.tensor([0.0, -1.0, 0.0])
    assert wrong_signs(blamed, none) == "token 2"


def test_a_separate_critic_reads_what_was_written_and_a_head_the_prompt():
    policy = make_policy(SORT_PROMPTS, [0, 1], 0.1)
    rollout = Rollout(SORT_PROMPTS, policy.sample(SORT_PROMPTS, 4).responses)
    critic = Critic(5, 10, 3, 3, [0, 1])
    head = ValueHead(policy.model.encode, 10, 3, [0, 1])
    own, shared = (what_moves(each, rollout, 5) for each in (critic, head))
    assert own.int().tolist() == [[1] * (3 + t) + [0] * (3 - t) for t in range(3)]
    assert shared.int().tolist() == [[1, 1, 1, 0, 0, 0]] * 3
    assert (critic.readout == 0).all(), "it asked a copy"
    axes = plot_reads({"critic": own, "head": shared}, 3)
    assert [len(ax.patches) for ax in axes] == [18, 18]
    text = alternative_text(axes[0].figure)
    assert "critic, V 0 by 3, V 1 by 4, V 2 by 5 of 6 tokens" in text


def test_the_clipped_loss_is_flat_from_the_band_to_its_mirror_image():
    _, pulls = losses_and_pulls(PLACES, 0.2)
    still = PLACES[pulls.abs() < 1e-6]
    assert still.min().item() == pytest.approx(0.21, abs=0.011)
    assert still.max().item() == pytest.approx(1.79, abs=0.011)
    _, pulls = losses_and_pulls(FOUR, 0.2)
    assert pulls.tolist() == pytest.approx([0.9, 0.0, 1.5, -1.5])
    free = losses_and_pulls(FOUR, None)[1]
    assert free.tolist() == pytest.approx([0.9, 0.5, 1.5, -1.5])


def test_a_clip_range_that_reaches_the_target_lets_nothing_go():
    assert "No pull from +0.8 to +1.2" in draw_value_clip(0.8, FOUR)
    assert "Every value but the target" in draw_value_clip(1.0, FOUR)
    ax = plot_value_clip(0.2, FOUR)
    hollow = [line for line in ax.lines if line.get_marker() == "o"][1]
    assert hollow.get_markerfacecolor() != hollow.get_markeredgecolor()


@pytest.mark.parametrize("beta", [0.0, 0.5, 2.0])
def test_a_token_answers_for_the_kl_from_it_on(beta):
    paid, returns = pay_and_returns(2.0, LOG_RATIOS, beta)
    want = torch.tensor([0.0, 0.0, 2.0]) - beta * LOG_RATIOS
    torch.testing.assert_close(paid, want)
    torch.testing.assert_close(returns, want.flip(0).cumsum(0).flip(0))
    assert returns[1].item() == pytest.approx(2)  # no beta moves it
    assert f"returns {2 - beta:+.1f}, +2.0" in draw_token_pay(2.0, LOG_RATIOS, beta)


def test_bars_with_the_kl_stand_in_outlines_without():
    left, _ = plot_token_pay(2.0, LOG_RATIOS, 0.5)
    now, before = ([bar.get_height() for bar in bars] for bars in left.containers)
    assert now == pytest.approx([-0.5, 0.2, 1.8])
    assert before == [0, 0, 2]


def test_the_entropy_pushes_the_unlikely_up_and_its_samples_push_nothing():
    entropy, push = entropy_push(LOGITS)
    log_pi = LOGITS.log_softmax(-1)
    torch.testing.assert_close(push, -log_pi.exp() * (log_pi + entropy))
    samples = torch.eye(3) - log_pi.exp()  # the gradient of log pi of each token
    pushed = -log_pi.exp()[:, None] * samples  # weighed by how often it is drawn
    assert pushed.sum(0).abs().max() < 1e-6
    own = log_pi.exp() * (1 - log_pi.exp())
    torch.testing.assert_close(-pushed.diagonal(), own)
    torch.testing.assert_close(pushed.clamp(min=0).sum(0), own)
    left, right = plot_entropy_push(LOGITS)
    assert (len(left.texts), len(right.texts)) == (3, 6)  # the arrows


def test_the_bonus_pushes_hardest_between_even_and_sure():
    sharp = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    lengths = [entropy_push(s * LOGITS)[1].norm().item() for s in sharp]
    assert sharp[lengths.index(max(lengths))] == 1.5
    assert lengths[0] < 1e-6 and lengths[-1] < lengths[3] / 10
    assert "length is 0.346" in draw_entropy_push(LOGITS)


def test_discs_are_as_large_as_probabilities():
    true, scores = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([[1.0, 0.5, -1.5]])
    start, end = torch.tensor([[0.1, 0.1, 0.8]]), torch.tensor([[1.0, 0.0, 0.0]])
    axes = plot_overrated(true, scores[0], {"start": start[0], "end": end[0]})
    sizes = torch.tensor(axes[0].collections[0].get_sizes())
    torch.testing.assert_close(sizes / sizes.sum(), start[0], check_dtype=False)
    told = draw_overrated(true, scores, {"start": start, "end": end}, 0)
    assert told.endswith("worth 0. The policy is worth: start 2.50, end 0.00.")
    (ring,) = [line for line in axes[1].lines if line.get_marker() == "o"]
    assert ring.get_ydata() == [1.0]


def test_what_tempts_is_likely_and_rated_above_the_likeliest():
    scores = torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    probs = torch.tensor([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1]])
    assert tempting(scores, probs).tolist() == pytest.approx([0.2, 0.0])


def test_a_climb_is_an_arrow_from_what_the_start_was_worth():
    ends = {"a": torch.tensor([[1.0, 2.0], [2.5, 2.5]])}
    (ax,) = plot_climbs_by_beta({"a": torch.tensor([2.0, 3.0])}, ends, (0.0, 1.0))
    arrows = [text for text in ax.texts if not text.get_text()]
    assert [arrow.xy for arrow in arrows] == [(0, 1.5)]  # the other stays
    assert [t.get_text() for t in ax.texts if t.get_text()] == ["-1.00", "+0.00"]
    text = alternative_text(ax.figure)
    assert text.endswith("at beta 0, 1. a: from 2.50 to 1.50, 2.50.")
