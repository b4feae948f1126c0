"""Pictures of KL, GAE, memory and what was learned: what is drawn is what is true."""

import pytest
import torch
from matplotlib.colors import to_rgba

from grpo_course.classroom.alt_text import alternative_text
from grpo_course.classroom.plots import (
    DOWN,
    LEVEL,
    UP,
    axes_row,
    learned,
    plot_learned,
    plot_memory,
)
from grpo_course.formulas import exact_kl, kl_values
from grpo_course.lessons.pictures.nb00 import plot_prompt_map
from grpo_course.lessons.pictures.nb01 import plot_climbs
from grpo_course.lessons.pictures.nb03 import plot_divided
from grpo_course.lessons.pictures.nb04 import (
    plot_means,
)
from grpo_course.lessons.pictures.nb04 import (
    plot_shares_of_reweighing as plot_shares,
)
from grpo_course.lessons.pictures.nb05 import (
    name_tokens,
    plot_gap,
    plot_kl_area,
    plot_kl_estimators,
    plot_sample_means,
    plot_settled,
    plot_two_tokens,
    settle,
)
from grpo_course.lessons.pictures.nb06 import draw_loop, plot_passes, walk_loop
from grpo_course.lessons.pictures.nb08 import plot_light, shares
from grpo_course.ppo import generalized_advantages

REF = torch.tensor([0.2, 0.3, 0.2, 0.2, 0.1], dtype=torch.float64).log()
PI = torch.tensor([0.6, 0.2, 0.1, 0.05, 0.05], dtype=torch.float64).log()
REWARDS = torch.tensor([1.0, 0.0, 0.5, 0.0, 0.0], dtype=torch.float64)


def test_the_areas_add_up_to_the_kl():
    ax = plot_kl_area(PI, REF)
    areas = sum(bar.get_width() * bar.get_height() for bar in ax.patches)
    assert areas == pytest.approx(exact_kl(PI, REF).item())
    assert f"{exact_kl(PI, REF):.3f} nats" in alternative_text(ax.figure)


def test_the_areas_of_two_tokens_add_up_to_the_kl_of_the_response():
    probs, states = torch.tensor([0.7, 0.3]), torch.tensor([0.5, 2.0])
    ax = plot_two_tokens(probs, torch.tensor(1.0), states)
    areas = [bar.get_width() * bar.get_height() for bar in ax.patches]
    assert areas == pytest.approx([1, 0.35, 0.6])
    assert "= 1.950 nats" in ax.get_title()
    assert "0.350, 0.600 add up to 0.950" in alternative_text(ax.figure)


def test_tokens_at_one_place_share_a_name():
    _, right = plot_kl_estimators(PI, REF)
    assert [text.get_text() for text in right.texts][:4] == ["3", "2,4", "1", "0"]


def test_names_that_would_overlap_stand_at_two_heights():
    near, apart = torch.tensor([0.1, 0.2]), torch.tensor([0.1, 0.9])
    for values, count in ((near, 2), (apart, 1)):
        (ax,) = axes_row()
        name_tokens(ax, values, 0)
        assert len({text.xyann[1] for text in ax.texts}) == count


def test_the_gap_of_a_token_is_its_k3():
    ax = plot_gap(PI, REF)
    bars = {round(x[0], 6): y for x, y in (line.get_data() for line in ax.lines[2:6])}
    for x, k3 in zip((REF - PI).exp(), kl_values(PI, REF, "k3"), strict=True):
        low, high = bars[round(x.item(), 6)]
        assert high - low == pytest.approx(k3.item(), abs=1e-5)


def test_sampled_means_are_counted_once_each():
    means = {"k1": torch.linspace(-1, 1, 9), "k3": torch.linspace(0, 1, 5)}
    ax = plot_sample_means(means, 0.4, 16)
    one, other = (
        path.get_path().vertices[:, 1].max() for path in ax.patches
    )  # of the highest column
    assert one == 1 and other == 1
    assert ax.lines[0].get_xdata()[0] == 0.4


