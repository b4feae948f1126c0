"""GAE, critics, PPO, a reward model, preferences: closed forms, plain loops, truth."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_course.formulas import kl_reward
from grpo_course.lessons.preferences import (
    EVERY,
    RewardModel,
    bradley_terry_loss,
    climb,
    dpo,
    draw_pairs,
    fit_reward_model,
    scores_of,
    share_right,
    true_rewards,
    warm_start,
    watch_both,
)
from grpo_course.loop import Rollout
from grpo_course.ppo import (
    PPO,
    Critic,
    PPOConfig,
    generalized_advantages,
    kl_per_token,
    reward_per_token,
    td_errors,
    value_loss,
    whiten_tokens,
)
from grpo_course.sort import (
    SORT_PROMPTS,
    all_log_probs,
    exact_entropy,
    exact_expected_reward,
    make_policy,
    rollout_reward,
    sort_distance_reward,
)

# Deltas for tokens


NUMBERS = st.floats(-5, 5)


def by_hand(rewards, values, mask, gamma, lam, bootstrap):
    """GAE of one response: the plain recursion over the tokens that are kept."""
    kept = [t for t, keep in enumerate(mask) if keep]
    deltas, after, delta = [0.0] * len(mask), bootstrap, 0.0
    for t in reversed(kept):
        delta = rewards[t] + gamma * after - values[t] + gamma * lam * delta
        deltas[t], after = delta, values[t]
    return deltas


TOKENS = st.lists(st.tuples(NUMBERS, NUMBERS, st.booleans()), min_size=1, max_size=9)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(TOKENS, NUMBERS, st.floats(0.01, 1), st.floats(0, 1))
def test_holes_and_cuts_are_those_of_a_plain_recursion(tokens, bootstrap, gamma, lam):
    rewards, values, mask = map(list, zip(*tokens, strict=True))
    expected = by_hand(rewards, values, mask, gamma, lam, bootstrap)
    junk = [r if keep else float("nan") for r, keep in zip(rewards, mask, strict=True)]
    columns = (torch.tensor([[x]], dtype=torch.float64) for x in (junk, values))
    after = torch.tensor([[bootstrap]], dtype=torch.float64)
    found = generalized_advantages(
        *columns, gamma, lam, torch.tensor([[mask]]), bootstrap=after
    )
    assert found[0, 0].tolist() == pytest.approx(expected, abs=1e-9)


def test_with_a_right_critic_only_the_bootstrap_makes_a_cut_harmless():
    """A walk that pays 1 a step and ends by a coin is worth 2 from everywhere.

    Cut after three tokens, the delta of a token is right, zero on average over what
    follows, if the cut counts as going on; as an end the last one loses the value.
    """
    ends = torch.tensor([1, 2, 3, 3])[None]  # the tokens written, each way equally
    chance = torch.tensor([0.5, 0.25, 0.125, 0.125])  # the last way was cut off
    mask = torch.arange(3) < ends[..., None]
    values, rewards = 2 * torch.ones(1, 4, 3), torch.ones(1, 4, 3)
    after = torch.tensor([[0.0, 0.0, 0.0, 2.0]])
    for lam in (0.0, 0.5, 1.0):
        right = generalized_advantages(rewards, values, 1.0, lam, mask, after)[0]
        assert (right * chance[:, None]).sum(0).abs().max() < 1e-6
        wrong = generalized_advantages(rewards, values, 1.0, lam, mask)[0]
        assert (wrong * chance[:, None]).sum(0)[-1].item() == pytest.approx(-0.25)


def test_the_reward_is_given_at_the_last_token():
    rewards, like = torch.tensor([[2.0, 3.0, 5.0]]), torch.zeros(1, 3, 4)
    assert reward_per_token(rewards, like)[0, :, -1].tolist() == [2, 3, 5]
    assert reward_per_token(rewards, like).sum() == 10
    mask = torch.tensor([[[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]]).bool()
    found = reward_per_token(rewards, like, mask)[0].tolist()
    assert found == [[0, 2, 0, 0], [0, 0, 0, 3], [0, 0, 0, 0]]


def test_kl_per_token_adds_up_to_the_kl_of_the_response():
    beta = torch.tensor([0.3, 0.0])
    generator = torch.Generator().manual_seed(0)
    log_probs, ref = -torch.rand(2, 2, 3, 4, 5, generator=generator)  # two seeds
    mask = torch.rand(2, 3, 4, 5, generator=generator) < 0.7
    rewards = torch.randn(2, 3, 4, generator=generator)
    mask[..., -1] = True
    found = kl_per_token(
        reward_per_token(rewards, ref, mask), log_probs, ref, beta, mask
    )
    assert (found[~mask] == 0).all()
    together = kl_reward(rewards, log_probs, ref, beta, mask)
    torch.testing.assert_close(found.sum(-1), together)
    for seed, b in enumerate(beta.tolist()):
        one = kl_reward(rewards[seed], log_probs[seed], ref[seed], b, mask[seed])
        torch.testing.assert_close(found[seed].sum(-1), one)


def test_whitening_is_by_seed_and_only_over_tokens():
    generator = torch.Generator().manual_seed(0)
    values = 3 + 2 * torch.randn(2, 3, 4, 5, generator=generator)
    values[1] *= 100
    mask = torch.rand(2, 3, 4, 5, generator=generator) < 0.6
    values[~mask] = float("nan")
    white = whiten_tokens(values, mask)
    for seed in range(2):
        tokens = white[seed][mask[seed]]
        assert tokens.mean().item() == pytest.approx(0, abs=1e-5)
        assert tokens.std().item() == pytest.approx(1, abs=1e-3)
    assert (white[~mask] == 0).all()
    for value in (0.1, 100.1, 1000.1):  # tied ones give exactly zero
        tied = torch.full_like(values, value).masked_fill(~mask, float("nan"))
        assert (whiten_tokens(tied, mask) == 0).all()
    assert (whiten_tokens(values, torch.zeros_like(mask)) == 0).all()


# Critics


PROMPTS = torch.tensor([[1, 0, 2], [3, 2, 4]])


def tokens_of(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(5, shape, generator=generator)


def shaken(module, seed=0):
    """The same module with weights that are not zero."""
    generator = torch.Generator().manual_seed(seed)
    for weight in module.parameters():
        weight.data += torch.randn(weight.shape, generator=generator)
    return module


def test_a_value_reads_the_tokens_before_it_and_no_later_one():
    critic, tokens = shaken(Critic(5, 10, 3, 3)), tokens_of(2, 4, 3)
    before = critic(Rollout(PROMPTS, tokens))
    for position in range(3):
        changed = tokens.clone()
        changed[..., position] = (tokens[..., position] + 1) % 5
        moved = (critic(Rollout(PROMPTS, changed)) - before).abs() > 1e-6
        assert not moved[..., : position + 1].any()
        assert moved[..., position + 1 :].all()


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
    far = bradley_terry_loss(torch.tensor([[-500.0]] * 3), torch.tensor([[500.0]] * 3))
    assert far.tolist() == [1000] * 3


def test_large_values_in_half_precision_do_not_overflow():
    values = torch.tensor([[[300.0, -300.0, 0.0]]]).half()
    loss = value_loss(values, torch.zeros_like(values))
    assert loss.item() == pytest.approx(30000)  # 90000 is beyond half precision
    assert whiten_tokens(100 * values).isfinite().all()


# PPO


REWARD = rollout_reward(sort_distance_reward)


QUICK = {"num_epochs": 3, "num_steps_per_epoch": 4, "num_responses": 6}


def make(seeds, critic=None, entropy=True, **knobs):
    """PPO on a policy and a critic of the same seeds, one optimizer for all."""
    policy = make_policy(SORT_PROMPTS, seeds, init_scale=0.1)
    weights = [*policy.model.parameters()]
    if critic is None:
        critic = Critic(5, 10, 3, 3, seeds)
        weights += critic.parameters()
    optimizer, config = torch.optim.Adam(weights, lr=0.01), PPOConfig(**(QUICK | knobs))
    parts = (policy, SORT_PROMPTS, REWARD, optimizer, config)
    exact = lambda rollout: exact_entropy(policy.model, rollout.prompts)  # noqa: E731
    return PPO(*parts, critic=critic, entropy=exact if entropy else None)


def run(seeds, critic=None, **knobs):
    return make(seeds, critic, **knobs).train()


def test_a_zero_critic_without_discount_gives_each_token_the_reward():
    batch = make((0, 1), lam=1.0, whiten_deltas=False).collect(SORT_PROMPTS)
    assert batch.deltas.shape == (2, 3, 6, 3)
    expected = batch.rewards[..., None].expand(2, 3, 6, 3)
    assert torch.equal(batch.deltas, expected)
    returns, old_values = batch.targets.chunk(2, dim=-1)
    assert torch.equal(returns, expected) and not old_values.any()
    white = make((0, 1), lam=1.0).collect(SORT_PROMPTS)
    torch.testing.assert_close(white.deltas, whiten_tokens(returns))
    assert torch.equal(white.targets, batch.targets)


def test_a_cut_response_is_worth_what_the_critic_expects_after_it():
    """Of six responses the first two were cut off; a bootstrap of 5 for all."""
    cut = torch.tensor([True, True, False, False, False, False]).expand(2, 3, 6)
    ppo = make((0, 1), lam=1.0, whiten_deltas=False)
    sample = ppo.policy.sample
    ppo.policy.sample = lambda *asked: replace(sample(*asked), finished=~cut)
    as_ends = ppo.collect(SORT_PROMPTS)
    assert torch.equal(as_ends.deltas[..., 0], as_ends.rewards)
    ppo.bootstrap = lambda rollout: torch.full(rollout.responses.shape[:-1], 5.0)
    batch = ppo.collect(SORT_PROMPTS)
    torch.testing.assert_close(batch.deltas[..., 0], batch.rewards + 5.0 * cut)


@pytest.mark.parametrize("knobs", [{}, {"value_clip": 0.2}])
def test_seeds_side_by_side_are_the_seeds_alone(knobs):
    both = run((3, 8), **knobs)
    for i, seed in enumerate((3, 8)):
        alone = run((seed,), **knobs)
        for name in ("loss", "value_loss", "gradient_norm", "mean_reward", "old_kl"):
            found, expected = both.curve(name)[:, i], alone.curve(name)[:, 0]
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_a_reward_pays_with_the_beta_that_the_target_has_moved_to():
    """With lam = 1 a first token's delta is the return minus its value."""
    knobs = {"kl_penalty": 0.2, "kl_place": "reward", "kl_target": 1e-4, "kl_gain": 1.0}
    ppo = make((0,), lam=1.0, whiten_deltas=False, **knobs)
    ppo.train()
    assert ppo.beta.item() == pytest.approx(0.2 * 1.2**3)
    batch = ppo.collect(SORT_PROMPTS)
    k1 = (batch.old_log_probs - batch.ref_log_probs).sum(-1)
    assert k1.abs().max() > 0.01
    left = batch.rewards - ppo.beta * k1
    value = ppo.critic(batch.rollout)[..., 0]
    torch.testing.assert_close(batch.deltas[..., 0], left - value)


