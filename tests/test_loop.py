"""The loop and its knobs: what happens in which order, what is noted, what is refused.

Two policies are made up: a bandit that notes what the loop asks of it, and a script.
Where responses must have lengths, the tiny language model writes them.
"""

import inspect
import math
from dataclasses import FrozenInstanceError, replace
from itertools import groupby, pairwise, product
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from grpo_course.formulas import (
    AGGREGATIONS,
    KL_ESTIMATORS,
    LOSS_MODES,
    RATIO_LEVELS,
    compute_kl_penalty,
    compute_loss,
    loss_report,
)
from grpo_course.loop import (
    GRPO,
    Batch,
    ExperienceBuffer,
    History,
    Rollout,
    TrainConfig,
    Trainer,
    correct_deltas,
    drop_truncated,
    mean_and_error,
    rollout_report,
    take_step,
)
from grpo_course.sampling import Sampler
from grpo_course.sequences import SequencePolicy, TinyLM
from tests.test_columns import BATCH, TRIAL, filled, make_batch
from tests.test_settings_reach import PROMPTS as TEXT_PROMPTS
from tests.test_settings_reach import Noting, count_ones, tied_at_first

PROMPTS = torch.arange(2)[:, None]


class Bandit:
    """Logits [... prompt pos arm]; notes what the loop asks, with which weights.

    What it returns may be changed by `sampled` and by `scored`.
    """

    def __init__(self, *seeds, pos=1, sampled=lambda r: r, scored=lambda x: x):
        numbers, shape = torch.Generator().manual_seed(1), (*seeds, 2, pos, 4)
        self.logits = torch.randn(shape, generator=numbers).requires_grad_()
        self.generator, self.calls = torch.Generator().manual_seed(0), []
        self.sampled, self.scored, self.rows = sampled, scored, []

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
        return self.sampled(Rollout(prompts, responses))

    def log_probs(self, rollout):
        self.note("log_probs" if torch.is_grad_enabled() else "old_log_probs")
        responses = rollout.responses
        self.rows.append(responses.shape[-3] * responses.shape[-2])
        table = self.logits.log_softmax(-1)[..., rollout.prompts[:, 0], :, :]
        table = table.unsqueeze(-3).expand(*responses.shape, -1)
        return self.scored(table.gather(-1, responses[..., None]).squeeze(-1))


class Script:
    """Answers from a script, one tensor a call."""

    def __init__(self, *calls):
        self.calls, self.asked = list(calls), []

    def sample(self, prompts, num_responses):
        self.asked.append(prompts.flatten().tolist())
        tokens = self.calls.pop(0)
        noted, odd = -tokens.float(), tokens.sum(-1) % 2 == 1
        return Rollout(prompts, tokens, tokens > 0, noted, finished=odd)

    def log_probs(self, rollout):
        return rollout.sampled_log_probs


def token_value(rollout):
    return rollout.responses[..., 0].float()


def token_sum(rollout):
    return rollout.responses.sum(-1).float()


def make_trainer(
    policy,
    prompts=PROMPTS,
    reward_fn=token_value,
    make=torch.optim.SGD,
    lr=0.5,
    optimizer=None,
    observe=None,
    **knobs,
):
    if hasattr(policy, "logits"):
        weights = [policy.logits]
    elif getattr(policy, "model", None):
        weights = policy.model.parameters()
    else:
        weights = [torch.zeros(1)]
    optimizer = optimizer or make(weights, lr=lr)
    config = TrainConfig(**knobs)
    return Trainer(policy, prompts, reward_fn, optimizer, config, observe)


def run(bandit=None, reward_fn=token_value, **options):
    sizes = {"num_steps_per_epoch": 1, "num_responses": 8, "num_epochs": 2}
    bandit = Bandit() if bandit is None else bandit
    return make_trainer(bandit, PROMPTS, reward_fn, **sizes | options).train()


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


