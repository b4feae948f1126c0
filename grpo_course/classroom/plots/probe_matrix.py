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
Stages = Mapping[str, Mapping[int, str]]


class Said(Protocol):
    """What one probe said of trainers: "silent", "fires", or an error."""

    @property
    def healthy(self) -> dict[str, str]: ...

    @property
    def broken(self) -> dict[int, str]: ...


def plot_matrix(rows: Mapping[str, Said], stages: Stages | None = None) -> Axes:
    """All healthy trainers left of the line, with the number of false alarms in their
    cell; the broken ones on its right.

    A filled cell is a probe that fires. Columns are the trainers' numbers, or causes in
    the order of `stages`: the stage -> number -> cause.
    """
    first = next(iter(rows.values()))
    names = {number: str(number) for number in first.broken}
    if stages:
        names = {n: cause for each in stages.values() for n, cause in each.items()}
    room = 2.2 if stages else 0.0
    size = (3.0 + COLUMN * len(names), 1.25 + room + ROW * len(rows))
    _, ax = plt.subplots(figsize=size, layout="constrained")
    shades = ListedColormap([*SHADES.values()])
    ax.imshow(levels(rows, [*names]), cmap=shades, vmin=0, vmax=2, aspect="auto")
    for y, row in enumerate(rows.values()):
        count = sum(level(said) > 0 for said in row.healthy.values())
        ax.text(0, y, str(count), ha="center", va="center", fontsize=10)
    ax.axvline(0.5, color="black", lw=1.5)
    healthy = f"{len(first.healthy)} healthy" if stages else f"{len(first.healthy)}\nok"
    name_columns(ax, [healthy, *names.values()], stages)
    ax.set_yticks(range(len(rows)), list(rows), fontsize=10)
    patches = [Patch(color=shade, label=name) for name, shade in SHADES.items()]
    ax.figure.legend(handles=patches, loc="outside upper right", ncols=3, fontsize=10)
    describe(ax.figure, words(rows))
    return ax


def name_columns(ax: Axes, names: list[str], stages: Stages | None) -> None:
    """The trainers below; above, the stage in which their line stands."""
    turned = 90 if stages else 0
    ax.set_xticks(range(len(names)), names, fontsize=10, rotation=turned)
    ax.set_xticks([x - 0.5 for x in range(len(names))], minor=True)
    ax.set_yticks([y - 0.5 for y in range(int(ax.get_ylim()[0] + 0.5))], minor=True)
    ax.grid(visible=False)
    ax.grid(which="minor", color="white", lw=1.2)
    ax.tick_params(which="both", length=0)
    end = 1
    for stage, causes in (stages or {}).items():
        ax.axvline(end - 0.5, color="black", lw=0.8)
        ax.text(end - 0.4, -0.65, stage, rotation=35, fontsize=10, va="bottom")
        end += len(causes)
    if not stages:
        ax.set_xlabel("trainer")


def levels(rows: Mapping[str, Said], numbers: list[int]) -> list[list[int]]:
    """The places of all entries, a row a probe; healthy trainers share the first."""
    return [
        [
            max(map(level, row.healthy.values())),
            *(level(row.broken[n]) for n in numbers),
        ]
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
