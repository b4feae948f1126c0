"""PPO's penalty form: its loss against the sums it stands for, and how c moves."""

from types import SimpleNamespace

import pytest
import torch

from grpo_course.formulas import LOSS_MODES, compute_loss
from grpo_course.off_policy import PenaltyForm
from grpo_course.sort import run_policy_gradient

OLD = torch.tensor([0.25, 0.25, 0.5], dtype=torch.float64)
SAMPLES = torch.tensor([0, 1, 2, 2])  # each token as often as pi_old draws it
DELTAS = torch.tensor([1.0, -0.5, 0.3], dtype=torch.float64)


@pytest.fixture
def form(monkeypatch):
    made = PenaltyForm(target=0.1)
    monkeypatch.setitem(LOSS_MODES, "penalty", made.loss)
    return made


@pytest.mark.parametrize("price", [0.0, 0.7, 3.0])
def test_loss_and_gradient_are_those_of_the_exact_objective(form, price):
    """Enumerated: minus the mean of delta under pi, plus c times KL(pi_old||pi)."""
    form.price = torch.tensor(price, dtype=torch.float64)
    logits = torch.tensor([0.3, -0.8, 0.1], dtype=torch.float64, requires_grad=True)
    log_probs = logits.log_softmax(-1)
    kl = (OLD * (OLD.log() - log_probs)).sum()
    exact = price * kl - (log_probs.exp() * DELTAS).sum()
    sampled = compute_loss(
        log_probs[SAMPLES].view(1, 4, 1),
        DELTAS[SAMPLES].view(1, 4),
        "penalty",
        OLD.log()[SAMPLES].view(1, 4, 1),
    )
    assert sampled.item() == pytest.approx(exact.item())
    gradients = [
        torch.autograd.grad(value, logits, retain_graph=True)[0]
        for value in (sampled, exact)
    ]
    torch.testing.assert_close(*gradients)


def test_the_price_follows_the_target(form):
    kl = torch.tensor([0.16, 0.14, 0.1, 0.07, 0.06])
    form.adapt(SimpleNamespace(records=[{}, {"old_kl": kl}]))
    assert form.price.tolist() == [2.0, 1.0, 1.0, 1.0, 0.5]
    form.adapt(SimpleNamespace(records=[{"old_kl": kl}]))
    assert form.price.tolist() == [4.0, 1.0, 1.0, 1.0, 0.25]


def test_each_seed_trains_with_its_own_price(form):
    """Seeds side by side end where each of them ends alone."""
    knobs = {"loss_mode": "penalty", "deltas_mode": "centered_rewards"}
    knobs |= {"learning_rate": 0.01, "init_scale": 0.1, "watch": form.adapt}
    both = run_policy_gradient(4, 5, seeds=(2, 1), **knobs)
    prices = form.price
    assert prices.unique().numel() == 2, "choose seeds whose prices part"
    form.price = torch.tensor(1.0)
    alone = run_policy_gradient(4, 5, seeds=(1,), **knobs)
    assert form.price.item() == prices[1]
    torch.testing.assert_close(both.final("entropy")[1:], alone.final("entropy"))


@pytest.mark.parametrize("target", [0.0, -0.1, float("nan"), float("inf")])
def test_a_target_is_a_distance(target):
    with pytest.raises(ValueError, match="target="):
        PenaltyForm(target)
