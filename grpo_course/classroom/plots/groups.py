"""The groups of a batch side by side: what each response earned, how it is pushed."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from grpo_course.algorithm.rollout import Batch
from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.mechanism import draw_group


def plot_groups(batch: Batch) -> list[Axes]:
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
        ax.set_title(f"prompt {prompt}", fontsize=11)
        listed = ", ".join(f"{delta + 0.0:+.2f}" for delta in deltas[i].tolist())
        told.append(f"prompt {prompt} {listed}")
    plt.tight_layout()
    describe(axes[0].figure, f"Deltas as arrows, group by group: {'; '.join(told)}.")
    return axes
