"""Whatever happens to a batch, each response keeps all that is its own.

Every column of a batch and of its rollout is made of the number of a response. So after
any operation a look at each response tells whether a column was forgotten or mixed up.
A new column needs a row in COLUMNS, and is then looked at in every operation.
"""

from dataclasses import fields, replace

import pytest
import torch
from torch.nn.functional import pad

from grpo_course.loop import (
    Batch,
    ExperienceBuffer,
    Rollout,
    TrainConfig,
    Trainer,
    as_batch,
    choose,
    columns_of,
    replace_groups,
    split,
)
from grpo_course.off_policy import StaleSampler

BATCH, TRIAL, POS = 3, 4, 5
FRESH = 100  # the first number of responses that come later


def at_each_token(number, pos):
    return number[..., None].expand(*number.shape, pos)


COLUMNS = {  # number [... batch trial], positions -> what belongs to each response
    "prompts": lambda n, pos: at_each_token(n // TRIAL, 2),
    "responses": at_each_token,
    "mask": lambda n, pos: torch.arange(pos) < 1 + n[..., None] % pos,
    "sampled_log_probs": lambda n, pos: -1.0 - at_each_token(n, pos),
    "finished": lambda n, pos: n % 3 == 0,
    "written": lambda n, pos: torch.arange(pos) < 2 + n[..., None] % pos,
    "rewards": lambda n, pos: n.float(),
    "deltas": lambda n, pos: n - 4.5,
    "old_log_probs": lambda n, pos: -2.0 - at_each_token(n, pos),
    "ref_log_probs": lambda n, pos: -3.0 - at_each_token(n, pos),
    "targets": lambda n, pos: 7.0 - at_each_token(n, pos),
}


def make_batch(seeds=(), first=0, prompts=BATCH, pos=POS):
    """Responses with numbers from `first` on, in every seed others."""
    shape = (*seeds, prompts, TRIAL)
    number = first + torch.arange(prompts * TRIAL).expand(*seeds, -1).reshape(shape)
    columns = {name: column(number, pos) for name, column in COLUMNS.items()}
    columns["prompts"] = columns["prompts"][(0,) * len(seeds)][:, 0]
    return as_batch(columns)


def check(batch, names=tuple(COLUMNS), fresh_pos=POS):
    """Each response has what belongs to its number, padded with zeros."""
    found, width = columns_of(batch), batch.rollout.responses.shape[-1]
    assert found.keys() == set(names)
    numbers = found["responses"][..., 0]
    for place in torch.cartesian_prod(*map(torch.arange, numbers.shape)).tolist():
        number = numbers[tuple(place)]
        pos = fresh_pos if number >= FRESH else POS
        for name in names:
            where = [place[-2]] if name == "prompts" else place
            value, expected = found[name][tuple(where)], COLUMNS[name](number, pos)
            if expected.ndim and name != "prompts":
                expected = pad(expected, (0, width - pos))
            assert torch.equal(value, expected), (name, place)


def test_every_column_has_a_row():
    known = {field.name for kind in (Rollout, Batch) for field in fields(kind)}
    assert COLUMNS.keys() == known - {"rollout"}


def filled(*batches):
    buffer = ExperienceBuffer()
    for batch in batches:
        buffer.add(batch)
    return buffer


def kept_and_fresh(batch, seeds):
    return filled(batch, make_batch(seeds, FRESH)).get()


def in_minibatches(batch, _):
    return filled(batch).minibatches(5, torch.Generator().manual_seed(0))


def in_parts(batch, _):
    config = TrainConfig(micro_batch_size=2)
    return [part.batch for part in split(replace(batch, targets=None), config)]


@pytest.mark.parametrize("seeds", [(), (2,)])
def test_rows_are_chosen_with_all_their_columns(seeds):
    batch = make_batch(seeds)
    check(batch)
    check(choose(batch, torch.tensor([2, 0])))
    check(kept_and_fresh(batch, seeds))
    assert len(list(in_minibatches(batch, seeds))) == 3
    for minibatch in in_minibatches(batch, seeds):
        check(minibatch)
    for part in in_parts(batch, seeds):
        check(part, COLUMNS.keys() - {"targets"})


OF_ROLLOUT = [field.name for field in fields(Rollout)]


def check_rollout(rollout, fresh_pos=POS, names=OF_ROLLOUT):
    check(Batch(rollout, None, None), names, fresh_pos)


@pytest.mark.parametrize("fresh_pos", [POS, POS - 2, POS + 2])
@pytest.mark.parametrize("seeds", [(), (2,)])
def test_a_group_is_replaced_with_all_its_columns(seeds, fresh_pos):
    """The middle group, in the last seed alone where there are several."""
    old = make_batch(seeds).rollout
    fresh = make_batch(seeds, FRESH, 1, fresh_pos).rollout
    tied = torch.zeros(*seeds, BATCH, dtype=torch.bool)
    tied[..., 1] = True
    if seeds:
        tied[0] = False
    got = replace_groups(
        old, replace(fresh, prompts=old.prompts[1:2]), tied, torch.tensor([1])
    )
    numbers = got.responses[..., 0]
    assert torch.equal(numbers >= FRESH, tied[..., None].expand_as(numbers))
    kept = replace(got, prompts=None)
    check_rollout(kept, fresh_pos, OF_ROLLOUT[1:])
    assert torch.equal(got.prompts, old.prompts)


class Scripted:
    """Answers with one rollout after the other; scores are what the sampler noted."""

    def __init__(self, *rollouts):
        self.rollouts = list(rollouts)

    def sample(self, prompts, num_responses):
        return replace(self.rollouts.pop(0), prompts=prompts)

    def log_probs(self, rollout):
        return rollout.sampled_log_probs


def tied_unless_fresh(rollout):
    numbers = rollout.responses[..., 0].float()
    return torch.where((numbers >= FRESH) | (numbers >= TRIAL), numbers, 1.0)


def sample(*rollouts, **knobs):
    """One rollout of the loop; its first group is tied, and asked again."""
    policy, optimizer = Scripted(*rollouts), torch.optim.SGD([torch.zeros(1)])
    config = TrainConfig(num_responses=TRIAL, num_resamples=1, **knobs)
    prompts = rollouts[0].prompts
    parts = (policy, prompts, tied_unless_fresh, optimizer, config)
    return Trainer(*parts).sample(prompts)


@pytest.mark.parametrize("fresh_pos", [POS, POS - 2, POS + 2])
def test_the_loop_asks_again_and_keeps_rewards_and_columns_together(fresh_pos):
    old, fresh = make_batch().rollout, make_batch((), FRESH, 1, fresh_pos).rollout
    rollout, rewards = sample(old, fresh)
    assert torch.equal(rewards, rollout.responses[..., 0].float())
    assert (rewards[0] >= FRESH).all() and (rewards[1:] < FRESH).all()
    check_rollout(replace(rollout, prompts=None), fresh_pos, OF_ROLLOUT[1:])
    dropped, _ = sample(old, fresh, mask_truncated=True)
    assert torch.equal(dropped.finished, rollout.finished)
    assert torch.equal(dropped.written, rollout.mask)
    assert torch.equal(dropped.mask, rollout.mask & rollout.finished[..., None])


@pytest.mark.parametrize("pos", [POS, POS + 2])
def test_where_one_of_two_rollouts_has_no_mask_all_its_tokens_count(pos):
    """Also where none has one, but the shorter is padded."""
    old, fresh = make_batch().rollout, make_batch((), FRESH, 1, pos).rollout
    bare = {"mask": None, "written": None}
    seen, _ = sample(replace(old, **bare), replace(fresh, written=None))
    assert torch.equal(seen.mask[0], fresh.mask[0]) and seen.mask[1:, :, :POS].all()
    seen, _ = sample(replace(old, written=None), replace(fresh, **bare))
    assert seen.mask[0].all() and torch.equal(seen.mask[1:, :, :POS], old.mask[1:])
    seen, _ = sample(replace(old, **bare), replace(fresh, **bare))
    if pos == POS:
        assert seen.mask is None
    else:
        assert seen.mask[0].all() and not seen.mask[1:, :, POS:].any()


@pytest.mark.parametrize("name", ["finished", "sampled_log_probs"])
def test_a_column_that_only_one_of_two_rollouts_has_is_named(name):
    old, fresh = make_batch().rollout, make_batch((), FRESH, 1).rollout
    without = {name: None}
    for pair in ((replace(old, **without), fresh), (old, replace(fresh, **without))):
        with pytest.raises(ValueError, match=rf"one has {name} and one has None"):
            sample(*pair)


def test_a_sampler_of_old_weights_keeps_what_its_policy_said():
    policy = torch.nn.Module()  # a StaleSampler looks for weights
    rollout = make_batch().rollout
    policy.sample = Scripted(rollout).sample
    policy.log_probs = lambda rollout: 0 * rollout.sampled_log_probs
    check_rollout(StaleSampler(policy, 0).sample(rollout.prompts, TRIAL))
