"""What notebook 08 alone draws."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    FAINT,
    GROUND,
    PI,
    PI_REF,
    SIGNS,
    axes_row,
    cells,
    draw_arrow,
    finish,
    legend_below,
    sign_colour,
    write,
)
from grpo_course.loop import mean_and_error


def plot_value_steps(values: Tensor, reward: float) -> Axes:
    """The values as levels, the reward as the last one, and what each token changed.

    values [pos] are said before each token; the reward is paid after the last one.
    """
    levels = [*values.tolist(), reward]
    ax = axes_row(width=8.0, height=3.4)[0]
    names = [f"$V_{t}$ = {value:.1f}" for t, value in enumerate(values.tolist())]
    box = {"facecolor": GROUND, "lw": 0, "pad": 0.5, "alpha": 0.8}
    for x, (level, name) in enumerate(
        zip(levels, [*names, f"paid {reward:g}"], strict=True)
    ):
        colour = PI if x < len(values) else PI_REF
        ax.plot([x - 0.42, x + 0.42], [level, level], color=colour, lw=4)
        write(ax, name, x, level - 0.08, va="top", bbox=box)
    errors = [after - now for now, after in pairwise(levels)]
    for t, error in enumerate(errors):
        draw_arrow(ax, (t + 0.5, levels[t]), (t + 0.5, levels[t + 1]), error, width=3)
        look: dict[str, Any] = {
            "ha": "left",
            "color": sign_colour(error),
            "weight": "bold",
        }
        write(ax, f"{error:+.1f}", t + 0.58, (levels[t] + levels[t + 1]) / 2, **look)
    ticks = [t + 0.5 for t in range(len(values))]
    ax.set_xticks(ticks, [f"token {t}" for t in range(len(values))])
    ax.set(xlim=(-0.6, len(values) + 0.7), ylim=(0, 1.1 * max(levels)))
    finish(ax, "", "reward expected or paid").grid(visible=False, axis="x")
    told = ", ".join(f"{t}: {error:+.1f}" for t, error in enumerate(errors))
    describe(
        ax.figure,
        f"A stair of values up to the reward {reward:g}; its steps are {told}.",
    )
    return ax


def plot_fading(errors: Tensor, deltas: Tensor, lam: float) -> Axes:
    """How much of each TD error reaches each token, and below their sums, the deltas.

    Both [pos]. An error counts lam times as much for each token that it goes back.
    """
    count = len(errors)
    back = torch.arange(count)[:, None] - torch.arange(count)  # from error to token
    parts = (lam ** back.clamp(min=0) * errors[:, None]).tril()  # [error token]
    rows = torch.cat([parts, deltas[None]])
    texts = [[f"{x:+.2f}" if abs(x) > 5e-3 else "" for x in r] for r in rows.tolist()]
    ax = axes_row(width=7.5, height=3.4)[0]
    cells(ax, rows, texts, cmap=SIGNS, limits=(-0.8, 0.8))
    ax.axhline(count - 0.5, color="black")
    names = [f"TD error of token {s}" for s in range(count)]
    ax.set_yticks(range(count + 1), [*names, r"their sum, $\delta_t$"])
    title = f"λ = {lam:g}: what reaches each token"
    ax.set(title=title, xlabel="token", xticks=range(count))
    return ax


def plot_critic(seen: Mapping[int | str, tuple[Tensor, Tensor]]) -> list[Axes]:
    """What the critic of the first seed says against the exact values.

    A panel for each rollout: seen[rollouts] is what it says after so many, and the
    exact values of the same tokens, both [seed batch trial pos]; a name in place of a
    number is a title. A dot is the beginning of a response; below the title stands
    how far the critics of all seeds are off.
    """
    axes = axes_row(len(seen), width=2.4 * len(seen), height=3.4)
    errors = []
    for ax, (count, pair) in zip(axes, seen.items(), strict=True):
        values, exact = (each[0].flatten(0, -2) for each in pair)  # [response pos]
        most = values.shape[-1]  # a point for each token
        ax.plot([0, most], [0, most], color=FAINT, lw=1, zorder=1)
        for t, (colour, mark) in enumerate(zip(COLOURS, "os^", strict=False)):
            look: dict[str, Any] = {"color": colour, "marker": mark, "lw": 0}
            look["zorder"] = 2 + most - t  # those of V_0 are few
            ax.scatter(exact[:, t], values[:, t], s=30, label=f"$V_{t}$", **look)
        title = f"after {count} rollout{'s' * (count != 1)}" if count else "at first"
        title = count if isinstance(count, str) else title
        off = (pair[0] - pair[1]).square().mean().sqrt().item()
        under = f"{title}\nall {len(pair[0])}: off by {off:.2f}"
        said = "the critic says (points)" if ax is axes[0] else ""
        finish(ax, "exact value (points)", said, under)
        limits = (-0.4, most + 0.5)
        ax.set(xlim=limits, ylim=limits, xticks=range(most + 1), yticks=range(most + 1))
        errors.append(f"{title} {off:.2f}")
    legend_below(axes)
    told = f"What the critic says against the exact values: off by {', '.join(errors)}."
    describe(axes[0].figure, told)
    return axes


def plot_judges(worlds: Mapping[str, Mapping[str, Tensor]]) -> Axes:
    """P(sorted) after training with each judge, a mark for each world.

    worlds[name][judge] [seed]. A mark is the mean, its line two standard errors to
    either side.
    """
    judges = list(worlds[list(worlds)[-1]])
    ax = axes_row(width=7.5, height=2.9)[0]
    told = []
    for k, (world, runs) in enumerate(worlds.items()):
        means, errors = mean_and_error(torch.stack([*runs.values()]))
        rows = [judges.index(judge) + 0.24 * (k - 0.5) for judge in runs]
        look: dict[str, Any] = {"color": COLOURS[k], "fmt": "os"[k], "ms": 8}
        ax.errorbar(means, rows, xerr=2 * errors, label=world, **look)
        ends = [f"{judge} {mean:.2f}" for judge, mean in zip(runs, means, strict=True)]
        told.append(f"{world}: {', '.join(ends)}")
    ax.set(xlim=(0, 1), yticks=range(len(judges)), yticklabels=judges)
    ax.set_ylim(len(judges) - 0.5, -0.5)
    xlabel = "P(sorted) after training, ± 2 standard errors"
    finish(ax, xlabel, "").grid(visible=False, axis="y")
    legend_below([ax])
    describe(ax.figure, f"P(sorted) after training. {'; '.join(told)}.")
    return ax
