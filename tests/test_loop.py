"""The loop and its knobs."""

import copy
import inspect
import json
import math
from dataclasses import FrozenInstanceError, replace
from itertools import groupby, pairwise, product
from types import SimpleNamespace

import pytest
import torch

from grpo_course import loop
from grpo_course.files import json_lines
from grpo_course.formulas import (
    KL_ESTIMATORS,
    LOSS_MODES,
    RATIO_LEVELS,
    compute_deltas,
    compute_kl_penalty,
    compute_loss,
    loss_report,
    sampler_weights,
)
from grpo_course.loop import (
    GRPO,
    Batch,
    ExperienceBuffer,
    History,
    Rollout,
    TrainConfig,
    Trainer,
    as_json,
    correct_deltas,
    drop_truncated,
    from_json,
    mean_and_error,
    rollout_report,
    split,
    take_step,
    train,
)
from grpo_course.off_policy import soft_overlong_penalty, with_overlong_penalty
from grpo_course.ppo import PPO, Critic, PPOConfig
from grpo_course.sampling import Sampler
from grpo_course.sequences import SequencePolicy, TinyLM
from grpo_course.sort import (
    SORT_PROMPTS,
    SortModel,
    SortPolicy,
    make_policy,
    rollout_reward,
    run_policy_gradient,
    sort_distance_reward,
)

# One factory, and two policies that are made up: a bandit and a script


PROMPTS = torch.arange(2)[:, None]


class Bandit:
    """Logits [... prompt pos arm]; notes what the loop asks, with which weights."""

    def __init__(self, *seeds, pos=1, nan_at_call=None, mask=None):
        numbers, shape = torch.Generator().manual_seed(1), (*seeds, 2, pos, 4)
        self.logits = torch.randn(shape, generator=numbers).requires_grad_()
        self.generator, self.calls = torch.Generator().manual_seed(0), []
        self.nan_at_call, self.mask, self.scored = nan_at_call, mask, []

    def note(self, what):
        self.calls.append((what, self.logits.detach().clone()))

    def names(self):
        return [name for name, _ in self.calls]

    def weights(self, what):
        return [weights for name, weights in self.calls if name == what]

    def sample(self, prompts, num_responses):
        self.note("sample")
        probs = self.logits.detach().softmax(-1)
        rows = probs.flatten(0, -2)
        drawn = torch.multinomial(rows, num_responses, True, generator=self.generator)
        responses = drawn.view(*probs.shape[:-1], num_responses).transpose(-1, -2)
        return Rollout(prompts, responses, self.mask)

    def log_probs(self, rollout):
        self.note("log_probs" if torch.is_grad_enabled() else "old_log_probs")
        responses = rollout.responses
        self.scored.append(responses.shape[-3] * responses.shape[-2])
        table = self.logits.log_softmax(-1)[..., rollout.prompts[:, 0], :, :]
        table = table.unsqueeze(-3).expand(*responses.shape, -1)
        picked = table.gather(-1, responses[..., None]).squeeze(-1)
        return picked * float("nan") if len(self.calls) == self.nan_at_call else picked


class Script:
    """Answers from a script, one tensor a call; scores `apart` from its sampler."""

    def __init__(self, *calls, apart=0.0):
        self.calls, self.asked, self.apart = list(calls), [], apart

    def sample(self, prompts, num_responses):
        self.asked.append(prompts.flatten().tolist())
        tokens = self.calls.pop(0)
        noted, odd = -tokens.float(), tokens.sum(-1) % 2 == 1
        return Rollout(prompts, tokens, tokens > 0, noted, finished=odd)

    def log_probs(self, rollout):
        return rollout.sampled_log_probs + self.apart


def last_arm(rollout):
    """One for the last of the four arms. -> [batch trial]"""
    return (rollout.responses[..., 0] == 3).float()


def token_value(rollout):
    return rollout.responses[..., 0].float()


def token_sum(rollout):
    return rollout.responses.sum(-1).float()


def share_of_ones(rollout):
    return (rollout.responses == 1).float().mean(-1)


SORTING = rollout_reward(sort_distance_reward)


def make_trainer(
    policy,
    prompts=PROMPTS,
    reward_fn=token_value,
    make=torch.optim.SGD,
    lr=0.5,
    observe=None,
    **knobs,
):
    if hasattr(policy, "logits"):
        weights = [policy.logits]
    elif getattr(policy, "model", None):
        weights = policy.model.parameters()
    else:
        weights = [torch.zeros(1)]
    config = TrainConfig(**knobs)
    return Trainer(policy, prompts, reward_fn, make(weights, lr=lr), config, observe)


def run(bandit, num_epochs=2, reward_fn=token_value, **options):
    sizes = {"num_steps_per_epoch": 1, "num_responses": 8, "num_epochs": num_epochs}
    return make_trainer(bandit, PROMPTS, reward_fn, **sizes | options).train()


def run_sort(seeds=(0, 1), make=torch.optim.SGD, lr=0.05, **knobs):
    policy = make_policy(SORT_PROMPTS, seeds, init_scale=0.3)
    sizes = {"num_epochs": 6, "num_steps_per_epoch": 3}
    trainer = make_trainer(policy, SORT_PROMPTS, SORTING, make, lr, **sizes | knobs)
    return policy, trainer.train()


# The plain loop


# What notebook 06 shows of the loop, and the learner reads.
SHOWN = (
    "train renew_reference collect sample old_log_probs compare inner_batches improve "
    "backward loss"
)


def test_the_loop_fits_two_screens():
    methods = [getattr(GRPO, name) for name in SHOWN.split()]
    lines = [line for m in methods for line in inspect.getsource(m).splitlines()]
    assert 40 < len(lines) <= 85
    own = {name for name, m in vars(GRPO).items() if inspect.isfunction(m)}
    assert own - {*SHOWN.split()} == {"__init__", "__repr__", "end_epoch"}


def test_what_runs_is_said_with_its_settings():
    trainer = make_trainer(Bandit(), num_epochs=3, stop_kl=0.1)
    assert repr(trainer) == "Trainer(num_epochs=3, stop_kl=0.1)"


