"""The page of plain torch against the loop: the same to the last bit.

The bits are why the page computes the ratio of its KL once more: with one ratio for
both, gradients would be added up in another order.
"""

import ast
import copy
import inspect

import pytest
import torch

from grpo_course import by_hand
from grpo_course.by_hand import train_by_hand
from grpo_course.loop import GRPO, TrainConfig, Trainer
from grpo_course.sampling import Sampler
from grpo_course.sequences import SequencePolicy, TinyLM
from grpo_course.sort import (
    SORT_PROMPTS,
    SortModel,
    SortPolicy,
    rollout_reward,
    sort_distance_reward,
)

EOS = 0


def count_odd(rollout):
    return (rollout.responses % 2).float().sum(-1)


def sort_world():
    torch.manual_seed(0)
    model = SortModel(5, 10, 3, 3, init_scale=0.1)
    policy = SortPolicy(model, torch.Generator().manual_seed(1))
    return model, policy, SORT_PROMPTS, rollout_reward(sort_distance_reward)


def sequence_world(kind=SequencePolicy):
    """Responses end by chance, so that there are masks."""
    torch.manual_seed(0)
    model = TinyLM(5, hidden_size=8)
    sampler = Sampler(6, eos=EOS, pad=EOS)
    policy = kind(model, sampler, torch.Generator().manual_seed(1))
    prompts = torch.tensor([[1, 2], [3, 4], [2, 2]])
    return model, policy, prompts, count_odd


class Cutting(SequencePolicy):
    """Padding is never sampled, so that it scores minus infinity."""

    def log_probs(self, rollout):
        return super().log_probs(rollout) + torch.where(rollout.mask, 0.0, -torch.inf)


def cut_world():
    return sequence_world(Cutting)


class Leaping(SequencePolicy):
    """Every other epoch its samples seem to have been 100 nats less likely."""

    calls = 0

    def log_probs(self, rollout):
        said = super().log_probs(rollout)
        if torch.is_grad_enabled():
            return said
        self.calls += 1
        return said - 100.0 * (self.calls % 2)


def leaping_world():
    return sequence_world(Leaping)


WORLDS = [sort_world, sequence_world, cut_world, leaping_world]


@pytest.mark.parametrize("beta", [0.0, 0.1])
@pytest.mark.parametrize("world", WORLDS)
def test_both_loops_and_the_page_agree_to_the_last_bit(world, beta):
    model, policy, prompts, reward_fn = world()
    stepper = torch.optim.Adam(model.parameters(), lr=0.01)
    page = train_by_hand(
        policy, prompts, reward_fn, stepper, 6, 3, 4, beta=beta, period=3
    )

    assert page["loss"].isfinite().all() and page["loss"].unique().numel() > 10
    config = TrainConfig(
        num_epochs=6,
        num_steps_per_epoch=3,
        num_responses=4,
        kl_penalty=beta,
        kl_estimator="corrected_k3",
        compute_ref_model_period=3,
    )
    for kind in (GRPO, Trainer):
        again, policy, prompts, reward_fn = world()
        optimizer = torch.optim.Adam(again.parameters(), lr=0.01)
        history = kind(policy, prompts, reward_fn, optimizer, config).train()
        assert torch.equal(history.curve("loss"), page["loss"])
        for name in ("mean_reward", "tied_groups"):
            assert torch.equal(history.epochs(name), page[name])
        pairs = zip(model.parameters(), again.parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(("beta", "copies", "passes"), [(0, 0, 6), (0.1, 2, 9)])
def test_without_a_price_no_reference_is_kept_or_asked(beta, copies, passes):
    seen = {"copies": 0, "passes": 0}

    class Counting(SequencePolicy):
        def __deepcopy__(self, memo):
            seen["copies"] += 1
            return type(self)(copy.deepcopy(self.model), self.sampler)

        def log_probs(self, rollout):
            seen["passes"] += 1
            return super().log_probs(rollout)

    model, policy, prompts, reward_fn = sequence_world(Counting)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    train_by_hand(policy, prompts, reward_fn, optimizer, 3, beta=beta, period=2)
    assert seen == {"copies": copies, "passes": passes}


def test_the_defaults_are_what_notebook_06_advises():
    """Each response once, no KL; a reference, if asked for, that does not move."""
    given = inspect.signature(train_by_hand).parameters
    chosen = [given[name].default for name in ("num_steps", "num_responses", "beta")]
    assert chosen == [1, 8, 0]
    assert given["period"].default > given["num_epochs"].default


def test_it_is_one_page_of_plain_torch():
    source = inspect.getsource(by_hand)
    assert len(source.splitlines()) <= 82
    imports = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import)]
    assert [n.names[0].name for n in imports] == ["copy", "torch"]
    assert "from " not in source.split('"""', 2)[2].replace("from grpo", "")