def test_minibatches_train_the_critic_too():
    history = run((0, 1), num_epochs=15, minibatch_size=9, value_clip=0.5)
    assert len(history.records) == 15 * 4 * 2
    losses = history.curve("value_loss")
    assert (losses[-8:].mean(0) < 0.8 * losses[:8].mean(0)).all()


@pytest.mark.slow
def test_the_critic_learns_the_value_of_the_prompt_and_of_what_was_written():
    ppo = make(tuple(range(4)), num_epochs=50, num_responses=10)
    learning = list(ppo.critic.parameters())
    ppo.optimizer.param_groups[0]["params"] = learning  # the actor stays as it is
    ppo.train()
    right = SORT_PROMPTS.sort(-1).values[:, None]
    wrong = (right + 1) % 5
    tokens = torch.cat([right, wrong], dim=1).expand(4, 3, 2, 3)
    values = ppo.critic(Rollout(SORT_PROMPTS, tokens)).detach()
    assert torch.equal(values[..., 0, 0], values[..., 1, 0])  # nothing written yet
    # Two right numbers are worth two points more than two wrong ones.
    gap = (values[..., 0, 2] - values[..., 1, 2]).mean()
    assert 1 < gap < 3


# Preferences in the sort world


SEEDS = (3, 4)


def test_the_better_of_two_wins_with_bradley_and_terrys_probability():
    pairs = draw_pairs(20_000, SEEDS)
    worth = true_rewards().expand(2, 3, 125).gather(-1, pairs.flatten(-2))
    gap = worth.unflatten(-1, (-1, 2)).diff(dim=-1).neg()  # of the chosen one
    for size in (1, 2, 3):
        won, lost = (gap == size).sum().item(), (gap == -size).sum().item()
        share, chance = won / (won + lost), 1 / (1 + math.exp(-size))
        error = math.sqrt(chance * (1 - chance) / (won + lost))
        assert abs(share - chance) < 4 * error


