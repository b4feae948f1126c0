"""What goes wrong inside a trainer of the hunt: one picture for each guided case.

Each function makes the trainer under test and a healthy one, and draws what they do.
`broken` and `healthy` are factories of trainers, as probes get them.
"""

from collections.abc import Callable
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish, legend_above
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS, GONE, GROUND
from grpo_course.classroom.plots.token_rows import canvas, cell, name_row

Factory = Callable[..., Any]
WELL, ILL = COLOURS[0], COLOURS[1]
NAMES = ("this case", "repaired")
IN_BOX: dict[str, Any] = {"boxstyle": "round", "facecolor": GROUND, "edgecolor": "grey"}


def plot_pairing(broken: Factory, healthy: Factory) -> list[Axes]:
    """A line from each response to the problem that it is graded against."""
    axes, told = axes_row(2, width=10.5, height=2.9), []
    for ax, make, name in zip(axes, (broken, healthy), NAMES, strict=True):
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
        (broken, healthy), NAMES, (ILL, WELL), ("-", "--"), strict=True
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
            name_row(ax, y, NAMES[line])
    words = (
        f"{len(rows)} responses as cells, kept ones coloured: {wrong} padding tokens"
    )
    describe(ax.figure, f"{words} are kept in this case, and none when repaired.")
    return ax


def plot_twice(broken: Factory, healthy: Factory) -> Axes:
    """Ratios before anything moved, scored once and once more: each token a dot."""
    ax = axes_row(width=5.2, height=4.2)[0]
    for make, name, colour, sign in zip(
        (broken, healthy), NAMES, (ILL, WELL), "o*", strict=True
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
        (broken, healthy), NAMES, (ILL, WELL), ("-", "--"), strict=True
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
