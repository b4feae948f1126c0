"""The critic's losses over its new value, and where the clipped one lets go."""

from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish, legend_above
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.mechanism import draw_arrow
from grpo_course.classroom.plots.palette import CLIP, COLOURS, GONE, GROUND, PI
from grpo_course.ppo import value_loss

OLD, TARGET = 0.0, 1.0
PLACES = torch.linspace(-1.0, 3.0, 401)
REACH = 0.55  # of an arrow, for a gradient of 1


def losses_and_pulls(values: Tensor, clip: float | None) -> tuple[Tensor, Tensor]:
    """The value loss at each value, and minus its gradient. [value] -> [value] twice"""
    now = (
        values.clone().reshape(-1, 1, 1, 1).requires_grad_()
    )  # [value batch trial pos]
    target, old = torch.full_like(now, TARGET), torch.full_like(now, OLD)
    loss = value_loss(now, target, old, clip)
    (gradient,) = torch.autograd.grad(loss.sum(), now)
    return loss.detach(), -gradient.flatten()


def plot_value_clip(clip: float, values: Tensor) -> Axes:
    """The loss with and without a clip, and how each of some values is pulled."""
    ax = axes_row(width=8.0, height=3.8)[0]
    draw_losses(ax, clip)
    for value, loss, pull in zip(
        values.tolist(),
        *(x.tolist() for x in losses_and_pulls(values, clip)),
        strict=True,
    ):
        draw_pull(ax, value, loss, pull)
    ax.set(xlim=(-1.1, 3.1), ylim=(-0.1, 2.1))
    finish(ax, "new value (old value 0, target 1)", "value loss")
    legend_above(ax)
    describe(
        ax.figure,
        "The value loss over the new value: squared, Huber's and clipped, with the "
        f"clip range {clip:g} around the old value as a grey band. {flat_words(clip)}",
    )
    return ax


def draw_losses(ax: Axes, clip: float) -> None:
    """The squared, Huber's and the clipped loss, and the stretch that has no slope."""
    squared, clipped = (losses_and_pulls(PLACES, c)[0] for c in (None, clip))
    huber = torch.nn.functional.huber_loss(
        PLACES, torch.full_like(PLACES, TARGET), reduction="none"
    )
    ax.axvspan(OLD - clip, OLD + clip, label="clip range", **CLIP)
    ax.plot(PLACES, squared, color=COLOURS[1], ls="--", label="squared")
    ax.plot(PLACES, huber, color=COLOURS[3], ls=":", lw=2.5, label="Huber")
    ax.plot(PLACES, clipped, color=PI, lw=3, label="clipped")
    held = torch.where(clipped > squared + 1e-6, clipped, torch.nan)
    ax.plot(PLACES, held, color=GONE, lw=6, label="clipped, flat")


def draw_pull(ax: Axes, value: float, loss: float, pull: float) -> None:
    """A value on the clipped loss, and an arrow to where it is pulled, if it is."""
    if pull:
        draw_arrow(ax, (value, loss), (value + REACH * pull, loss), pull, width=3)
    fill: dict[str, Any] = {"mfc": PI if pull else GROUND, "mec": PI if pull else GONE}
    ax.plot(value, loss, "o", ms=10, mew=2.5, zorder=5, **fill)


def flat_words(clip: float) -> str:
    """Between which values there is no pull."""
    _, pulls = losses_and_pulls(PLACES, clip)
    still = PLACES[pulls.abs() < 1e-6]
    if len(still) < 2:
        return "Every value but the target is pulled."
    return f"No pull from {still.min():+.1f} to {still.max():+.1f}."


def draw_value_clip(clip: float, values: Tensor) -> str:
    """The picture for a slider; -> the sentence below it."""
    plot_value_clip(clip, values)
    return f"Clip range {clip:g}. {flat_words(clip)}"