def test_a_share_is_that_of_the_pairs_in_the_right_order():
    scores = torch.arange(125.0).expand(2, 3, 125)
    pairs = torch.tensor([[5, 1], [1, 5], [7, 7], [9, 2]]).expand(2, 3, 4, 2)
    assert share_right(scores, pairs).tolist() == pytest.approx([0.625, 0.625])


def test_a_climb_notes_exact_numbers_and_leaves_its_start():
    pairs = draw_pairs(20, SEEDS)
    model = RewardModel(5, 16, 3, 3, SEEDS)
    sides = EVERY[pairs].unbind(-2)
    losses = fit_reward_model(model, SORT_PROMPTS, *sides, num_steps=40)
    assert (losses[-1] < losses[0]).all()
    scores = scores_of(model)
    assert scores.mean(-1).abs().max() < 1e-5
    torch.testing.assert_close(scores.std(-1), torch.ones(2, 3))
    policy = warm_start(SEEDS, num_epochs=2)
    exact = exact_expected_reward(policy.model, SORT_PROMPTS, sort_distance_reward)
    history = climb(scores, policy, num_epochs=5)
    torch.testing.assert_close(history.epochs("true")[0], exact.mean(-1).detach())
    assert (history.epochs("exact_kl")[0] == 0).all()
    assert (history.final("exact_kl") > 0).all()
    assert (history.final("model") > history.epochs("model")[0]).all()
    assert len(history.epochs("model")) == 6
    held = climb(scores, warm_start(SEEDS, num_epochs=2), beta=5.0, num_epochs=5)
    assert (held.final("exact_kl") < 0.2 * history.final("exact_kl")).all()


