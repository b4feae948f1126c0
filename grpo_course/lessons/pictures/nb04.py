"""What notebook 04 alone draws."""

from collections.abc import Sequence
from math import log
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    CLIP,
    COLOURS,
    DOWN,
    FLAT,
    PI,
    PI_OLD,
    ROW,
    UP,
    axes_row,
    draw_blocks,
    finish,
    legend_above,
    sign_colour,
)
from grpo_course.formulas import aggregate, token_loss

# The visual language of the course: one colour and one sign for one thing.


LOSS_COLOURS = {
    "naive": COLOURS[3],
    "unclipped": COLOURS[1],
    "clipped": PI,
    "penalty": COLOURS[4],
    "any loss": COLOURS[2],
}


# The pictures of 04_losses: what the clip does to one token and to many.


def plot_clip_range(epsilon: float, epsilon_high: float) -> str:
    """The objective of a good token and of a bad one, and in words where it is flat."""
    axes = axes_row(2, width=9.0)
    for ax, delta in zip(axes, (1.0, -1.0), strict=True):
        draw_objective(ax, delta, epsilon, epsilon_high)
    axes[0].legend(loc="lower right")
    good, bad = f"above {1 + epsilon_high:g}", f"below {1 - epsilon:g}"
    return f"No gradient: {good} for the good token, {bad} for the bad one."


def draw_objective(ax: Axes, delta: float, epsilon: float, epsilon_high: float) -> None:
    """Minus the loss of one token by its ratio, with and without clipping."""
    ratio = torch.linspace(0.01, 2.2, 220)[None, None]  # [batch trial pos]
    deltas, old = torch.full((1, 1), delta), torch.full_like(ratio, -1.0)
    new = old + ratio.log()
    for mode, line in (("unclipped", "--"), ("clipped", "-")):
        objective = -token_loss(
            new, deltas, mode, old, epsilon=epsilon, epsilon_high=epsilon_high
        )
        ax.plot(
            ratio[0, 0], objective[0, 0], color=LOSS_COLOURS[mode], ls=line, label=mode
        )
    ax.axvspan(1 - epsilon, 1 + epsilon_high, **CLIP)
    flat = (1 + epsilon_high, 2.3) if delta > 0 else (-0.1, 1 - epsilon)
    ax.axvspan(*flat, **FLAT)
    ax.set(xlim=(-0.1, 2.3), ylim=(-2.5, 2.5))
    finish(ax, "ratio $r$", "objective", rf"$\delta = {delta:+g}$")


def plot_reach(ratios: Tensor, objectives: dict[float, Tensor], floor: float) -> Axes:
    """Objectives of tokens by ratio on log axes, one curve a delta. [ratio] each

    The dotted line is where a dual clip would stop them.
    """
    ax = axes_row()[0]
    for (delta, objective), line in zip(objectives.items(), ("-", "--"), strict=True):
        look: dict[str, Any] = {"color": sign_colour(delta), "ls": line, "lw": 2.5}
        ax.plot(ratios, objective, label=rf"$\delta$ = {delta:+g}", **look)
    ax.axhline(floor, color="grey", ls=":", lw=1.5)
    ax.set_xscale("log")
    # The linear part holds no curve, so that it adds no bend.
    ax.set_yscale("symlog", linthresh=0.1, linscale=0.2)
    for axis, marks in ((ax.xaxis, (0.1, 1, 10, 50)), (ax.yaxis, (-50, -3, -0.8, 1.2))):
        axis.set_ticks(marks, [f"{mark:g}" for mark in marks])
    ax.minorticks_off()
    return legend_above(finish(ax, "ratio $r$", "clipped objective"))


def pull_of(mode: str, ratio: Tensor, delta: float) -> Tensor:
    """How hard a loss pulls on the log-probability of a token. [point] -> same"""
    old = torch.full((1, 1, len(ratio)), -3.0)
    new = (old + ratio.log()).requires_grad_()
    loss = token_loss(new, torch.tensor([[delta]]), mode, old)
    (grad,) = torch.autograd.grad(loss.sum(), new)
    return -grad[0, 0]


