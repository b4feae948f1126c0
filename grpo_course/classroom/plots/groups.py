"""Groups as bars and arrows: what each response earned, and how it is pushed."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.mechanism import draw_arrow, draw_group
from grpo_course.classroom.plots.palette import PI
from grpo_course.loop import Batch


def plot_batch(batch: Batch) -> list[Axes]:
    """A panel for each prompt, in it each response with its reward and its delta."""
    prompts, deltas = batch.rollout.prompts.tolist(), batch.deltas
    axes, told = axes_row(len(prompts), width=3.6 * len(prompts), height=2.6), []
    reach = 1.6 * max(1e-6, deltas.abs().max().item())
    for i, (ax, prompt) in enumerate(zip(axes, prompts, strict=True)):
        rows = zip(batch.rollout.responses[i], batch.rewards[i], strict=True)
        names = [
            f"{' '.join(map(str, r.tolist()))}   R {reward:g}" for r, reward in rows
        ]
        ax.set_xlim(-reach, reach)
        draw_group(ax, deltas[i], names, r"delta $\delta$", signed=True)
        ax.set_title(f"prompt {prompt}")
        listed = ", ".join(f"{delta + 0.0:+.2f}" for delta in deltas[i].tolist())
        told.append(f"prompt {prompt} {listed}")
    plt.tight_layout()
    describe(axes[0].figure, f"Deltas as arrows, group by group: {'; '.join(told)}.")
    return axes


def plot_groups(
    rewards: Tensor,
    deltas: Mapping[str, Tensor],
    names: Sequence[str],
    reach: float | None = None,
) -> list[list[Axes]]:
    """A row for each group, all arrows on one scale. [batch trial] each

    `reach` is where that scale ends, so that frames of a slider can share it.
    """
    reach = reach or 1.6 * max(delta.abs().max().item() for delta in deltas.values())
    size = (4.3 + 2.7 * len(deltas), len(rewards) * (0.9 + 0.3 * len(names)))
    figure, grid = plt.subplots(
        len(rewards), 1 + len(deltas), figsize=size, squeeze=False
    )
    for row, (axes, group) in enumerate(zip(grid, rewards, strict=True)):
        axes[0].set_xlim(0, 1.24 * max(1e-6, rewards.max().item()))
        draw_group(axes[0], group, names, "reward $R$")
        axes[0].axvline(group.mean().item(), color="black", ls="--", lw=1.5)
        for ax, delta in zip(axes[1:], deltas.values(), strict=True):
            ax.set_xlim(-reach, reach)
            draw_group(ax, delta[row], [""] * len(names), r"delta $\delta$", True)
    for ax, title in zip(grid[0], ("dashed: their mean", *deltas), strict=True):
        ax.set_title(title)
    for ax in grid[:-1].flat:
        ax.set_xlabel("")
    plt.tight_layout()
    told = "; ".join(group_words(rewards, deltas, row) for row in range(len(rewards)))
    describe(figure, f"Groups as bars, their deltas as arrows. {told}.")
    return [list(axes) for axes in grid]


def plot_over_average(
    chances: Tensor, rewards: Tensor, names: Sequence[str]
) -> list[Axes]:
    """What a policy chooses, and each reward as an arrow from what it earns on average.

    That average (dashed) moves with the chances. [choice] twice
    """
    left, right = axes_row(2, width=10.0, height=1.4 + 0.42 * len(names))
    rows, average = range(len(names)), (chances @ rewards).item()
    bars = left.barh(rows, chances.tolist(), 0.6, color=PI)
    left.bar_label(bars, fmt="{:.2f}", padding=4)
    left.set_yticks(rows, names)
    right.set_yticks([])
    for ax in (left, right):
        ax.set(xlim=(-0.25 if ax is right else 0, 1.25), ylim=(len(names) - 0.5, -0.5))
    right.axvline(average, color="black", ls="--", lw=1.5)
    for row, (reward, above) in enumerate(zip(rewards, rewards - average, strict=True)):
        foot, head = (average, row), (reward.item(), row)
        draw_arrow(right, foot, head, above.item(), min(3.5, 30 * abs(above.item())))
        side, gap = ("left", 0.03) if above > 0 else ("right", -0.03)
        right.text(head[0] + gap, row, f"{above:+.2f}", ha=side, va="center")
    finish(left, "chance", "").grid(visible=False)
    finish(right, "reward, from the average (dashed)", "").grid(visible=False)
    plt.tight_layout()
    told = zip(names, chances.tolist(), rewards.tolist(), strict=True)
    listed = "; ".join(f"{n} chosen {c:.2f}, earns {r:.2f}" for n, c, r in told)
    text = f"Chances as bars, rewards as arrows from the average {average:.2f}"
    describe(left.figure, f"{text}: {listed}.")
    return [left, right]


def group_words(rewards: Tensor, deltas: Mapping[str, Tensor], row: int) -> str:
    """One group and what becomes of it, in words."""
    listed = [
        f"{name} {', '.join(f'{x:.3g}' for x in values[row].tolist())}"
        for name, values in {"rewards": rewards, **deltas}.items()
    ]
    return f"Group {row + 1}: {', '.join(listed)}"