def test_an_epoch_samples_once_freezes_once_and_steps_many_times():
    bandit = Bandit()
    run(bandit, num_steps_per_epoch=3, deltas_mode="centered_rewards")
    assert bandit.names() == ["sample", "old_log_probs", *["log_probs"] * 3] * 2
    steps, old = bandit.weights("log_probs"), bandit.weights("old_log_probs")
    assert all(not torch.equal(a, b) for a, b in pairwise(steps))
    assert torch.equal(old[0], steps[0]) and torch.equal(old[1], steps[3])


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
    seen, trainer = [], make_trainer(Bandit(), num_epochs=2, num_steps_per_epoch=2)
    trainer.observe = seen.append  # an observer may return nothing
    trainer.watch = lambda history: seen.append(len(history.records))
    trainer.train()
    assert seen == [trainer.policy, 2, trainer.policy, 4]


GRAPH = torch.zeros(1, requires_grad=True)


def test_rewards_that_are_numbers_are_taken():
    for other in (torch.Tensor.long, torch.Tensor.half, GRAPH.add):
        given = run(reward_fn=lambda rollout, other=other: other(token_value(rollout)))
        assert torch.equal(given.curve("loss"), run().curve("loss"))
    by_truth = run(reward_fn=lambda rollout: rollout.responses[..., 0] == 1)
    assert by_truth.curve("mean_reward").dtype == torch.float32
    assert 0 < by_truth.final("mean_reward") < 1


# A step that would spoil the weights is not taken


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam])
def test_a_nan_loss_stops_with_epoch_and_step_and_spares_the_weights(make):
    # Calls of an epoch: sample, old, and three steps. The ninth is epoch 1, step 1.
    bandit = Bandit(scored=lambda x: x * math.nan if len(bandit.calls) == 9 else x)
    says = r"loss is nan in epoch 1, step 1.*learning rate"
    with pytest.raises(ValueError, match=says):
        run(bandit, num_steps_per_epoch=3, make=make, deltas_mode="centered_rewards")
    assert torch.equal(bandit.logits, bandit.calls[-1][1])
    assert bandit.logits.isfinite().all()
    assert not torch.equal(bandit.logits, bandit.calls[0][1])  # it had trained before


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


@pytest.mark.parametrize("mode", LOSS_MODES)
def test_stale_samples_and_a_far_reference_spoil_no_weight(mode):
    """Either a step is taken and all is finite, or it is refused and nothing moves."""
    responses = torch.arange(10).view(1, 10, 1) % 2 + torch.zeros(2, 10, 1).long()
    ones = torch.ones(2, 10, 1)
    rollout, given = Rollout(PROMPTS, responses), (ones[..., 0], ones[..., 0])
    for estimator, far in product(KL_ESTIMATORS, (-1.0, -50.0, -200.0)):
        bandit = Bandit()
        with torch.no_grad():
            bandit.logits[..., 0] = 60.0  # the others are 60 nats away
        before = bandit.logits.detach().clone()
        knobs = {"loss_mode": mode, "kl_penalty": 0.1, "kl_estimator": estimator}
        trainer = make_trainer(bandit, max_gradient_norm=1.0, **knobs)
        try:
            trainer.improve(Batch(rollout, *given, 0.5 * far * ones, far * ones))
        except ValueError as error:
            assert "epoch 0, step 0" in str(error) and "Try a smaller" in str(error)
            assert torch.equal(bandit.logits, before)
        assert bandit.logits.isfinite().all()


# What a run remembers


class Elsewhere(torch.Tensor):
    """A tensor that leaves its device, as one of a GPU does, only if asked to."""

    def cpu(self):
        return self.as_subclass(torch.Tensor)


