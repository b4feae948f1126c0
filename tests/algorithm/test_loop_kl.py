"""The loop with a reference: when it is copied, what the KL does, how beta moves."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from grpo_course import loop
from grpo_course.loop import (
    Batch,
    History,
    Rollout,
    TrainConfig,
    Trainer,
    rollout_report,
    train,
)
from grpo_course.sort import (
    SORT_PROMPTS,
    make_policy,
    rollout_reward,
    run_policy_gradient,
    sort_distance_reward,
)

REWARD = rollout_reward(sort_distance_reward)


def make_trainer(policy, **knobs):
    config, optimizer = TrainConfig(**knobs), torch.optim.SGD([torch.zeros(1)])
    return Trainer(policy, SORT_PROMPTS, REWARD, optimizer, config)


def run(seeds=(0, 1), optimizer=torch.optim.SGD, lr=0.05, **knobs):
    policy = make_policy(SORT_PROMPTS, seeds, init_scale=0.3)
    config = TrainConfig(**({"num_epochs": 6, "num_steps_per_epoch": 3} | knobs))
    optimizer = optimizer(policy.model.parameters(), lr=lr)
    return policy, train(policy, SORT_PROMPTS, REWARD, optimizer, config)


def test_without_a_penalty_there_is_no_reference():
    _, history = run()
    assert not any("kl" in record for record in history.records)


@pytest.mark.parametrize("period", [1, 2, 6])
def test_the_reference_is_copied_every_period_epochs(period, monkeypatch):
    copies = []
    monkeypatch.setattr(loop.copy, "deepcopy", lambda p: copies.append(1) or _clone(p))
    _, history = run(kl_penalty=0.1, compute_ref_model_period=period)
    assert len(copies) == 6 // period
    at_start = history.epochs("kl")
    for epoch in range(6):
        zero = at_start[epoch].abs().max() < 1e-6
        assert zero == (epoch % period == 0)  # the copy is the policy itself


def _clone(policy):
    fresh = make_policy(SORT_PROMPTS, (0, 1), init_scale=0.3)
    fresh.model.load_state_dict(policy.model.state_dict())
    return fresh


def test_a_larger_beta_keeps_the_policy_closer():
    knobs = {"compute_ref_model_period": 100, "num_epochs": 20}
    knobs |= {"optimizer": torch.optim.Adam, "lr": 1e-2}
    kls = [run(kl_penalty=beta, **knobs)[1].final("kl").mean() for beta in (0.01, 1.0)]
    assert kls[1] < 0.5 * kls[0]


def test_the_loss_is_policy_loss_plus_beta_times_kl():
    _, history = run(kl_penalty=0.3, compute_ref_model_period=2)
    total = history.curve("policy_loss") + 0.3 * history.curve("kl")
    torch.testing.assert_close(history.curve("loss"), total)


def test_the_kl_keeps_its_token_ratios_where_the_loss_has_one_a_response():
    """With a ratio of the response the KL of a token would get a wrong gradient."""
    knobs = {"kl_penalty": 0.5, "kl_estimator": "corrected_k3"}
    found = []
    for level in ("token", "sequence"):
        policy = make_policy(SORT_PROMPTS, (0,), 0.3)
        trainer = make_trainer(policy, ratio_level=level, **knobs)
        trainer.ref_policy = make_policy(SORT_PROMPTS, (1,), 0.3)
        torch.manual_seed(0)
        batch = trainer.collect(SORT_PROMPTS)
        new = torch.randn_like(batch.old_log_probs).mul(0.3) + batch.old_log_probs
        new = new.clamp(max=0).requires_grad_()
        trainer.policy = SimpleNamespace(log_probs=lambda rollout, new=new: new)
        loss, kl = trainer.loss(replace(batch, deltas=torch.zeros_like(batch.deltas)))
        found.append((kl["kl"], *torch.autograd.grad(loss.sum(), new)))
    torch.testing.assert_close(*found, rtol=0, atol=0)
    ratio = (new - batch.old_log_probs).exp()
    k3 = torch.expm1(batch.ref_log_probs - new) - (batch.ref_log_probs - new)
    torch.testing.assert_close(kl["kl"], (ratio * k3).mean((-3, -2, -1)))


def test_in_the_reward_the_kl_leaves_the_loss_and_changes_the_deltas():
    policy = make_policy(SORT_PROMPTS, (0,), 0.3)
    away = make_policy(SORT_PROMPTS, (1,), 0.3)
    knobs = {"kl_penalty": 0.5, "kl_place": "reward", "deltas_mode": "rewards"}
    trainer = make_trainer(policy, **knobs)
    trainer.ref_policy = away
    batch = trainer.collect(SORT_PROMPTS)
    gap = (batch.old_log_probs - batch.ref_log_probs).sum(-1)
    torch.testing.assert_close(batch.deltas, batch.rewards - 0.5 * gap)
    _, history = run(kl_penalty=0.5, kl_place="reward")
    assert torch.equal(history.curve("loss"), history.curve("policy_loss"))


def test_a_target_moves_beta_for_each_seed():
    _, history = run(
        kl_penalty=0.1, kl_target=1e-4, compute_ref_model_period=100, num_epochs=4
    )
    beta = history.epochs("beta")
    assert beta.shape == (4, 2) and beta.dtype == torch.float32
    torch.testing.assert_close(beta[0], torch.full((2,), 0.1))
    torch.testing.assert_close(beta[1], torch.full((2,), 0.102))  # far above target
    knobs = {"kl_penalty": 0.1, "kl_target": 1e-4, "kl_gain": 1.0, "num_epochs": 2}
    beta = run(compute_ref_model_period=100, **knobs)[1].epochs("beta")
    torch.testing.assert_close(beta[1], torch.full((2,), 0.12))


def test_the_report_of_a_rollout():
    policy, history = run(seeds=(0, 1, 2))
    first = history.records[0]
    for name in ("mean_reward", "tied_groups", "sampled_entropy", "mean_length"):
        assert first[name].shape == (3,)
    assert first["mean_length"].tolist() == [3, 3, 3]
    constant = rollout_reward(lambda prompt, response: 0.1)
    optimizer = torch.optim.SGD(policy.model.parameters(), lr=0.5)
    history = train(
        policy, SORT_PROMPTS, constant, optimizer, TrainConfig(num_epochs=1)
    )
    assert history.final("tied_groups").tolist() == [1, 1, 1]
    assert history.final("gradient_norm").tolist() == [0, 0, 0]


def test_padding_counts_neither_as_length_nor_as_entropy():
    tokens = torch.zeros(1, 2, 3, dtype=torch.long)
    mask = torch.tensor([[[True, True, False], [True, False, False]]])
    log_probs = torch.where(mask, torch.tensor([[[-1.0], [-4.0]]]), 0.0)
    rollout, rewards = Rollout(tokens[:, 0], tokens, mask), torch.zeros(1, 2)
    for padding in (0.0, -100.0):
        noted = torch.where(mask, log_probs, padding)
        for batch in (
            Batch(rollout, rewards, rewards, noted),
            Batch(replace(rollout, sampled_log_probs=noted), rewards, rewards),
        ):
            report = rollout_report(batch)
            assert report["sampled_entropy"] == 2  # (1 + 1 + 4) / 3
            assert report["mean_length"] == 1.5


def test_the_gradient_norm_is_each_seeds_own():
    _, together = run(seeds=(3, 4), loss_mode="naive")
    for column, seed in enumerate((3, 4)):
        policy, alone = run(seeds=(seed,), loss_mode="naive")
        torch.testing.assert_close(
            together.curve("gradient_norm")[:, column],
            alone.curve("gradient_norm")[:, 0],
            rtol=1e-4,
            atol=1e-6,
        )
    policy = make_policy(SORT_PROMPTS, (3,), 0.3)
    config = TrainConfig(num_epochs=1, num_steps_per_epoch=1, loss_mode="naive")
    optimizer = torch.optim.SGD(policy.model.parameters(), lr=0.5)
    history = train(policy, SORT_PROMPTS, REWARD, optimizer, config)
    grads = torch.cat([w.grad.flatten() for w in policy.model.parameters()])
    torch.testing.assert_close(history.final("gradient_norm")[0], grads.norm())


def test_watch_sees_the_history_after_each_epoch():
    seen = []
    run_policy_gradient(
        4, 2, seeds=(0,), watch=lambda history: seen.append(len(history.records))
    )
    assert seen == [2, 4, 6, 8]


def test_the_history_as_a_table():
    _, history = run(num_epochs=2)
    frame = history.frame(["loss", "mean_reward"])
    assert frame.index.names == ["epoch", "step"]
    assert list(frame.columns) == ["loss", "mean_reward"]
    assert list(frame.index[::3]) == [(0, 0), (1, 0)] and len(frame) == 6
    for name in frame:
        expected = history.curve(name).mean(-1).tolist()
        assert frame[name].tolist() == pytest.approx(expected)
    assert History(history.records).epochs("loss").shape == (2, 2)


def test_a_table_of_all_columns_leaves_out_what_is_no_number_a_seed():
    seeds = {"loss": torch.tensor([1.0, 3.0]), "answer": torch.zeros(2, 3)}
    last = {"epoch": 1, "loss": torch.tensor([0.0, 0.0])}  # after training, no step
    history = History([{"epoch": 0, "step": 0} | seeds, last])
    frame = history.frame()
    assert list(frame.columns) == ["loss"] and frame.loc[(0, 0), "loss"] == 2
    with pytest.raises(ValueError, match=r"name='los' is not known.*of: 'loss'"):
        history.frame(["los"])