def test_dpo_begins_at_log_two_and_learns_the_order_of_its_pairs():
    pairs = torch.tensor([[[[7, 90]]] * 3, [[[90, 7]]] * 3])  # [seed batch pair 2]
    policy = warm_start(SEEDS, num_epochs=2)
    start = all_log_probs(policy.model, SORT_PROMPTS).detach()
    losses = dpo(pairs, policy, beta=0.5, num_steps=30)
    assert losses[0].tolist() == pytest.approx([math.log(2)] * 2, abs=1e-6)
    gain = all_log_probs(policy.model, SORT_PROMPTS).detach() - start
    assert (gain[0, :, 7] > gain[0, :, 90]).all()
    assert (gain[1, :, 7] < gain[1, :, 90]).all()
    by_hand = 0.5 * (gain[..., 7] - gain[..., 90]) * torch.tensor([[1.0], [-1.0]])
    after = (1 + (-by_hand).exp()).log().mean(-1)
    assert (after < losses[0]).all()
    assert (after - losses[-1]).abs().max() < 0.1  # one step apart


def test_what_is_watched_is_the_expectation_under_the_policy():
    policy = warm_start(SEEDS, num_epochs=1)
    scores = torch.randn(2, 3, 125, generator=torch.Generator().manual_seed(0))
    seen = watch_both(scores, policy, SORT_PROMPTS)(policy)
    probs = all_log_probs(policy.model, SORT_PROMPTS).exp().detach()
    torch.testing.assert_close(seen["model"], (probs * scores).sum(-1).mean(-1))
    assert (seen["exact_kl"] == 0).all()


# What a person would get wrong is refused: the argument, what was given, the cure.

LINE = torch.zeros(1, 2, 3)


SHAPELESS = "values have shape .1, 3, 2.: each token needs one of both"
BAD_CALLS = [
    (lambda: Critic(5, 4, 3, 3, ()), r"seeds=\(\).*one at least"),
    (lambda: RewardModel(5, 4, 3, 3)(PROMPTS, tokens_of(2, 4, 5)), "built for .3, 3"),
    (lambda: td_errors(LINE[..., 0], LINE), "reward_per_token"),
    (lambda: td_errors(LINE, LINE, bootstrap=LINE[0, 0]), "bootstrap has shape"),
    (lambda: reward_per_token(LINE[0], LINE), r"one for each response, \[1, 2\]"),
    (lambda: kl_per_token(LINE, LINE, LINE, -0.1), "0 or more"),
    (lambda: value_loss(LINE, LINE[:, :1]), "returns has shape"),
    (lambda: value_loss(LINE, LINE, clip=0.2), "needs old_values"),
    (lambda: bradley_terry_loss(LINE, LINE[..., :2]), "rejected has shape"),
    (lambda: run((0,), lambda rollout: torch.zeros(1, 3, 2)), SHAPELESS),
    (lambda: make((0,), entropy=False, entropy_bonus=0.01), "is zero on average"),
    (lambda: PPOConfig(gamma=2), "gamma"),
    (lambda: PPOConfig(lam=-1), "lam"),
    (lambda: PPOConfig(value_clip=0.0), "value_clip"),
]


@pytest.mark.parametrize(("call", "says"), BAD_CALLS)
def test_a_bad_call_is_refused(call, says):
    with pytest.raises((TypeError, ValueError), match=f"(?s){says}"):
        call()
