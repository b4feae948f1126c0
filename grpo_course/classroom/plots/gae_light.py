"""GAE: how each step's TD error travels back to the tokens before it."""

from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from torch import Tensor

from grpo_course.classroom.plots import finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import DOWN, GROUND, UP

SIGNS = LinearSegmentedColormap.from_list("signs", (DOWN, GROUND, UP))


def shares(errors: Tensor, decay: float) -> Tensor:
    """What each TD error adds to each token's delta. [pos] -> [error pos]

    Row s holds (gamma lambda)^(s - t) times error s at every token t up to s, and zero
    after it. The columns add up to GAE.
    """
    steps = torch.arange(len(errors))
    back = steps[:, None] - steps  # how far behind the error a token stands
    faded = decay ** back.clamp(min=0).to(errors.dtype)
    return torch.where(back >= 0, faded * errors[:, None], 0.0)


def plot_light(errors: Tensor, lam: float, gamma: float = 1.0) -> list[Axes]:
    """A row for each TD error, fading towards the start, and the sums below. [pos]"""
    parts = shares(errors, gamma * lam)
    deltas = parts.sum(dim=0)
    count, most = len(errors), errors.abs().max().item()
    upper, lower = axes_column(count)
    upper.imshow(parts, cmap=SIGNS, vmin=-most, vmax=most, aspect="auto")
    for s, t in torch.ones(count, count).tril().nonzero().tolist():
        write(upper, t, s, parts[s, t].item(), bold=s == t)
    names = [f"TD error of token {s}" for s in range(count)]
    upper.set(yticks=range(count), yticklabels=names, xticks=[])
    upper.grid(visible=False)
    title = f"λ = {lam:g}: what is left of each TD error; × λ for each token back"
    upper.set_title(title)
    lower.imshow(deltas[None], cmap=SIGNS, vmin=-most, vmax=most, aspect="auto")
    for t, delta in enumerate(deltas.tolist()):
        write(lower, t, 0, delta, bold=True)
    lower.set(yticks=[0], yticklabels=[r"their sum, $\delta_t$"], xticks=range(count))
    finish(lower, "token", "").grid(visible=False)
    plt.tight_layout()
    told = ", ".join(f"{delta:+.2f}" for delta in deltas.tolist())
    describe(
        upper.figure,
        f"A row for each of {count} TD errors, fading from its own token back to the "
        f"first with lambda {lam:g}. The columns add up to the deltas {told}.",
    )
    return [upper, lower]


def axes_column(count: int) -> tuple[Axes, Axes]:
    """A table of `count` rows above a table of one row, as wide."""
    _, (upper, lower) = plt.subplots(
        2, 1, figsize=(7.5, 1.5 + 0.48 * count), height_ratios=(count, 1)
    )
    return upper, lower


def write(ax: Axes, x: int, y: int, value: float, bold: bool) -> None:
    """A signed number in the middle of a cell."""
    weight = "bold" if bold else "normal"
    box: dict[str, Any] = {"facecolor": "white", "alpha": 0.85, "lw": 0, "pad": 1.5}
    style: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "bbox": box,
    }
    ax.text(x, y, f"{round(value, 2) + 0.0:+.2f}", weight=weight, **style)


def draw_light(errors: Tensor, lam: float) -> str:
    """The picture for a slider; -> the sentence below it. [pos]"""
    plot_light(errors, lam)
    deltas = shares(errors, lam).sum(dim=0).tolist()
    return f"λ = {lam:g}: deltas {', '.join(f'{delta:+.2f}' for delta in deltas)}."
