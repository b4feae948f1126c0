"""What the frames of films and sliders draw and say, against the numbers they take."""

import io

import matplotlib.pyplot as plt
import pytest
import torch
from PIL import Image, ImageColor

from grpo_course.classroom.moving import smaller
from grpo_course.classroom.plots import DOWN, plot_bands
from grpo_course.formulas import kl_values
from grpo_course.lessons.pictures.nb05 import draw_kl_estimators, draw_settled
from grpo_course.lessons.pictures.nb06 import draw_tokens
from grpo_course.lessons.pictures.nb07 import draw_collapse, draw_walk, draw_zero_loss
from grpo_course.lessons.pictures.nb09 import draw_pushes, pushes

UNIFORM, RIGHT = torch.full((3, 5), 0.2), torch.eye(5)[2:]
ANSWER = (2, 3, 4)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_a_frame_shows_what_was_until_then_and_says_it():
    loss, reward = torch.zeros(3), torch.tensor([0.5, 1.0, 3.0])
    told = draw_zero_loss([UNIFORM, RIGHT, RIGHT], ANSWER, loss, reward, epoch=1)
    assert told.endswith("reward 1.00, probability of the sorted answer 1.00.")
    _, _, lower = plt.gcf().axes
    assert lower.lines[0].get_ydata().tolist() == [0.5, 1.0]


def test_two_policies_of_one_epoch_stand_beside_each_other():
    policies = {"healthy": [UNIFORM, UNIFORM], "too fast": [UNIFORM, RIGHT]}
    entropies = {"healthy": torch.ones(2), "too fast": torch.tensor([1.0, 0.0])}
    told = draw_collapse(policies, ANSWER, entropies, 1, "[3, 2, 4]")
    assert told == (
        "Epoch 1: probability of the sorted answer healthy 0.01, too fast 1.00; "
        "entropy healthy 1.00, too fast 0.00 nats a token."
    )
    tables = [ax for ax in plt.gcf().axes if ax.images]
    assert [table.images[0].get_array().max() for table in tables] == [
        pytest.approx(0.2),
        1,
    ]


def test_the_walk_marks_its_place_on_the_line():
    line = torch.tensor([[0.0, 1.0], [0.0, -1.0], [0.006, 0.01]])
    told = draw_walk(UNIFORM, ANSWER, line, 0.5, -0.5, outside=0.25)
    assert "0.00800" in told and told.endswith("clip range 0.25.")
    _, upper, lower = plt.gcf().axes
    dots = [
        (*ax.lines[1].get_xdata(), *ax.lines[1].get_ydata()) for ax in (upper, lower)
    ]
    assert dots == [(0.5, -0.5), (0.5, pytest.approx(0.2**3))]
    assert lower.lines[2].get_ydata()[0] == line[2, 0]  # dotted, at the start


@pytest.mark.parametrize(
    ("mean", "token_of_short"),
    [("sequence_mean", 1 / 8), ("token_mean", 1 / 36), ("constant", 1 / 64)],
)
def test_only_under_the_token_mean_does_a_long_response_take_from_the_short(
    mean, token_of_short
):
    short, long = pushes(16, mean)
    assert short[0].item() == pytest.approx(token_of_short)
    assert len(long) == 16
    is_less = short[0] < pushes(8, mean)[0][0] - 1e-6
    assert bool(is_less) == (mean == "token_mean")
    assert f"{token_of_short:.3f}" in draw_pushes(16, mean)


def test_what_the_sliders_of_the_kl_say():
    ref, pi = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.9, 0.1]).log()
    told = draw_kl_estimators(pi, ref, strength=1.0)
    values, probs = kl_values(pi, ref, "k3"), pi.exp()
    mean = (probs * values).sum()  # the KL
    spread = ((probs * values**2).sum() - mean**2).sqrt() / mean
    assert f"k3 {spread:.2f}." in told
    told = draw_settled(torch.tensor([1.0, 0.0]), ref, 1.0, "k2")
    assert told == "k2, β = 1: KL 0.11 nats, expected reward 0.73."


def test_more_than_two_bands_become_thin_lines():
    curves = {name: torch.rand(4, 3) for name in ("a", "b", "c")}
    ax = plot_bands(curves, "reward")
    assert not ax.collections and len(ax.lines) == 3 * (1 + 3)
    assert len(plot_bands(dict(list(curves.items())[:2]), "reward").collections) == 2
    _, top = ax.transAxes.inverted().transform(ax.bbox.max)
    box = ax.get_legend().get_bbox_to_anchor().transformed(ax.transAxes.inverted())
    assert box.y0 >= top  # over the axes, not on a curve


def test_a_rare_colour_of_a_frame_keeps_its_colour():
    image = Image.linear_gradient("L").convert("RGB").resize((600, 300))
    image = Image.merge("RGB", (*image.split()[:2], image.split()[0].rotate(90)))
    image.paste(DOWN, (10, 10, 14, 14))
    file = io.BytesIO()
    image.save(file, "PNG")
    few = Image.open(io.BytesIO(smaller(file.getvalue()))).convert("RGB")
    want = ImageColor.getrgb(DOWN)
    assert (
        max(abs(a - b) for a, b in zip(few.getpixel((12, 12)), want, strict=True)) < 25
    )


def test_tokens_of_a_group_that_ties_had_no_gradient_to_lose():
    ratio = torch.tensor([[[1.5, 0.5], [1.5, 1.5]]])
    told = draw_tokens(ratio, torch.tensor([[1.0, 0.0]]))
    assert told.startswith("4 tokens: 1 get nothing") and "2 have a delta of 0" in told


def test_the_kl_pulls_no_token_before_the_first_step():
    deltas = torch.tensor([[1.0, 0.0]])
    for ratio, pull in ((1.0, "pulls none of them yet"), (1.01, "pulls them all")):
        told = draw_tokens(torch.full((1, 2, 3), ratio), deltas)
        assert told.endswith(f"The KL {pull}.")