def test_a_gradient_that_is_not_finite_stops_the_step():
    """Its loss is finite: the root of zero has no slope."""
    bandit = Bandit()
    before = bandit.logits.detach().clone()

    class Rooted(Trainer):
        def loss(self, batch):
            loss, record = super().loss(batch)
            return loss + (bandit.logits[0, 0, 0] * 0).abs().sqrt(), record

    optimizer = torch.optim.SGD([bandit.logits], lr=0.5)
    config = TrainConfig(num_epochs=1, max_gradient_norm=1.0)
    trainer = Rooted(bandit, PROMPTS, token_value, optimizer, config)
    with pytest.raises(ValueError, match="gradient is not finite in epoch 0, step 0"):
        trainer.train()
    assert torch.equal(bandit.logits, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("mode", LOSS_MODES)
def test_a_token_far_likelier_than_it_was_leaves_the_gradient_finite(
    mode, level, dtype
):
    for far in (-95.0, -3e4):
        old = torch.tensor([[[far], [far], [far]]], dtype=dtype)
        new = torch.full_like(old, -1.0).requires_grad_()
        deltas = torch.tensor([[1.0, -1.0, 0.0]], dtype=dtype)
        loss = compute_loss(new, deltas, mode, old, ratio_level=level)
        loss.backward()
        assert loss.isfinite() and new.grad.isfinite().all()
        report = loss_report(new, deltas, old, mode=mode, ratio_level=level)
        assert all(value.isfinite() for value in report.values())


@pytest.mark.parametrize("estimator", KL_ESTIMATORS)
@pytest.mark.parametrize("mode", LOSS_MODES)
def test_stale_samples_and_a_far_reference_spoil_no_weight(mode, estimator):
    """Either a step is taken and all is finite, or it is refused and nothing moves."""
    knobs = {"loss_mode": mode, "kl_penalty": 0.1, "kl_estimator": estimator}
    for far_old, far_ref in product((-1.0, -95.0), (-1.0, -50.0, -200.0)):
        bandit = Bandit()
        with torch.no_grad():
            bandit.logits[..., 0] = 60.0  # the others are 60 nats away
        before = bandit.logits.detach().clone()
        trainer = make_trainer(bandit, max_gradient_norm=1.0, **knobs)
        batch = trainer.collect(PROMPTS)
        far = torch.full_like(batch.old_log_probs, 1.0)
        deltas = torch.ones_like(batch.deltas)
        responses = torch.arange(10).view(1, 10, 1) % 2 + 0 * batch.rollout.responses
        rollout = replace(batch.rollout, responses=responses)
        given = {"old_log_probs": far_old * far, "ref_log_probs": far_ref * far}
        try:
            trainer.improve(replace(batch, rollout=rollout, deltas=deltas, **given))
        except ValueError as error:
            assert "epoch 0, step 0" in str(error) and "Try a smaller" in str(error)
            assert torch.equal(bandit.logits, before)
        assert bandit.logits.isfinite().all()


def test_an_epoch_samples_once_freezes_once_and_steps_many_times():
    bandit = Bandit()
    run(bandit, num_steps_per_epoch=3)
    assert bandit.names() == ["sample", "old_log_probs", *["log_probs"] * 3] * 2


def test_weights_change_at_every_step_and_old_ones_only_between_epochs():
    bandit = Bandit()
    run(bandit, num_steps_per_epoch=3, deltas_mode="centered_rewards")
    steps, old = bandit.weights("log_probs"), bandit.weights("old_log_probs")
    assert all(not torch.equal(a, b) for a, b in pairwise(steps))
    assert torch.equal(old[0], steps[0]) and torch.equal(old[1], steps[3])


def test_history_has_one_record_a_step():
    history = run(Bandit(), num_steps_per_epoch=3)
    assert history.curve("epoch").tolist() == [0, 0, 0, 1, 1, 1]
    assert history.curve("step").tolist() == [0, 1, 2, 0, 1, 2]
    assert history.curve("loss").shape == history.curve("mean_reward").shape == (6,)
    assert not history.curve("loss").requires_grad


def test_mean_reward_is_that_of_the_epochs_responses():
    seen = []

    def noting(rollout):
        seen.append(token_value(rollout).mean().item())
        return token_value(rollout)

    history = run(Bandit(), num_epochs=3, num_steps_per_epoch=2, reward_fn=noting)
    assert history.curve("mean_reward").tolist() == [x for x in seen for _ in range(2)]


def test_what_is_observed_joins_the_first_record_of_each_epoch():
    bandit = Bandit()

    def observe(policy):
        policy.note("observe")
        return {"weight": policy.logits[0, 0, 0].detach().clone()}

    history = run(bandit, num_steps_per_epoch=2, observe=observe)
    assert ["weight" in record for record in history.records] == [True, False] * 2
    assert bandit.names()[:2] == ["observe", "sample"]
    expected = [weights[0, 0, 0] for weights in bandit.weights("sample")]
    assert history.curve("weight").tolist() == expected


@pytest.mark.parametrize("loss_mode", ["naive", "unclipped", "clipped"])
@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam])
def test_the_loop_equals_one_written_out(loss_mode, make):
    bandit, plain = Bandit(), Bandit()
    options = {"num_responses": 6, "deltas_mode": "leave_one_out", "epsilon": 0.05}
    history = run(
        bandit, 3, make=make, num_steps_per_epoch=4, loss_mode=loss_mode, **options
    )
    optimizer, losses = make([plain.logits], lr=0.5), []
    for _ in range(3):
        rollout = plain.sample(PROMPTS, 6)
        deltas = compute_deltas(token_value(rollout), "leave_one_out")
        old = plain.log_probs(rollout).detach()
        for _ in range(4):
            optimizer.zero_grad()
            now = plain.log_probs(rollout)
            losses.append(compute_loss(now, deltas, loss_mode, old, epsilon=0.05))
            losses[-1].backward()
            optimizer.step()
    assert torch.equal(bandit.logits, plain.logits)
    assert history.curve("loss").tolist() == [loss.item() for loss in losses]


def test_a_policy_learns_the_best_arm():
    bandit = Bandit()
    run(bandit, 60, last_arm, num_steps_per_epoch=2, lr=2.0, num_responses=16)
    assert (bandit.logits.softmax(-1)[..., 3] > 0.9).all()


def test_tokens_under_a_false_mask_teach_nothing():
    mask = torch.ones(2, 8, 1, dtype=torch.bool)
    mask[1] = False  # the second prompt's responses do not count
    bandit = Bandit(mask=mask)
    before = bandit.logits.detach().clone()
    run(bandit, deltas_mode="centered_rewards")
    assert torch.equal(bandit.logits[1], before[1])
    assert not torch.equal(bandit.logits[0], before[0])


def test_epsilon_reaches_the_clip():
    wide, narrow = Bandit(), Bandit()
    for bandit, epsilon in ((wide, 0.9), (narrow, 0.01)):
        run(bandit, 1, num_steps_per_epoch=5, epsilon=epsilon)
    first_step = [bandit.weights("log_probs")[1] for bandit in (wide, narrow)]
    assert torch.equal(*first_step)  # the ratio is one until the weights move
    assert not torch.equal(wide.logits, narrow.logits)


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam])
def test_a_nan_loss_stops_with_epoch_and_step_and_spares_the_weights(make):
    # Calls of an epoch: sample, old, and three steps. The ninth is epoch 1, step 1.
    bandit = Bandit(nan_at_call=9)
    with pytest.raises(
        ValueError, match=r"loss is nan in epoch 1, step 1.*learning rate"
    ):
        run(bandit, 3, num_steps_per_epoch=3, make=make, deltas_mode="centered_rewards")
    assert len(bandit.calls) == 9
    assert torch.equal(bandit.logits, bandit.calls[-1][1])
    assert bandit.logits.isfinite().all()
    assert not torch.equal(bandit.logits, bandit.calls[0][1])  # it had trained before


def test_a_reward_that_is_not_finite_stops_before_any_step():
    bandit = Bandit()
    with pytest.raises(ValueError, match=r"in epoch 0, rewards\[0, 0\] is nan"):
        run(bandit, reward_fn=lambda rollout: token_value(rollout) * float("nan"))
    assert bandit.names() == ["sample"]


def test_rewards_of_another_shape_are_named():
    def one_reward_too_few(rollout):
        return token_value(rollout)[:, 1:]

    with pytest.raises(
        ValueError, match=r"in epoch 0, reward_fn returned.*\[2, 7\].*\[2, 8\]"
    ):
        run(Bandit(), reward_fn=one_reward_too_few)


def test_a_curve_takes_only_the_records_that_have_it():
    history = History([{"a": 1, "b": torch.tensor([1.0, 2.0])}, {"a": 2}])
    assert history.curve("a").tolist() == [1, 2]
    assert history.curve("b").tolist() == [[1, 2]]
    assert history.final("a") == 2 and history.final("b").tolist() == [1, 2]


class Elsewhere(torch.Tensor):
    """A tensor that leaves its device, as one of a GPU does, only if asked to."""

    def cpu(self):
        return self.as_subclass(torch.Tensor)


def test_a_curve_comes_to_the_cpu_to_be_drawn():
    history = History(
        [{"a": torch.ones(2).as_subclass(Elsewhere)}, {"a": torch.ones(2)}]
    )
    assert type(history.curve("a")) is torch.Tensor


def test_epochs_are_first_steps_and_the_last_look():
    steps = [{"epoch": e, "step": s, "a": 10 * e + s} for e in (0, 1) for s in (0, 1)]
    assert History(steps).epochs("a").tolist() == [0, 10]
    last = {"epoch": 2, "a": 20}
    assert History([*steps, last]).epochs("a").tolist() == [0, 10, 20]


def test_an_unknown_curve_lists_the_known_ones():
    history = History([{"a": 1}, {"b": 2}])
    for look_up in (history.curve, history.final):
        with pytest.raises(ValueError, match=r"name='reward' is not known.*'a', 'b'\."):
            look_up("reward")


# The loop with a reference: when it is copied, what the KL does, how beta moves


