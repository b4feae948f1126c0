"""Judges in the sort world: notebook 17 trains on what they say, and picks a panel.

There are 125 responses to a prompt, so a judge is a table: the marks that it gives to
all of them, [seed batch all]. Each policy, that is each seed, has judges of its own.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from grpo_course.lessons.baselines import tell
from grpo_course.lessons.preferences import EVERY
from grpo_course.sort import SORT_PROMPTS


def judge_errors(
    num_judges: int,
    correlation: float = 0.0,
    seeds: Sequence[int] = range(16),
    prompts: Tensor = SORT_PROMPTS,
) -> Tensor:
    """By how many points each judge errs about each response. [judge seed batch all]

    An error is normal with a spread of one point. Of its variance the judges share the
    part `correlation`, so this is the correlation between the errors of any two.
    """
    drawn = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(700_000 + seed)
        shape = len(prompts), len(EVERY)
        shared = torch.randn(shape, generator=generator)
        own = torch.randn(num_judges, *shape, generator=generator)
        drawn.append(correlation**0.5 * shared + (1 - correlation) ** 0.5 * own)
    return torch.stack(drawn, dim=1)


# The investigation: whom to put on a panel of four. Judges in a family err alike.

FAMILIES = {"aeghk": (0.8, 0.9), "bdfjl": (0.85, 0.8), "c": (1.0, 0.0), "i": (1.0, 0.0)}
NAMES = "abcdefghijkl"
ON_PANEL = 4
GOOD = 0.5  # points: the error of a panel that will do
WILL_DO = "abci"  # such a panel: one judge of each family, and the two alone


def draw_judges(seeds: Sequence[int] = range(16)) -> Tensor:
    """The errors of the twelve judges `NAMES`. [judge seed batch all]"""
    errors: dict[str, Tensor] = {}
    for number, (family, (size, correlation)) in enumerate(FAMILIES.items()):
        worlds = [1000 * (number + 1) + seed for seed in seeds]
        alike = size * judge_errors(len(family), correlation, worlds)
        errors |= dict(zip(family, alike, strict=True))
    return torch.stack([errors[name] for name in NAMES])


def checked(errors: Tensor, num_checked: int = 10) -> Tensor:
    """What is known of them: so many responses to each prompt. -> [judge case]

    A person found the right mark of these cases.
    """
    generator = torch.Generator().manual_seed(0)
    some = torch.randperm(errors.shape[-1], generator=generator)[:num_checked]
    return errors[..., some].flatten(1)


def try_panel(errors: Tensor, panel: str | Sequence[str]) -> bool:
    """Print by how much the mean mark of a panel errs; return whether it is good.

    errors [judge case] are those about the checked responses. `panel` has four names.
    """
    panel = "".join(panel)
    if problem := not_a_panel(panel):
        tell(False, problem)
        return False
    sure = {NAMES[judge] for judge in errors.std(-1).argsort()[:ON_PANEL]}
    error = errors[of_panel(panel)].mean(0).std().item()
    good = error <= GOOD
    words = "that will do" if good else f"there are panels that err by {GOOD} or less"
    finding = f"the mean mark of {panel} errs by {error:.2f}"
    if set(panel) == sure:
        print(finding)  # as the notebook begins: nobody has chosen yet
    else:
        tell(good, f"{finding}: {words}")
    return good


def of_panel(panel: str | Sequence[str]) -> list[int]:
    """The numbers of judges, by their names."""
    return [NAMES.index(name) for name in panel]


def not_a_panel(panel: str) -> str:
    """What is wrong with a panel, in words; "" if nothing is."""
    if len(set(panel)) == len(panel) == ON_PANEL and set(panel) <= set(NAMES):
        return ""
    return f"chosen = {panel!r}: name four different judges, such as {NAMES[:4]!r}"