def test_a_curve_is_drawn_from_the_records_that_have_it():
    history = History([{"a": 1, "b": torch.tensor([1.0, 2.0])}, {"a": 2}])
    assert history.curve("a").tolist() == [1, 2]
    assert history.final("a") == 2 and history.final("b").tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"name='reward' is not known.*'a', 'b'\."):
        history.curve("reward")
    steps = [{"epoch": e, "step": s, "a": 10 * e + s} for e in (0, 1) for s in (0, 1)]
    last = {"epoch": 2, "a": 20}  # epochs: first steps, and the last look
    assert History([*steps, last]).epochs("a").tolist() == [0, 10, 20]
    of_a_gpu = {"a": torch.ones(2).as_subclass(Elsewhere)}
    assert type(History([of_a_gpu, {"a": torch.ones(2)}]).curve("a")) is torch.Tensor


def test_the_history_as_a_table():
    """The mean over seeds; what is no number a seed, and the last look, stay out."""
    seeds = {"loss": torch.tensor([1.0, 3.0]), "answer": torch.zeros(2, 3)}
    steps = [{"epoch": e, "step": s} | seeds for e in (0, 1) for s in (0, 1, 2)]
    history = History([*steps, {"epoch": 2, "loss": torch.tensor([0.0, 0.0])}])
    for frame in (history.frame(), history.frame(["loss"])):
        assert frame.index.names == ["epoch", "step"]
        assert list(frame.index[::3]) == [(0, 0), (1, 0)] and len(frame) == 6
        assert list(frame.columns) == ["loss"] and (frame["loss"] == 2).all()
    with pytest.raises(ValueError, match=r"name='los' is not known.*of: 'loss'"):
        history.frame(["los"])


def test_the_report_of_a_rollout():
    first = run(Bandit(3, pos=3), num_epochs=1).records[0]
    for name in ("mean_reward", "tied_groups", "sampled_entropy", "mean_length"):
        assert first[name].shape == (3,)
    assert first["mean_length"].tolist() == [3, 3, 3]
    tied = run(reward_fn=lambda rollout: 0 * token_value(rollout) + 0.1)
    assert tied.final("tied_groups") == 1 and tied.final("gradient_norm") == 0


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


def test_the_mean_over_seeds_and_its_standard_error():
    """1, 2, 3, 4: squares of the distances add up to 5, of which a third is 5/3."""
    rows = torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]])
    means, errors = mean_and_error(rows.requires_grad_())
    assert means.tolist() == [2.5, 0.0] and not means.requires_grad
    assert errors.tolist() == [pytest.approx((5 / 3) ** 0.5 / 2), 0]
    assert mean_and_error([1.0, 2.0, 3.0, 4.0])[0].item() == 2.5


# The buffer and minibatches. That each response keeps all its columns, there and
# elsewhere, is looked at in test_columns.


def test_a_buffer_holds_what_was_added_until_it_is_cleared():
    buffer = filled(make_batch(), make_batch())
    assert len(buffer) == 2 * BATCH * TRIAL
    assert buffer.get().rewards.shape == (2 * BATCH * TRIAL, 1)
    buffer.clear()
    assert len(buffer) == 0
    bare = replace(make_batch(), ref_log_probs=None, targets=None)
    got = filled(replace(bare, rollout=replace(bare.rollout, mask=None))).get()
    assert got.rollout.mask is got.ref_log_probs is got.targets is None


def test_minibatches_cover_each_response_once_and_each_pass_shuffles_anew():
    """And a run of another seed otherwise, one of the same seed alike."""

    def orders(seed):
        """What each pass sees, by the numbers of the responses: [epoch][pass]."""
        knobs = {"minibatch_size": 5, "minibatch_seed": seed, "num_steps_per_epoch": 3}
        trainer = make_trainer(Bandit(), **knobs)
        epochs = []
        for _ in range(2):
            parts = list(trainer.inner_batches(make_batch()))
            assert [len(part.rewards) for part in parts] == [5, 5, 2] * 3
            seen = torch.cat([part.rewards.flatten() for part in parts])
            epochs.append([tuple(each) for each in seen.reshape(3, -1).tolist()])
        return epochs

    first, again = orders(0)
    everything = tuple(range(BATCH * TRIAL))
    assert all(tuple(sorted(each)) == everything for each in first + again)
    assert len({*first, *again}) == 6
    assert orders(0) == [first, again] != orders(1)


