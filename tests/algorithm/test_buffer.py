"""The buffer, minibatches and gradient clipping in the loop."""

import re
from dataclasses import replace

import pytest
import torch

from grpo_course.loop import (
    Batch,
    ExperienceBuffer,
    Rollout,
    TrainConfig,
    take_step,
    train,
)

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


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"pos": POS + 1}, r"responses is \[1, 6\] for each.*holds \[1, 5\].*pad"),
        ({"prompt_pos": 3}, r"prompts is \[3\] for each.*holds \[2\]"),
        ({"ref": False}, "ref_log_probs is None for each"),
    ],
)
def test_batches_that_do_not_line_up_are_named(other, says):
    with pytest.raises(ValueError, match=says):
        filled(make_batch(), make_batch(**other))


@pytest.mark.parametrize("seeds", [(), (2,)])
@pytest.mark.parametrize(
    "name", ["rewards", "deltas", "old_log_probs", "ref_log_probs", "targets"]
)
def test_a_column_that_lacks_a_response_is_named(name, seeds):
    batch = make_batch(seeds=seeds)
    short = getattr(batch, name).narrow(len(seeds) + 1, 0, TRIAL - 1)
    given = re.escape(str(list(short.shape)))
    shape = re.escape(str([*seeds, BATCH, TRIAL]))
    says = rf"^{name} has shape {given}, but responses has .*each response, {shape}\."
    with pytest.raises(ValueError, match=says):
        filled(replace(batch, **{name: short}))


def test_rows_that_lack_an_axis_or_a_prompt_are_named():
    batch = make_batch()
    with pytest.raises(ValueError, match=r"^rewards has shape \[3\].*\[3, 4\]\."):
        filled(replace(batch, rewards=batch.rewards[:, 0]))
    rollout = replace(batch.rollout, prompts=batch.rollout.prompts[:2])
    with pytest.raises(ValueError, match=r"^prompts has .*for each prompt, \[3\]\."):
        filled(replace(batch, rollout=rollout))
    rollout = replace(batch.rollout, mask=batch.rollout.mask[:2])
    with pytest.raises(ValueError, match=r"^mask has shape \[2, 4, 5\]"):
        filled(replace(batch, rollout=rollout))


# The loop


class Table:
    """One logit for each prompt, place and token."""

    def __init__(self):
        self.logits = torch.randn(2, 3, 4, generator=generator(1)).requires_grad_()
        self.generator, self.sizes = generator(2), []

    def sample(self, prompts, num_responses):
        probs = self.logits.detach().softmax(-1).flatten(0, 1)
        drawn = torch.multinomial(probs, num_responses, True, generator=self.generator)
        responses = drawn.reshape(2, 3, num_responses).transpose(1, 2)
        return Rollout(prompts, responses)

    def log_probs(self, rollout):
        self.sizes.append(rollout.responses.shape[0] * rollout.responses.shape[1])
        table = self.logits.log_softmax(-1)[rollout.prompts[:, 0]][:, None]
        table = table.expand(-1, rollout.responses.shape[1], -1, -1)
        return table.gather(-1, rollout.responses[..., None]).squeeze(-1)


def run(**knobs):
    policy = Table()
    optimizer = torch.optim.SGD([policy.logits], lr=knobs.pop("lr", 0.5))
    settings = {"num_epochs": 3, "num_steps_per_epoch": 2, "num_responses": 6}
    config = TrainConfig(**(settings | knobs))
    prompts = torch.arange(2)[:, None]

    def reward(rollout):
        return (rollout.responses == 1).float().mean(-1)

    return policy, train(policy, prompts, reward, optimizer, config)


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_one_minibatch_of_everything_equals_none(beta):
    plain, _ = run(kl_penalty=beta)
    whole, _ = run(kl_penalty=beta, minibatch_size=12)
    torch.testing.assert_close(plain.logits, whole.logits, atol=1e-6, rtol=0)


def test_minibatches_take_a_step_each_and_are_counted():
    policy, history = run(minibatch_size=5, num_epochs=2)
    assert history.curve("step").tolist() == [*range(6)] * 2
    assert policy.sizes == [12, 5, 5, 2, 5, 5, 2] * 2
    other, _ = run(minibatch_size=5, num_epochs=2)
    assert torch.equal(policy.logits, other.logits)
    shuffled, _ = run(minibatch_size=5, num_epochs=2, minibatch_seed=1)
    assert not torch.equal(policy.logits, shuffled.logits)


def test_minibatch_gradients_average_to_the_whole_one():
    knobs = {"num_epochs": 1, "num_steps_per_epoch": 1, "lr": 1e-4}
    start = Table().logits.detach()
    whole, parts = run(**knobs)[0], run(minibatch_size=4, **knobs)[0]
    # Three small steps go three times as far as one on their mean.
    moved = (parts.logits - start, 3 * (whole.logits - start))
    torch.testing.assert_close(*moved, atol=1e-6, rtol=0)


def test_prompts_can_change_with_the_epoch():
    asked = []

    def prompts(epoch):
        asked.append(epoch)
        return torch.arange(2)[:, None]

    policy = Table()
    optimizer = torch.optim.SGD([policy.logits], lr=0.5)
    config = TrainConfig(num_epochs=3, num_steps_per_epoch=2, num_responses=6)
    reward = {"reward_fn": lambda rollout: (rollout.responses == 1).float().mean(-1)}
    train(policy, prompts, optimizer=optimizer, config=config, **reward)
    assert asked == [0, 1, 2]
    assert torch.equal(policy.logits, run()[0].logits)


def test_clipping_shortens_a_long_step_and_leaves_a_short_one():
    knobs = {"num_epochs": 1, "num_steps_per_epoch": 1, "lr": 1.0}
    start = Table().logits.detach()
    policy, history = run(**knobs)
    step, norm = policy.logits - start, history.final("gradient_norm")
    for limit in (norm.item() / 2, norm.item() * 2):
        clipped, seen = run(max_gradient_norm=limit, **knobs)
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
    policy, _ = run(max_gradient_norm=1.0, deltas_mode="rewards", lr=0.0)
    weight = torch.zeros(2, requires_grad=True)
    weight.grad = torch.zeros(2)
    optimizer = torch.optim.SGD([weight])
    take_step(optimizer, max_norm=1.0)
    assert weight.grad.isfinite().all() and policy.logits.isfinite().all()


def test_a_minibatch_larger_than_the_rollout_is_named():
    with pytest.raises(ValueError, match="size=13, but the buffer holds 12"):
        run(minibatch_size=13)
