"""The critics, what they read, their loss; the reward model and its loss."""

import pytest
import torch

from grpo_course.loop import Rollout
from grpo_course.ppo import (
    Critic,
    RewardModel,
    ValueHead,
    bradley_terry_loss,
    fit_reward_model,
    value_loss,
)

PROMPTS = torch.tensor([[1, 0, 2], [3, 2, 4]])


def responses(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(5, shape, generator=generator)


def shaken(module, seed=0):
    """The same module with weights that are not zero."""
    generator = torch.Generator().manual_seed(seed)
    for weight in module.parameters():
        weight.data += torch.randn(weight.shape, generator=generator)
    return module


def test_a_fresh_critic_expects_nothing():
    rollout = Rollout(PROMPTS, responses(2, 4, 3))
    assert torch.equal(Critic(5, 10, 3, 3)(rollout), torch.zeros(2, 4, 3))


def test_a_value_reads_the_tokens_before_it_and_no_later_one():
    critic, tokens = shaken(Critic(5, 10, 3, 3)), responses(2, 4, 3)
    before = critic(Rollout(PROMPTS, tokens))
    for position in range(3):
        changed = tokens.clone()
        changed[..., position] = (tokens[..., position] + 1) % 5
        moved = (critic(Rollout(PROMPTS, changed)) - before).abs() > 1e-6
        assert not moved[..., : position + 1].any()
        assert moved[..., position + 1 :].all()


@pytest.mark.parametrize("kind", [Critic, RewardModel])
def test_seeds_side_by_side_are_the_seeds_alone(kind):
    tokens = responses(2, 2, 4, 3)
    both = kind(5, 10, 3, 3, seeds=(3, 8))
    if kind is Critic:
        both.readout.data += 1.0
    for i, seed in enumerate((3, 8)):
        alone = kind(5, 10, 3, 3, seeds=(seed,))
        if kind is Critic:
            alone.readout.data += 1.0
            found, expected = (
                model(Rollout(PROMPTS, t))
                for model, t in ((both, tokens), (alone, tokens[i : i + 1]))
            )
        else:
            found, expected = both(PROMPTS, tokens), alone(PROMPTS, tokens[i : i + 1])
        torch.testing.assert_close(found[i], expected[0])


def test_a_value_head_reads_the_features_alone():
    features = torch.randn(3, 2, 10, generator=torch.Generator().manual_seed(0))
    head = shaken(ValueHead(lambda prompts: features, 10, 3, seeds=(0, 1, 2)))
    values = head(Rollout(PROMPTS, responses(3, 2, 4, 3)))
    assert values.shape == (3, 2, 4, 3)
    assert torch.equal(values[:, :, 0], values[:, :, 3])
    by_hand = features[1, 0] @ head.readout[1, 2] + head.bias[1, 2]
    torch.testing.assert_close(values[1, 0, 0, 2], by_hand)


@pytest.mark.parametrize(
    ("prompts", "tokens", "words"),
    [
        (PROMPTS[:, :2], responses(2, 4, 3), "prompts have 2 tokens"),
        (PROMPTS, responses(2, 4, 5), "responses have 5 tokens"),
        (PROMPTS + 3, responses(2, 4, 3), "prompts holds .* to 7 .*numbers 0 to 4"),
        (PROMPTS, responses(2, 4, 3) - 9, "responses holds values from -9"),
        (PROMPTS, responses(2, 4, 3).float(), "responses holds .*float32"),
        (PROMPTS[:1], responses(2, 4, 3), r"shape \[1, 3\].*agree in batch"),
    ],
)
def test_tokens_that_do_not_fit_are_named(prompts, tokens, words):
    with pytest.raises(ValueError, match=words):
        Critic(5, 10, 3, 3)(Rollout(prompts, tokens))
    with pytest.raises(ValueError, match=words):
        RewardModel(5, 10, 3, 3)(prompts, tokens)


def test_no_seed_is_an_error():
    for kind in (Critic, RewardModel):
        with pytest.raises(ValueError, match=r"seeds=\[\].*one at least: seeds=\(0,\)"):
            kind(5, 10, 3, 3, seeds=[])
    with pytest.raises(ValueError, match=r"seeds=\(\)"):
        ValueHead(lambda prompts: prompts, 10, 3, seeds=())


def per_token(*numbers):
    return torch.tensor([[list(numbers)]])


def test_value_loss_is_half_the_mean_square_over_tokens():
    values, returns = per_token(1.0, 2.0, 9.0), per_token(0.0, 0.0, 0.0)
    assert value_loss(values, returns).item() == pytest.approx(86 / 6)
    mask = per_token(True, True, False)
    assert value_loss(values, returns, mask=mask).item() == pytest.approx(5 / 4)


@pytest.mark.parametrize(
    ("value", "loss", "pulls"),
    [
        (0.1, 0.405, True),  # inside the range: its own error, .9 squared / 2
        (0.5, 0.32, False),  # moved on towards the return: as if it were at .2
        (-0.5, 1.125, True),  # moved away from the return: its own error counts
        (2.5, 1.125, True),  # beyond the return: its own error counts
    ],
)
def test_value_clipping_takes_the_gain_of_moving_on(value, loss, pulls):
    values = per_token(value).requires_grad_()
    found = value_loss(values, per_token(1.0), per_token(0.0), clip=0.2)
    found.backward()
    assert found.item() == pytest.approx(loss)
    assert (values.grad.item() != 0) == pulls


@pytest.mark.parametrize("knobs", [{"clip": 0.2}, {"clip": 0.0}, {"clip": -1.0}])
def test_value_clipping_says_what_it_needs(knobs):
    old = None if knobs["clip"] == 0.2 else per_token(0.0)
    says = "needs old_values" if old is None else "must be above 0, or None"
    with pytest.raises(ValueError, match=f"clip={knobs['clip']}.*{says}"):
        value_loss(per_token(1.0), per_token(1.0), old, **knobs)


def test_values_and_returns_must_line_up():
    with pytest.raises(ValueError, match="returns has shape"):
        value_loss(per_token(1.0), per_token(1.0, 2.0))
    with pytest.raises(ValueError, match="values has shape"):
        value_loss(torch.zeros(2, 3), torch.zeros(2, 3))


def test_bradley_terry_values_and_gradient():
    chosen = torch.tensor([1.0, 0.0, -3.0], dtype=torch.float64, requires_grad=True)
    rejected = torch.tensor([0.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    loss = bradley_terry_loss(chosen, rejected)
    gap = (chosen - rejected).detach()
    assert loss.item() == pytest.approx((-gap.sigmoid().log()).mean().item())
    loss.backward()
    expected = -(1 - gap.sigmoid()) / 3
    torch.testing.assert_close(chosen.grad, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(rejected.grad, -expected, rtol=1e-12, atol=0)


def test_bradley_terry_does_not_see_a_constant_and_does_not_overflow():
    chosen, rejected = torch.tensor([[1.0, -2.0], [0.5, 0.0]], dtype=torch.float64)
    loss = bradley_terry_loss(chosen, rejected)
    torch.testing.assert_close(bradley_terry_loss(chosen + 7, rejected + 7), loss)
    far = bradley_terry_loss(torch.tensor([-500.0]), torch.tensor([500.0]))
    assert far.item() == pytest.approx(1000)
    assert bradley_terry_loss(torch.zeros(3, 2), torch.zeros(3, 2)).shape == (3,)


def test_bradley_terry_needs_pairs():
    with pytest.raises(ValueError, match=r"chosen has shape.*one rejected for each"):
        bradley_terry_loss(torch.zeros(3), torch.zeros(2))
    with pytest.raises(ValueError, match="pair by pair"):
        model, first = RewardModel(5, 10, 3, 3), responses(2, 4, 3)
        fit_reward_model(model, PROMPTS, first, first[:, :3])


def test_a_reward_model_learns_its_pairs_and_is_frozen_as_a_reward():
    model = RewardModel(5, 16, 3, 3, seeds=(0, 1))
    better = PROMPTS.sort(-1).values[:, None].expand(2, 2, 20, 3)
    worse = responses(2, 2, 20, 3)
    losses = fit_reward_model(model, PROMPTS, better, worse, num_steps=200)
    assert losses.shape == (200, 2)
    assert losses[0].mean() > 0.4 and (losses[-1] < 0.1).all()
    reward = model.as_reward()(Rollout(PROMPTS, better))
    assert reward.shape == (2, 2, 20) and not reward.requires_grad
    with pytest.raises(ValueError, match="num_steps=0"):
        fit_reward_model(model, PROMPTS, better, worse, num_steps=0)
