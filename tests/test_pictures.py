"""Pictures whose drawn numbers can be worked out; alternative texts; colours."""

from itertools import combinations, pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from grpo_course import compute_deltas, compute_loss
from grpo_course.classroom import plots
from grpo_course.classroom.alt_text import alternative_text
from grpo_course.classroom.plots import axes_row, learned, plot_learned
from grpo_course.formulas import exact_kl, kl_values
from grpo_course.lessons.pictures import nb07 as pushes
from grpo_course.lessons.pictures.nb05 import plot_gap, plot_kl_area
from grpo_course.lessons.pictures.nb08 import plot_critic, plot_judges, plot_value_steps
from grpo_course.lessons.pictures.shared import CORNERS, draw_clip_plane
from grpo_course.ppo import generalized_advantages
from grpo_course.sort import push_of


def told(ax) -> str:
    return alternative_text((ax[0] if isinstance(ax, list) else ax).figure)


def test_lines_are_told_with_names_and_ends():
    curves = {"a": torch.tensor([0.0, 1.0]), "b": torch.tensor([2.0, 0.5])}
    text = told(plots.plot_lines(curves, [0, 1], "step", "loss", "t"))
    assert text == "t, loss against step: a from 0 to 1; b from 2 to 0.5."


def test_mathematics_is_read_as_words_and_what_marks_a_place_is_not_told():
    _, ax = plt.subplots()
    ax.plot([0, 1], [3, 4])
    ax.axvline(0.5)
    ax.axline((0, 0), slope=1)
    ax.set_xlabel(r"$\pi_{old}$ of centered_rewards")
    ax.set_ylabel(r"$\mathdefault{10^{-4}}$")
    expected = "10 to the -4 against pi old of centered_rewards: a line from 3 to 4."
    assert told(ax) == expected


def test_bars_are_told_with_the_means_of_their_seeds_or_group_by_group():
    values = {"naive": torch.tensor([0.2, 0.4]), "clipped": torch.tensor([0.9, 0.9])}
    assert "bars: naive at 0.3, clipped at 0.9" in told(plots.plot_seeds(values, "P"))
    _, ax = plt.subplots()
    ax.bar([0, 1], [0.1, 0.2], label="policy")
    ax.bar([0.4, 1.4], [0.3, 0.4], label="reference")
    assert "policy bars: 0.1, 0.2; reference bars: 0.3, 0.4" in told(ax)


# Linear sRGB to linear sRGB of a reader without one kind of cone (severity 1.0):
# Machado, Oliveira and Fernandes, 2009, IEEE Transactions on Visualization 15 (6).
BLINDNESS = {
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}


# sRGB to CIE XYZ, white at 1.
XYZ = np.array(
    [
        [0.4124 / 0.9505, 0.3576 / 0.9505, 0.1805 / 0.9505],
        [0.2126, 0.7152, 0.0722],
        [0.0193 / 1.089, 0.1192 / 1.089, 0.9505 / 1.089],
    ]
)


APART = 12.0  # CIE76; about 2 is just seen side by side


def linear(colour: str) -> np.ndarray:
    """`#rrggbb` as linear light."""
    levels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(
        levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4
    )