def plot_pulls(ratios: Tensor) -> list[Axes]:
    """The pull of three losses on a good and on a bad token, with dots at `ratios`."""
    axes, dense = axes_row(2, width=9.0), torch.linspace(0.4, 2.1, 681)
    for ax, delta in zip(axes, (1.0, -1.0), strict=True):
        for mode, line in (("naive", ":"), ("unclipped", "--"), ("clipped", "-")):
            look: dict[str, Any] = {"color": LOSS_COLOURS[mode], "lw": 2}
            pull = pull_of(mode, dense, delta)
            ax.plot(dense, pull, ls=line, label=mode, **look)
            ax.plot(ratios, pull_of(mode, ratios, delta), "o", ms=5, **look)
        ax.axhline(0, color="black", lw=0.8)
        finish(ax, "ratio $r$", r"pull on log $\pi$", rf"$\delta = {delta:+g}$")
    keys: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.97)}
    names = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(*names, ncols=3, frameon=False, **keys)
    return axes


# How three means over a batch weigh the tokens of a short and of a long response.


SHORT, LONGEST = 2, 12  # tokens of the short response; tokens that a row has room for


MEANS = ("sequence_mean", "token_mean", "constant")


def token_weights(tokens: int, mean: str) -> Tensor:
    """The weight of each token: of SHORT tokens, then of `tokens`. -> [trial pos]"""
    mask = torch.arange(LONGEST) < torch.tensor([[[SHORT], [tokens]]])
    per_token = torch.zeros(1, 2, LONGEST, requires_grad=True)
    total = aggregate(per_token, mask, mean)
    (weights,) = torch.autograd.grad(total, per_token)
    return weights[0]


def draw_mean_weights(tokens: int) -> str:
    """One panel a mean, one row of blocks a response; -> what the long one weighs."""
    axes, parts = axes_row(len(MEANS), width=10.0, height=3.3), []
    for ax, mean in zip(axes, MEANS, strict=True):
        short, long = token_weights(tokens, mean)
        for weights, bottom in ((short, ROW), (long, 0.0)):
            draw_blocks(ax, weights, bottom, 1 / (2 * SHORT))
        ax.set(xlim=(-0.2, LONGEST + 0.2), ylim=(-0.1, 2 * ROW - 0.3), title=mean)
        ax.axis("off")
        parts.append(f"{mean} {short[0]:.3f} and {long[0]:.3f}")
    for bottom, count in ((ROW, SHORT), (0.0, tokens)):
        place: dict[str, Any] = {"ha": "right", "va": "bottom"}
        axes[0].text(-0.6, bottom, f"{count} tokens", **place)
    describe(
        axes[0].figure,
        f"A row of blocks for a response of {SHORT} tokens and one for a response of "
        f"{tokens}, under three means; the area of a block is the weight of its token. "
        f"A token of the short and one of the long: {'; '.join(parts)}.",
    )
    shares = [w[1].sum() / w.sum() for w in (token_weights(tokens, m) for m in MEANS)]
    told = ", ".join(f"{m} {s:.2f}" for m, s in zip(MEANS, shares, strict=True))
    return f"{tokens} tokens: the long response's share of the weight: {told}."


# The penalty form of PPO: how far each rollout went, and the price that follows.


PRICE = LOSS_COLOURS["penalty"]


SLACK = 1.5  # the price stays where the KL is within this factor of its target


def price_moves(kl: Tensor, target: float) -> dict[str, Tensor]:
    """Which rollouts raise the price, lower it, or leave it. [rollout] -> bool each"""
    far, near = kl > SLACK * target, kl < target / SLACK
    return {
        "too far: the price doubles": far,
        "near: it halves": near,
        "on target: it stays": ~far & ~near,
    }


def draw_price(kl: Tensor, price: Tensor, target: float) -> str:
    """One seed: the KL of each rollout over its target, and below it the price.

    kl and price [rollout]: how far the rollout's last step was from pi_old, and the
    price that its steps paid. Returns what the price did, in words.
    """
    _, (upper, lower) = plt.subplots(2, 1, figsize=(8.0, 4.4), sharex=True)
    rollouts, moves = torch.arange(1, len(kl) + 1), price_moves(kl, target)
    upper.axhspan(target / SLACK, target * SLACK, color=PRICE, alpha=0.25, lw=0)
    upper.axhline(target, color="black", ls="--", lw=1.2)
    place: dict[str, Any] = {"va": "center", "transform": upper.get_yaxis_transform()}
    upper.text(1.01, target, "target", **place)
    upper.plot(rollouts, kl, color=PI, lw=1, zorder=1)
    for (name, rows), mark in zip(moves.items(), "^vo", strict=True):
        dots: dict[str, Any] = {"marker": mark, "ls": "", "ms": 8, "color": PI}
        upper.plot(rollouts[rows], kl[rows], label=name, **dots)
    upper.set_ylim(0, max(0.4, 1.1 * kl.max().item()))
    legend_above(finish(upper, "", "KL (nats)"))
    draw_steps(lower, rollouts, price)
    counts = [int(rows.sum()) for rows in moves.values()]
    told = f"It doubles {counts[0]} times, halves {counts[1]}, stays {counts[2]}."
    text = f"The KL of {len(kl)} rollouts around its target of {target:g}, "
    ends = f"from {price[0]:g} over at most {price.max():g} to {price[-1]:.2g}"
    describe(upper.figure, f"{text}and below it the price, {ends}. {told}")
    return told


