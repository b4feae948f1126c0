"""What runs have measured, printed and drawn: `show`.

Runs that differ in their seed alone are one: their mean, with its 95 % interval by
Student's t.
"""

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle, groupby
from operator import itemgetter
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.style import library
from pandas import DataFrame, Series, concat

from grpo_course.files import write_atomically
from grpo_course.loop import half_width
from grpo_course.text.run_folder import (
    CONFIG,
    METRICS,
    PICTURE,
    PICTURES,
    SAMPLES,
    differences,
    here,
    read_lines,
    saved_config,
)

ENDS = 10  # epochs at each end of a run that are averaged, and that smooth a curve
AS_MEASURED = ("held_out", "learning_rate")  # what is never smoothed
ACROSS = 3  # names of runs in one line above the plots
# title of a small plot -> its columns, and their names; the second is dashed
PANELS: dict[str, dict[str, str]] = {
    "mean reward": {"mean_reward": ""},
    "accuracy": {"accuracy": "training", "held_out": "held-out"},
    "tied groups (share)": {"tied_right": "all right", "tied_wrong": "all wrong"},
    "KL to the reference (nats)": {"kl": ""},
    "gradient norm": {"gradient_norm": ""},
    "entropy (nats a token)": {"sampled_entropy": ""},
    "length (tokens)": {"mean_length": ""},
    "learning rate": {"learning_rate": ""},
}


def find_runs(folders: Sequence[str]) -> list[str]:
    """The runs in some folders: each is one, or holds those of several seeds."""
    runs = []
    for folder in folders:
        inside = sorted(Path(folder).glob(f"*/{CONFIG}"))
        if (Path(folder) / CONFIG).is_file() or not inside:
            saved_config(Path(folder))  # which says what is missing
            runs.append(folder)
        else:
            runs += [str(path.parent) for path in inside]
    return runs


def group_by_settings(runs: Sequence[str]) -> list[list[str]]:
    """The runs in groups of those that differ in their seed alone, by their seed."""
    groups: list[list[str]] = []
    configs = {run: saved_config(Path(run)) for run in runs}
    for run, config in configs.items():
        for group in groups:
            first = configs[group[0]]
            is_new = config.seed not in [configs[each].seed for each in group]
            as_first = replace(here(config, first), seed=first.seed)
            if is_new and not differences(first, as_first):
                group.append(run)
                break
        else:
            groups.append([run])
    return [sorted(group, key=lambda run: configs[run].seed) for group in groups]


def name_of(group: Sequence[str]) -> str:
    """A run's folder, or the one that the runs of several seeds lie in."""
    if len(group) == 1:
        return group[0]
    return f"{Path(os.path.commonpath(group))} ({len(group)} seeds)"


def print_runs(folders: Sequence[str], picture: str | None, num_samples: int) -> int:
    """Print and draw what runs have measured so far, seeds of one run together."""
    runs = find_runs(folders)
    groups = {name_of(group): group for group in group_by_settings(runs)}
    metrics = {
        name: [DataFrame(read_lines(Path(run, METRICS))) for run in group]
        for name, group in groups.items()
    }
    beside = Path(folders[0]) if len(folders) == 1 else Path()
    out = Path(picture or beside / (PICTURE if len(runs) == 1 else PICTURES))
    write_atomically(out, draw(metrics))
    table = DataFrame({name: measured_ends(each) for name, each in metrics.items()})
    configs = [saved_config(Path(group[0])) for group in groups.values()]
    table.loc["epochs"] = [
        epochs_done(each, config.num_epochs)
        for each, config in zip(metrics.values(), configs, strict=True)
    ]
    print(table.rename_axis(index=f"first {ENDS} → last {ENDS}").to_string())
    if len(runs) > len(groups):
        print("± is half of a 95 % interval over seeds, by Student's t.")
    for name, group in groups.items():
        print(f"\n{name}")
        samples = read_lines(Path(group[0], SAMPLES))
        newest = samples[-num_samples:] if num_samples > 0 else []
        for question, rows in groupby(newest, itemgetter("question")):
            print(question)
            for row in rows:
                earned = f"epoch {row['epoch']}, reward {row['reward']:.2f}"
                print(f"-> {row['completion']}  ({earned})")
    first, *others = groups
    for name, config in zip(others, configs[1:], strict=True):
        whose = "They differ" if len(others) == 1 else f"{name} differs from {first}"
        print(f"\n{whose} in: {differences(configs[0], config) or 'nothing'}")
    print(f"\nThe picture is {out}.")
    return 0


