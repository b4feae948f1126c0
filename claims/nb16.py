"""What 16_tools_and_turns claims."""

from collections.abc import Callable
from functools import partial

from torch import Tensor

from claims.runner import Claim, Setting, repeated
from grpo_course.lessons.exercises.nb16 import for_honesty, for_the_turn
from grpo_course.lessons.look_ups import (
    for_the_answer,
    for_the_sum,
    same_place,
    success,
    train_chain,
)


def learned(
    setting: Setting,
    credit: Callable[[Tensor, Tensor], Tensor] = for_the_answer,
    rate: float = 0.2,
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
    Chain("16.turn", "8 updates: credit to the turn learns more than the sum to all.",
        (partial(soon, credit=for_the_turn.solution),
        partial(soon, credit=for_the_sum))),
    Chain("16.luck", "8 updates: paid for honest chains alone, it learns more.",
        (partial(soon, credit=for_honesty.solution), soon)),
    Chain("16.updates", "Three calls: four times as many updates learn more.",
        (partial(learned, updates=240), learned)),
    Chain("16.place", "Three calls: to compare at the same place changes little.",
        (repeated(partial(learned, credit=same_place), runs=4),
        repeated(learned, runs=4)), within=0.1),
    Chain("16.short", "Short chains first learn more than three calls at once.",
        (partial(learned, plan=(1, 2, 3)), learned)),
    Chain("16.start", "A start that copies more often learns more.",
        (partial(learned, copies=0.6), learned)),
)
# fmt: on