# Steps: on minibatches, with a limit to the gradient


def test_minibatches_take_a_step_each_and_one_of_everything_equals_none():
    def trained(**knobs):
        """Responses of three tokens."""
        policy = Bandit(pos=3)
        return policy, run(policy, token_sum, num_steps_per_epoch=2, **knobs)

    plain, _ = trained(kl_penalty=0.3)
    whole, _ = trained(kl_penalty=0.3, minibatch_size=16)
    torch.testing.assert_close(plain.logits, whole.logits, atol=1e-6, rtol=0)
    policy, history = trained(minibatch_size=7)
    assert history.curve("step").tolist() == [*range(6)] * 2
    assert policy.rows == [16, 7, 7, 2, 7, 7, 2] * 2


def test_clipping_looks_at_each_seed_alone():
    weight = torch.zeros(3, 3, requires_grad=True)
    bias = torch.zeros(3, 1, 1, requires_grad=True)
    optimizer = torch.optim.SGD([weight, bias])
    weight.grad = torch.tensor([[3.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.0, 0.0]])
    bias.grad = torch.tensor([[[4.0]], [[0.4]], [[0.0]]])
    norm = take_step(optimizer, seed_axes=1, max_norm=1.0)
    torch.testing.assert_close(norm, torch.tensor([5.0, 0.5, 0.0]))
    after = take_step(optimizer, seed_axes=1)
    torch.testing.assert_close(after, torch.tensor([1.0, 0.5, 0.0]))


# One gradient from several passes; the loss that a learner calls


def make_sequences(seeds=None):
    """The tiny language model; responses end by chance."""
    model = TinyLM(5, hidden_size=8, seeds=seeds)
    generators = [torch.Generator().manual_seed(s) for s in seeds or (0,)]
    sampler = Sampler(6, eos=0, pad=0)
    return Noting(model, sampler, generators if seeds else generators[0])


def text_trainer(policy, reward_fn=count_ones, lr=0.3, **knobs):
    sizes = {"num_responses": 4, "num_steps_per_epoch": 1}
    return make_trainer(policy, TEXT_PROMPTS, reward_fn, lr=lr, **sizes | knobs)


def gradient_and_record(reward_fn=count_ones, seeds=None, beta=0.0, **knobs):
    """The gradient of one step on a rollout that is the same in every call."""
    policy = make_sequences(seeds)
    settings = {"deltas_mode": "centered_rewards", "kl_penalty": beta} | knobs
    torch.manual_seed(0)
    other = make_sequences(seeds)
    with torch.no_grad():
        for weight in other.model.parameters():
            weight += 0.3 * torch.randn(weight.shape[-2:])
    trainer = text_trainer(policy, reward_fn, lr=0.0, **settings)
    trainer.ref_policy = other if beta else None
    batch = trainer.collect(TEXT_PROMPTS)
    with torch.no_grad():  # off policy, so that the ratios are not all 1
        for weight in policy.model.parameters():
            weight += 0.1 * torch.randn(weight.shape[-2:])
    record = trainer.improve(batch)
    gradient = [weight.grad.clone() for weight in policy.model.parameters()]
    return gradient, record, policy, batch


