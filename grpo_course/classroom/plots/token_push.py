"""How hard each token of a response pushes, under each mean over a batch."""

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import UP
from grpo_course.formulas import compute_loss

SHORT = 2  # tokens of the short responses
HIGHEST = 0.14


def pushes(length: int, mean: str, longest: int = 16) -> tuple[Tensor, Tensor]:
    """What each token of a short and of a long good response adds, up to the step.

    The batch has two good responses, delta +1, and two bad ones of the same lengths.
    -> float [SHORT], float [length]
    """
    lengths = torch.tensor([[SHORT, length, SHORT, length]])  # [batch trial]
    mask = torch.arange(longest) < lengths[..., None]
    deltas = torch.tensor([[1.0, 1.0, -1.0, -1.0]])
    log_probs = torch.zeros(1, 4, longest, requires_grad=True)
    loss = compute_loss(log_probs, deltas, "naive", mask=mask, aggregation=mean)
    (push,) = torch.autograd.grad(-loss, log_probs)
    return push[0, 0, :SHORT], push[0, 1, :length]


def plot_pushes(length: int, mean: str) -> Axes:
    """A bar for each token of the short and of the long good response."""
    ax, start = axes_row(width=8.0, height=2.8)[0], 0
    for push in pushes(length, mean):
        places = torch.arange(len(push)) + start
        ax.bar(places, push, 0.8, color=UP)
        middle, text = places.float().mean().item(), f"sum {push.sum():.3f}"
        ax.text(middle, push[0].item() + 0.006, text, ha="center")
        start += len(push) + 3
    ax.set(xlim=(-1.5, 21), ylim=(0, HIGHEST + 0.02))
    ax.set_xticks((0.5, 4.5 + length / 2), (f"{SHORT} tokens", f"{length} tokens"))
    finish(ax, "", "push of a token", mean).grid(visible=False, axis="x")
    short, long = pushes(length, mean)
    describe(
        ax.figure,
        f"A bar for each token, {mean}. Each of {SHORT} tokens of the short response "
        f"pushes {short[0]:.3f}, each of {length} of the long one {long[0]:.3f}.",
    )
    return ax


def draw_pushes(tokens: int, mean: str) -> str:
    """The picture for a slider; -> the sentence below it."""
    plot_pushes(tokens, mean)
    short, long = pushes(tokens, mean)
    return (
        f"{mean}: a token of the short response pushes {short[0]:.3f}, one of the long "
        f"response {long[0]:.3f}; all its {tokens} together {long.sum():.3f}."
    )