def test_without_a_penalty_there_is_no_reference():
    _, history = run_sort()
    assert not any("kl" in record for record in history.records)


@pytest.mark.parametrize("period", [1, 2, 6])
def test_the_reference_is_copied_every_period_epochs(period, monkeypatch):
    copies = []
    monkeypatch.setattr(loop.copy, "deepcopy", lambda p: copies.append(1) or _clone(p))
    _, history = run_sort(kl_penalty=0.1, compute_ref_model_period=period)
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
    knobs |= {"make": torch.optim.Adam, "lr": 1e-2}
    kls = [
        run_sort(kl_penalty=beta, **knobs)[1].final("kl").mean() for beta in (0.01, 1.0)
    ]
    assert kls[1] < 0.5 * kls[0]


def test_the_loss_is_policy_loss_plus_beta_times_kl():
    _, history = run_sort(kl_penalty=0.3, compute_ref_model_period=2)
    total = history.curve("policy_loss") + 0.3 * history.curve("kl")
    torch.testing.assert_close(history.curve("loss"), total)


def test_the_kl_keeps_its_token_ratios_where_the_loss_has_one_a_response():
    """With a ratio of the response the KL of a token would get a wrong gradient."""
    knobs = {"kl_penalty": 0.5, "kl_estimator": "corrected_k3"}
    found = []
    for level in ("token", "sequence"):
        policy = make_policy(SORT_PROMPTS, (0,), 0.3)
        trainer = make_trainer(
            policy, SORT_PROMPTS, SORTING, ratio_level=level, **knobs
        )
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
    trainer = make_trainer(policy, SORT_PROMPTS, SORTING, **knobs)
    trainer.ref_policy = away
    batch = trainer.collect(SORT_PROMPTS)
    gap = (batch.old_log_probs - batch.ref_log_probs).sum(-1)
    torch.testing.assert_close(batch.deltas, batch.rewards - 0.5 * gap)
    _, history = run_sort(kl_penalty=0.5, kl_place="reward")
    assert torch.equal(history.curve("loss"), history.curve("policy_loss"))


def test_a_target_moves_beta_for_each_seed():
    _, history = run_sort(
        kl_penalty=0.1, kl_target=1e-4, compute_ref_model_period=100, num_epochs=4
    )
    beta = history.epochs("beta")
    assert beta.shape == (4, 2) and beta.dtype == torch.float32
    torch.testing.assert_close(beta[0], torch.full((2,), 0.1))
    torch.testing.assert_close(beta[1], torch.full((2,), 0.102))  # far above target
    knobs = {"kl_penalty": 0.1, "kl_target": 1e-4, "kl_gain": 1.0, "num_epochs": 2}
    beta = run_sort(compute_ref_model_period=100, **knobs)[1].epochs("beta")
    torch.testing.assert_close(beta[1], torch.full((2,), 0.12))