@pytest.mark.slow
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("beta", [0.0, 0.3])
@pytest.mark.parametrize("seeds", [None, (0, 1)])
def test_parts_of_any_size_have_the_gradient_of_the_whole(aggregation, beta, seeds):
    knobs = {"aggregation": aggregation, "beta": beta, "seeds": seeds}
    whole, record, _, batch = gradient_and_record(**knobs)
    lengths = batch.rollout.mask.sum((-2, -1))
    assert lengths.unique().numel() > 1  # else the means were the same
    for size in (1, 2, 3, 9):
        parts, joined, policy, _ = gradient_and_record(micro_batch_size=size, **knobs)
        torch.testing.assert_close(parts, whole, atol=1e-6, rtol=1e-5)
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
    trainer = text_trainer(policy, lr=1.0, **knobs)
    trainer.renew_reference()
    batch = trainer.collect(TEXT_PROMPTS)
    trainer.improve(batch)
    loss, record = trainer.loss(batch)

    mask, old, ref = batch.rollout.mask, batch.old_log_probs, batch.ref_log_probs
    assert not mask.all()
    new = policy.log_probs(batch.rollout)
    clip |= {"mask": mask}
    policy_loss = compute_loss(new, batch.deltas, mode, old, **clip)
    # The ratio of its KL is that of the token, whatever the loss takes.
    kl = compute_kl_penalty(new, ref, "corrected_k3", mask, old_log_probs=old)
    expected = policy_loss + 0.3 * kl
    torch.testing.assert_close(record["policy_loss"], policy_loss.detach())
    torch.testing.assert_close(record["kl"], kl.detach())
    gradients = [torch.autograd.grad(each, weights) for each in (loss, expected)]
    torch.testing.assert_close(*gradients)
    report = loss_report(new, batch.deltas, old, mode=mode, **clip)
    assert report["ratio_max"] > 1.01
    for name, value in report.items():
        torch.testing.assert_close(record[name], value)


