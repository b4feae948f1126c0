"""Where updates point beside a gradient; what is won against what is kept."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Rectangle
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    LINES,
    axes_row,
    finish,
    legend_above,
)
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import DOWN, PI, UP
from grpo_course.loop import mean_and_error

# Where the first and the last beta stand, in each run.
LABELS = (((10, -15), (10, -15)), ((9, -14), (9, 5)), ((9, 6), (0, 8)))
ARROW: dict[str, Any] = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}
WAY: dict[str, Any] = ARROW | {"lw": 2.5, "mutation_scale": 18}
TIPS = ((10, 4), (10, -12), (-6, 10))  # where the name of an end stands, by its tip
TRUE: dict[str, Any] = ARROW | {"color": "black", "lw": 4, "mutation_scale": 20}
THIN: dict[str, Any] = ARROW | {"color": PI, "lw": 1.5, "mutation_scale": 12}
NOISE: dict[str, Any] = {"color": COLOURS[5], "alpha": 0.3, "lw": 0, "zorder": 0}


def along_and_across(updates: Tensor, true: Tensor) -> Tensor:
    """Each update as a point: along its true gradient, and across it. -> [case 2]

    updates and true are [case weight]; the unit is the length of the true gradient.
    """
    length = true.norm(dim=-1)
    along = (updates * true).sum(-1) / length
    across = (updates.square().sum(-1) - along.square()).clamp(min=0).sqrt()
    return torch.stack([along, across], dim=-1) / length[:, None]


def expected_error(ends: Tensor, noise: Tensor | float = 0.0) -> Tensor:
    """How far an estimate is from the true gradient, mean over cases. -> []

    ends [case 2] are where it points on average, noise [case] is how far it scatters.
    """
    off = ends - ends.new_tensor([1.0, 0.0])
    return (off.square().sum(-1) + noise**2).sqrt().mean()


def plot_turned(
    ends: Mapping[str, Tensor],
    noise: Mapping[str, Tensor] | None = None,
    view: Sequence[float] = (0, 1.05, -0.06, 0.4),
) -> list[Axes]:
    """The true gradient as a black arrow, and beside it each update as a blue one.

    ends[name] [case 2] are from `along_and_across`; `view` is left, right, bottom, top.
    Titles tell angles. With noise[name] [case] the updates are dots, in a disc of this
    radius, orange where they point away; titles tell the error, the smallest in bold.
    """
    errors = {n: expected_error(ends[n], each) for n, each in (noise or {}).items()}
    axes, told = axes_row(len(ends), width=10.0, height=2.5), []
    for ax, (name, each) in zip(axes, ends.items(), strict=True):
        ax.annotate("", (1, 0), (0, 0), arrowprops=TRUE)
        words = error_words(errors[name], noise[name]) if noise else angle_words(each)
        least = bool(noise) and errors[name] == min(errors.values())
        if noise:
            draw_cloud(ax, each, noise[name])
        for end in [] if noise else each.tolist():
            ax.annotate("", end, (0, 0), arrowprops=THIN)
        ax.set(xlim=view[:2], ylim=view[2:], aspect="equal")
        ax.set_title(f"{name}\n{words}", weight="bold" if least else "normal")
        ax.axis("off")
        told.append(f"{name} {words}".replace("\n", " "))
    plt.gcf().set_layout_engine("constrained", h_pad=0.12)  # room for the titles
    text = "Updates beside the arrow of the true gradient"
    describe(axes[0].figure, f"{text}: {'; '.join(told)}.")
    return axes


def draw_cloud(ax: Axes, ends: Tensor, noise: Tensor) -> None:
    """A dot for each end, a disc around their mean; left of the dotted line is away."""
    ax.axvline(0, color="grey", ls=":", lw=1)
    x, y = ends.mean(0).tolist()
    ax.add_patch(Circle((x, y), noise.mean().item(), **NOISE))
    away = ends[:, 0] < 0
    for colour, some in ((PI, ends[~away]), (DOWN, ends[away])):
        ax.plot(*some.T, "o", ms=6, color=colour, alpha=0.6, mew=0, zorder=5)


def error_words(error: Tensor, noise: Tensor) -> str:
    """An expected error; with noise in it, it is the total one."""
    return f"{'total ' if noise.any() else ''}error {error:.2f}"


def angle_words(ends: Tensor) -> str:
    """How far arrows are turned: their mean, and the worst of several."""
    turned = torch.atan2(ends[:, 1], ends[:, 0]).rad2deg()
    worst = f", at worst {turned.max():.0f}°" if len(ends) > 1 else ""
    return f"{turned.mean():.0f}°{worst}"


def plot_trade(
    runs: Mapping[str, tuple[Tensor, Tensor]],
    betas: Sequence[float],
    xlabel: str,
    ylabel: str,
    remedy: tuple[float, float],
) -> Axes:
    """What runs win across and what they keep upwards, a line each, a dot each beta.

    runs hold won and kept, [beta seed] each. Bars are one standard error; the first
    and the last beta stand beside their dots. The corner where enough is won and kept,
    from `remedy` on, is shaded.
    """
    ax, told = axes_row(width=7.5, height=4.0)[0], []
    looks = zip(COLOURS, LINES, LABELS, strict=False)
    for (name, pair), (colour, line, shifts) in zip(runs.items(), looks, strict=False):
        (won, lost), (kept, unsure) = map(mean_and_error, pair)
        look: dict[str, Any] = {"color": colour, "ls": line, "elinewidth": 0.8}
        ax.errorbar(won, kept, unsure, lost, marker="o", ms=6, label=name, **look)
        ends = [(won[i].item(), kept[i].item()) for i in (0, -1)]
        for beta, end, shift in zip((betas[0], betas[-1]), ends, shifts, strict=True):
            ink: dict[str, Any] = {"color": colour, "textcoords": "offset points"}
            ax.annotate(f"β = {beta:g}", end, shift, **ink)
        told.append(f"{name} from {words_of(*ends[0])} to {words_of(*ends[1])}")
    ax.set(xlim=(-0.05, 1.2), ylim=(0, 1.08))
    shade_remedy(ax, *remedy)
    legend_above(finish(ax, xlabel, ylabel))
    plt.tight_layout()
    span = f"β from {betas[0]:g} to {betas[-1]:g}"
    told.append(f"a remedy from {words_of(*remedy)} on")
    describe(ax.figure, f"{ylabel} against {xlabel}, {span}: {'; '.join(told)}.")
    return ax


def plot_ways_from(
    starts: Mapping[str, tuple[Tensor, Tensor]],
    ends: Mapping[str, Mapping[str, tuple[Tensor, Tensor]]],
    xlabel: str,
    ylabel: str,
) -> Axes:
    """An arrow from each start to each of its ends, whose names stand at the tips.

    What is won goes across and what is kept upwards, [seed] each: an arrow joins two
    means.
    """
    ax, told = axes_row(width=7.5, height=4.2)[0], []
    for (name, start), colour in zip(starts.items(), COLOURS, strict=False):
        x, y = (each.mean().item() for each in start)
        ax.plot(x, y, "o", ms=10, color=colour)
        for (end, pair), shift in zip(ends[name].items(), TIPS, strict=False):
            tip = pair[0].mean().item(), pair[1].mean().item()
            ax.annotate("", tip, (x, y), arrowprops=WAY | {"color": colour})
            ax.annotate(end, tip, shift, textcoords="offset points", color=colour)
            told.append(f"{name}, {end}: from {words_of(x, y)} to {words_of(*tip)}")
        ax.annotate(name, (x, y), (-4, 12), textcoords="offset points", ha="center")
    ax.set(xlim=(-0.1, 1.2), ylim=(-0.05, 1))
    describe(ax.figure, f"Arrows by {xlabel} and {ylabel}. {'; '.join(told)}.")
    return finish(ax, xlabel, ylabel)


def shade_remedy(ax: Axes, won: float, kept: float) -> None:
    """The upper right corner of the axes, from these two shares on."""
    right, top = ax.get_xlim()[1], ax.get_ylim()[1]
    corner = Rectangle((won, kept), right - won, top - kept, alpha=0.15, color=UP, lw=0)
    ax.add_patch(corner)
    ax.text(right, top - 0.02, "a remedy ", ha="right", va="top", color=UP)


def words_of(x: float, y: float) -> str:
    """A place, as one says it."""
    return f"{x:.2f}, {y:.2f}"
