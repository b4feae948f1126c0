"""What 01_rewards claims."""

from collections.abc import Callable
from functools import partial

import torch
from einops import einsum
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from claims.runner import (
    BEST,
    NORMALIZED,
    ONE_STEP,
    PLAIN,
    PROMPT_SETS,
    Claim,
    Setting,
    mean_of,
    sort_after,
)
from grpo_course.lessons.exercises.nb01 import is_dead_end
from grpo_course.lessons.reward_tables import elsewhere, numbers_off, reward_from_table
from grpo_course.sort import (
    all_responses,
    all_rewards,
    sort_distance_reward,
    sort_exact_reward,
    sort_inclusion_ordering_reward,
    sort_multiset_reward,
)

REPEATS = (
    torch.tensor([[1, 1, 2], [2, 0, 2], [3, 3, 3]]),
    torch.tensor([[4, 1, 4], [0, 3, 0], [2, 2, 2]]),
)
EXPECTED = "... a, ... b, ... c, a b c -> ..."
# What pays for each small improvement, for some of them, and what cannot be fooled by
# repeats.
each = PLAIN | {"reward_fn": sort_distance_reward}
some = PLAIN | {"reward_fn": sort_inclusion_ordering_reward}
honest = PLAIN | {"reward_fn": sort_multiset_reward, "prompt_sets": REPEATS}
fooled = some | {"prompt_sets": REPEATS}
POINTS = {"measure": "expected_reward"}
# As the notebook trains: one step of SGD on each sample.
SGD = ONE_STEP | NORMALIZED | {"optimizer": torch.optim.SGD, "num_epochs": 300}
SGD |= {"learning_rate": 0.05}


def dead_ends(rewards: Tensor) -> Tensor:
    """Wrong responses of which no single change earns more. [all] -> bool [all]"""
    return is_dead_end(rewards.reshape(5, 5, 5)).flatten()


def lowered(prompt: Tensor, draw: int | None = None) -> Tensor:
    """Inclusion + ordering, with points taken until no dead end is left. -> [all]

    With a `draw` as many are taken at random from responses that earn 3 points and are
    neither dead ends nor one number off.
    """
    usual = all_rewards(prompt[None], 5, sort_inclusion_ordering_reward)[0]
    paid = usual.clone()
    while dead_ends(paid).any():
        paid[dead_ends(paid)] -= 1
    if draw is None:
        return paid
    far = numbers_off(prompt[None])[0] > 1
    places = (usual == 3) & far & ~dead_ends(usual)
    return usual - elsewhere((usual - paid)[None], places[None], draw)[0]


def paid_by(setting: Setting, table: Callable[[Tensor], Tensor]) -> Tensor:
    """P(sorted) of policies paid by a table, which each prompt has. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    rewards = torch.stack([table(prompt) for prompt in prompts])  # [batch all]
    fn = reward_from_table(prompts, rewards)
    return sort_after(setting, **SGD | {"reward_fn": fn})


def after_lowering(setting: Setting, draw: int | None = None) -> Tensor:
    """P(sorted) of policies that such a reward pays. -> [seed]"""
    return paid_by(setting, partial(lowered, draw=draw))


def exact_and_more(prompt: Tensor, beside: bool = False) -> Tensor:
    """The exact reward, and 0.01 points for inclusion + ordering's dead ends. -> [all]

    With `beside` those have it that differ from the sorted prompt in one number.
    """
    exact, partial_credit = (
        all_rewards(prompt[None], 5, fn)[0]
        for fn in (sort_exact_reward, sort_inclusion_ordering_reward)
    )
    near = numbers_off(prompt[None])[0] == 1
    return exact + 0.01 * (near if beside else dead_ends(partial_credit))


def leave(setting: Setting, dead: bool) -> Tensor:
    """Share of wrong responses from which the exact gradient leads to the sorted one.

    The policy begins 90 % sure of each number, give or take the seed's noise; `dead`
    says whether to begin where no single change pays, or at the others. -> [seed]
    """
    prompt, tokens = PROMPT_SETS[setting.prompts][:1], all_responses(5, 3)
    rewards = all_rewards(prompt, 5, sort_inclusion_ordering_reward)[0]  # [all]
    cube, wrong = rewards.reshape(5, 5, 5), rewards < rewards.max()
    start = tokens[(dead_ends(rewards) == dead) & wrong]
    sure = one_hot(start, 5) * torch.tensor(36.0).log()  # [start pos vocab]
    draws = [Generator().manual_seed(seed) for seed in setting.seeds]
    noise = torch.stack([torch.randn(sure.shape, generator=draw) for draw in draws])
    logits = (sure + 0.5 * noise).requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=0.1 * setting.rate)
    for _ in range(round(300 * setting.length)):
        optimizer.zero_grad()
        first, second, third = logits.softmax(dim=-1).unbind(dim=-2)
        (-einsum(first, second, third, cube, EXPECTED).sum()).backward()
        optimizer.step()
    answers = logits.argmax(dim=-1)  # [seed start pos]
    return (answers == prompt.sort().values).all(dim=-1).float().mean(dim=-1)


# fmt: off
CLAIMS = (
    Claim("01.hole", "Where numbers repeat, a reward with a hole teaches less sorting.",
        (honest, fooled)),
    Claim("01.paid",
        "Both policies end near the full points, also the one that fools its reward.",
        (honest | POINTS, fooled | POINTS), within=0.2,
        not_tried={BEST: "each rate ends near the full reward"}),
    Claim("01.teaches",
        "Pay for each small improvement teaches more than a reward with dead ends.",
        (each, some)),
    Claim("01.order",
        "The exact reward teaches more than partial credit with dead ends.",
        (SGD | {"reward_fn": sort_exact_reward},
         SGD | {"reward_fn": sort_inclusion_ordering_reward})),
    Claim("01.pays",
        "The exact reward teaches less when the other's dead ends earn a hundredth.",
        (SGD | {"reward_fn": sort_exact_reward},
         partial(paid_by, table=exact_and_more)),
        not_tried={BEST: "a third of the rate and three times it say the same"}),
    Claim("01.beside",
        "The exact reward teaches more when what is one number off earns a hundredth.",
        (partial(paid_by, table=partial(exact_and_more, beside=True)),
         SGD | {"reward_fn": sort_exact_reward})),
    Claim("01.lowered",
        "Without its dead ends, the reward that has them teaches more.",
        (after_lowering, SGD | {"reward_fn": sort_inclusion_ordering_reward})),
    Claim("01.others",
        "Points taken from dead ends help more than as many from others that earn 3.",
        (after_lowering,
         mean_of([partial(after_lowering, draw=draw) for draw in range(3)]))),
    Claim("01.stuck", "Training escapes dead ends less often than other wrong starts.",
        (partial(leave, dead=False), partial(leave, dead=True))),
)
# fmt: on
