"""Alternative texts of plots, and colours that a colour-blind reader can tell apart."""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from grpo_course.classroom import plots
from grpo_course.classroom.alt_text import alternative_text, describe
from grpo_course.lessons.pictures import nb05 as kl_estimators
from grpo_course.lessons.pictures import nb06 as loop_diagram


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def told(ax) -> str:
    return alternative_text((ax[0] if isinstance(ax, list) else ax).figure)


def test_lines_are_told_with_names_and_ends():
    curves = {"a": torch.tensor([0.0, 1.0]), "b": torch.tensor([2.0, 0.5])}
    text = told(plots.plot_lines(curves, [0, 1], "step", "loss", "t"))
    assert text == "t, loss against step: a from 0 to 1; b from 2 to 0.5."


def test_bands_are_mentioned():
    curves = {"a": torch.tensor([[0.0, 0.0], [1.0, 3.0]])}
    text = told(plots.plot_bands(curves, "reward"))
    assert text == "reward against epoch: a line from 0 to 2; a band around it."
    curves["b"] = curves["a"] + 1
    assert told(plots.plot_bands(curves, "reward")).endswith("; a band around each.")
    curves["one seed"] = torch.tensor([[0.0], [1.0]])
    text = told(plots.plot_bands(curves, "reward"))
    assert text.endswith("one seed from 0 to 1; a band around 2 of 3 lines.")


def test_a_single_seed_and_points_have_no_band():
    assert "band" not in told(plots.plot_bands({"a": torch.ones(3, 1)}, "reward"))
    _, ax = plt.subplots()
    ax.plot([0, 1], [0, 1])
    ax.scatter([0, 1], [2, 5])
    assert "a line from 0 to 1; 2 points, x from 0 to 1, y from 2 to 5." in told(ax)


def test_lines_that_only_mark_a_place_are_not_told():
    _, ax = plt.subplots()
    ax.plot([0, 1], [3, 4])
    ax.axvline(0.5)
    ax.axhline(0.5)
    ax.axline((0, 0), slope=1)
    assert told(ax) == "Plot: a line from 3 to 4."


def test_points_are_told_by_their_range():
    truth, estimate = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([5.0, 3.0, 4.0])
    _, ax = plt.subplots()
    ax.plot(truth, estimate, "o", label="few")
    ax.plot(truth, truth, "o", label="many")
    text = told(ax)
    assert "few: 3 points, x from 0 to 2, y from 3 to 5; many: 3 points" in text
    assert "line" not in text


def test_points_of_a_row_bear_its_name():
    log_probs = torch.tensor([0.6, 0.4]).log()  # a KL of 0.081, log-ratios 0.405
    _, right = kl_estimators.plot_kl_estimators(log_probs, log_probs.flip(0))
    assert "k1: 2 points, x from -5 to 5; k2: 2" in told(right)


def test_points_that_rounding_alone_parts_are_told_as_one_row():
    """Another processor rounds otherwise, and the stored text must be the same."""
    _, ax = plt.subplots()
    ax.plot([0, 1, 2], [1, 1 + 1e-7, 1 - 1e-7], "o")
    ax.set_yticks([1.0], ["one"])
    assert "one: 3 points, x from 0 to 2." in told(ax)


@pytest.mark.parametrize(
    ("heights", "words"),
    [
        ([1.0, 5.0, 2.0], "from 1 to 2, highest 5 at 1"),
        ([1.0, -3.0, 2.0], "from 1 to 2, lowest -3 at 1"),
        ([0.0, 1.01, 1.0], "from 0 to 1"),
        ([1.0, 1.0 + 1e-12, 1.0], "from 1 to 1"),
        ([float("nan"), 1.0, 2.0, float("inf")], "from 1 to 2"),
    ],
)
def test_a_bend_is_told_and_a_gap_is_not(heights, words):
    _, ax = plt.subplots()
    ax.plot(range(len(heights)), heights)
    assert told(ax) == f"Plot: a line {words}."


def test_a_line_without_a_number_is_left_out():
    _, ax = plt.subplots()
    ax.plot([0, 1], [float("nan")] * 2, label="nothing")
    ax.plot([0, 1], [1, 2], label="something")
    assert told(ax) == "Plot: a line from 1 to 2."


def test_more_lines_than_can_be_told_are_counted():
    _, ax = plt.subplots()
    ax.plot([0, 1], [[k] * 10 for k in (0, 1)], label=[f"n{k}" for k in range(10)])
    assert told(ax).endswith("n7 from 0 to 1; 2 more lines.")


def test_mathematics_is_read_as_words():
    _, ax = plt.subplots()
    ax.set_xlabel(r"$\pi_{old}$ of centered_rewards")
    ax.set_ylabel(r"$\mathdefault{10^{-4}}$")
    assert told(ax).startswith("10 to the -4 against pi old of centered_rewards")


def test_bars_of_seeds_are_told_with_their_means():
    values = {"naive": torch.tensor([0.2, 0.4]), "clipped": torch.tensor([0.9, 0.9])}
    assert "bars: naive at 0.3, clipped at 0.9" in told(plots.plot_seeds(values, "P"))


def test_counts_and_tables():
    counts = {"x": torch.tensor([4, 6])}
    assert "bars: 0 at 4, 1 at 6" in told(plots.plot_counts(counts, "reward", "n"))
    table = plots.plot_policy(torch.tensor([[0.1, 0.9], [0.5, 0.5]]))
    assert "2 rows and 2 columns, values from 0.1 to 0.9" in told(table)


def test_of_many_bars_on_numbers_the_peak_is_told():
    text = told(plots.plot_counts({"x": torch.arange(10)}, "reward", "n"))
    assert "10 bars from 0 to 9, the highest at 9" in text


def test_many_named_bars_are_told_up_to_the_eighth():
    rows = {f"row {k}": torch.tensor([float(k)]) for k in range(10)}
    assert "row 7 at 7 and 2 more" in told(plots.plot_seeds(rows, "P"))


def test_groups_of_bars_are_told_group_by_group():
    _, ax = plt.subplots()
    ax.bar([0, 1], [0.1, 0.2], label="policy")
    ax.bar([0.4, 1.4], [0.3, 0.4], label="reference")
    assert "policy bars: 0.1, 0.2; reference bars: 0.3, 0.4" in told(ax)


def test_a_text_set_by_hand_wins():
    figure = plt.figure()
    describe(figure, "A box.")
    assert alternative_text(figure) == "A box."
    assert "inner" in told(loop_diagram.draw_loop())


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


def test_red_and_green_would_fail():
    assert closest(("#a05000", "#608000"), BLINDNESS["deuteranopia"]) < APART


def test_lines_differ_in_more_than_colour():
    assert len(set(plots.LINES)) == len(plots.COLOURS)
