"""An entropy bonus on one row of a policy: the exact push, and that of its samples."""

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.mechanism import draw_arrow
from grpo_course.classroom.plots.palette import PI

REACH = 1.6  # of an arrow on the axis of the probabilities, for a push of 1
SMALLEST = 0.08  # a shorter arrow is not drawn


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
    if REACH * abs(push) > SMALLEST:
        draw_arrow(ax, (x, top), (x, top + REACH * push), push, width=2.5)


def draw_entropy_push(logits: Tensor) -> str:
    """The picture for a slider; -> the sentence below it."""
    plot_entropy_push(logits)
    entropy, push = entropy_push(logits)
    sure = logits.softmax(dim=-1).max()
    return (
        f"Likeliest token {sure:.3f}, entropy {entropy:.2f} nats: "
        f"the gradient's length is {push.norm():.3f}."
    )
