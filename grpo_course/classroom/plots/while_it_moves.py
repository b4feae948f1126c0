"""Frames of a film: what a policy does while its loss, or its entropy, says little."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from grpo_course.classroom.plots import finish
from grpo_course.classroom.plots.mechanism import draw_policy
from grpo_course.classroom.plots.palette import COLOURS, LINES, PI


def frame_axes(
    tables: int, curves: int, height: float = 2.9
) -> tuple[Figure, list[Axes], list[Axes]]:
    """Axes for tables of colours side by side, and right of them curves, stacked."""
    figure = plt.figure(figsize=(9.0, height), layout="constrained")
    grid = figure.add_gridspec(curves, tables + 1)
    left = [figure.add_subplot(grid[:, column]) for column in range(tables)]
    return figure, left, [figure.add_subplot(grid[row, -1]) for row in range(curves)]


def draw_so_far(
    ax: Axes,
    curves: dict[str, Tensor],
    now: int,
    ylabel: str,
    ylim: tuple[float, float],
) -> None:
    """Curves [step] up to the step `now`, with a dot there, on axes for all steps."""
    steps = max(map(len, curves.values()))
    for (name, curve), colour, line in zip(
        curves.items(), COLOURS, LINES, strict=False
    ):
        last = min(now, len(curve) - 1)
        ax.plot(range(last + 1), curve[: last + 1], color=colour, ls=line, label=name)
        ax.plot(last, curve[last], "o", ms=8, color=colour)
    ax.set(xlim=(-0.03 * steps, 1.03 * steps), ylim=ylim)
    finish(ax, "epoch", ylabel)


def draw_zero_loss(
    policies: Sequence[Tensor],
    answer: Sequence[int],
    loss: Tensor,
    reward: Tensor,
    epoch: int,
) -> str:
    """One frame: the policy of an epoch, the loss and the reward up to it.

    policies [epoch] of [pos vocab]; loss and reward [epoch]. -> the sentence below
    """
    _, (table,), (upper, lower) = frame_axes(1, 2)
    draw_policy(table, policies[epoch], answer, f"the policy, epoch {epoch}")
    draw_so_far(upper, {"": loss}, epoch, "loss", (-1, 1))
    draw_so_far(lower, {"": reward}, epoch, "reward", (0, 1.05 * reward.max().item()))
    upper.set(xlabel="", xticklabels=[])
    right = policies[epoch][range(len(answer)), list(answer)].prod()
    return (
        f"Epoch {epoch}: |loss| {abs(loss[epoch]):.5f}, reward {reward[epoch]:.2f}, "
        f"probability of the sorted answer {right:.2f}."
    )


def draw_collapse(
    policies: dict[str, Sequence[Tensor]],
    answer: Sequence[int],
    entropies: dict[str, Tensor],
    epoch: int,
    prompt: str,
) -> str:
    """One frame: what two policies say of one prompt, and their entropies up to it."""
    figure, tables, (ax,) = frame_axes(2, 1, height=3.2)
    figure.suptitle(f"Tables: the prompt {prompt}. Curve: all prompts.")
    for table, (name, seen) in zip(tables, policies.items(), strict=True):
        draw_policy(table, seen[epoch], answer, name)
    tables[1].set_ylabel("")
    draw_so_far(ax, entropies, epoch, "entropy (nats)", (-0.1, 1.7))
    places = range(len(answer)), list(answer)
    right = [
        f"{name} {seen[epoch][places].prod():.2f}" for name, seen in policies.items()
    ]
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    now = {name: each[epoch].clamp(min=0) + 0.0 for name, each in entropies.items()}
    told = [f"{name} {entropy:.2f}" for name, entropy in now.items()]
    return (
        f"Epoch {epoch}: probability of the sorted answer {', '.join(right)}; "
        f"entropy {', '.join(told)} nats a token."
    )


def draw_walk(
    probs: Tensor,
    answer: Sequence[int],
    line: Tensor,
    s: float,
    loss: float,
    outside: float,
) -> str:
    """One picture of a slider: the policy after a step s down the loss, and two curves.

    probs [pos vocab]; line [3 place] holds steps, and at each the loss and the
    probability of the answer, whose start is dotted; outside is the share of the tokens
    that have left the clip range.
    """
    _, (table,), (upper, lower) = frame_axes(1, 2, height=3.4)
    draw_policy(table, probs, answer, f"the policy after s = {s:g}")
    right = probs[range(len(answer)), list(answer)].prod()
    for ax, curve, now in ((upper, line[1], loss), (lower, line[2], right)):
        ax.plot(line[0], curve, color=PI)
        ax.plot(s, now, "o", ms=10, color="black")
    lower.axhline(line[2, 0].item(), color="black", ls=":")
    finish(upper, "", "loss").set_xticklabels([])
    finish(lower, "step s along minus the gradient", "sorted answer")
    return (
        f"s = {s:g}: loss {round(loss, 2) + 0.0:.2f}, probability of the sorted answer "
        f"{right:.5f}, tokens outside the clip range {outside:.2f}."
    )
