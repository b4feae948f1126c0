"""What 16_tools_and_turns claims."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from claims.runner import Claim, Setting, repeated
from grpo_course.lessons.exercises.nb16 import for_honesty, for_the_turn, turn_mask
from grpo_course.lessons.look_ups import (
    ToolPolicy,
    ask_for_box,
    everything,
    for_the_answer,
    for_the_sum,
    right_answer,
    same_place,
    success,
    train_chain,
)
from grpo_course.loop import TrainConfig, train


def with_tool(setting: Setting, who: Callable[[Tensor, int], Tensor]) -> Tensor:
    """The mean reward of the last five rollouts. -> [seed]"""
    policy = ToolPolicy(who, setting.seeds)
    rate = 0.01 * setting.rate
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=rate)
    epochs = round(60 * setting.length)
    config = TrainConfig(num_epochs=epochs, num_steps_per_epoch=2, num_responses=8)
    history = train(policy, ask_for_box, right_answer, optimizer, config)
    return history.epochs("mean_reward")[-5:].mean(dim=0)


def learned(
    setting: Setting,
    credit: Callable[[Tensor, Tensor], Tensor] = for_the_answer,
    rate: float = 0.3,
    updates: int = 60,
    **knobs,
) -> Tensor:
    """The exact probability of a right answer at the end. -> [seed]"""
    logits = train_chain(
        credit,
        rate=rate * setting.rate,
        updates=round(updates * setting.length),
        seeds=setting.seeds,
        **knobs,
    )
    return success(logits)


soon = partial(learned, rate=1.0, updates=8)
ALL_PROMPTS = {"other prompts": "prompts are drawn from all that there are"}
Chain = partial(Claim, not_tried=ALL_PROMPTS)
# fmt: off
CLAIMS = (
    Chain("16.mask", "With the tool's tokens out of the loss, more is learned.",
        (partial(with_tool, who=turn_mask.solution),
        partial(with_tool, who=everything))),
    Chain("16.turn", "8 updates: credit to the turn learns more than the sum to all.",
        (partial(soon, credit=for_the_turn.solution),
        partial(soon, credit=for_the_sum))),
    Chain("16.luck", "8 updates: paid for honest chains alone, it learns more.",
        (partial(soon, credit=for_honesty.solution), soon)),
    Chain("16.groups", "Three calls: in as many updates groups of 32 learn more.",
        (repeated(partial(learned, group=32, rate=0.1), runs=4),
        repeated(learned, runs=4))),
    Chain("16.updates", "Three calls: four times as many updates learn more.",
        (partial(learned, updates=240, rate=0.1), learned)),
    Chain("16.place", "Three calls: to compare at the same place changes little.",
        (repeated(partial(learned, credit=same_place), runs=4),
        repeated(learned, runs=4)), within=0.1),
    Chain("16.short", "Short chains first learn more than three calls at once.",
        (partial(learned, plan=(1, 2, 3)), learned)),
    Chain("16.start", "A start that copies more often learns more.",
        (partial(learned, copies=0.6), learned)),
)
# fmt: on
