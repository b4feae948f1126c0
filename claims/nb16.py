"""What 16_tools_and_turns claims."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from claims.runner import Claim, Setting
from grpo_course.lessons.exercises.nb16 import turn_deltas, turn_mask
from grpo_course.lessons.look_ups import (
    ToolPolicy,
    ask_for_box,
    final_reward,
    read_before,
    right_answer,
    same_place,
    success,
    train_chain,
    turn_rewards,
)
from grpo_course.loop import TrainConfig, train


def everything(lengths: Tensor, width: int) -> Tensor:
    """The mask of somebody who forgets the tool."""
    return torch.ones(*lengths.shape[:-1], width, dtype=torch.bool)


def with_tool(setting: Setting, who: Callable[[Tensor, int], Tensor]) -> Tensor:
    """The mean reward of the last five rollouts. -> [seed]"""
    policy = ToolPolicy(who, setting.seeds)
    rate = 0.01 * setting.rate
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=rate)
    epochs = round(60 * setting.length)
    config = TrainConfig(num_epochs=epochs, num_steps_per_epoch=2, num_responses=8)
    history = train(policy, ask_for_box, right_answer, optimizer, config)
    return history.epochs("mean_reward")[-5:].mean(dim=0)


def for_the_answer(asked: Tensor, written: Tensor) -> Tensor:
    return final_reward(asked, written)[..., None].expand(written.shape)


def for_honesty(asked: Tensor, written: Tensor) -> Tensor:
    right = (written == read_before(asked, written)).all(dim=-1, keepdim=True)
    return right.float().expand(written.shape)


def for_the_sum(asked: Tensor, written: Tensor) -> Tensor:
    return turn_rewards(asked, written).sum(-1, keepdim=True).expand(written.shape)


def for_the_turn(asked: Tensor, written: Tensor) -> Tensor:
    return turn_deltas.solution(turn_rewards(asked, written))


def learned(
    setting: Setting,
    credit: Callable[[Tensor, Tensor], Tensor] = for_the_answer,
    rate: float = 0.3,
    budget: int = 30_000,
    **knobs,
) -> Tensor:
    """The exact probability of a right answer at the end. -> [seed]"""
    logits = train_chain(
        credit,
        rate=rate * setting.rate,
        budget=round(budget * setting.length),
        seeds=setting.seeds,
        **knobs,
    )
    return success(logits)


soon = partial(learned, rate=1.0, budget=4_000)
ALL_PROMPTS = {"other prompts": "prompts are drawn from all that there are"}
Chain = partial(Claim, not_tried=ALL_PROMPTS)
# fmt: off
CLAIMS = (
    Chain("16.mask", "With the tool's tokens out of the loss, more is learned.",
        (partial(with_tool, who=turn_mask.solution),
        partial(with_tool, who=everything))),
    Chain("16.turn", "4000 turns: credit to the turn learns more than the sum to all.",
        (partial(soon, credit=for_the_turn), partial(soon, credit=for_the_sum))),
    Chain("16.luck", "4000 turns: paid for honest chains alone, it learns more.",
        (partial(soon, credit=for_honesty), soon)),
    Chain("16.groups", "Three calls: groups of 8 learn more than groups of 32.",
        (learned, partial(learned, group=32))),
    Chain("16.updates", "Three calls: 4 prompts at a third of the rate learn more.",
        (partial(learned, prompts=4, rate=0.1), learned)),
    Chain("16.place", "Three calls: to compare at the same place changes little.",
        (partial(learned, credit=same_place), learned), within=0.15),
    Chain("16.short", "Short chains first learn more than three calls at once.",
        (partial(learned, plan=(1, 2, 3)), learned)),
    Chain("16.start", "A start that copies more often learns more.",
        (partial(learned, copies=0.6), learned)),
)
# fmt: on
