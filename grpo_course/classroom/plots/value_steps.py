"""What a critic expects, token by token: its TD errors as the steps of a stair."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish, legend_above
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.mechanism import draw_arrow
from grpo_course.classroom.plots.palette import COLOURS, GROUND, PI, PI_REF, sign_colour
from grpo_course.loop import Rollout
from grpo_course.ppo import Critic
from grpo_course.sort import SortModel, exact_values

LITTLE = 0.05  # a change of the expected reward that one cannot see
UNDUE = 0.3  # a delta that one sees, where nothing changed


def plot_value_steps(values: Tensor, reward: float, ax: Axes | None = None) -> Axes:
    """The values as levels, the reward as the last one, and what each token changed.

    values [pos] are said before each token; the reward is paid after the last one.
    """
    levels = [*values.tolist(), reward]
    numbers = ax is None  # in a panel they would stand on the levels
    ax = ax or axes_row(width=8.0, height=3.4)[0]
    for x, level in enumerate(levels):
        draw_level(ax, x, level, is_paid=x == len(values))
    errors = [after - now for now, after in pairwise(levels)]
    for t, error in enumerate(errors):
        place: dict[str, Any] = {"va": "center", "weight": "bold"}
        start, end = (t + 0.5, levels[t]), (t + 0.5, levels[t + 1])
        draw_arrow(ax, start, end, error, width=3)
        middle = (levels[t] + levels[t + 1]) / 2
        said = f"{error:+.1f}" if numbers else ""
        ax.text(t + 0.58, middle, said, color=sign_colour(error), **place)
    names = [f"token {t}" for t in range(len(values))]
    ax.set_xticks([t + 0.5 for t in range(len(values))], names)
    ax.set(xlim=(-0.6, len(values) + 0.7), ylim=(0, 1.1 * max(levels)))
    finish(ax, "", "reward still expected").grid(visible=False, axis="x")
    told = ", ".join(f"{t}: {error:+.1f}" for t, error in enumerate(errors))
    said = ", ".join(f"{value:.1f}" for value in values.tolist())
    describe(
        ax.figure,
        f"A stair of the values {said}, with the reward {reward:g} as its last level. "
        f"An arrow at each token, from one level to the next. {told}.",
    )
    return ax


def draw_level(ax: Axes, x: float, level: float, is_paid: bool) -> None:
    """A level with its name below it."""
    colour = PI_REF if is_paid else PI
    ax.plot([x - 0.42, x + 0.42], [level, level], color=colour, lw=4)
    name = f"paid {level:g}" if is_paid else f"$V_{x}$ = {level:.1f}"
    place: dict[str, Any] = {"ha": "center", "va": "top"}
    place["bbox"] = {"facecolor": GROUND, "lw": 0, "pad": 0.5, "alpha": 0.8}
    ax.text(x, level - 0.08, name, **place)


def plot_critic_and_truth(
    values: Tensor, exact: Tensor, deltas: dict[str, Tensor]
) -> list[Axes]:
    """Left, a critic's stair and, dotted, the exact one; right, bars for each token.

    values [pos]; exact [pos + 1] ends with the reward. deltas, by name, are [pos]; what
    each token truly changed is drawn beside them.
    """
    left, right = axes_row(2, width=10.0, height=3.4)
    plot_value_steps(values, exact[-1].item(), left)
    for x, level in enumerate(exact[:-1].tolist()):
        left.plot([x - 0.46, x + 0.46], [level, level], color="black", lw=2.5, ls=":")
    left.set(ylim=(-0.35, 3.4), title="dotted: the exact expectation")
    draw_deltas(right, deltas | {"exact": exact.diff()})
    rows = {"critic": values, "exact": exact} | deltas
    told = "; ".join(f"{name} {signed(row)}" for name, row in rows.items())
    describe(left.figure, f"A critic's stair beside the exact one. {told}.")
    return [left, right]


def draw_deltas(ax: Axes, deltas: dict[str, Tensor]) -> None:
    """Bars beside each other for each token; what is exact is black. Each [pos]"""
    colours = (COLOURS[3], COLOURS[4], "black")
    for number, (name, heights) in enumerate(deltas.items()):
        places = [t + 0.27 * (number - 1) for t in range(len(heights))]
        ax.bar(places, heights, 0.25, label=name, color=colours[number])
    ax.axhline(0, color="black", lw=1)
    ax.set_xticks(range(len(heights)), [f"token {t}" for t in range(len(heights))])
    ax.set_ylim(-3, 3)
    legend_above(finish(ax, "", r"$\delta$"))


def signed(row: Tensor) -> str:
    """Numbers with their signs."""
    return ", ".join(f"{value + 0.0:+.1f}" for value in row.tolist())


def wrong_signs(deltas: Tensor, exact: Tensor) -> str:
    """The tokens whose delta says nothing, or the opposite of what they changed.

    A token that changed nothing is among them if its delta says that it did.
    """
    misses = (deltas * exact < 0) | (deltas.abs() < LITTLE)  # [pos]
    undue = deltas.abs() > UNDUE
    wrong = torch.where(exact.abs() > LITTLE, misses, undue)
    tokens = [f"token {t}" for t in wrong.nonzero().flatten().tolist()]
    return " and ".join(tokens) or "no token"


def draw_critic(
    model: SortModel,
    critic: Critic,
    prompt: Tensor,
    response: Tensor,
    reward_fn: Callable,
) -> str:
    """The picture for a slider, of one seed; -> which deltas mislead or are silent."""
    with torch.no_grad():
        exact = exact_values(model, prompt, response, reward_fn)[0]
        values = critic(Rollout(prompt[None], response[None, None, None]))[0, 0, 0]
    levels = torch.cat([values, exact[-1:]])
    deltas = {"λ = 0": levels.diff(), "λ = 1": exact[-1] - values}
    plot_critic_and_truth(values, exact, deltas)
    truth = exact.diff()
    wrong = [f"{name} at {wrong_signs(row, truth)}" for name, row in deltas.items()]
    return f"Wrong sign, silent or undue: {', '.join(wrong)}."
