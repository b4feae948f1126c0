"""What 16_tools_and_turns claims."""

from collections.abc import Callable
from functools import partial

from torch import Tensor

from claims.runner import Claim, Setting
from grpo_course.lessons.exercises.nb16 import turn_deltas
from grpo_course.lessons.look_ups import (
    final_reward,
    read_before,
    success,
    train_chain,
    turn_rewards,
)


def for_all_turns(rewards: Tensor, written: Tensor) -> Tensor:
    """The delta of a response, from rewards [... trial], for each of its turns."""
    return (rewards - rewards.mean(-1, keepdim=True))[..., None].expand(written.shape)


def by_trajectory(asked: Tensor, written: Tensor) -> Tensor:
    return for_all_turns(final_reward(asked, written), written)


def by_honesty(asked: Tensor, written: Tensor) -> Tensor:
    honest = (written == read_before(asked, written)).all(-1).float()
    return for_all_turns(honest, written)


def by_turn(asked: Tensor, written: Tensor) -> Tensor:
    return turn_deltas.solution(turn_rewards(asked, written))


def learned(
    setting: Setting,
    credit: Callable[[Tensor, Tensor], Tensor] = by_trajectory,
    rate: float = 0.1,
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


ALL_PROMPTS = {"other prompts": "prompts are drawn from all that there are"}
Chain = partial(Claim, not_tried=ALL_PROMPTS)
# fmt: off
CLAIMS = (
    Chain("16.turn", "Three calls: credit to the turn learns more than to the whole.",
        (partial(learned, credit=by_turn), learned)),
    Chain("16.luck", "Three calls: paid for honest chains alone, it learns more.",
        (partial(learned, credit=by_honesty), learned)),
    Chain("16.groups", "Three calls: groups of 8 learn more than groups of 32.",
        (learned, partial(learned, group=32))),
    Chain("16.few", "Groups of 8 on 64 prompts end as groups of 32 on 16 do.",
        (partial(learned, prompts=64), partial(learned, group=32)), within=0.05),
    Chain("16.updates", "Three calls: 4 prompts a batch learn more than 16.",
        (partial(learned, prompts=4), learned)),
    Chain("16.short", "Short chains first learn more than three calls at once.",
        (partial(learned, plan=(1, 2, 3)), learned)),
    Chain("16.start", "A start that copies more often learns more.",
        (partial(learned, copies=0.6), learned)),
)
# fmt: on
