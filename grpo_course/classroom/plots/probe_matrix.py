"""What probes say: one row a probe, one column a trainer."""

from collections.abc import Mapping
from typing import Protocol

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from grpo_course.classroom.plots import COLOURS
from grpo_course.classroom.plots.alt_text import describe

SHADES = {"silent": "#E6E6E6", "fires": COLOURS[0], "error": COLOURS[1]}
COLUMN, ROW = 0.22, 0.24  # inches


class Said(Protocol):
    """What one probe said of trainers: "silent", "fires", or an error."""

    @property
    def healthy(self) -> dict[str, str]: ...

    @property
    def broken(self) -> dict[int, str]: ...


def plot_matrix(rows: Mapping[str, Said]) -> Axes:
    """Healthy trainers on the left of the line, trainers by number on its right.

    A filled cell is a probe that fires; a probe should be silent on the left.
    """
    first = next(iter(rows.values()))
    healthy, numbers = len(first.healthy), list(first.broken)
    columns = healthy + len(numbers)
    size = (2.6 + COLUMN * columns, 1.1 + ROW * len(rows))
    _, ax = plt.subplots(figsize=size, layout="constrained")
    shades = ListedColormap([*SHADES.values()])
    ax.imshow(levels(rows), cmap=shades, vmin=0, vmax=2, aspect="auto")
    ax.axvline(healthy - 0.5, color="black", lw=1.5)
    names = [""] * healthy + [str(number) for number in numbers]
    names[healthy // 2] = f"healthy ({healthy})"
    ax.set_xticks(range(columns), names, fontsize=7)
    ax.set_yticks(range(len(rows)), list(rows), fontsize=8)
    ax.set_xticks([x - 0.5 for x in range(columns)], minor=True)
    ax.set_yticks([y - 0.5 for y in range(len(rows))], minor=True)
    ax.grid(visible=False)
    ax.grid(which="minor", color="white", lw=1.2)
    ax.tick_params(which="both", length=0)
    ax.set_xlabel("trainer")
    patches = [Patch(color=shade, label=name) for name, shade in SHADES.items()]
    ax.figure.legend(handles=patches, loc="outside upper right", ncols=3, fontsize=8)
    describe(ax.figure, words(rows))
    return ax


def levels(rows: Mapping[str, Said]) -> list[list[int]]:
    """The places of all entries, a row a probe."""
    return [
        [level(said) for said in (*row.healthy.values(), *row.broken.values())]
        for row in rows.values()
    ]


def level(said: str) -> int:
    """The place of an entry in SHADES."""
    return [*SHADES].index(said) if said in SHADES else 2


def words(rows: Mapping[str, Said]) -> str:
    """The matrix for readers who cannot see it."""
    told = []
    for name, row in rows.items():
        fired = [str(number) for number, said in row.broken.items() if level(said)]
        alarms = sum(level(said) > 0 for said in row.healthy.values())
        told.append(
            f"{name} fires for trainers {', '.join(fired) or 'none'} and in {alarms} "
            f"of {len(row.healthy)} healthy ones"
        )
    return f"A matrix of probes and trainers: {'; '.join(told)}."