def draw_steps(ax: Axes, rollouts: Tensor, price: Tensor) -> None:
    """The price that each rollout paid, on an axis where doubling is one step up."""
    ax.step(rollouts, price, where="mid", color=PRICE, lw=2.5)
    ax.set_yscale("log", base=2)
    ticks = [2.0**power for power in range(-6, 6, 2)]
    ax.set_yticks(ticks, [f"{t:g}" if t >= 1 else f"1/{1 / t:g}" for t in ticks])
    ax.set_ylim(min(0.2, price.min().item() / 1.5), max(5.0, price.max().item() * 1.5))
    ax.minorticks_off()
    finish(ax, "rollout", "price $c$")


# Samples of an old policy, counted as often as the new one would draw them.


def plot_means(
    plain: Tensor, weighted: Tensor, earned_old: float, earned: float
) -> Axes:
    """Means of old samples as dots, without a ratio and with it. [repeat] each

    A line stands at what each of the two policies earns, exactly.
    """
    ax = axes_row(width=8.0, height=2.4)[0]
    rows = ((1.0, plain, PI_OLD, "v"), (0.0, weighted, PI, "o"))
    for row, means, colour, mark in rows:
        jitter = torch.linspace(-0.2, 0.2, len(means))
        look: dict[str, Any] = {"ls": "", "ms": 7, "alpha": 0.65, "mec": "none"}
        ax.plot(means, row + jitter, mark, color=colour, **look)
    old, new = r"$\pi_\mathrm{old}$ earns", r"$\pi$ earns"
    ax.axvline(earned_old, color=PI_OLD, ls="--", lw=2, label=f"{old} {earned_old:.3f}")
    ax.axvline(earned, color=PI, lw=2, label=f"{new} {earned:.3f}")
    ax.set_yticks([1, 0], ["plain", "weighted by $r$"])
    ax.set_ylim(-0.5, 1.5)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    finish(ax, "mean reward of the samples", "")
    told = [
        f"{name} from {means.min():.2f} to {means.max():.2f}"
        for name, means in (("plain", plain), ("weighted", weighted))
    ]
    text = "Means of samples of the old policy as dots"
    lines = f"lines at what the policies earn, {earned_old:.3f} and {earned:.3f}"
    describe(ax.figure, f"{text}: {', '.join(told)}; {lines}.")
    return ax


def plot_directions(
    exact: Tensor, gradients: dict[str, Tensor], colours: Sequence[str] = COLOURS
) -> Axes:
    """Gradients as arrows of one length, each at its angle to the exact one. [weight]

    Such an angle lies in a plane of its own: the arrows are turned into one.
    """
    ax, told = axes_row(width=6.5)[0], []
    same: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1}
    for (name, gradient), colour in zip(gradients.items(), colours, strict=False):
        cosine = torch.cosine_similarity(gradient, exact, dim=0).clamp(-1, 1)
        along, across = cosine.item(), cosine.arccos().sin().item()
        told.append(f"{name}: {cosine.arccos().rad2deg():.0f}°")
        ax.quiver(0, 0, along, across, color=colour, width=0.012, **same)
        ax.text(1.04 * along, 1.04 * across, f" {told[-1]}", va="center")
    ax.set(xlim=(-0.1, 1.9), ylim=(-0.08, 1.12), aspect="equal")
    ax.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    finish(ax, "along the exact gradient", "across it")
    text = "Gradients as arrows of one length, by their angle to the exact one"
    describe(ax.figure, f"{text}: {', '.join(told)}.")
    return ax


