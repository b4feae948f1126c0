"""The page of plain torch against the loop: the same to the last bit."""

import pytest
import torch

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


def sort_world():
    torch.manual_seed(0)
    model = SortModel(5, 10, 3, 3, init_scale=0.1)
    policy = SortPolicy(model, torch.Generator().manual_seed(1))
    return model, policy, SORT_PROMPTS, rollout_reward(sort_distance_reward)


def sequence_world():
    """Responses end by chance, so that there are masks."""
    torch.manual_seed(0)
    model = TinyLM(5, hidden_size=8)
    sampler = Sampler(6, eos=EOS, pad=EOS)
    policy = SequencePolicy(model, sampler, torch.Generator().manual_seed(1))
    prompts = torch.tensor([[1, 2], [3, 4], [2, 2]])
    return model, policy, prompts, lambda r: (r.responses == 1).float().sum(-1)


@pytest.mark.parametrize("kind", [GRPO, Trainer])
@pytest.mark.parametrize("world", [sort_world, sequence_world])
def test_the_loop_and_the_page_agree_to_the_last_bit(world, kind):
    model, policy, prompts, reward_fn = world()
    by_hand = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = train_by_hand(policy, prompts, reward_fn, by_hand, 6, 3, 4, period=3)

    again, policy, prompts, reward_fn = world()
    optimizer = torch.optim.Adam(again.parameters(), lr=0.01)
    config = TrainConfig(
        num_epochs=6,
        num_steps_per_epoch=3,
        num_responses=4,
        kl_penalty=0.1,
        compute_ref_model_period=3,
    )
    history = kind(policy, prompts, reward_fn, optimizer, config).train()

    assert losses.unique().numel() > 10
    assert torch.equal(history.curve("loss"), losses)
    pairs = zip(model.parameters(), again.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
