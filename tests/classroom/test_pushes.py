"""Deltas that sum to zero beside pushes that do not: the drawing against autograd."""

from itertools import pairwise

import matplotlib.pyplot as plt
import pytest
import torch

from grpo_course import compute_deltas, compute_loss
from grpo_course.classroom.alt_text import alternative_text
from grpo_course.classroom.plots import CORNERS, DOWN, UP
from grpo_course.lessons.pictures import nb07 as pushes

REWARDS = torch.tensor([0.0, 0.0, 1.0])
DRAWN = torch.tensor([0, 2, 2, 1])
DELTAS = compute_deltas(REWARDS[DRAWN][None], "centered_rewards")[0]


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def minus_gradient(logits):
    """Of the sequence-mean loss at ratio 1 by the logits, from autograd. [answer]"""
    logits = logits.clone().requires_grad_()
    log_probs = logits.log_softmax(dim=-1)[DRAWN][None, :, None]  # [1 trial 1]
    loss = compute_loss(log_probs, DELTAS[None], "clipped", log_probs.detach())
    assert loss.item() == pytest.approx(0, abs=1e-6)
    return -torch.autograd.grad(loss, logits)[0]


def drawn_arrows(ax):
    """Foot and head of each push, and its colour."""
    arrows = [text for text in ax.texts if getattr(text, "arrow_patch", None)]
    return [(a.xyann, a.xy, a.arrow_patch.get_edgecolor()) for a in arrows]


@pytest.mark.parametrize("logits", [[0.0, 0.0, 0.0], [1.0, -0.5, -2.0]])
def test_the_black_arrow_is_minus_the_gradient_and_the_pushes_lead_along_it(logits):
    logits = torch.tensor(logits)
    _, ax = pushes.plot_pushes(logits, REWARDS, DRAWN, DELTAS)
    truth = minus_gradient(logits)
    assert DELTAS.sum() == 0 and truth.norm() > 0.3
    (black,) = ax.collections
    seen = torch.tensor([black.U.item(), black.V.item()])
    expected = pushes.ZOOM * truth @ CORNERS
    assert seen.tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    chain = drawn_arrows(ax)
    start = logits.softmax(dim=-1) @ CORNERS
    assert chain[0][0] == pytest.approx(start.tolist())
    assert chain[-1][1] == pytest.approx((start + expected).tolist(), abs=1e-5)
    for (_, head, _), (foot, _, _) in pairwise(chain):
        assert head == pytest.approx(foot)


def test_a_push_leads_to_the_corner_of_its_answer_or_away_from_it():
    logits = torch.tensor([1.0, -0.5, -2.0])
    _, ax = pushes.plot_pushes(logits, REWARDS, DRAWN, DELTAS)
    policy = logits.softmax(dim=-1) @ CORNERS
    arrows = zip(drawn_arrows(ax), DRAWN, DELTAS, strict=True)
    for (foot, head, colour), answer, delta in arrows:
        push = torch.tensor(head) - torch.tensor(foot)
        towards = CORNERS[answer] - policy
        cosine = torch.cosine_similarity(push, towards, dim=0).item()
        assert cosine == pytest.approx(delta.sign().item(), abs=1e-3)
        assert colour == plt.matplotlib.colors.to_rgba(UP if delta > 0 else DOWN)


def test_from_equal_chances_the_sum_points_at_the_better_answer():
    left, right = pushes.plot_pushes(torch.zeros(3), REWARDS, DRAWN, DELTAS)
    (black,) = right.collections
    assert black.U.item() == pytest.approx(0, abs=1e-6)  # C stands above the middle
    assert black.V.item() > 0.3
    assert [t.get_text() for t in left.texts][-1] == "+0.00"
    assert left.get_title() == "the deltas add up to 0"
    assert right.get_title() == "the pushes add up to a norm of 0.31"
    told = alternative_text(left.figure)
    assert "away from A -0.50, to C +0.50, to C +0.50, away from B -0.50" in told
    assert told.endswith("is -0.125, -0.125, +0.250 on A, B, C.")
