"""What notebook 10 alone draws."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    GONE,
    GROUND,
    LINES,
    axes_row,
    canvas,
    cell,
    draw_costs,
    finish,
    legend_above,
    name_row,
)

# What goes wrong inside a trainer of the hunt: one picture for each guided case.


Factory = Callable[..., Any]


WELL, ILL = COLOURS[0], COLOURS[1]


CASE_MECHANISMS_NAMES = ("this case", "repaired")


IN_BOX: dict[str, Any] = {"boxstyle": "round", "facecolor": GROUND, "edgecolor": "grey"}


def plot_pairing(broken: Factory, healthy: Factory) -> list[Axes]:
    """A line from each response to the problem that it is graded against."""
    axes, told = axes_row(2, width=10.5, height=2.9), []
    for ax, make, name in zip(
        axes, (broken, healthy), CASE_MECHANISMS_NAMES, strict=True
    ):
        asked, graded = graded_against(make(num_prompts=3, num_responses=2))
        known = [p for row, p in enumerate(asked) if p not in asked[:row]]
        for x, (own, other) in enumerate(zip(asked, graded, strict=True)):
            near, far = known.index(own), known.index(other)
            look: dict[str, Any] = (
                {"color": WELL} if own == other else {"color": ILL, "ls": "--"}
            )
            ax.plot([x, 2 * far + 0.5], [1, 0], lw=2.5, zorder=1, **look)
            ax.text(x, 1, "ABC"[near], ha="center", va="center", bbox=IN_BOX)
        for place, problem in enumerate(known):
            words = f"{'ABC'[place]}: {' '.join(map(str, problem))}"
            ax.text(2 * place + 0.5, 0, words, ha="center", va="center", bbox=IN_BOX)
        ax.set(xlim=(-0.6, 5.6), ylim=(-0.25, 1.25))
        ax.set_yticks([0, 1], ["graded\nagainst", "response\nto"])
        ax.grid(visible=False)
        ax.tick_params(bottom=False, labelbottom=False, left=False)
        ax.set_title(name)
        told.append(f"{name}: {sum(map(list.__eq__, asked, graded))} of 6")
    words = "; ".join(told)
    describe(axes[0].figure, f"Responses graded against their own problem: {words}.")
    return axes


def graded_against(trainer: Any) -> tuple[list, list]:
    """The problem of each response, and the one that `pay` gets for it."""
    seen, pay = [], trainer.pay

    def watched(problems: list, responses: Tensor) -> tuple[list, Tensor]:
        seen.append(problems)
        return pay(problems, responses)

    trainer.pay = watched
    return trainer.collect().problems, seen[0]


def plot_rates(broken: Factory, healthy: Factory) -> Axes:
    """The learning rate at each optimizer step of a run."""
    ax = axes_row(width=7.5, height=3)[0]
    for make, name, colour, line in zip(
        (broken, healthy), CASE_MECHANISMS_NAMES, (ILL, WELL), ("-", "--"), strict=True
    ):
        trainer = make()
        settings = trainer.settings
        steps = range(settings.num_steps * settings.num_inner_steps + 1)
        share = trainer.schedule.lr_lambdas[0]
        rates = [settings.learning_rate * share(step) for step in steps]
        ax.plot(steps, rates, color=colour, ls=line, lw=2, label=name)
        if make is broken:
            ax.axvspan(rates.index(0), steps[-1], color=GONE, alpha=0.25, lw=0)
            ax.set_xticks(range(0, len(steps), settings.num_steps))
    return legend_above(finish(ax, "optimizer step", "learning rate"))


def plot_kept(broken: Factory, healthy: Factory, rows: tuple = (0, 20, 40)) -> Axes:
    """Three responses as tokens, twice each: what is kept is coloured."""
    # Each is made just before it samples: all of a process share one random stream.
    fresh = (make() for make in (broken, healthy))
    pairs = [(trainer, trainer.collect()) for trainer in fresh]
    length = pairs[0][0].settings.max_new_tokens
    ax, wrong = canvas(length, 2.3 * len(rows), names=3.4), 0
    for place, row in enumerate(rows):
        for line, (trainer, batch) in enumerate(pairs):
            y = 2.3 * place + line
            tokens, kept = batch.tokens[row, -length:], batch.mask[row, -length:]
            for x, (token, keep) in enumerate(zip(tokens, kept.tolist(), strict=True)):
                padding = token.item() == trainer.tokenizer.pad
                colour = (ILL if padding else COLOURS[5]) if keep else GROUND
                text = trainer.tokenizer.decode(token[None], skip_special_tokens=False)
                cell(ax, x, y, text.strip("<>") or "␣", colour=colour)
            wrong += int((kept & (tokens == trainer.tokenizer.pad)).sum())
            name_row(ax, y, CASE_MECHANISMS_NAMES[line])
    words = (
        f"{len(rows)} responses as cells, kept ones coloured: {wrong} padding tokens"
    )
    describe(ax.figure, f"{words} are kept in this case, and none when repaired.")
    return ax


def plot_twice(broken: Factory, healthy: Factory) -> Axes:
    """Ratios before anything moved, scored once and once more: each token a dot."""
    ax = axes_row(width=5.2, height=4.2)[0]
    for make, name, colour, sign in zip(
        (broken, healthy), CASE_MECHANISMS_NAMES, (ILL, WELL), "o*", strict=True
    ):
        trainer = make(learning_rate=0.0)
        batch = trainer.collect()
        once, again = (trainer.update(batch)[0][3] for _ in range(2))
        ms, alpha = (3, 0.35) if make is broken else (15, 1.0)
        ax.plot(once, again, sign, color=colour, ms=ms, alpha=alpha, label=name, lw=0)
    ax.axline((1, 1), (10, 10), color="grey", ls=":", label="equal")
    ax.set(xscale="log", yscale="log")
    return legend_above(finish(ax, "ratio, scored once", "ratio, scored once more"))


def plot_ratio(broken: Factory, healthy: Factory, token: Any) -> Axes:
    """The ratio of one token as its new log-probability moves; `token` has the old."""
    ax = axes_row(width=6.5, height=3.4)[0]
    new = torch.linspace(-2.5, -0.05, 60)
    for make, name, colour, line in zip(
        (broken, healthy), CASE_MECHANISMS_NAMES, (ILL, WELL), ("-", "--"), strict=True
    ):
        _, stats = make().token_losses(new[:, None], token)
        ax.plot(new, stats[3].flatten(), color=colour, ls=line, lw=2.5, label=name)
    ax.axhline(1, color="grey", lw=1)
    ax.axvline(token.old_log_probs.item(), color="grey", ls=":", label="old")
    return legend_above(finish(ax, "new log-probability of the token", "ratio"))


def plot_left_behind(broken: Factory, healthy: Factory) -> Axes:
    """How far a policy goes from its start, and from what it calls its reference."""
    ax = axes_row(width=7.5, height=3.4)[0]
    (start, reference), (usual, _) = (distances(make()) for make in (broken, healthy))
    ax.plot(start, color=ILL, lw=2.5, label="this case, from its start")
    ax.plot(reference, color=ILL, ls=":", lw=3, label='from "its reference"')
    ax.plot(usual, color=WELL, ls="--", lw=2, label="repaired, from its start")
    ax.set_xticks(range(0, len(start), 5))
    return legend_above(finish(ax, "rollout", "KL (nats a token)"))


def distances(trainer: Any) -> list[list[float]]:
    """Before each rollout of a run: mean log-ratio to the start, to the reference."""
    far, collect = [], trainer.collect

    def watched() -> Any:
        batch = collect()
        with torch.no_grad(), trainer.model.disable_adapter():
            start = trainer.score(batch)
        pairs = (batch.old_log_probs - other for other in (start, batch.ref_log_probs))
        far.append([gap[batch.mask].mean().item() for gap in pairs])
        return batch

    trainer.collect = watched
    trainer.train()
    return [list(column) for column in zip(*far, strict=True)]


# The log of one run over the range of healthy runs.


Log = Sequence[dict[str, float]]


# Title of a small plot -> what it draws of the log.
PANEL = {
    "reward": ("reward",),
    "length (tokens)": ("length",),
    "entropy (nats a token)": ("entropy",),
    "KL (nats a token)": ("kl",),
    "ratio, lowest and highest": ("ratio_low", "ratio_high"),
    "clipped tokens (share)": ("clip_fraction",),
    "gradient norm": ("gradient_norm",),
    "learning rate": ("learning_rate",),
}


WIDE = 8.0  # a range this many times that of the healthy runs is drawn by powers of ten


def plot_log_panel(log: Log, healthy: Sequence[Log]) -> list[Axes]:
    """A small plot for each measure: the range of healthy runs, this run over it."""
    figure, grid = plt.subplots(2, 4, figsize=(11, 4.2), layout="constrained")
    for ax, title in zip(grid.flat, PANEL, strict=True):
        draw_measure(ax, log, healthy, title)
        ax.set_title(ax.get_title())
        ax.tick_params(labelsize=11)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.supxlabel("rollout")
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    describe(figure, words(log, healthy))
    return list(grid.flat)


def draw_measure(ax: Axes, log: Log, healthy: Sequence[Log], title: str) -> None:
    """One small plot: a band for the healthy runs, this run over it."""
    names = PANEL[title]
    for name in names:
        draw_range(ax, [[row[name] for row in run] for run in healthy])
        label = "this run" if name == names[0] else None
        curve = [row[name] for row in log]
        ax.plot(curve, color=COLOURS[1], lw=1.8, label=label)
    is_far = fit_scale(ax, log, healthy, names)
    ax.set_title(f"{title}, log scale" if is_far else title)
    ax.grid(alpha=0.3)


def draw_range(ax: Axes, curves: list[list[float]]) -> None:
    """A grey band from the lowest to the highest curve at each rollout."""
    if curves:
        low, high = (list(map(each, zip(*curves, strict=True))) for each in (min, max))
        drawn = ax.get_legend_handles_labels()[1]
        label = None if drawn else "from the lowest to the highest of the healthy runs"
        ax.fill_between(range(len(low)), low, high, color="0.8", lw=1.5, label=label)


def fit_scale(
    ax: Axes, log: Log, healthy: Sequence[Log], names: tuple[str, ...]
) -> bool:
    """Whether the run leaves the healthy range far behind; then powers of ten."""
    usual = [abs(row[name]) for run in healthy for row in run for name in names]
    here = [abs(row[name]) for row in log for name in names]
    is_far = bool(usual) and max(here) > WIDE * max(usual)
    if is_far:
        if min(usual + here) > 0:
            ax.set_yscale("log")
        else:  # a KL begins at zero
            ax.set_yscale("symlog", linthresh=max(usual))
    return is_far


def words(log: Log, healthy: Sequence[Log]) -> str:
    """The panel for readers who cannot see it: where each measure starts and ends."""
    told = []
    for names in PANEL.values():
        for name in names:
            ends = [f"{log[i][name]:.3g}" for i in (0, -1)]
            usual = [run[-1][name] for run in healthy] or [float("nan")]
            told.append(
                f"{name} goes from {ends[0]} to {ends[1]}, in healthy runs it ends "
                f"between {min(usual):.3g} and {max(usual):.3g}"
            )
    return f"The log of a run beside healthy ones: {'; '.join(told)}."


# What probes say: one row a probe, one column a trainer.


PROBE_MATRIX_SHADES = {"silent": "#E6E6E6", "fires": COLOURS[0], "error": COLOURS[1]}


COLUMN, PROBE_MATRIX_ROW = 0.22, 0.24  # inches


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
    size = (3.0 + COLUMN * len(names), 1.25 + room + PROBE_MATRIX_ROW * len(rows))
    _, ax = plt.subplots(figsize=size, layout="constrained")
    shades = ListedColormap([*PROBE_MATRIX_SHADES.values()])
    ax.imshow(levels(rows, [*names]), cmap=shades, vmin=0, vmax=2, aspect="auto")
    for y, row in enumerate(rows.values()):
        count = sum(level(said) > 0 for said in row.healthy.values())
        ax.text(0, y, str(count), ha="center", va="center", fontsize=10)
    ax.axvline(0.5, color="black", lw=1.5)
    healthy = f"{len(first.healthy)} healthy" if stages else f"{len(first.healthy)}\nok"
    name_columns(ax, [healthy, *names.values()], stages)
    ax.set_yticks(range(len(rows)), list(rows), fontsize=10)
    patches = [
        Patch(color=shade, label=name) for name, shade in PROBE_MATRIX_SHADES.items()
    ]
    ax.figure.legend(handles=patches, loc="outside upper right", ncols=3, fontsize=10)
    describe(ax.figure, words_of_probe_matrix(rows))
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
    return [*PROBE_MATRIX_SHADES].index(said) if said in PROBE_MATRIX_SHADES else 2


def words_of_probe_matrix(rows: Mapping[str, Said]) -> str:
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


# How wrong an update is as a setting moves; what defects cost.


NEAR = (-0.07, 0.025)  # costs that are drawn once more, magnified


def plot_sweeps(
    setting: str, values: Sequence[float], errors: dict[str, Tensor]
) -> Axes:
    """How wrong one rollout's move is at each value of a setting, a line a defect.

    `errors` are [value seed], each seed a thin line; at 1 it is as wrong as no move.
    """
    ax = axes_row(width=6.0, height=3.4)[0]
    places = range(len(values))
    for (cause, error), colour, line in zip(
        errors.items(), COLOURS, LINES, strict=False
    ):
        ax.plot(places, error, color=colour, lw=0.6, alpha=0.35)
        look: dict[str, Any] = {"color": colour, "ls": line, "marker": "o", "ms": 4}
        ax.plot(places, error.mean(dim=1), lw=2, label=cause, **look)
    ax.axhline(1, color="grey", ls=":", label="as wrong as no move")
    ax.set_xticks(places, [f"{value:g}" for value in values])
    ax.set_ylim(bottom=0)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    name = r"$\beta$" if setting == "beta" else setting
    return finish(ax, name, "error after one rollout")


def plot_costs(
    costs: dict[str, tuple[float, float]], seen: Sequence[str] = ()
) -> list[Axes]:
    """What each defect costs: on the left all of them, on the right near zero.

    Rows of `seen` are orange, the others then grey.
    """
    axes = axes_row(2, width=11.0, height=1.0 + 0.22 * len(costs))
    for ax, words in zip(axes, ("", "magnified around 0"), strict=True):
        draw_costs(ax, costs, "", words, seen)
    axes[0].axvspan(*NEAR, color="grey", alpha=0.2, lw=0)
    axes[1].set(xlim=NEAR, yticklabels=[])
    axes[0].figure.supxlabel(
        "reward with the defect minus without (two standard errors)"
    )
    plt.tight_layout()
    told = "; ".join(f"{cause} {mean:+.3f}" for cause, (mean, _) in costs.items())
    orange = f" Orange: {', '.join(seen)}." if seen else ""
    words = "A dot a row, reward with the defect minus without"
    describe(axes[0].figure, f"{words}: {told}.{orange}")
    return axes


# The stages of the trainer of the bug hunt as boxes, and where a defect was.


# A method of the script, what it makes; a rollout, then the optimizer steps on it.
COLLECT = (
    ("draw_problems", "8 lists of\nnumbers"),
    ("encode", "prompts,\npadded left"),
    ("sample", "8 responses\nto each"),
    ("pay", "reward of\neach text"),
    ("compute_deltas", "compared in\nits group"),
    ("response_mask", "tokens\nthat count"),
    ("score", "old and ref.\nlog-probs"),
)


STEP = (
    ("score", "log-probs\nby now"),
    ("token_losses", "ratio, clip,\nKL"),
    ("update", "gradient,\nin parts"),
)


MADE = (("__init__", "optimizer,\nschedule"),)


TRAINER_FLOW_WIDE, HIGH, APART = 1.86, 0.95, 2.0  # of a box, and from one to the next


GUILTY = COLOURS[1]


SMALLER = 0.75


def draw_flow(guilty: Sequence[str] = ()) -> Axes:
    """The stages as boxes, a thick frame around the guilty ones, by their methods.

    "score in collect" is the box of that name in that row alone, "arrow into pay" what
    is handed to that box.
    """
    guilty = ["pay" if method == "reward" else method for method in guilty]
    ax = plt.subplots(figsize=(10.9, 3.6), layout="constrained")[1]
    ax.set(xlim=(-0.3, 14.2), ylim=(-0.1, 3.8))
    ax.axis("off")
    draw_row(ax, 2.2, "collect", "once a rollout", COLLECT, guilty)
    draw_row(ax, 0.15, "step", "4 times on the same rollout", STEP, guilty)
    draw_row(ax, 0.15, "made", "once a run", MADE, guilty, left=6.6)
    down: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 14, "color": "grey"}
    ends = (3.0, 2.05), (3.0, 1.55)
    ax.add_patch(FancyArrowPatch(*ends, shrinkA=0, shrinkB=0, **down))
    found = f" Guilty: {' and '.join(guilty)}." if guilty else ""
    describe(ax.figure, in_words_of_trainer_flow() + found)
    return ax


def draw_row(
    ax: Axes,
    y: float,
    name: str,
    often: str,
    boxes: Sequence[tuple[str, str]],
    guilty: Sequence[str],
    left: float = 0.0,
) -> None:
    """A row of boxes, in the frame of the method that calls them."""
    wide = APART * (len(boxes) - 1) + TRAINER_FLOW_WIDE + 0.3
    frame_of_trainer_flow(
        ax, (left - 0.15, y - 0.15), (wide, HIGH + 0.6), name in guilty, "#f3f3f3"
    )
    ink = GUILTY if name in guilty else "#555555"
    at_top: dict[str, Any] = {"color": ink, "va": "center"}
    ax.text(left, y + HIGH + 0.2, f"{name}: {often}", **at_top)
    for place, (method, makes) in enumerate(boxes):
        x = left + place * APART
        is_guilty = method in guilty or f"{method} in {name}" in guilty
        frame_of_trainer_flow(ax, (x, y), (TRAINER_FLOW_WIDE, HIGH), is_guilty, "white")
        at: dict[str, Any] = {"ha": "center", "va": "center"}
        middle = x + TRAINER_FLOW_WIDE / 2
        ax.text(middle, y + 0.74, method, **at)
        ax.text(middle, y + 0.32, makes, color="#444444", **at)
        if place:
            ends = (x - APART + TRAINER_FLOW_WIDE, y + HIGH / 2), (x, y + HIGH / 2)
            draw_arrow_of_trainer_flow(ax, ends, f"arrow into {method}" in guilty)


def draw_arrow_of_trainer_flow(ax: Axes, ends: tuple, is_guilty: bool) -> None:
    """From one box to the next; thick where the defect was in what is handed over."""
    look: dict[str, Any] = {"color": "grey", "mutation_scale": 10}
    if is_guilty:
        look = {"color": GUILTY, "mutation_scale": 22, "lw": 3.0, "zorder": 3}
    ax.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", shrinkA=0, shrinkB=0, **look))


def frame_of_trainer_flow(
    ax: Axes,
    corner: tuple[float, float],
    size: tuple[float, float],
    is_guilty: bool,
    fill: str,
) -> None:
    """A box; thick and in another colour where the defect was."""
    look: dict[str, Any] = {"facecolor": fill, "edgecolor": "grey", "lw": 1.0}
    if is_guilty:
        look |= {"edgecolor": GUILTY, "lw": 3.0}
    style = "round,pad=0,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch(corner, *size, boxstyle=style, **look))


def draw_small_flow(guilty: Sequence[str]) -> Axes:
    """The stages once more, smaller, with the guilty places marked."""
    ax = draw_flow(guilty)
    ax.figure.set_dpi(SMALLER * ax.figure.dpi)
    return ax


def in_words_of_trainer_flow() -> str:
    """The picture for readers who cannot see it."""
    first, then = (", ".join(method for method, _ in row) for row in (COLLECT, STEP))
    return (
        f"The stages of the trainer as boxes. In collect, once a rollout: {first}. "
        f"Then in step, four times: {then}. Once a run: {MADE[0][0]}."
    )