@pytest.mark.parametrize("estimator", ["k2", "k3"])
@pytest.mark.parametrize("beta", [0.2, 1.0])
def test_the_expected_update_stands_still_where_it_ends(estimator, beta):
    end = settle(REWARDS, REF, beta, estimator)
    assert end.exp().sum().item() == pytest.approx(1)
    logits = end.clone().requires_grad_()
    log_probs, frozen = logits.log_softmax(-1), end.exp()
    penalty = (frozen * kl_values(log_probs, REF, estimator)).sum()
    objective = (log_probs.exp() * REWARDS).sum() - beta * penalty
    (gradient,) = torch.autograd.grad(objective, logits)
    assert gradient.abs().max() < 1e-9


def test_k1_holds_nothing_back():
    end = settle(REWARDS, REF, 3.0, "k1").exp()
    assert end.tolist() == [1, 0, 0, 0, 0]


def test_which_estimator_holds_closer_depends_on_beta():
    kl = {
        (name, beta): exact_kl(settle(REWARDS, REF, beta, name), REF)
        for name in ("k2", "k3")
        for beta in (0.3, 1.0)
    }
    assert kl["k3", 0.3] < kl["k2", 0.3] and kl["k3", 1.0] > kl["k2", 1.0]
    _, right = plot_settled(REWARDS, REF, 0.3, "k2")
    drawn = [bar.get_width() for bar in right.patches]
    assert drawn[1:] == pytest.approx([kl["k2", 0.3].item(), kl["k3", 0.3].item()])


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_the_columns_of_light_add_up_to_gae(lam):
    rewards, values = torch.tensor([[0.0, 0.0, 2.0]]), torch.tensor([[1.0, 0.8, 1.5]])
    errors = generalized_advantages(rewards, values, 0.9, 0.0)[0]
    truth = generalized_advantages(rewards, values, 0.9, lam)[0]
    torch.testing.assert_close(shares(errors, 0.9 * lam).sum(0), truth)
    _, lower = plot_light(errors, lam, gamma=0.9)
    drawn = [text.get_text() for text in lower.texts]
    assert drawn == [f"{delta:+.2f}" for delta in truth.tolist()]


def test_blocks_are_as_wide_as_what_they_hold():
    actor = {"weights": 10, "gradients": 10, "Adam": 20}
    kept = {"GRPO": {"actor": actor}, "PPO": {"actor": actor, "critic": actor}}
    ax = plot_memory(kept)
    filled = [patch.get_width() for patch in ax.patches if patch.get_fill()]
    assert filled == [10, 10, 20] * 3
    assert [t.get_text() for t in ax.texts if t.get_text().isdigit()] == ["40", "80"]


def test_prompts_learned_are_counted_and_drawn_as_shares():
    shares = torch.tensor([0.0, 0.3, 0.35, 1.0])
    assert learned(shares).tolist() == [1, 2, 0, 1]
    (ax,) = plot_learned({"": {"clipped": shares}})
    assert [bar.get_width() for bar in ax.patches[:4]] == [0.25, 0.5, 0, 0.25]
    assert "clipped 0.41" in alternative_text(ax.figure)


def test_the_push_of_each_prompt_is_drawn_as_its_share():
    sizes = {"plain": torch.tensor([1.0, 2.0, 5.0]), "group": torch.ones(3)}
    ax = plot_divided(sizes, ["pays 1", "pays 2", "pays 5"], "push")
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == pytest.approx([1 / 8, 1 / 4, 5 / 8, 1 / 3, 1 / 3, 1 / 3])
    assert [bar.get_x() for bar in ax.patches[:3]] == [0, 1 / 8, 3 / 8]
    assert "plain 0.12, 0.25, 0.62; group 0.33" in alternative_text(ax.figure)


def test_means_of_old_samples_stand_in_their_rows():
    ax = plot_means(torch.tensor([0.2, 0.3]), torch.tensor([0.6, 0.9, 0.8]), 0.25, 0.7)
    plain, weighted, *lines = (list(line.get_xdata()) for line in ax.lines)
    assert plain == pytest.approx([0.2, 0.3])
    assert weighted == pytest.approx([0.6, 0.9, 0.8])
    assert [x[0] for x in lines] == [0.25, 0.7]
    assert "weighted from 0.60 to 0.90" in alternative_text(ax.figure)