@pytest.mark.parametrize("kind", [Trainer, PPO])
def test_a_reward_pays_with_the_beta_that_the_target_has_moved_to(kind):
    model = SortModel(5, 4, 3, 3, init_scale=0.5)
    policy = SortPolicy(model, torch.Generator().manual_seed(1))
    knobs = {"kl_penalty": 0.2, "kl_place": "reward", "kl_target": 1e-4, "kl_gain": 1.0}
    knobs |= {"num_epochs": 3, "deltas_mode": "centered_rewards"}
    more, config = {}, TrainConfig(**knobs)
    if kind is PPO:
        more["critic"] = Critic(5, 4, 3, 3)
        config = PPOConfig(**knobs, whiten_deltas=False, lam=1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    trainer = kind(policy, SORT_PROMPTS, SORTING, optimizer, config, **more)
    trainer.train()
    assert trainer.beta == pytest.approx(0.2 * 1.2**3)
    batch = trainer.collect(SORT_PROMPTS)
    k1 = (batch.old_log_probs - batch.ref_log_probs).sum(-1)
    assert k1.abs().max() > 0.01
    left = batch.rewards - trainer.beta * k1
    if kind is PPO:  # with lam = 1 a first token's delta is the return minus its value
        value = trainer.critic(batch.rollout)[..., 0]
        torch.testing.assert_close(batch.deltas[..., 0], left - value)
    else:
        torch.testing.assert_close(batch.deltas, left - left.mean(-1, keepdim=True))


def test_the_report_of_a_rollout():
    policy, history = run_sort(seeds=(0, 1, 2))
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
    _, together = run_sort(seeds=(3, 4), loss_mode="naive")
    for column, seed in enumerate((3, 4)):
        policy, alone = run_sort(seeds=(seed,), loss_mode="naive")
        torch.testing.assert_close(
            together.curve("gradient_norm")[:, column],
            alone.curve("gradient_norm")[:, 0],
            rtol=1e-4,
            atol=1e-6,
        )
    policy = make_policy(SORT_PROMPTS, (3,), 0.3)
    config = TrainConfig(num_epochs=1, num_steps_per_epoch=1, loss_mode="naive")
    optimizer = torch.optim.SGD(policy.model.parameters(), lr=0.5)
    history = train(policy, SORT_PROMPTS, SORTING, optimizer, config)
    grads = torch.cat([w.grad.flatten() for w in policy.model.parameters()])
    torch.testing.assert_close(history.final("gradient_norm")[0], grads.norm())


def test_watch_sees_the_history_after_each_epoch():
    seen = []
    run_policy_gradient(
        4, 2, seeds=(0,), watch=lambda history: seen.append(len(history.records))
    )
    assert seen == [2, 4, 6, 8]


def test_the_history_as_a_table():
    _, history = run_sort(num_epochs=2)
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


# The buffer, minibatches and gradient clipping in the loop


BATCH, TRIAL, POS = 3, 4, 5


def make_batch(seeds=(), ref=True, pos=POS, prompt_pos=2):
    """Every tensor holds a number of its own for each response, so none can swap."""
    number = torch.arange(BATCH * TRIAL).reshape(BATCH, TRIAL).expand(*seeds, -1, -1)
    tokens = number[..., None].expand(*number.shape, pos)
    prompts = torch.arange(BATCH)[:, None].expand(-1, prompt_pos)
    old = -tokens.float()
    mask = torch.arange(pos) < 1 + number[..., None] % pos
    values = number.float()
    ref_log_probs = old - 1 if ref else None
    rollout = Rollout(prompts, tokens, mask)
    return Batch(rollout, values, values - 5, old, ref_log_probs, old + 7)


def filled(*batches):
    buffer = ExperienceBuffer()
    for batch in batches or (make_batch(),):
        buffer.add(batch)
    return buffer


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_get_holds_every_response_with_all_that_belongs_to_it():
    got = filled().get()
    number = torch.arange(BATCH * TRIAL)
    assert got.rollout.responses.shape == (BATCH * TRIAL, 1, POS)
    assert got.rewards.shape == got.deltas.shape == (BATCH * TRIAL, 1)
    assert torch.equal(got.rollout.responses[:, 0, 0], number)
    assert torch.equal(got.rollout.prompts[:, 0], number // TRIAL)
    assert torch.equal(got.deltas[:, 0], number - 5.0)
    assert torch.equal(got.old_log_probs[:, 0, 0], -1.0 * number)
    assert torch.equal(got.ref_log_probs[:, 0, 0], -1.0 * number - 1)
    assert torch.equal(got.targets[:, 0, 0], 7 - 1.0 * number)
    assert torch.equal(got.rollout.mask[:, 0].sum(-1), 1 + number % POS)


def test_add_get_and_clear():
    buffer = filled(make_batch(), make_batch())
    assert len(buffer) == 2 * BATCH * TRIAL
    assert buffer.get().rewards.shape == (2 * BATCH * TRIAL, 1)
    buffer.clear()
    assert len(buffer) == 0


@pytest.mark.parametrize("size", [1, 5, 6, 12])
def test_minibatches_cover_each_response_once(size):
    parts = list(filled().minibatches(size, generator()))
    assert [len(p.rewards) for p in parts][:-1] == [size] * (len(parts) - 1)
    seen = torch.cat([p.rollout.responses[:, 0, 0] for p in parts])
    assert not torch.equal(seen, seen.sort().values)  # shuffled
    assert torch.equal(seen.sort().values, torch.arange(BATCH * TRIAL))
    for part in parts:
        number = part.rollout.responses[:, 0, 0]
        assert torch.equal(part.deltas[:, 0], number - 5.0)
        assert torch.equal(part.rollout.prompts[:, 0], number // TRIAL)


def test_each_pass_and_each_epoch_shuffles_anew():
    """And a run of another seed otherwise, one of the same seed alike."""

    def orders(seed):
        """What each pass sees, by the numbers of the responses: [epoch][pass]."""
        knobs = {"minibatch_size": 5, "minibatch_seed": seed, "num_steps_per_epoch": 3}
        trainer = make_trainer(Bandit(), **knobs)
        epochs = []
        for _ in range(2):
            parts = list(trainer.inner_batches(make_batch()))
            seen = torch.cat([part.rewards.flatten() for part in parts])
            epochs.append([tuple(each) for each in seen.reshape(3, -1).tolist()])
        return epochs

    first, again = orders(0)
    everything = tuple(range(BATCH * TRIAL))
    assert all(tuple(sorted(each)) == everything for each in first + again)
    assert len({*first, *again}) == 6
    assert orders(0) == [first, again] != orders(1)


def test_equal_generators_give_equal_minibatches():
    def orders(seed):
        parts = filled().minibatches(5, generator(seed))
        return [p.rewards.flatten().tolist() for p in parts]

    assert orders(3) == orders(3)
    assert orders(3) != orders(4)


def test_a_seed_axis_and_deltas_for_each_token_pass_through():
    batch = make_batch(seeds=(2,))
    batch = replace(batch, deltas=batch.old_log_probs * 2)
    (part, *_) = filled(batch).minibatches(5, generator())
    assert part.rollout.responses.shape == part.deltas.shape == (2, 5, 1, POS)
    assert part.rewards.shape == (2, 5, 1)
    assert part.rollout.prompts.shape == (5, 2)
    assert torch.equal(part.deltas, part.old_log_probs * 2)
    assert torch.equal(part.rewards[0], part.rewards[1])


def test_no_mask_and_no_reference_stay_none():
    batch = replace(make_batch(ref=False), targets=None)
    batch = replace(batch, rollout=replace(batch.rollout, mask=None))
    got = filled(batch).get()
    assert got.rollout.mask is got.ref_log_probs is got.targets is None


def test_errors_name_the_cure():
    empty = ExperienceBuffer()
    for ask in (empty.get, lambda: empty.minibatches(1)):
        with pytest.raises(ValueError, match=r"buffer is empty.*buffer\.add"):
            ask()
    with pytest.raises(ValueError, match=r"size=13, but the buffer holds 12"):
        filled().minibatches(13)
    with pytest.raises(ValueError, match=r"size=0, but the buffer holds"):
        filled().minibatches(0)


SHORT = ["rewards", "deltas", "old_log_probs", "ref_log_probs", "targets"]


@pytest.mark.parametrize("seeds", [(), (2,)])
@pytest.mark.parametrize("name", SHORT)
def test_a_column_that_lacks_a_response_is_named(name, seeds):
    batch = make_batch(seeds=seeds)
    short = getattr(batch, name).narrow(len(seeds) + 1, 0, TRIAL - 1)
    with pytest.raises(ValueError, match=rf"'{name}': \d+.*one for each response"):
        filled(replace(batch, **{name: short}))


def test_a_prompt_a_mask_or_a_column_that_is_missing_is_named():
    batch = make_batch()
    for name in ("prompts", "mask"):
        short = {name: getattr(batch.rollout, name)[:2]}
        with pytest.raises(ValueError, match=f"'{name}': 8"):
            filled(replace(batch, rollout=replace(batch.rollout, **short)))
    for pair in ((True, False), (False, True)):
        with pytest.raises(ValueError, match="with the same settings"):
            filled(*(make_batch(ref=ref) for ref in pair))


# Steps on minibatches, on responses of three tokens


def run_three(**knobs):
    policy = Bandit(pos=3)
    sizes = {"num_epochs": 3, "num_steps_per_epoch": 2, "num_responses": 6}
    trainer = make_trainer(policy, PROMPTS, share_of_ones, **sizes | knobs)
    return policy, trainer.train()


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_one_minibatch_of_everything_equals_none(beta):
    plain, _ = run_three(kl_penalty=beta)
    whole, _ = run_three(kl_penalty=beta, minibatch_size=12)
    torch.testing.assert_close(plain.logits, whole.logits, atol=1e-6, rtol=0)


def test_minibatches_take_a_step_each_and_are_counted():
    policy, history = run_three(minibatch_size=5, num_epochs=2)
    assert history.curve("step").tolist() == [*range(6)] * 2
    assert policy.scored == [12, 5, 5, 2, 5, 5, 2] * 2
    other, _ = run_three(minibatch_size=5, num_epochs=2)
    assert torch.equal(policy.logits, other.logits)
    shuffled, _ = run_three(minibatch_size=5, num_epochs=2, minibatch_seed=1)
    assert not torch.equal(policy.logits, shuffled.logits)


def test_minibatch_gradients_average_to_the_whole_one():
    knobs = {"num_epochs": 1, "num_steps_per_epoch": 1, "lr": 1e-4}
    start = Bandit(pos=3).logits.detach()
    whole, parts = (
        run_three(**knobs)[0],
        run_three(minibatch_size=4, **knobs)[0],
    )
    # Three small steps go three times as far as one on their mean.
    moved = (parts.logits - start, 3 * (whole.logits - start))
    torch.testing.assert_close(*moved, atol=1e-6, rtol=0)


def test_prompts_can_change_with_the_epoch():
    asked = []

    def prompts(epoch):
        asked.append(epoch)
        return torch.arange(2)[:, None]

    policy = Bandit(pos=3)
    sizes = {"num_epochs": 3, "num_steps_per_epoch": 2, "num_responses": 6}
    make_trainer(policy, prompts, share_of_ones, **sizes).train()
    assert asked == [0, 1, 2]
    assert torch.equal(policy.logits, run_three()[0].logits)


def test_clipping_shortens_a_long_step_and_leaves_a_short_one():
    knobs = {"num_epochs": 1, "num_steps_per_epoch": 1, "lr": 1.0}
    start = Bandit(pos=3).logits.detach()
    policy, history = run_three(**knobs)
    step, norm = policy.logits - start, history.final("gradient_norm")
    for limit in (norm.item() / 2, norm.item() * 2):
        clipped, seen = run_three(max_gradient_norm=limit, **knobs)
        expected = start + step * min(1, limit / norm.item())
        torch.testing.assert_close(clipped.logits, expected)
        assert torch.equal(seen.final("gradient_norm"), norm)  # before clipping


def test_clipping_looks_at_each_seed_alone():
    weight = torch.zeros(2, 3, requires_grad=True)
    bias = torch.zeros(2, 1, 1, requires_grad=True)
    optimizer = torch.optim.SGD([weight, bias])
    weight.grad = torch.tensor([[3.0, 0.0, 0.0], [0.3, 0.0, 0.0]])
    bias.grad = torch.tensor([[[4.0]], [[0.4]]])
    norm = take_step(optimizer, seed_axes=1, max_norm=1.0)
    torch.testing.assert_close(norm, torch.tensor([5.0, 0.5]))
    after = take_step(optimizer, seed_axes=1)
    torch.testing.assert_close(after, torch.tensor([1.0, 0.5]))


def test_a_tied_batch_survives_clipping():
    policy, _ = run_three(max_gradient_norm=1.0, deltas_mode="rewards", lr=0.0)
    weight = torch.zeros(2, requires_grad=True)
    weight.grad = torch.zeros(2)
    optimizer = torch.optim.SGD([weight])
    take_step(optimizer, max_norm=1.0)
    assert weight.grad.isfinite().all() and policy.logits.isfinite().all()


def test_a_minibatch_larger_than_the_rollout_is_named():
    with pytest.raises(ValueError, match="size=13, but the buffer holds 12"):
        run_three(minibatch_size=13)


# One gradient from several passes, pi_old from three places, runs that stop


TEXT_PROMPTS = torch.tensor([[1, 2], [3, 4], [2, 2], [4, 1], [3, 3]])
EOS = 0


def count_ones(rollout):
    return (rollout.responses == 1).float().sum(-1)


def sometimes_tied(rollout):
    """Tied in the first three groups. -> [... batch trial]"""
    rewards = count_ones(rollout) + torch.arange(4) / 10
    rewards[..., :3, :] = 0.3
    return rewards


class Counting(SequencePolicy):
    """Notes how many rows each forward pass has, with a gradient and without."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.rows, self.frozen_rows = [], []

    def log_probs(self, rollout):
        rows = self.rows if torch.is_grad_enabled() else self.frozen_rows
        rows.append(rollout.responses.shape[-3])
        return super().log_probs(rollout)


def make_sequences(seeds=None):
    model = TinyLM(5, hidden_size=8, seeds=seeds)
    generators = [torch.Generator().manual_seed(s) for s in seeds or (0,)]
    sampler = Sampler(6, eos=EOS, pad=EOS)
    return Counting(model, sampler, generators if seeds else generators[0])


def gradient_and_record(reward_fn=count_ones, seeds=None, beta=0.0, **knobs):
    """The gradient of one step on a rollout that is the same in every call."""
    policy = make_sequences(seeds)
    settings = {"num_responses": 4, "deltas_mode": "centered_rewards"}
    torch.manual_seed(0)
    other = make_sequences(seeds)
    with torch.no_grad():
        for weight in other.model.parameters():
            weight += 0.3 * torch.randn(weight.shape[-2:])
    settings |= {"kl_penalty": beta} | knobs
    trainer = make_trainer(policy, TEXT_PROMPTS, reward_fn, lr=0.0, **settings)
    trainer.ref_policy = other if beta else None
    batch = trainer.collect(TEXT_PROMPTS)
    with torch.no_grad():  # off policy, so that the ratios are not all 1
        for weight in policy.model.parameters():
            weight += 0.1 * torch.randn(weight.shape[-2:])
    record = trainer.improve(batch)
    gradient = [weight.grad.clone() for weight in policy.model.parameters()]
    return gradient, record, policy, batch


@pytest.mark.slow
@pytest.mark.parametrize("aggregation", ["sequence_mean", "token_mean", "constant"])
@pytest.mark.parametrize("beta", [0.0, 0.3])
@pytest.mark.parametrize("seeds", [None, (0, 1)])
def test_parts_of_any_size_have_the_gradient_of_the_whole(aggregation, beta, seeds):
    knobs = {"aggregation": aggregation, "beta": beta, "seeds": seeds}
    whole, record, _, batch = gradient_and_record(**knobs)
    lengths = batch.rollout.mask.sum((-2, -1))
    assert lengths.unique().numel() > 1  # else the three means were the same
    for size in (1, 2, 3, 5, 9):
        parts, joined, policy, _ = gradient_and_record(micro_batch_size=size, **knobs)
        torch.testing.assert_close(parts, whole, atol=1e-7, rtol=1e-5)
        assert joined.keys() == record.keys()
        for name in record:
            torch.testing.assert_close(joined[name], record[name], rtol=1e-5, atol=1e-6)
        assert max(policy.rows) == min(size, 5) and sum(policy.rows) == 5


@pytest.mark.parametrize("level", RATIO_LEVELS)
@pytest.mark.parametrize("mode", LOSS_MODES)
def test_the_loop_has_the_loss_that_a_learner_calls(mode, level):
    """Of padded responses, after a step: loss, gradient, KL and what is reported."""
    policy = make_sequences()
    weights = list(policy.model.parameters())
    clip = {"ratio_level": level, "epsilon": 0.05, "epsilon_high": 0.1}
    clip |= {"dual_clip": 1.2}
    knobs = {"loss_mode": mode, "num_responses": 6, **clip}
    knobs |= {"kl_penalty": 0.3, "kl_estimator": "corrected_k3"}
    trainer = make_trainer(policy, TEXT_PROMPTS, count_ones, lr=1.0, **knobs)
    trainer.renew_reference()
    batch = trainer.collect(TEXT_PROMPTS)
    trainer.improve(batch)
    loss, record = trainer.loss(batch)

    mask, old, ref = batch.rollout.mask, batch.old_log_probs, batch.ref_log_probs
    assert not mask.all()
    new = policy.log_probs(batch.rollout)
    clip |= {"mask": mask}
    policy_loss = compute_loss(new, batch.deltas, mode, old, **clip)
    kl = compute_kl_penalty(new, ref, "corrected_k3", mask, old_log_probs=old)
    expected = policy_loss + 0.3 * kl
    torch.testing.assert_close(record["policy_loss"], policy_loss.detach())
    torch.testing.assert_close(record["kl"], kl.detach())
    gradients = [torch.autograd.grad(each, weights) for each in (loss, expected)]
    for given, truth in zip(*gradients, strict=True):
        torch.testing.assert_close(given, truth)
    report = loss_report(new, batch.deltas, old, mode=mode, **clip)
    assert report["ratio_max"] > 1.01
    for name, value in report.items():
        torch.testing.assert_close(record[name], value)


def test_the_mean_of_the_parts_means_would_be_wrong():
    *_, batch = gradient_and_record(aggregation="token_mean")
    config = TrainConfig(aggregation="token_mean", micro_batch_size=2)
    weights = [part.weight for part in split(batch, config)]
    assert sum(weights).item() == pytest.approx(1)
    assert max(weights) - min(weights) > 0.05


@pytest.mark.parametrize("aggregation", ["sequence_mean", "token_mean", "constant"])
@pytest.mark.parametrize("size", [None, 1])
def test_tied_groups_are_skipped_and_change_nothing(aggregation, size):
    knobs = {"aggregation": aggregation, "reward_fn": sometimes_tied}
    whole, record, _, _ = gradient_and_record(**knobs)
    skipped, seen, policy, _ = gradient_and_record(
        skip_tied_groups=True, micro_batch_size=size, **knobs
    )
    torch.testing.assert_close(skipped, whole, atol=1e-7, rtol=1e-5)
    torch.testing.assert_close(seen["loss"], record["loss"], atol=1e-7, rtol=1e-5)
    assert sum(policy.rows) == 2


def test_where_a_kl_pulls_no_group_is_skipped():
    knobs = {"reward_fn": sometimes_tied, "beta": 0.3}
    whole, *_ = gradient_and_record(**knobs)
    skipped, _, policy, _ = gradient_and_record(skip_tied_groups=True, **knobs)
    torch.testing.assert_close(skipped, whole, atol=1e-7, rtol=1e-5)
    assert sum(policy.rows) == 5


def test_a_batch_without_any_delta_still_has_a_gradient_of_zero():
    gradient, *_ = gradient_and_record(
        lambda r: torch.ones(r.responses.shape[:-1]), skip_tied_groups=True
    )
    assert all((part == 0).all() for part in gradient)


def test_a_critic_cannot_be_split():
    *_, batch = gradient_and_record()
    judged = replace(batch, targets=batch.deltas)
    with pytest.raises(ValueError, match="split the policy's loss only"):
        split(judged, TrainConfig(micro_batch_size=2))


def text_trainer(num_epochs, policy, **knobs):
    sizes = {"num_epochs": num_epochs, "num_responses": 4, "num_steps_per_epoch": 1}
    return make_trainer(policy, TEXT_PROMPTS, count_ones, lr=0.3, **sizes | knobs)


@pytest.mark.parametrize("source", ["sampler", "first_step"])
def test_pi_old_costs_a_forward_pass_only_if_nobody_else_knows_it(source):
    plain, cheap = make_sequences(), make_sequences()
    expected = text_trainer(3, plain).train()
    history = text_trainer(3, cheap, old_log_probs_from=source).train()
    assert plain.frozen_rows == [5, 5, 5] and not cheap.frozen_rows
    for name in ("loss", "sampled_entropy", "ratio_max"):
        torch.testing.assert_close(history.curve(name), expected.curve(name))
    torch.testing.assert_close(cheap.model.state_dict(), plain.model.state_dict())


def test_the_sampler_must_have_noted_it():
    with pytest.raises(ValueError, match="no sampled_log_probs"):
        run_marathon(ends=True, noted=False, old_log_probs_from="sampler")


@pytest.mark.parametrize(
    "knobs",
    [
        {"num_steps_per_epoch": 2},
        {"num_steps_per_epoch": 1, "minibatch_size": 4},
        {"num_steps_per_epoch": 1, "kl_place": "reward"},
    ],
)
def test_the_first_step_knows_pi_old_only_if_it_is_the_only_one(knobs):
    with pytest.raises(ValueError, match="old_log_probs_from='first_step' needs"):
        TrainConfig(old_log_probs_from="first_step", **knobs)


STATE = ("epoch", "beta", "ref_policy", "shuffle", "history")
KL = {"kl_penalty": 0.1, "kl_target": 0.01, "compute_ref_model_period": 4}


@pytest.mark.slow
@pytest.mark.parametrize("stop", [1, 3, 5])
@pytest.mark.parametrize("knobs", [{}, KL, {"minibatch_size": 9}])
def test_a_run_that_stopped_goes_on_as_if_it_had_not(stop, knobs):
    knobs = {"num_steps_per_epoch": 2} | knobs
    whole, policy = make_sequences(), make_sequences()
    expected = text_trainer(6, whole, **knobs).train()
    stopped = text_trainer(stop, policy, **knobs)
    stopped.train()
    assert stopped.epoch == stop
    goes_on = text_trainer(6, policy, **knobs)
    for name in STATE:
        setattr(goes_on, name, copy.deepcopy(getattr(stopped, name)))
    history = goes_on.train()
    assert len(history.records) == len(expected.records)
    for mine, theirs in zip(history.records, expected.records, strict=True):
        assert mine.keys() == theirs.keys()
        for name in theirs:
            both = torch.as_tensor(mine[name]), torch.as_tensor(theirs[name])
            assert torch.equal(*both)
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, policy.model.state_dict()[name])


# PPO's early stop: where an epoch ends, what is recorded, what a run resumes with


def many_steps(num_epochs, bandit, **knobs):
    sizes = {"num_steps_per_epoch": 6, "num_responses": 8, "num_epochs": num_epochs}
    return make_trainer(bandit, **sizes | knobs)


def run_many_steps(num_epochs=4, bandit=None, **knobs):
    bandit = bandit or Bandit()
    return bandit, many_steps(num_epochs, bandit, **knobs).train()


def kl_by_epoch(history):
    groups = groupby(history.records, lambda record: record["epoch"])
    return [History(list(group)).curve("old_kl").flatten() for _, group in groups]


def test_an_epoch_ends_with_the_first_step_above_the_limit():
    _, whole = run_many_steps()
    first = kl_by_epoch(whole)[0]
    assert first[0].abs() < 1e-6 and (first.diff() > 0).all()
    limit = first[2:4].mean().item()  # seen between step 2 and step 3
    epochs = kl_by_epoch(run_many_steps(stop_kl=limit)[1])
    torch.testing.assert_close(epochs[0], first[:4])
    assert len(epochs) == 4  # the next epochs begin all the same
    for kl in epochs:
        assert (kl[:-1] <= limit).all()
        assert kl[-1] > limit or len(kl) == 6


def test_the_last_step_is_taken():
    """The epoch with a limit is one with as many steps as it took."""
    stopped, history = run_many_steps(1, stop_kl=0.02)
    steps = len(history.records)
    assert 1 < steps < 6
    assert torch.equal(
        stopped.logits, run_many_steps(1, num_steps_per_epoch=steps)[0].logits
    )


def test_a_limit_that_is_never_passed_changes_nothing():
    plain, watched = run_many_steps()[0], run_many_steps(stop_kl=1e9)[0]
    assert torch.equal(plain.logits, watched.logits)


def test_minibatches_stop_in_the_middle_of_a_pass():
    knobs = {"num_steps_per_epoch": 2, "minibatch_size": 4}  # 8 steps an epoch
    _, whole = run_many_steps(**knobs)
    limit = kl_by_epoch(whole)[0][:3].max().item() * 0.9
    epochs = kl_by_epoch(run_many_steps(stop_kl=limit, **knobs)[1])
    assert len(epochs) == 4 and len(epochs[0]) < 4
    assert all((kl[:-1] <= limit).all() for kl in epochs)


def test_parts_see_the_kl_of_the_whole():
    plain, parts = (
        kl_by_epoch(run_many_steps(micro_batch_size=s)[1]) for s in (None, 1)
    )
    torch.testing.assert_close(parts, plain, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("knobs", [{}, {"minibatch_size": 5}])
def test_a_run_with_a_limit_that_stopped_goes_on_as_if_it_had_not(knobs):
    knobs = {"stop_kl": 0.02} | knobs
    whole, expected = run_many_steps(5, **knobs)
    bandit = Bandit()
    stopped = many_steps(2, bandit, **knobs)
    stopped.train()
    goes_on = many_steps(5, bandit, **knobs)
    for name in ("epoch", "shuffle", "history"):
        setattr(goes_on, name, copy.deepcopy(getattr(stopped, name)))
    history = goes_on.train()
    assert torch.equal(bandit.logits, whole.logits)
    assert torch.equal(history.curve("step"), expected.curve("step"))
    assert len(history.records) < 5 * 6 * (4 if "minibatch_size" in knobs else 1)


def test_one_seed_with_an_axis_of_its_own_may_stop_and_two_may_not():
    assert len(run_many_steps(1, Bandit(1), stop_kl=0.02)[1].records) < 6
    with pytest.raises(ValueError, match=r"stop_kl=0.02, but 2 seeds.*one by one"):
        run_many_steps(1, Bandit(2), stop_kl=0.02)


# Length penalty, truncation, dynamic sampling, mixed reference, sampler mismatch


THREE = torch.tensor([[0], [1], [2]])


def responses(*rows):
    return torch.tensor(rows)


@pytest.mark.parametrize(
    ("length", "penalty"), [(0, 0), (6, 0), (7, -0.25), (8, -0.5), (10, -1), (12, -1)]
)
def test_soft_overlong_penalty(length, penalty):
    given = soft_overlong_penalty(torch.tensor(length), max_length=10, buffer=4)
    assert given.item() == penalty


def test_the_penalty_joins_a_reward():
    mask = torch.tensor([[[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]]]).bool()
    rollout = Rollout(THREE[:1], torch.zeros(1, 3, 4, dtype=torch.long), mask)
    reward = with_overlong_penalty(lambda _: torch.ones(1, 3), 4, buffer=2)
    assert reward(rollout).tolist() == [[0, 0.5, 1]]


@pytest.mark.parametrize(("buffer", "says"), [(0, "at least 1"), (11, "from 1 to")])
def test_a_buffer_must_fit_the_limit(buffer, says):
    with pytest.raises(ValueError, match=f"buffer={buffer}.*{says}"):
        soft_overlong_penalty(torch.tensor(3), 10, buffer)


def test_truncated_responses_lose_their_tokens_and_nothing_else():
    mask = torch.tensor([[[1, 1, 1], [1, 0, 0]]]).bool()
    finished = torch.tensor([[False, True]])
    rollout = Rollout(
        THREE[:1],
        torch.zeros(1, 2, 3).long(),
        mask,
        None,
        finished,
    )
    dropped = drop_truncated(rollout)
    assert dropped.mask.tolist() == [[[False] * 3, [True, False, False]]]
    assert torch.equal(dropped.responses, rollout.responses)
    with pytest.raises(ValueError, match=r"needs rollout\.finished"):
        drop_truncated(Rollout(THREE, rollout.responses))


class Marathon(SequencePolicy):
    """A policy that never ends, or that ends by chance."""

    def __init__(self, ends, noted=True):
        model = TinyLM(5, hidden_size=8, seeds=(0, 1))
        generators = [torch.Generator().manual_seed(seed) for seed in (0, 1)]
        super().__init__(model, Sampler(4, eos=4, pad=0), generators)
        self.ends, self.noted = ends, noted

    def sample(self, prompts, num_responses):
        rollout = super().sample(prompts, num_responses)
        if not self.ends:
            rollout = replace(
                rollout,
                responses=rollout.responses % 4,
                mask=torch.ones_like(rollout.mask),
                finished=torch.zeros_like(rollout.finished),
            )
            noted = self.log_probs(rollout).detach()
            rollout = replace(rollout, sampled_log_probs=noted)
        return rollout if self.noted else replace(rollout, sampled_log_probs=None)


# What is a mean over tokens, and so not known where there is none.
OF_TOKENS = ("ratio_min", "ratio_max", "ratio_mean", "old_kl", "kl")
OF_TOKENS += ("clip_fraction_low", "clip_fraction_high", "gradient_fraction")
MASKED = {"mask_truncated": True, "kl_penalty": 0.1, "num_epochs": 2}


def run_marathon(ends, noted=True, **knobs):
    policy = Marathon(ends, noted)
    sizes = {"num_responses": 6, "num_steps_per_epoch": 2}
    prompts = torch.ones(2, 3).long()
    return make_trainer(policy, prompts, token_sum, **sizes | knobs).train()


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"micro_batch_size": 1},
        {"minibatch_size": 5},
        {"kl_target": 0.01, "aggregation": "token_mean"},
        {"num_steps_per_epoch": 1, "old_log_probs_from": "first_step"},
        {"old_log_probs_from": "sampler"},
    ],
)
def test_a_run_in_which_all_is_cut_off_says_so(knobs):
    history = run_marathon(ends=False, **MASKED | knobs)
    for record in history.records:
        line = json.loads(json_lines([as_json(record)]), parse_constant=pytest.fail)
        assert line["truncated"] == [1, 1] and line["mean_length"] == [4, 4]
        assert min(line["sampled_entropy"]) > 1 and line["loss"] == [0, 0]
        assert all(line[name] == [None, None] for name in OF_TOKENS)
        back = from_json(line)
        assert back.keys() == record.keys()
        torch.testing.assert_close(back, record, equal_nan=True, check_dtype=False)
        assert line["beta"] == pytest.approx([0.1, 0.1])  # no KL moves it
    unnoted = run_marathon(ends=False, noted=False, **MASKED)
    assert unnoted.curve("sampled_entropy").isnan().all()


def test_lengths_and_entropy_are_of_all_that_was_sampled():
    whole, masked = (
        run_marathon(ends=True, mask_truncated=on, num_epochs=1).records[0]
        for on in (False, True)
    )
    assert ((masked["truncated"] > 0) & (masked["truncated"] < 1)).all()
    for name in ("truncated", "mean_length", "sampled_entropy", "mean_reward"):
        torch.testing.assert_close(masked[name], whole[name])
    assert (masked["gradient_fraction"] > 0).all()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_parts_without_a_token_leave_the_others_their_means(size):
    """The first of three prompts has no response that ended."""
    log_probs = -torch.rand(1, 3, 4, 2, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(1, 3, 4, 2, dtype=torch.bool)
    mask[:, 0] = False
    prompts, leaf = torch.arange(3)[:, None], log_probs.clone().requires_grad_()
    rollout = Rollout(prompts, torch.zeros_like(mask).long(), mask)
    picked = {"sample": print, "log_probs": lambda r: leaf[:, r.prompts[:, 0]]}
    policy = SimpleNamespace(**picked)
    deltas = torch.tensor([1.0, -1.0, 1.0, -1.0]).expand(1, 3, 4)
    batch = Batch(rollout, deltas, deltas, log_probs - 0.1, log_probs - 0.2)
    seen = []
    for micro in (None, size):
        config = TrainConfig(micro_batch_size=micro, kl_penalty=0.1)
        optimizer = torch.optim.SGD([leaf], lr=0.0)
        seen.append(Trainer(policy, prompts, print, optimizer, config).improve(batch))
    torch.testing.assert_close(*seen)
    assert all(value.isfinite().all() for value in seen[1].values())


def test_records_are_json_whatever_somebody_observes():
    odd = {"epoch": 1, "step": 0, "seen": torch.tensor([[math.nan, 1], [math.inf, 2]])}
    line = as_json(odd | {"one": -math.inf})
    told = {"epoch": 1, "step": 0, "seen": [[None, 1], [None, 2]], "one": None}
    assert line == told and json.loads(json_lines([line])) == told
    assert from_json(told)["seen"].isnan().sum() == 2
    with pytest.raises(ValueError, match="JSON"):
        json_lines([{"seen": math.nan}])


# Dynamic sampling


def sample_groups(policy, prompts, num_resamples):
    knobs = {"num_responses": 2, "num_resamples": num_resamples}
    return make_trainer(policy, prompts, token_sum, **knobs).sample(prompts)


FIRST = responses([[1], [1]], [[1], [2]], [[3], [3]])
SECOND = responses([[1, 1], [1, 0]], [[4, 0], [4, 0]])
THIRD = responses([[5], [6]])


def test_tied_groups_are_asked_again_and_padded():
    policy = Script(FIRST, SECOND, THIRD)
    rollout, rewards = sample_groups(policy, THREE, 5)
    assert policy.asked == [[0, 1, 2], [0, 2], [2]]
    assert rewards.tolist() == [[2, 1], [1, 2], [5, 6]]
    expected = [[[1, 1], [1, 0]], [[1, 0], [2, 0]], [[5, 0], [6, 0]]]
    assert rollout.responses.tolist() == expected
    assert torch.equal(rollout.mask, rollout.responses > 0)
    assert torch.equal(rollout.sampled_log_probs, -rollout.responses.float())
    assert rollout.finished.tolist() == [[False, True], [True, False], [True, False]]
    assert torch.equal(rollout.prompts, THREE)


def test_no_more_than_the_allowed_tries():
    policy = Script(FIRST, SECOND, THIRD)
    _, rewards = sample_groups(policy, THREE, 1)
    assert rewards.tolist() == [[2, 1], [1, 2], [4, 4]] and len(policy.calls) == 1
    policy = Script(FIRST, SECOND)
    _, rewards = sample_groups(policy, THREE, 0)
    assert rewards.tolist() == [[1, 1], [1, 2], [3, 3]] and len(policy.calls) == 1


def test_each_seed_keeps_the_groups_that_were_not_tied_in_it():
    first = responses([[[1], [1]], [[1], [2]]], [[[1], [2]], [[1], [2]]])
    again = responses([[[7], [8]]], [[[7], [8]]])
    policy = Script(first, again)
    rollout, rewards = sample_groups(policy, THREE[:2], 1)
    assert policy.asked == [[0, 1], [0]]
    assert rewards.tolist() == [[[7, 8], [1, 2]], [[1, 2], [1, 2]]]
    assert torch.equal(rollout.responses[..., 0], rewards.long())


# Reference


def renewed(policy, ref, mixture):
    knobs = {"kl_penalty": 0.1, "ref_mixture": mixture}
    trainer = make_trainer(policy, THREE, token_sum, **knobs)
    trainer.ref_policy = ref
    trainer.renew_reference()
    return trainer.ref_policy


def test_a_mixed_reference_moves_its_share_of_the_way():
    policy, other = make_policy(SORT_PROMPTS, (0,)), make_policy(SORT_PROMPTS, (1,))
    before = [w.clone() for w in other.model.parameters()]
    mixed = renewed(policy, other, 0.25)
    assert mixed is other
    parts = zip(
        before, policy.model.parameters(), mixed.model.parameters(), strict=True
    )
    for old, new, got in parts:
        torch.testing.assert_close(got, 0.75 * old + 0.25 * new)
    copied = renewed(policy, other, 1.0)
    assert copied is not policy and copied.model is not policy.model
    for a, b in zip(policy.model.parameters(), copied.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_policy_without_a_module_cannot_be_mixed():
    bare = SimpleNamespace(model=None, sample=print, log_probs=print)
    with pytest.raises(TypeError, match="holds no torch module"):
        renewed(bare, bare, 0.5)


def run_adam(**knobs):
    sizes = {"num_epochs": 4, "num_steps_per_epoch": 2}
    return run_sort(make=torch.optim.Adam, lr=0.01, **sizes | knobs)[1]


def test_the_loop_mixes_its_reference():
    knobs = {"kl_penalty": 0.1, "compute_ref_model_period": 1}
    plain = run_adam(**knobs).epochs("kl")
    mixed = run_adam(**knobs, ref_mixture=0.3).epochs("kl")
    assert plain.abs().max() < 1e-6
    assert mixed[0].abs().max() < 1e-6 and (mixed[1:] > 1e-6).all()


def test_the_loop_asks_tied_groups_again():
    few = {"num_responses": 2, "num_epochs": 1}
    tied = run_adam(**few).epochs("tied_groups")
    fewer = run_adam(**few, num_resamples=8).epochs("tied_groups")
    assert (tied > 0).all() and (fewer < tied).all()


# Sampler mismatch

OLD = torch.tensor([[[0.5, 0.2, 0.9]]]).log()
SAMPLED = torch.tensor([[[0.25, 0.4, 0.1]]]).log()


def test_sampler_weights_are_truncated_quotients():
    weights = sampler_weights(OLD, SAMPLED, 3.0)
    torch.testing.assert_close(weights, torch.tensor([[[2.0, 0.5, 3.0]]]))
    mask = torch.tensor([[[True, True, False]]])
    junk = torch.where(mask, SAMPLED, math.nan)
    torch.testing.assert_close(
        sampler_weights(OLD, junk, 3.0, mask), torch.tensor([[[2.0, 0.5, 1.0]]])
    )


def test_the_weights_make_an_estimate_of_another_sampler_right():
    """Exactly: the mean under the sampler of weight times f is the mean under pi."""
    pi = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    sampler = torch.tensor([0.2, 0.2, 0.6], dtype=torch.float64)
    f = torch.tensor([1.0, -2.0, 5.0], dtype=torch.float64)
    weights = sampler_weights(pi.log(), sampler.log(), cap=10.0)
    assert (sampler * weights * f).sum().item() == pytest.approx((pi * f).sum().item())
    assert (sampler * f).sum().item() != pytest.approx((pi * f).sum().item())


def test_the_weights_multiply_deltas_of_responses_and_of_tokens():
    rollout = Rollout(THREE[:1], torch.zeros(1, 1, 3).long(), None, SAMPLED)
    expected = torch.tensor([[[-4.0, -1.0, -6.0]]])
    for deltas in (torch.tensor([[-2.0]]), torch.full((1, 1, 3), -2.0)):
        torch.testing.assert_close(correct_deltas(deltas, rollout, OLD, 3.0), expected)
    with pytest.raises(ValueError, match="no sampled_log_probs"):
        correct_deltas(expected, Rollout(THREE, rollout.responses), OLD, 3.0)
    with pytest.raises(ValueError, match="cap=0"):
        sampler_weights(OLD, SAMPLED, 0.0)


def test_collect_corrects_for_the_sampler():
    def collected(cap):
        knobs = {"deltas_mode": "centered_rewards", "sampler_cap": cap}
        policy = Script(FIRST, apart=math.log(1.5))
        return make_trainer(policy, THREE, token_sum, **knobs).collect(THREE)

    plain, corrected, capped = map(collected, (None, 4.0, 1.2))
    assert plain.deltas.shape == (3, 2)
    torch.testing.assert_close(corrected.deltas, plain.deltas[..., None] * 1.5)
    torch.testing.assert_close(capped.deltas, plain.deltas[..., None] * 1.2)


def test_a_sampler_says_which_responses_finished():
    sampler = Sampler(max_new_tokens=3, eos=1, pad=1)
    tokens = torch.tensor([[[2, 1, 1], [2, 2, 2], [2, 2, 1]]])
    assert sampler.finished(tokens).tolist() == [[True, False, True]]
    assert Sampler(max_new_tokens=3).finished(tokens) is None


def test_collect_drops_what_was_cut_off():
    """On the tiny language model, whose responses end by chance."""
    model = TinyLM(5, hidden_size=8, seeds=(0, 1))
    generators = [torch.Generator().manual_seed(seed) for seed in (0, 1)]
    policy = SequencePolicy(model, Sampler(4, eos=4, pad=0), generators)
    knobs = {"num_responses": 6, "mask_truncated": True}
    trainer = make_trainer(policy, THREE, token_sum, **knobs)
    batch = trainer.collect(torch.ones(2, 3, dtype=torch.long))
    finished = batch.rollout.finished
    assert finished.any() and not finished.all()
    assert torch.equal(batch.rollout.mask.any(-1), finished)
    assert (batch.deltas[~finished] != 0).any()  # they still count in their group


# A config refuses what a run could not use, and names the knob


REFUSED = [
    # a name that is not known
    ({"deltas_mode": "centred"}, "is not known.*'centered_rewards'"),
    ({"loss_mode": "clip"}, "is not known.*'clipped'"),
    ({"aggregation": "mean"}, "is not known.*'token_mean'"),
    ({"ratio_level": "group"}, "is not known.*'sequence'"),
    ({"kl_estimator": "k4"}, "is not known.*'corrected_k3'"),
    ({"kl_place": "advantage"}, "'loss' or 'reward'"),
    # a wrong type, a number out of range
    ({"num_responses": True}, "a valid integer"),
    ({"loss_mode": ["clipped"]}, "is not known.*'clipped'"),
    ({"kl_penalty": "0.1"}, "a valid number"),
    ({"num_epochs": -1}, "greater than or equal to 0"),
    ({"epsilon": math.nan}, "a finite number"),
    ({"minibatch_size": 0}, "greater than or equal to 1"),
    # knobs that need each other
    ({"dual_clip": 1.2, "loss_mode": "dual_clipped"}, "above 1"),
    ({"num_responses": 1}, "deltas_mode='normalized_rewards'.*at least two"),
    ({"sampler_cap": 2.0, "old_log_probs_from": "sampler"}, "the same.*'policy'"),
    ({"stop_kl": 0.1, "num_steps_per_epoch": 1}, "one step.*more steps"),
    ({"kl_target": 0.1}, "with kl_penalty=0.0: both must be above 0"),
    ({"old_log_probs_from": "first_step"}, "needs num_steps_per_epoch=1"),
]


@pytest.mark.parametrize(("knobs", "says"), REFUSED)
def test_what_cannot_be_is_refused_by_name(knobs, says):
    name = next(iter(knobs))
    with pytest.raises(ValueError, match=rf"(?s){name}.*{says}"):
        TrainConfig(**knobs)


@pytest.mark.parametrize(
    "knobs",
    [
        {"loss_mode": "cispo", "epsilon_high": 4.0},
        {"dual_clip": 3.0, "epsilon_high": 4.0},  # not read
        {"loss_mode": "dual_clipped", "dual_clip": 1.3, "epsilon_high": 0.28},
        {"num_responses": 1, "deltas_mode": "rewards"},
        {"epsilon": 1.0},
        {"kl_penalty": 1},
        {"num_epochs": 0},
        {"stop_kl": 0.1, "num_steps_per_epoch": 1, "minibatch_size": 5},
    ],
)
def test_what_can_be_is_taken(knobs):
    config = TrainConfig(**knobs)
    assert {name: getattr(config, name) for name in knobs} == knobs


def test_a_name_that_nobody_reads_is_refused():
    with pytest.raises(ValueError, match="num_epoch"):
        TrainConfig(num_epoch=3)


def test_a_config_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        TrainConfig().num_epochs = 3


# What several models reach on average, against numbers worked out by hand


def test_the_mean_and_its_standard_error():
    """1, 2, 3, 4: squares of the distances add up to 5, of which a third is 5/3."""
    mean, error = mean_and_error([1.0, 2.0, 3.0, 4.0])
    assert mean.item() == 2.5
    assert error.item() == pytest.approx((5 / 3) ** 0.5 / 2)


def test_the_seeds_are_the_last_axis():
    rows = torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]])
    means, errors = mean_and_error(rows.requires_grad_())
    assert means.tolist() == [2.5, 0.0]
    assert errors[1].item() == 0
    assert not means.requires_grad
