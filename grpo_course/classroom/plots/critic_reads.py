"""What a critic reads: which tokens of prompt and response move each of its values."""

import copy

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import GROUND, PI
from grpo_course.loop import Rollout
from grpo_course.ppo import Critic, ValueHead

STILL = 1e-6  # a value that moves by less has not read the token


@torch.no_grad()
def what_moves(critic: Critic | ValueHead, rollout: Rollout, vocab_size: int) -> Tensor:
    """Change one token at a time, in every row: which values move? bool [value token]

    Tokens of the prompt come first. A fresh critic says zero whatever it reads, so a
    copy of it answers, with a random readout.
    """
    critic = copy.deepcopy(critic)
    torch.nn.init.normal_(critic.readout)
    before, moved = critic(rollout), []
    for read in (0, 1):  # the prompts, then the responses
        for place in range((rollout.prompts, rollout.responses)[read].shape[-1]):
            tokens = rollout.prompts.clone(), rollout.responses.clone()
            tokens[read][..., place] = (tokens[read][..., place] + 1) % vocab_size
            change = (critic(Rollout(*tokens)) - before).abs()
            moved.append(change.flatten(0, -2).amax(0) > STILL)
    return torch.stack(moved, dim=-1)


def plot_reads(tables: dict[str, Tensor], prompt_length: int) -> list[Axes]:
    """A table for each critic: a cell is filled where its token moves its value."""
    axes, told = axes_row(len(tables), width=10.0, height=2.5), []
    for ax, (name, table) in zip(axes, tables.items(), strict=True):
        for row, cells in enumerate(table.tolist()):
            for column, filled in enumerate(cells):
                ax.barh(row, 0.9, 0.86, column - 0.45, color=PI if filled else "0.92")
        ax.axvline(prompt_length - 0.5, color="black", lw=1.5)
        written = range(table.shape[1] - prompt_length)
        names = [*(f"prompt\n{p}" for p in range(prompt_length))]
        names += [f"token\n{t}" for t in written]
        ax.set_xticks(range(len(names)), names, fontsize=10)
        ax.set_yticks(range(len(table)), [f"$V_{t}$" for t in range(len(table))])
        finish(ax, "", "", name).grid(visible=False)
        ax.set(facecolor=GROUND, ylim=(len(table) - 0.5, -0.5))
        rows = [f"V {t} by {cells.sum()}" for t, cells in enumerate(table)]
        told.append(f"{name}, {', '.join(rows)} of {len(names)} tokens")
    describe(axes[0].figure, f"Which tokens move each value: {'; '.join(told)}.")
    return axes