def plot_shares_of_reweighing(weights: Tensor, ax: Axes) -> Tensor:
    """How the weight of a group is shared, mean over groups. [... trial] -> [trial]

    The responses of each group stand in the order of their weights.
    """
    shares = (weights / weights.sum(-1, keepdim=True)).sort(-1, descending=True).values
    mean = shares.flatten(0, -2).mean(0)
    ax.bar(range(1, len(mean) + 1), mean, color=PI)
    ax.axhline(1 / len(mean), color="grey", ls=":", lw=1.5)
    ax.text(len(mean) + 0.4, 1.6 / len(mean), "an equal share", ha="right")
    finish(ax, "responses of a group, heaviest first", "share of the weight")
    return mean


# Each sampled token: how likely it was when it was drawn, and is now; its push.


LEAST, THEN_AND_NOW_MOST = 0.03, 1.0  # the range of both axes


def draw_then_and_now(
    then: Tensor,
    now: Tensor,
    deltas: Tensor,
    right: Tensor,
    joined: tuple[int, int] | None = None,
) -> str:
    """A triangle for each token: up for a positive delta, hollow if it is not right.

    then and now: log-probabilities [batch trial pos] under the policy that sampled
    and under the one that learns; deltas [batch trial]. A line joins the tokens of the
    response `joined`, its prompt and its trial. Returns how many good tokens fell.
    """
    ax = axes_row(width=6.5, height=3.8)[0]
    draw_guides(ax)
    sign = deltas[..., None].expand_as(then)
    draw_triangles(ax, then.exp(), now.exp(), sign, right)
    if joined:
        one, other = (each[joined].exp() for each in (then, now))
        ax.plot(one, other, color="black", lw=1.2, marker=".", label="one response")
    fall, good = (now < then) & (sign > 0), int((sign > 0).sum())
    draw_fallen(ax, then[fall].exp(), now[fall].exp())
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handletextpad=0.2)
    told = f"{fall.sum()} of {good} good tokens fall, {(fall & ~right).sum()} hollow."
    far = int(((now - then).abs() > log(2)).sum())
    text = (
        "Tokens as triangles at their probability when drawn and now, hollow if wrong"
    )
    moved = f"{far} of {then.numel()} are over twice or under half as likely"
    describe(ax.figure, f"{text}; on the diagonal nothing has changed. {moved}. {told}")
    return told


def draw_triangles(ax: Axes, p: Tensor, q: Tensor, sign: Tensor, right: Tensor) -> None:
    """Triangles at the probabilities p and q, with a legend. [batch trial pos] each"""
    good, bad = r"good ($\delta > 0$)", r"bad ($\delta < 0$)"
    shape: dict[str, Any] = {"ls": "", "alpha": 0.7}
    for name, mark, colour, rows, size in (  # where both lie, the good one's rim shows
        (good, "^", UP, sign > 0, 10),
        (bad, "v", DOWN, sign < 0, 6),
    ):
        for some, fill in ((rows & right, colour), (rows & ~right, "none")):
            look: dict[str, Any] = shape | {"mec": colour, "mfc": fill, "ms": size}
            ax.plot(p[some], q[some].clamp(min=LEAST), mark, label=name, **look)
            name = ""  # one entry of the legend for both
    hollow: dict[str, Any] = shape | {"mec": "black", "mfc": "none", "ms": 7}
    ax.plot([], [], "^", label="hollow: wrong number", **hollow)


def draw_fallen(ax: Axes, p: Tensor, q: Tensor) -> None:
    """A dark edge around good tokens that are less likely now, above all others."""
    edge: dict[str, Any] = {"mec": "black", "mfc": "none", "mew": 2, "zorder": 4}
    ax.plot(p, q.clamp(min=LEAST), "^", ms=10, label="fallen, though good", **edge)


def draw_guides(ax: Axes) -> None:
    """Where a token is as likely as before, twice as likely and half as likely."""
    for times, name in ((1, "as likely as before"), (2, "twice or half"), (0.5, None)):
        line = "-" if times == 1 else ":"
        heights = [times * LEAST, times * THEN_AND_NOW_MOST]
        ax.plot(
            [LEAST, THEN_AND_NOW_MOST],
            heights,
            color="grey",
            lw=1.4,
            ls=line,
            label=name,
        )
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(LEAST, THEN_AND_NOW_MOST),
        ylim=(LEAST, THEN_AND_NOW_MOST),
    )
    ticks = [0.03, 0.1, 0.3, 1]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    finish(ax, "probability when drawn", "probability now")
