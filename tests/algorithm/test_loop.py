"""The loop on a world of its own: a bandit whose responses are one token long."""

import inspect
from itertools import pairwise

import pytest
import torch

from grpo_course.formulas import LOSS_MODES, compute_deltas, compute_loss
from grpo_course.loop import GRPO, History, Rollout, TrainConfig, Trainer, train

PROMPTS = torch.arange(2)[:, None]
OPTIMIZER = torch.optim.SGD([torch.zeros(1)])


class Bandit:
    """Logits for each prompt; notes what the loop asks of it, with which weights."""

    def __init__(self, nan_at_call=None, mask=None):
        generator = torch.Generator().manual_seed(1)
        self.logits = torch.randn(2, 4, generator=generator).requires_grad_()
        self.generator, self.calls = torch.Generator().manual_seed(0), []
        self.nan_at_call, self.mask = nan_at_call, mask

    def note(self, what):
        self.calls.append((what, self.logits.detach().clone()))

    def names(self):
        return [name for name, _ in self.calls]

    def weights(self, what):
        return [weights for name, weights in self.calls if name == what]

    def sample(self, prompts, num_responses):
        self.note("sample")
        probs = self.logits.detach().softmax(-1)
        drawn = torch.multinomial(probs, num_responses, True, generator=self.generator)
        return Rollout(prompts, drawn[..., None], self.mask)

    def log_probs(self, rollout):
        self.note("log_probs" if torch.is_grad_enabled() else "old_log_probs")
        table = self.logits.log_softmax(-1)
        picked = table.gather(-1, rollout.responses[..., 0])[..., None]
        return picked * float("nan") if len(self.calls) == self.nan_at_call else picked


def last_arm(rollout):
    """One for the last of the four arms. -> [batch trial]"""
    return (rollout.responses[..., 0] == 3).float()


def token_value(rollout):
    return rollout.responses[..., 0].float()


def run(bandit, num_epochs=2, reward_fn=token_value, make=torch.optim.SGD, **options):
    optimizer = make([bandit.logits], lr=options.pop("lr", 0.5))
    observe = options.pop("observe", None)
    sizes = {"num_steps_per_epoch": 1, "num_responses": 8, "num_epochs": num_epochs}
    config = TrainConfig(**(sizes | options))
    return train(bandit, PROMPTS, reward_fn, optimizer, config, observe)


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
    config = TrainConfig(num_epochs=3, stop_kl=0.1)
    trainer = Trainer(Bandit(), PROMPTS, token_value, OPTIMIZER, config)
    assert repr(trainer) == "Trainer(num_epochs=3, stop_kl=0.1)"


def test_a_gradient_that_is_not_finite_stops_the_step():
    """Its loss is finite: the root of zero has no slope."""
    bandit = Bandit()
    before = bandit.logits.detach().clone()

    class Rooted(Trainer):
        def loss(self, batch):
            loss, record = super().loss(batch)
            return loss + (bandit.logits[0, 0] * 0).abs().sqrt(), record

    optimizer = torch.optim.SGD([bandit.logits], lr=0.5)
    config = TrainConfig(num_epochs=1, max_gradient_norm=1.0)
    trainer = Rooted(bandit, PROMPTS, token_value, optimizer, config)
    with pytest.raises(ValueError, match="gradient is not finite in epoch 0, step 0"):
        trainer.train()
    assert torch.equal(bandit.logits, before)


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("mode", LOSS_MODES)
def test_a_token_far_likelier_than_it_was_leaves_the_gradient_finite(mode, level):
    old = torch.full((1, 2, 1), -95.0)
    new = torch.full((1, 2, 1), -1.0, requires_grad=True)
    deltas = torch.tensor([[1.0, -1.0]])
    compute_loss(new, deltas, mode, old, ratio_level=level).backward()
    assert new.grad.isfinite().all()


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
        return {"weight": policy.logits[0, 0].detach().clone()}

    history = run(bandit, num_steps_per_epoch=2, observe=observe)
    assert ["weight" in record for record in history.records] == [True, False] * 2
    assert bandit.names()[:2] == ["observe", "sample"]
    expected = [weights[0, 0] for weights in bandit.weights("sample")]
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
    assert (bandit.logits.softmax(-1)[:, 3] > 0.9).all()


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
