"""PPO's early stop: where an epoch ends, what is recorded, what a run resumes with."""

import copy
from itertools import groupby

import pytest
import torch

from grpo_course.loop import History, Rollout, TrainConfig, Trainer

PROMPTS = torch.arange(2)[:, None]


class Bandit:
    """Logits for each prompt, [... prompt arm]; a response is one arm."""

    def __init__(self, *seeds):
        generator = torch.Generator().manual_seed(1)
        self.logits = torch.randn(*seeds, 2, 4, generator=generator).requires_grad_()
        self.generator = torch.Generator().manual_seed(0)

    def sample(self, prompts, num_responses):
        probs = self.logits.detach().softmax(-1)
        drawn = torch.multinomial(
            probs.flatten(0, -2), num_responses, True, generator=self.generator
        )
        return Rollout(prompts, drawn.view(*probs.shape[:-1], num_responses, 1))

    def log_probs(self, rollout):
        table = self.logits.log_softmax(-1)[..., rollout.prompts[:, 0], :]
        return table.gather(-1, rollout.responses[..., 0])[..., None]


def make_trainer(num_epochs, bandit, **knobs):
    optimizer = torch.optim.SGD([bandit.logits], lr=0.5)
    sizes = {"num_steps_per_epoch": 6, "num_responses": 8}
    config = TrainConfig(num_epochs=num_epochs, **(sizes | knobs))

    def reward(rollout):
        return rollout.responses[..., 0].float()

    return Trainer(bandit, PROMPTS, reward, optimizer, config)


def run(num_epochs=4, bandit=None, **knobs):
    bandit = bandit or Bandit()
    return bandit, make_trainer(num_epochs, bandit, **knobs).train()


def kl_by_epoch(history):
    groups = groupby(history.records, lambda record: record["epoch"])
    return [History(list(group)).curve("old_kl").flatten() for _, group in groups]


def test_an_epoch_ends_with_the_first_step_above_the_limit():
    _, whole = run()
    first = kl_by_epoch(whole)[0]
    assert first[0].abs() < 1e-6 and (first.diff() > 0).all()
    limit = first[2:4].mean().item()  # seen between step 2 and step 3
    epochs = kl_by_epoch(run(stop_kl=limit)[1])
    torch.testing.assert_close(epochs[0], first[:4])
    assert len(epochs) == 4  # the next epochs begin all the same
    for kl in epochs:
        assert (kl[:-1] <= limit).all()
        assert kl[-1] > limit or len(kl) == 6


def test_the_last_step_is_taken():
    """The epoch with a limit is one with as many steps as it took."""
    stopped, history = run(1, stop_kl=0.02)
    steps = len(history.records)
    assert 1 < steps < 6
    assert torch.equal(stopped.logits, run(1, num_steps_per_epoch=steps)[0].logits)


def test_a_limit_that_is_never_passed_changes_nothing():
    plain, watched = run()[0], run(stop_kl=1e9)[0]
    assert torch.equal(plain.logits, watched.logits)


def test_minibatches_stop_in_the_middle_of_a_pass():
    knobs = {"num_steps_per_epoch": 2, "minibatch_size": 4}  # 8 steps an epoch
    _, whole = run(**knobs)
    limit = kl_by_epoch(whole)[0][:3].max().item() * 0.9
    epochs = kl_by_epoch(run(stop_kl=limit, **knobs)[1])
    assert len(epochs) == 4 and len(epochs[0]) < 4
    assert all((kl[:-1] <= limit).all() for kl in epochs)


def test_parts_see_the_kl_of_the_whole():
    plain, parts = (kl_by_epoch(run(micro_batch_size=s)[1]) for s in (None, 1))
    torch.testing.assert_close(parts, plain, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("knobs", [{}, {"minibatch_size": 5}])
def test_a_run_that_stopped_goes_on_as_if_it_had_not(knobs):
    knobs = {"stop_kl": 0.02} | knobs
    whole, expected = run(5, **knobs)
    bandit = Bandit()
    stopped = make_trainer(2, bandit, **knobs)
    stopped.train()
    goes_on = make_trainer(5, bandit, **knobs)
    for name in ("epoch", "shuffle", "history"):
        setattr(goes_on, name, copy.deepcopy(getattr(stopped, name)))
    history = goes_on.train()
    assert torch.equal(bandit.logits, whole.logits)
    assert torch.equal(history.curve("step"), expected.curve("step"))
    assert len(history.records) < 5 * 6 * (4 if "minibatch_size" in knobs else 1)


def test_one_seed_with_an_axis_of_its_own_may_stop_and_two_may_not():
    assert len(run(1, Bandit(1), stop_kl=0.02)[1].records) < 6
    with pytest.raises(ValueError, match=r"stop_kl=0.02, but 2 seeds.*one by one"):
        run(1, Bandit(2), stop_kl=0.02)
