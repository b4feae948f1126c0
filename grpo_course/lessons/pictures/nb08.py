"""What notebook 08 alone draws."""

import copy
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    CLIP,
    COLOURS,
    GONE,
    GROUND,
    LEVEL,
    PI,
    PI_REF,
    SIGNS,
    axes_row,
    draw_arrow,
    finish,
    legend_above,
    sign_colour,
)
from grpo_course.loop import Rollout
from grpo_course.ppo import (
    Critic,
    ValueHead,
    generalized_advantages,
    kl_per_token,
    reward_per_token,
    value_loss,
)
from grpo_course.sort import SortModel, exact_values

# What a critic reads: which tokens of prompt and response move each of its values.


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


# An entropy bonus on one row of a policy: the exact push, and that of its samples.


ENTROPY_PUSH_REACH = (
    1.6  # of an arrow on the axis of the probabilities, for a push of 1
)


ENTROPY_PUSH_SMALLEST = 0.08  # a shorter arrow is not drawn


def entropy_push(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The entropy in nats, and its gradient by the logits. [vocab] -> [], [vocab]"""
    logits = logits.clone().requires_grad_()
    log_pi = logits.log_softmax(dim=-1)
    entropy = -(log_pi.exp() * log_pi).sum()
    (push,) = torch.autograd.grad(entropy, logits)
    return entropy.detach(), push


def plot_entropy_push(logits: Tensor) -> list[Axes]:
    """Left the gradient of the entropy, right that of -log pi, averaged over samples.

    A sample pushes its own logit down and all others up. Weighed by how often each is
    drawn, both pushes on a logit are pi (1 - pi): they cancel. [vocab]
    """
    left, right = axes_row(2, width=9.5, height=3.4)
    probs, (entropy, push) = logits.softmax(dim=-1), entropy_push(logits)
    for ax, title in ((left, "exact entropy"), (right, r"mean of samples' $-\log\pi$")):
        ax.bar(range(len(probs)), probs, 0.8, color=PI, alpha=0.3)
        ax.set(xticks=range(len(probs)), yticks=(0, 0.5, 1), ylim=(-0.2, 1.3))
        finish(ax, "token", "", title).grid(visible=False, axis="x")
    left.set_ylabel("probability")
    for x, (prob, up) in enumerate(zip(probs.tolist(), push.tolist(), strict=True)):
        draw_from(left, x, prob, up)
        draw_from(right, x - 0.15, prob, -prob * (1 - prob))
        draw_from(right, x + 0.15, prob, prob * (1 - prob))
    describe(
        left.figure,
        f"The probabilities {', '.join(f'{p:.2f}' for p in probs.tolist())} as bars, "
        f"entropy {entropy:.2f} nats. Left, arrows of the entropy's gradient, "
        f"{', '.join(f'{p:+.2f}' for p in push.tolist())}. Right, on each bar an arrow "
        "down and one up, equally long, which cancel.",
    )
    return [left, right]


def draw_from(ax: Axes, x: float, top: float, push: float) -> None:
    """An arrow on a bar, as long as the push."""
    if ENTROPY_PUSH_REACH * abs(push) > ENTROPY_PUSH_SMALLEST:
        draw_arrow(ax, (x, top), (x, top + ENTROPY_PUSH_REACH * push), push, width=2.5)


def draw_entropy_push(logits: Tensor) -> str:
    """The picture for a slider; -> the sentence below it."""
    plot_entropy_push(logits)
    entropy, push = entropy_push(logits)
    sure = logits.softmax(dim=-1).max()
    return (
        f"Likeliest token {sure:.3f}, entropy {entropy:.2f} nats: "
        f"the gradient's length is {push.norm():.3f}."
    )


# GAE: how each step's TD error travels back to the tokens before it.


def shares(errors: Tensor, decay: float) -> Tensor:
    """What each TD error adds to each token's delta. [pos] -> [error pos]

    Row s holds (gamma lambda)^(s - t) times error s at every token t up to s, and zero
    after it. The columns add up to GAE.
    """
    steps = torch.arange(len(errors))
    back = steps[:, None] - steps  # how far behind the error a token stands
    faded = decay ** back.clamp(min=0).to(errors.dtype)
    return torch.where(back >= 0, faded * errors[:, None], 0.0)


def plot_light(errors: Tensor, lam: float, gamma: float = 1.0) -> list[Axes]:
    """A row for each TD error, fading towards the start, and the sums below. [pos]"""
    parts = shares(errors, gamma * lam)
    deltas = parts.sum(dim=0)
    count, most = len(errors), errors.abs().max().item()
    upper, lower = axes_column(count)
    upper.imshow(parts, cmap=SIGNS, vmin=-most, vmax=most, aspect="auto")
    for s, t in torch.ones(count, count).tril().nonzero().tolist():
        write(upper, t, s, parts[s, t].item(), bold=s == t)
    names = [f"TD error of token {s}" for s in range(count)]
    upper.set(yticks=range(count), yticklabels=names, xticks=[])
    upper.grid(visible=False)
    title = f"λ = {lam:g}: what is left of each TD error; × λ for each token back"
    upper.set_title(title)
    lower.imshow(deltas[None], cmap=SIGNS, vmin=-most, vmax=most, aspect="auto")
    for t, delta in enumerate(deltas.tolist()):
        write(lower, t, 0, delta, bold=True)
    lower.set(yticks=[0], yticklabels=[r"their sum, $\delta_t$"], xticks=range(count))
    finish(lower, "token", "").grid(visible=False)
    plt.tight_layout()
    told = ", ".join(f"{delta:+.2f}" for delta in deltas.tolist())
    describe(
        upper.figure,
        f"A row for each of {count} TD errors, fading from its own token back to the "
        f"first with lambda {lam:g}. The columns add up to the deltas {told}.",
    )
    return [upper, lower]


def axes_column(count: int) -> tuple[Axes, Axes]:
    """A table of `count` rows above a table of one row, as wide."""
    _, (upper, lower) = plt.subplots(
        2, 1, figsize=(7.5, 1.5 + 0.48 * count), height_ratios=(count, 1)
    )
    return upper, lower


def write(ax: Axes, x: int, y: int, value: float, bold: bool) -> None:
    """A signed number in the middle of a cell."""
    weight = "bold" if bold else "normal"
    box: dict[str, Any] = {"facecolor": "white", "alpha": 0.85, "lw": 0, "pad": 1.5}
    style: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "bbox": box,
    }
    ax.text(x, y, f"{round(value, 2) + 0.0:+.2f}", weight=weight, **style)


def draw_light(errors: Tensor, lam: float) -> str:
    """The picture for a slider; -> the sentence below it. [pos]"""
    plot_light(errors, lam)
    deltas = shares(errors, lam).sum(dim=0).tolist()
    return f"λ = {lam:g}: deltas {', '.join(f'{delta:+.2f}' for delta in deltas)}."


# Every response by what it is worth and by a learned reward; what beta saves.


RING: dict[str, Any] = {"ms": 13, "mfc": "none", "mec": COLOURS[1], "mew": 2.5}


RING |= {"zorder": 4}  # around what the model likes best


LARGEST = 900.0  # points squared, of a response that is sure


LEAST = 0.005  # a change of the true reward that is drawn


def plot_overrated(
    true: Tensor,
    scores: Tensor,
    policies: dict[str, Tensor],
    ylabel: str = "the model's reward (std)",
    ylim: tuple[float, float] = (-3.6, 3.6),
) -> list[Axes]:
    """A panel for each policy: a disc for each response, as large as its probability.

    A ring marks the model's favourite. true and scores [all], each policy [all].
    """
    axes = axes_row(len(policies), width=4.6 * len(policies), height=3.6)
    favourite = scores.argmax()
    # Many responses are worth the same: spread them a little, the same way each time.
    across = true + 0.25 * (torch.arange(len(true)) * 0.618 % 1 - 0.5)
    look: dict[str, Any] = {"color": PI, "alpha": 0.55, "lw": 0, "zorder": 3}
    for ax, (name, probs) in zip(axes, policies.items(), strict=True):
        ax.plot(across, scores, ".", color=GONE, ms=4)
        ax.scatter(across, scores, s=LARGEST * probs, **look)
        ax.plot(across[favourite], scores[favourite], "o", **RING)
        finish(ax, "true reward", "", f"{name}: worth {(probs * true).sum():.2f}")
        ax.set(xticks=range(4), xlim=(-0.5, 3.5), ylim=ylim)
    axes[0].set_ylabel(ylabel)
    describe(
        axes[0].figure,
        f"{len(true)} responses as dots, the true reward across and what a model "
        f"gives upwards, with a disc on each as large as its probability. "
        f"{top_words(true, scores)} "
        f"{'; '.join(policy_words(true, p, name) for name, p in policies.items())}.",
    )
    return axes


def top_words(true: Tensor, scores: Tensor) -> str:
    """What the response is worth that the model likes best."""
    return f"The model's favourite is worth {true[scores.argmax()]:g}."


def policy_words(true: Tensor, probs: Tensor, name: str) -> str:
    """Where the largest disc lies."""
    top = probs.argmax()
    return f"{name}, the largest disc has {probs[top]:.2f} and is worth {true[top]:g}"


def draw_overrated(
    true: Tensor, scores: Tensor, policies: dict[str, Tensor], seed: int
) -> str:
    """The picture for a slider over seeds, [seed all]; -> the sentence below it."""
    chosen = {name: probs[seed] for name, probs in policies.items()}
    plot_overrated(true, scores[seed], chosen)
    worth = [f"{name} {(p * true).sum():.2f}" for name, p in chosen.items()]
    favourite = top_words(true, scores[seed])
    return f"Seed {seed}. {favourite} The policy is worth: {', '.join(worth)}."


def tempting(scores: Tensor, probs: Tensor) -> Tensor:
    """The largest chance of a response that is rated above the likeliest. [seed all]"""
    likeliest = scores.gather(-1, probs.argmax(-1, keepdim=True))  # [seed 1]
    return torch.where(scores > likeliest, probs, 0.0).amax(dim=-1)


def plot_climbs_by_beta(
    starts: dict[str, Tensor], ends: dict[str, Tensor], betas: Sequence[float]
) -> list[Axes]:
    """For each beta an arrow from what a start is worth to where its climb ended.

    A panel for each name. starts are [seed], ends [beta seed]: each seed is a dot.
    """
    axes, told = axes_row(len(ends), width=10.0, height=3.4), []
    for ax, (name, rows) in zip(axes, ends.items(), strict=True):
        start = starts[name].mean().item()
        ax.axhline(start, color=LEVEL, ls=":", lw=2)
        for place, values in enumerate(rows):
            draw_climb(ax, place, start, values)
        ax.set_xticks(range(len(betas)), [f"{beta:g}" for beta in betas])
        ax.set(xlim=(-0.6, len(betas) - 0.4), ylim=(0.8, 3.4))
        finish(ax, "β", "true reward (3 is best)" if ax is axes[0] else "", name)
        ends_at = ", ".join(f"{values.mean():.2f}" for values in rows)
        told.append(f"{name}: from {start:.2f} to {ends_at}")
    at = ", ".join(f"{beta:g}" for beta in betas)
    words = f"Arrows from the true reward of a start to that of the end, at beta {at}"
    describe(axes[0].figure, f"{words}. {'; '.join(told)}.")
    return axes


def draw_climb(ax: Axes, place: float, start: float, ends: Tensor) -> None:
    """One arrow, with the mean change above it and a dot beside it for each seed."""
    gap = ends.mean().item() - start
    look: dict[str, Any] = {"color": PI, "alpha": 0.4, "lw": 0}
    ax.plot([place + 0.22] * len(ends), ends, "o", ms=4, **look)
    if abs(gap) > LEAST:  # the head of a short, thick one would be too long
        width = min(4.0, 1 + 8 * abs(gap))
        draw_arrow(ax, (place, start), (place, start + gap), gap, width)
    words: dict[str, Any] = {"ha": "center", "color": sign_colour(gap)}
    ax.text(place, 3.15, f"{gap:+.2f}", fontsize=10, **words)


# KL in the reward: what each token is paid, and what is still to come from it on.


BEFORE: dict[str, Any] = {"facecolor": "none", "edgecolor": "black", "lw": 1.8}


def pay_and_returns(
    reward: float, log_ratios: Tensor, beta: float
) -> tuple[Tensor, Tensor]:
    """What each token is paid with the KL, and the sum from it on. [pos] twice"""
    ref = torch.full_like(log_ratios, -2.0)[None, None]  # [batch trial pos]
    at_end = reward_per_token(torch.tensor([[reward]]), ref)
    paid = kl_per_token(at_end, ref + log_ratios, ref, beta)
    returns = generalized_advantages(paid, torch.zeros_like(paid), 1.0, 1.0)
    return paid[0, 0], returns[0, 0]


def plot_token_pay(reward: float, log_ratios: Tensor, beta: float) -> list[Axes]:
    """Bars along a response, without the KL as outlines. [pos]"""
    left, right = axes_row(2, width=9.5, height=3.4)
    paid, returns = pay_and_returns(reward, log_ratios, beta)
    without, whole = pay_and_returns(reward, log_ratios, 0.0)
    colours = [sign_colour(pay) for pay in paid.tolist()]
    draw_bars(left, paid, without, colours, f"β = {beta:g}: paid at each token")
    draw_bars(right, returns, whole, [PI] * len(returns), "return: the sum from it on")
    left.set_ylabel("reward")
    describe(
        left.figure,
        "Left, what each token is paid; right, its return. Outlines are without the "
        f"KL. With beta {beta:g} tokens are paid {listed_of_token_pay(paid)}; the returns are "
        f"{listed_of_token_pay(returns)}.",
    )
    return [left, right]


def draw_bars(
    ax: Axes, now: Tensor, before: Tensor, colours: list[str], title: str
) -> None:
    """A bar for each token with its number, and an outline of what it was before."""
    places = range(len(now))
    ax.bar(places, now, 0.6, color=colours, alpha=0.75)
    ax.bar(places, before, 0.72, **BEFORE)
    for x, value, old in zip(places, now.tolist(), before.tolist(), strict=True):
        foot = min(value, 0) - 0.12 if value < 0 else max(value, old) + 0.1
        side = "top" if value < 0 else "bottom"
        ax.text(x, foot, f"{value:+.1f}", ha="center", va=side)
    ax.axhline(0, color="black", lw=1)
    ax.set(xticks=places, ylim=(-2.8, 3.2))
    finish(ax, "token", "", title).grid(visible=False, axis="x")


def listed_of_token_pay(values: Tensor) -> str:
    """The numbers of the tokens, one after another."""
    return ", ".join(f"{value + 0.0:+.1f}" for value in values.tolist())


def draw_token_pay(reward: float, log_ratios: Tensor, beta: float) -> str:
    """The picture for a slider; -> the sentence below it."""
    plot_token_pay(reward, log_ratios, beta)
    _, returns = pay_and_returns(reward, log_ratios, beta)
    return f"β = {beta:g}: returns {listed_of_token_pay(returns)}."


# The critic's losses over its new value, and where the clipped one lets go.


OLD, TARGET = 0.0, 1.0


PLACES = torch.linspace(-1.0, 3.0, 401)


VALUE_CLIP_REACH = 0.55  # of an arrow, for a gradient of 1


def losses_and_pulls(values: Tensor, clip: float | None) -> tuple[Tensor, Tensor]:
    """The value loss at each value, and minus its gradient. [value] -> [value] twice"""
    now = (
        values.clone().reshape(-1, 1, 1, 1).requires_grad_()
    )  # [value batch trial pos]
    target, old = torch.full_like(now, TARGET), torch.full_like(now, OLD)
    loss = value_loss(now, target, old, clip)
    (gradient,) = torch.autograd.grad(loss.sum(), now)
    return loss.detach(), -gradient.flatten()


def plot_value_clip(clip: float, values: Tensor) -> Axes:
    """The loss with and without a clip, and how each of some values is pulled."""
    ax = axes_row(width=8.0, height=3.8)[0]
    draw_losses(ax, clip)
    for value, loss, pull in zip(
        values.tolist(),
        *(x.tolist() for x in losses_and_pulls(values, clip)),
        strict=True,
    ):
        draw_pull(ax, value, loss, pull)
    ax.set(xlim=(-1.1, 3.1), ylim=(-0.1, 2.1))
    finish(ax, "new value (old value 0, target 1)", "value loss")
    legend_above(ax)
    describe(
        ax.figure,
        "The value loss over the new value: squared, Huber's and clipped, with the "
        f"clip range {clip:g} around the old value as a grey band. {flat_words(clip)}",
    )
    return ax


def draw_losses(ax: Axes, clip: float) -> None:
    """The squared, Huber's and the clipped loss, and the stretch that has no slope."""
    squared, clipped = (losses_and_pulls(PLACES, c)[0] for c in (None, clip))
    huber = torch.nn.functional.huber_loss(
        PLACES, torch.full_like(PLACES, TARGET), reduction="none"
    )
    ax.axvspan(OLD - clip, OLD + clip, label="clip range", **CLIP)
    ax.plot(PLACES, squared, color=COLOURS[1], ls="--", label="squared")
    ax.plot(PLACES, huber, color=COLOURS[3], ls=":", lw=2.5, label="Huber")
    ax.plot(PLACES, clipped, color=PI, lw=3, label="clipped")
    held = torch.where(clipped > squared + 1e-6, clipped, torch.nan)
    ax.plot(PLACES, held, color=GONE, lw=6, label="clipped, flat")


def draw_pull(ax: Axes, value: float, loss: float, pull: float) -> None:
    """A value on the clipped loss, and an arrow to where it is pulled, if it is."""
    if pull:
        draw_arrow(
            ax, (value, loss), (value + VALUE_CLIP_REACH * pull, loss), pull, width=3
        )
    fill: dict[str, Any] = {"mfc": PI if pull else GROUND, "mec": PI if pull else GONE}
    ax.plot(value, loss, "o", ms=10, mew=2.5, zorder=5, **fill)


def flat_words(clip: float) -> str:
    """Between which values there is no pull."""
    _, pulls = losses_and_pulls(PLACES, clip)
    still = PLACES[pulls.abs() < 1e-6]
    if len(still) < 2:
        return "Every value but the target is pulled."
    return f"No pull from {still.min():+.1f} to {still.max():+.1f}."


def draw_value_clip(clip: float, values: Tensor) -> str:
    """The picture for a slider; -> the sentence below it."""
    plot_value_clip(clip, values)
    return f"Clip range {clip:g}. {flat_words(clip)}"


# What a critic expects, token by token: its TD errors as the steps of a stair.


LITTLE = 0.05  # a change of the expected reward that one cannot see


UNDUE = 0.3  # a delta that one sees, where nothing changed


def plot_value_steps(values: Tensor, reward: float, ax: Axes | None = None) -> Axes:
    """The values as levels, the reward as the last one, and what each token changed.

    values [pos] are said before each token; the reward is paid after the last one.
    """
    levels = [*values.tolist(), reward]
    numbers = ax is None  # in a panel they would stand on the levels
    ax = ax or axes_row(width=8.0, height=3.4)[0]
    for x, level in enumerate(levels):
        draw_level(ax, x, level, is_paid=x == len(values))
    errors = [after - now for now, after in pairwise(levels)]
    for t, error in enumerate(errors):
        place: dict[str, Any] = {"va": "center", "weight": "bold"}
        start, end = (t + 0.5, levels[t]), (t + 0.5, levels[t + 1])
        draw_arrow(ax, start, end, error, width=3)
        middle = (levels[t] + levels[t + 1]) / 2
        said = f"{error:+.1f}" if numbers else ""
        ax.text(t + 0.58, middle, said, color=sign_colour(error), **place)
    names = [f"token {t}" for t in range(len(values))]
    ax.set_xticks([t + 0.5 for t in range(len(values))], names)
    ax.set(xlim=(-0.6, len(values) + 0.7), ylim=(0, 1.1 * max(levels)))
    finish(ax, "", "reward still expected").grid(visible=False, axis="x")
    told = ", ".join(f"{t}: {error:+.1f}" for t, error in enumerate(errors))
    said = ", ".join(f"{value:.1f}" for value in values.tolist())
    describe(
        ax.figure,
        f"A stair of the values {said}, with the reward {reward:g} as its last level. "
        f"An arrow at each token, from one level to the next. {told}.",
    )
    return ax


def draw_level(ax: Axes, x: float, level: float, is_paid: bool) -> None:
    """A level with its name below it."""
    colour = PI_REF if is_paid else PI
    ax.plot([x - 0.42, x + 0.42], [level, level], color=colour, lw=4)
    name = f"paid {level:g}" if is_paid else f"$V_{x}$ = {level:.1f}"
    place: dict[str, Any] = {"ha": "center", "va": "top"}
    place["bbox"] = {"facecolor": GROUND, "lw": 0, "pad": 0.5, "alpha": 0.8}
    ax.text(x, level - 0.08, name, **place)


def plot_critic_and_truth(
    values: Tensor, exact: Tensor, deltas: dict[str, Tensor]
) -> list[Axes]:
    """Left, a critic's stair and, dotted, the exact one; right, bars for each token.

    values [pos]; exact [pos + 1] ends with the reward. deltas, by name, are [pos]; what
    each token truly changed is drawn beside them.
    """
    left, right = axes_row(2, width=10.0, height=3.4)
    plot_value_steps(values, exact[-1].item(), left)
    for x, level in enumerate(exact[:-1].tolist()):
        left.plot([x - 0.46, x + 0.46], [level, level], color="black", lw=2.5, ls=":")
    left.set(ylim=(-0.35, 3.4), title="dotted: the exact expectation")
    draw_deltas(right, deltas | {"exact": exact.diff()})
    rows = {"critic": values, "exact": exact} | deltas
    told = "; ".join(f"{name} {signed(row)}" for name, row in rows.items())
    describe(left.figure, f"A critic's stair beside the exact one. {told}.")
    return [left, right]


def draw_deltas(ax: Axes, deltas: dict[str, Tensor]) -> None:
    """Bars beside each other for each token; what is exact is black. Each [pos]"""
    colours = (COLOURS[3], COLOURS[4], "black")
    for number, (name, heights) in enumerate(deltas.items()):
        places = [t + 0.27 * (number - 1) for t in range(len(heights))]
        ax.bar(places, heights, 0.25, label=name, color=colours[number])
    ax.axhline(0, color="black", lw=1)
    ax.set_xticks(range(len(heights)), [f"token {t}" for t in range(len(heights))])
    ax.set_ylim(-3, 3)
    legend_above(finish(ax, "", r"$\delta$"))


def signed(row: Tensor) -> str:
    """Numbers with their signs."""
    return ", ".join(f"{value + 0.0:+.1f}" for value in row.tolist())


def wrong_signs(deltas: Tensor, exact: Tensor) -> str:
    """The tokens whose delta says nothing, or the opposite of what they changed.

    A token that changed nothing is among them if its delta says that it did.
    """
    misses = (deltas * exact < 0) | (deltas.abs() < LITTLE)  # [pos]
    undue = deltas.abs() > UNDUE
    wrong = torch.where(exact.abs() > LITTLE, misses, undue)
    tokens = [f"token {t}" for t in wrong.nonzero().flatten().tolist()]
    return " and ".join(tokens) or "no token"


def draw_critic(
    model: SortModel,
    critic: Critic,
    prompt: Tensor,
    response: Tensor,
    reward_fn: Callable,
) -> str:
    """The picture for a slider, of one seed; -> which deltas mislead or are silent."""
    with torch.no_grad():
        exact = exact_values(model, prompt, response, reward_fn)[0]
        values = critic(Rollout(prompt[None], response[None, None, None]))[0, 0, 0]
    levels = torch.cat([values, exact[-1:]])
    deltas = {"λ = 0": levels.diff(), "λ = 1": exact[-1] - values}
    plot_critic_and_truth(values, exact, deltas)
    truth = exact.diff()
    wrong = [f"{name} at {wrong_signs(row, truth)}" for name, row in deltas.items()]
    return f"Wrong sign, silent or undue: {', '.join(wrong)}."