def lab(light: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear light."""
    x, y, z = np.cbrt(XYZ @ light.clip(0, 1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def closest(colours, matrix) -> float:
    seen = [lab(np.array(matrix) @ linear(colour)) for colour in colours]
    return min(np.linalg.norm(a - b) for a, b in combinations(seen, 2))


@pytest.mark.parametrize("kind", BLINDNESS)
def test_any_two_colours_can_be_told_apart(kind):
    assert closest(plots.COLOURS, BLINDNESS[kind]) > APART


def contrast(one: str, other: str) -> float:
    """Of WCAG: 3 is asked for lines, 4.5 for text."""
    low, high = sorted(XYZ[1] @ linear(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_lines_are_seen_on_the_ground_and_text_on_what_is_filled():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert min(contrast(c, plots.GROUND) for c in (*plots.COLOURS, plots.GONE)) > 3
    fills = [fill for fill, _ in plots.KINDS.values()]
    assert min(contrast(fill, "#000000") for fill in fills) > 4.5


REF = torch.tensor([0.2, 0.3, 0.2, 0.2, 0.1], dtype=torch.float64).log()


PI = torch.tensor([0.6, 0.2, 0.1, 0.05, 0.05], dtype=torch.float64).log()


def test_the_areas_add_up_to_the_kl():
    ax = plot_kl_area(PI, REF)
    areas = sum(bar.get_width() * bar.get_height() for bar in ax.patches)
    assert areas == pytest.approx(exact_kl(PI, REF).item())
    assert f"KL {exact_kl(PI, REF):.3f}" in alternative_text(ax.figure)


def test_the_gap_of_a_token_is_its_k3():
    ax = plot_gap(PI, REF)
    bars = {round(x[0], 6): y for x, y in (line.get_data() for line in ax.lines[2:6])}
    for x, k3 in zip((REF - PI).exp(), kl_values(PI, REF, "k3"), strict=True):
        low, high = bars[round(x.item(), 6)]
        assert high - low == pytest.approx(k3.item(), abs=1e-5)


def test_prompts_learned_are_counted_and_drawn_as_shares():
    shares = torch.tensor([0.0, 0.3, 0.35, 1.0])
    assert learned(shares).tolist() == [1, 2, 0, 1]
    (ax,) = plot_learned({"": {"clipped": shares}})
    assert [bar.get_width() for bar in ax.patches[:4]] == [0.25, 0.5, 0, 0.25]
    assert "clipped 0.41" in alternative_text(ax.figure)


PUSHES_REWARDS = torch.tensor([0.0, 0.0, 1.0])


DRAWN = torch.tensor([0, 2, 2, 1])


DELTAS = compute_deltas(PUSHES_REWARDS[DRAWN][None], "centered_rewards")[0]


def minus_gradient(logits):
    """Of the sequence-mean loss at ratio 1 by the logits, from autograd. [answer]"""
    logits = logits.clone().requires_grad_()
    log_probs = logits.log_softmax(dim=-1)[DRAWN][None, :, None]  # [1 trial 1]
    loss = compute_loss(log_probs, DELTAS[None], "clipped", log_probs.detach())
    assert loss.item() == pytest.approx(0, abs=1e-6)
    return -torch.autograd.grad(loss, logits)[0]


def test_the_black_arrow_is_minus_the_gradient_and_the_pushes_lead_along_it():
    logits = torch.tensor([1.0, -0.5, -2.0])
    probs = logits.softmax(dim=-1)
    each = push_of(DRAWN, DELTAS[:, None], probs) / len(DRAWN)
    _, ax = pushes.plot_pushes(probs, PUSHES_REWARDS, DRAWN, DELTAS, each)
    truth = minus_gradient(logits)
    assert DELTAS.sum() == 0 and truth.norm() > 0.3
    (black,) = ax.collections
    seen = torch.tensor([black.U.item(), black.V.item()])
    expected = pushes.ZOOM * truth @ CORNERS
    assert seen.tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    chain = [(a.xyann, a.xy) for a in ax.texts if getattr(a, "arrow_patch", None)]
    start = logits.softmax(dim=-1) @ CORNERS
    assert chain[0][0] == pytest.approx(start.tolist())
    assert chain[-1][1] == pytest.approx((start + expected).tolist(), abs=1e-5)
    for (_, head), (foot, _) in pairwise(chain):
        assert head == pytest.approx(foot)


def test_gone_tokens_are_those_whose_gradient_the_loss_removes():
    torch.manual_seed(0)
    old = torch.randn(1, 40, 1) - 2
    new = (old + 0.5 * torch.randn(1, 40, 1)).requires_grad_()
    deltas = torch.randn(1, 40)
    compute_loss(new, deltas, "clipped", old, epsilon=0.3).backward()
    ratio = (new - old).detach().exp()
    gone = draw_clip_plane(axes_row()[0], ratio[0, :, 0], deltas[0], 0.3)
    assert gone.any() and torch.equal(gone, new.grad[0, :, 0] == 0)


VALUES = torch.tensor([1.0, 0.8, 1.5, 1.2])


def test_the_steps_of_the_stair_are_td_errors():
    ax = plot_value_steps(VALUES, 2.0)
    paid = torch.tensor([[0.0, 0.0, 0.0, 2.0]])
    errors = generalized_advantages(paid, VALUES[None], 1.0, 0.0)[0]
    written = [text.get_text() for text in ax.texts]
    assert [t for t in written if t[:1] in "+-" and t] == [f"{e:+.1f}" for e in errors]
    assert "1: +0.7" in alternative_text(ax.figure)


def test_judges_are_drawn_in_their_rows_world_by_world():
    plain = {"raw": torch.tensor([0.2, 0.4])}
    ax = plot_judges({"no bonus": plain, "bonus": plain | {"critic": torch.ones(2)}})
    marks = [line.get_xdata().tolist() for line in ax.lines if len(line.get_xdata())]
    assert marks[0] == pytest.approx([0.3]) and marks[1] == pytest.approx([0.3, 1.0])
    assert "bonus: raw 0.30, critic 1.00" in alternative_text(ax.figure)


def test_a_critic_is_drawn_against_exact_values_of_the_first_seed():
    exact = torch.arange(24.0).reshape(2, 2, 2, 3) / 8
    axes = plot_critic({0: (torch.zeros_like(exact), exact), 1: (exact + 0.5, exact)})
    said = [ax.collections[2].get_offsets() for ax in axes]  # those of V_2
    assert [dots[:, 0].tolist() for dots in said] == [
        exact[0, ..., 2].flatten().tolist()
    ] * 2
    assert said[0][:, 1].tolist() == [0.0] * 4
    assert "after 1 rollout 0.50" in alternative_text(axes[0].figure)