def test_the_weight_of_a_group_is_shared_out():
    weights = torch.tensor([[1.0, 3.0], [8.0, 0.0]])  # shares 3/4 and 1, then the rest
    ax = axes_row()[0]
    shares = plot_shares(weights, ax)
    assert shares.tolist() == pytest.approx([0.875, 0.125])
    assert [bar.get_height() for bar in ax.patches] == pytest.approx(shares.tolist())


def test_the_map_of_climbs_tells_where_each_one_ended():
    rewards = torch.zeros(2, 2, 2)
    rewards[0, 1, 1] = 1.0
    ends = torch.tensor([0, 1, 1]).repeat(2, 2, 2, 1)
    ends[1, 0, 0] = torch.tensor([1, 0, 1])
    ends[1, 1, 0] = torch.tensor([1, 1, 0])
    dead_ends = torch.tensor([[1, 0, 0], [0, 0, 0], [1, 1, 0]])
    axes = plot_climbs(rewards, dead_ends, ends)
    told = [[text.get_text() for text in ax.texts] for ax in axes]
    assert told == [["", "", "", "★"], ["101", "", "110", ""]]
    colours = [[each.get_edgecolor() for each in ax.patches] for ax in axes]
    assert colours == [[to_rgba(UP)], [to_rgba(LEVEL), to_rgba(DOWN)]]
    text = alternative_text(axes[0].figure)
    assert "1 led to the best, 1 held the policy, 1 led elsewhere" in text
    assert "4 of the other" in text


def test_the_map_of_prompts_frames_the_right_answers_and_dots_the_trained():
    answers = torch.tensor([0, 0, 1]).repeat(2, 2, 2, 1)
    answers[1, 1, 1] = torch.tensor([1, 1, 1])
    answers[0, 0, 0] = torch.tensor([1, 0, 1])
    known = torch.tensor([[0, 0, 1], [1, 1, 1], [0, 1, 1]])
    axes = plot_prompt_map(answers, known, trained=torch.tensor([[0, 1, 1], [1, 0, 1]]))
    told = [[text.get_text() for text in ax.texts] for ax in axes]
    assert told == [["101", "001", "001", "001"], ["001"] * 3 + ["111"]]
    assert axes[0].images[0].get_array().tolist() == [[3, 0], [0, 0]]
    assert axes[1].images[0].get_array().tolist() == [[0, 0], [0, 1]]
    assert [len(ax.patches) for ax in axes] == [2, 2]  # 001, 010; 100, 111
    dots = [[float(line.get_xdata()[0]) for line in ax.lines] for ax in axes]
    assert dots == [[1.0], [1.0]]
    assert "4 framed as right. The answer [0, 0, 1] to 6" in alternative_text(
        axes[0].figure
    )


def test_the_walk_through_the_loop_copies_and_steps_at_its_times():
    walk = walk_loop(num_epochs=3, num_steps=2, period=2)
    boxes = [box for box, _ in walk]
    assert boxes[:13] == [0, 1, 2, 3, 4, *[5, 6, 7, 8] * 2]
    assert boxes.count(0) == 2 and boxes[13] == 1  # epoch 1 copies nothing
    assert walk[7][1] == "Epoch 0, inner step 0. Optimizer steps so far: 0."
    assert walk[-1][1] == "Epoch 2, inner step 1. Optimizer steps so far: 6."


def test_the_box_that_runs_is_filled():
    plain, active = (
        [patch.get_facecolor() for patch in draw_loop(box).patches] for box in (None, 4)
    )
    changed = [k for k, (a, b) in enumerate(zip(plain, active, strict=True)) if a != b]
    assert len(changed) == 2  # both halves of the noting


def test_a_pass_that_samples_goes_through_one_token():
    bars = plot_passes(num_tokens=8, num_steps=4).patches
    assert [(bar.get_y(), bar.get_height()) for bar in bars[:8]] == [
        (k, 1) for k in range(8)
    ]
    assert [bar.get_height() for bar in bars[8:]] == [8] * 6
    assert [bar.get_x() for bar in bars] == list(range(14))