@pytest.mark.parametrize("aggregation", ["sequence_mean", "token_mean", "constant"])
@pytest.mark.parametrize("size", [None, 1])
def test_tied_groups_are_skipped_and_change_nothing(aggregation, size):
    knobs = {"aggregation": aggregation, "reward_fn": tied_at_first}
    whole, record, _, _ = gradient_and_record(**knobs)
    skipped, seen, policy, _ = gradient_and_record(
        skip_tied_groups=True, micro_batch_size=size, **knobs
    )
    torch.testing.assert_close(skipped, whole, atol=1e-7, rtol=1e-5)
    torch.testing.assert_close(seen["loss"], record["loss"], atol=1e-7, rtol=1e-5)
    assert sum(policy.rows) == 2
    # With a KL none is skipped, since it pulls on all of them.
    whole, *_ = gradient_and_record(beta=0.3, **knobs)
    knobs |= {"skip_tied_groups": True}
    skipped, _, policy, _ = gradient_and_record(beta=0.3, **knobs)
    torch.testing.assert_close(skipped, whole, atol=1e-7, rtol=1e-5)
    assert sum(policy.rows) == 5
    # Where all are tied, one is kept: an optimizer with momentum moves all the same.
    knobs["reward_fn"] = lambda rollout: torch.ones(rollout.responses.shape[:-1])
    gradient, *_ = gradient_and_record(**knobs)
    assert all((part == 0).all() for part in gradient)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_parts_without_a_token_leave_the_others_their_means(size):
    """The first of three prompts has no response that ended."""
    log_probs = -torch.rand(1, 3, 4, 2, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(1, 3, 4, 2, dtype=torch.bool)
    mask[:, 0] = False
    leaf = log_probs.clone().requires_grad_()
    rollout = Rollout(torch.arange(3)[:, None], torch.zeros_like(mask).long(), mask)
    picked = {"sample": print, "log_probs": lambda r: leaf[:, r.prompts[:, 0]]}
    policy = SimpleNamespace(logits=leaf, **picked)
    deltas = torch.tensor([1.0, -1.0, 1.0, -1.0]).expand(1, 3, 4)
    batch = Batch(rollout, deltas, deltas, log_probs - 0.1, log_probs - 0.2)
    seen = []
    for micro in (None, size):
        knobs = {"micro_batch_size": micro, "kl_penalty": 0.1}
        seen.append(make_trainer(policy, lr=0.0, **knobs).improve(batch))
    torch.testing.assert_close(*seen)
    assert all(value.isfinite().all() for value in seen[1].values())


# pi_old from three places, and runs that stop


@pytest.mark.parametrize("source", ["sampler", "first_step"])
def test_pi_old_costs_a_forward_pass_only_if_nobody_else_knows_it(source):
    plain, cheap = make_sequences(), make_sequences()
    expected = text_trainer(plain, num_epochs=3).train()
    history = text_trainer(cheap, num_epochs=3, old_log_probs_from=source).train()
    assert plain.frozen_rows == [5, 5, 5] and not cheap.frozen_rows
    for name in ("loss", "sampled_entropy", "ratio_max"):
        torch.testing.assert_close(history.curve(name), expected.curve(name))
    torch.testing.assert_close(cheap.model.state_dict(), plain.model.state_dict())


def run_six_steps(bandit, **knobs):
    sizes = {"num_steps_per_epoch": 6, "num_epochs": 4}
    return run(bandit, **sizes | knobs)


def test_an_epoch_ends_with_the_first_step_above_the_limit():
    def kl_by_epoch(history):
        groups = groupby(history.records, lambda record: record["epoch"])
        return [History(list(group)).curve("old_kl").flatten() for _, group in groups]

    first = kl_by_epoch(run_six_steps(Bandit()))[0]
    assert first[0].abs() < 1e-6 and (first.diff() > 0).all()
    limit = first[2:4].mean().item()  # seen between step 2 and step 3
    epochs = kl_by_epoch(run_six_steps(Bandit(), stop_kl=limit))
    torch.testing.assert_close(epochs[0], first[:4])
    assert len(epochs) == 4  # the next epochs begin all the same
    for kl in epochs:
        assert (kl[:-1] <= limit).all()
        assert kl[-1] > limit or len(kl) == 6
    # The last step is taken: an epoch with a limit is one of as many steps.
    stopped, plain = Bandit(), Bandit()
    run_six_steps(stopped, num_epochs=1, stop_kl=limit)
    run_six_steps(plain, num_epochs=1, num_steps_per_epoch=4)
    assert torch.equal(stopped.logits, plain.logits)
    # One seed with an axis of its own may stop, and two may not.
    assert len(run_six_steps(Bandit(1), num_epochs=1, stop_kl=0.02).records) < 6
    with pytest.raises(ValueError, match=r"stop_kl=0.02, but 2 seeds.*one by one"):
        run_six_steps(Bandit(2), stop_kl=0.02)


# Responses that were cut off


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


def marathon(ends, noted=True, **knobs):
    sizes = {"num_responses": 6, "num_steps_per_epoch": 2}
    prompts = torch.ones(2, 3).long()
    return make_trainer(Marathon(ends, noted), prompts, token_sum, **sizes | knobs)


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
    for record in marathon(ends=False, **MASKED | knobs).train().records:
        assert record["truncated"].tolist() == [1, 1]
        assert record["mean_length"].tolist() == [4, 4]
        assert record["sampled_entropy"].min() > 1
        assert record["loss"].tolist() == [0, 0]
        assert all(record[name].isnan().all() for name in OF_TOKENS)
        assert record["beta"].tolist() == pytest.approx([0.1, 0.1])  # no KL moves it
    unnoted = marathon(ends=False, noted=False, **MASKED).train()
    assert unnoted.curve("sampled_entropy").isnan().all()


def test_lengths_and_entropy_are_of_all_that_was_sampled():
    whole, masked = (
        marathon(ends=True, mask_truncated=on, num_epochs=1).train().records[0]
        for on in (False, True)
    )
    assert ((masked["truncated"] > 0) & (masked["truncated"] < 1)).all()
    for name in ("truncated", "mean_length", "sampled_entropy", "mean_reward"):
        torch.testing.assert_close(masked[name], whole[name])
    assert (masked["gradient_fraction"] > 0).all()


# Groups that tied are asked again


THREE = torch.tensor([[0], [1], [2]])


def sample_groups(policy, prompts, num_resamples):
    knobs = {"num_responses": 2, "num_resamples": num_resamples}
    return make_trainer(policy, prompts, token_sum, **knobs).sample(prompts)


FIRST = torch.tensor([[[1], [1]], [[1], [2]], [[3], [3]]])
SECOND = torch.tensor([[[1, 1], [1, 0]], [[4, 0], [4, 0]]])
THIRD = torch.tensor([[[5], [6]]])


@pytest.mark.parametrize(
    ("tries", "left"),
    [
        (0, [[1, 1], [1, 2], [3, 3]]),
        (1, [[2, 1], [1, 2], [4, 4]]),
        (5, [[2, 1], [1, 2], [5, 6]]),  # two are enough
    ],
)
def test_tied_groups_are_asked_again_as_often_as_is_allowed(tries, left):
    policy = Script(FIRST, SECOND, THIRD)
    rollout, rewards = sample_groups(policy, THREE, tries)
    assert policy.asked == [[0, 1, 2], [0, 2], [2]][: tries + 1]
    assert rewards.tolist() == token_sum(rollout).tolist() == left


def test_of_seeds_each_keeps_the_groups_that_were_not_tied():
    fresh = torch.arange(1, 13).view(2, 3, 2, 1)
    policy = Script(torch.stack([FIRST, FIRST.roll(1, dims=0)]), fresh)
    rollout, rewards = sample_groups(policy, THREE, 1)
    assert torch.equal(rewards, token_sum(rollout))
    expected = [[[1, 2], [1, 2], [5, 6]], [[7, 8], [9, 10], [1, 2]]]
    assert rewards.tolist() == expected


# What cannot run is refused: the argument, what was given, the cure


class Model(nn.Linear):
    logits = torch.zeros(1)


OTHER = torch.optim.SGD(nn.Linear(2, 2).parameters())
FROZEN, SCRIPTED = Bandit(), SimpleNamespace(model=None, sample=print, log_probs=print)
FROZEN.logits.requires_grad_(False)
LP = torch.full((2, 3, 4), -1.0)
ROLLOUT = Rollout(PROMPTS, torch.zeros(2, 3, 4).long(), sampled_log_probs=LP)
UNNOTED = Rollout(PROMPTS, ROLLOUT.responses)
SHORT = replace(ROLLOUT, finished=torch.ones(1, 3) > 0)
BATCHES = make_batch(), replace(make_batch(), ref_log_probs=None)
UNASKED = replace(BATCHES[0].rollout, prompts=torch.zeros(2, 1))


def paid(change):
    """A run whose rewards are changed before the loop has them."""
    return lambda: run(reward_fn=lambda rollout: change(token_value(rollout)))


def sampled(change):
    return lambda: run(Bandit(sampled=change))


def scored(change):
    return lambda: run(Bandit(scored=change))


def mixed(policy):
    trainer = make_trainer(policy, kl_penalty=0.1, ref_mixture=0.5)
    trainer.ref_policy = policy
    trainer.renew_reference()


RUNS = [
    # what a person hands over
    (lambda: run(Model(1, 1)), "policy is a Model without sample"),
    (lambda: run(optimizer=OTHER), "reaches none.*another model"),
    (lambda: run(FROZEN), "no gradient in epoch 0, step 0.*frozen"),
    (lambda: mixed(SCRIPTED), "holds no torch module"),
    # rewards
    (paid(torch.Tensor.tolist), "in epoch 0, reward_fn returned a list.*Return one"),
    (paid(torch.Tensor.mean), r"shape \[\].*\[2, 8\]"),
    (paid(lambda r: r * math.nan), r"in epoch 0, rewards\[0, 0\] is nan"),
    # rollouts and scores
    (sampled(lambda r: None), "policy.sample returned a NoneType.*`return` missing"),
    (
        sampled(lambda r: replace(r, responses=r.responses[..., 0])),
        "responses has shape .2, 8.*batch trial pos",
    ),
    (scored(lambda x: None), "policy.log_probs returned is a NoneType"),
    (scored(lambda x: x[..., 0]), r"returned shape \[2, 8\].*one number a token"),
    (scored(torch.exp), "log_probs.*floats that are never above 0. Apply log_softmax"),
    # knobs that need something of the policy
    (lambda: run(minibatch_size=17), "size=17, but the buffer holds 16"),
    (
        lambda: marathon(True, noted=False, old_log_probs_from="sampler").train(),
        "no sampled_log_probs",
    ),
    (lambda: drop_truncated(ROLLOUT), r"needs rollout\.finished"),
    (lambda: drop_truncated(SHORT), "finished has shape .1, 3"),
    (lambda: correct_deltas(LP, UNNOTED, LP, 3.0), "no sampled_log_probs"),
    (lambda: correct_deltas(LP[0, :, 0], ROLLOUT, LP, 2.0), "deltas has shape .3.*bat"),
    # what does not fit a buffer
    (ExperienceBuffer().get, r"buffer is empty.*buffer\.add"),
    (lambda: filled(BATCHES[0]).minibatches(13), "size=13, but the buffer holds 12"),
    (lambda: filled(*BATCHES), "with the same settings"),
    (
        lambda: filled(replace(BATCHES[0], rollout=UNASKED)),
        "'prompts': 8.*one for each resp",
    ),
    (
        lambda: filled(replace(BATCHES[0], deltas=torch.zeros(3, 3))),
        r"'deltas': \d+.*one for each response",
    ),
]


@pytest.mark.parametrize(("call", "says"), RUNS)
def test_a_run_refuses(call, says):
    with pytest.raises((TypeError, ValueError), match=says):
        call()


REFUSED = [
    # a name that is not known
    ({"loss_mode": "clip"}, "is not known. Did you mean 'clipped'. Choose"),
    ({"kl_estimator": "k4"}, "is not known.*'corrected_k3'"),
    ({"kl_place": "advantage"}, "'loss' or 'reward'"),
    ({"num_epoch": 3}, "Did you mean num_epochs"),
    # a wrong type, a number out of range
    ({"num_responses": True}, "a valid integer"),
    ({"epsilon": math.nan}, "a finite number"),
    # knobs that need each other
    ({"dual_clip": 1.2, "loss_mode": "dual_clipped"}, "above 1"),
    ({"num_responses": 1}, "deltas_mode='normalized_rewards'.*at least two"),
    ({"sampler_cap": 2.0, "old_log_probs_from": "sampler"}, "the same.*'policy'"),
    ({"stop_kl": 0.1, "num_steps_per_epoch": 1}, "one step.*more steps"),
    ({"kl_target": 0.1}, "with kl_penalty=0.0: both must be above 0"),
    ({"old_log_probs_from": "first_step"}, "needs num_steps_per_epoch=1"),
    (
        {"old_log_probs_from": "first_step", "num_steps_per_epoch": 1}
        | {"kl_place": "reward"},
        "and the KL in the loss",
    ),
]


@pytest.mark.parametrize(("knobs", "says"), REFUSED)
def test_what_cannot_be_is_refused_by_name(knobs, says):
    name = next(iter(knobs))
    with pytest.raises(ValueError, match=rf"(?s){name}.*{says}"):
        TrainConfig(**knobs)


@pytest.mark.parametrize(
    "knobs",
    [
        {"dual_clip": 3.0, "epsilon_high": 4.0},  # not read
        {"loss_mode": "dual_clipped", "dual_clip": 1.3, "epsilon_high": 0.28},
        {"num_responses": 1, "deltas_mode": "rewards"},
        {"kl_penalty": 1, "num_epochs": 0},
        {"stop_kl": 0.1, "num_steps_per_epoch": 1, "minibatch_size": 5},
    ],
)
def test_what_can_be_is_taken(knobs):
    config = TrainConfig(**knobs)
    assert {name: getattr(config, name) for name in knobs} == knobs
    with pytest.raises(FrozenInstanceError):
        config.num_epochs = 3