def epochs_done(metrics: Sequence[DataFrame], num_epochs: int) -> str:
    """How far runs are: "8 of 8", or of several "8, 8, 3 of 8"."""
    done = [each["mean_reward"].count() if len(each) else 0 for each in metrics]
    counts = {*done} if len({*done}) == 1 else done
    return f"{', '.join(map(str, counts))} of {num_epochs}"


def measured_ends(metrics: Sequence[DataFrame]) -> dict[str, str]:
    """How each measure began and where it is: means of the first and last epochs.

    Of several seeds, their mean, and how sure it is. Held-out accuracy is what the
    first and the last look saw.
    """
    ends = {}
    drawn = [name for columns in PANELS.values() for name in columns]
    for name in (*drawn, "truncated"):
        few = 1 if name == "held_out" else ENDS
        columns = [each[name].dropna() for each in metrics if name in each]
        columns = [column for column in columns if len(column)]
        if not columns:
            ends[name] = "-"
            continue
        first = Series([column.head(few).mean() for column in columns])
        last = Series([column.tail(few).mean() for column in columns])
        ends[name] = f"{first.mean():.3g} → {last.mean():.3g}"
        if (half := half_width(last)) > 0:  # the same in all seeds, or only one
            ends[name] += f" ± {half:.2g}"
    return ends


def mean_and_band(metrics: Sequence[DataFrame], name: str, smooth: bool) -> DataFrame:
    """A measure over the epochs, of one run or several seeds of it.

    Columns "mean" and "half", the width of its 95 % band to either side. With `smooth`,
    each point is the mean of the latest `ENDS` epochs, but for what is not noisy.
    """
    curves = [each.dropna(subset=name).set_index("epoch")[name] for each in metrics]
    if smooth and name not in AS_MEASURED:
        curves = [curve.rolling(ENDS, min_periods=1).mean() for curve in curves]
    together = concat(curves, axis=1).dropna()  # as far as all of them are
    half = together.apply(half_width, axis=1) if len(together) else Series(dtype=float)
    return DataFrame({"mean": together.mean(axis=1), "half": half})


def draw(groups: Mapping[str, Sequence[DataFrame]]) -> bytes:
    """A PNG with a small plot for each of PANELS, a colour for each group of runs.

    Of a run of several seeds, the mean and its 95 % band; then all curves are smoothed.
    """
    smooth = any(len(metrics) > 1 for metrics in groups.values())
    colours = library["tableau-colorblind10"]["axes.prop_cycle"].by_key()["color"]
    figure = Figure(figsize=(12, 5.4), layout="constrained")
    panels = zip(figure.subplots(2, 4).flat, PANELS.items(), strict=True)
    for ax, (title, columns) in panels:
        for metrics, colour in zip(groups.values(), cycle(colours), strict=False):
            for name, style in zip(columns, ("-", "--"), strict=False):
                measured = [each for each in metrics if name in each]
                if not measured:
                    continue
                curve = mean_and_band(measured, name, smooth)
                look = {"color": colour, "ls": style, "lw": 1.2}
                if name == "held_out":  # measured now and then: each look is a point
                    look |= {"marker": "o", "markersize": 3.5}
                ax.plot(curve.index, curve["mean"], label=columns[name], **look)
                if len(measured) > 1:
                    ax.fill_between(
                        curve.index,
                        curve["mean"] - curve["half"],
                        curve["mean"] + curve["half"],
                        color=colour,
                        alpha=0.2,
                        lw=0,
                    )
        ax.set_title(title, fontsize=10)
        ax.tick_params(labelsize=8)
        ax.grid(alpha=0.3)
        if len(columns) > 1:
            ax.legend(handles=ax.lines[: len(columns)], fontsize=7, labelcolor="0.2")
    for place, (name, colour) in enumerate(zip(groups, cycle(colours), strict=False)):
        column, row = place % ACROSS, place // ACROSS
        where = (column + 0.5) / min(len(groups), ACROSS)
        height = 1.0 + 0.045 * (-(-len(groups) // ACROSS) - 1 - row)
        figure.text(where, height, name, color=colour, ha="center", va="bottom")
    figure.supxlabel("epoch", fontsize=10)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100, bbox_inches="tight")
    return out.getvalue()
