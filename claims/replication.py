"""One claim in one variation: the effect, its standard error, and what that says."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from claims.claim import BEST, FRESH, Arm, Claim, varied
from grpo_course.loop import ENOUGH, mean_and_error

RATES = (1 / 9, 1 / 3, 1.0, 3.0, 9.0)
TUNING_SEEDS = range(300, 308)  # none that the rates are judged on


@dataclass(frozen=True)
class Effect:
    """Both arms' means, and their difference seed by seed with its standard error."""

    higher: float
    lower: float
    difference: float
    error: float
    seeds: int
    rates: tuple[float, float] = (1.0, 1.0)

    def holds(self, claim: Claim) -> bool | None:
        """Whether the claim holds; None where these seeds cannot tell."""
        reach = ENOUGH * self.error
        if claim.within is None:
            above, below = self.difference > reach, self.difference < -reach
        else:
            above = abs(self.difference) + reach < claim.within
            below = abs(self.difference) - reach > claim.within
        return True if above else False if below else None


def replicate(claim: Claim, variation: str) -> Effect:
    """Run both arms of a claim as one variation wants it."""
    if variation != BEST:
        setting = varied(claim, variation)
        return compare(claim.higher(setting), claim.lower(setting))
    rates = best_rate(claim.higher, claim), best_rate(claim.lower, claim)
    told = replace(claim.told, seeds=FRESH)
    higher = claim.higher(replace(told, rate=rates[0]))
    lower = claim.lower(replace(told, rate=rates[1]))
    return replace(compare(higher, lower), rates=rates)


def best_rate(arm: Arm, claim: Claim) -> float:
    """The rate at which an arm does best, on seeds of its own."""
    told = replace(claim.told, seeds=TUNING_SEEDS)

    def result(rate: float) -> float:
        return torch.as_tensor(arm(replace(told, rate=rate))).mean().item()

    return max(RATES, key=result)


def compare(higher: Tensor | float, lower: Tensor | float) -> Effect:
    """The effect, seed by seed. An arm that is one number is a bound."""
    above, below = torch.as_tensor(higher).double(), torch.as_tensor(lower).double()
    each = above - below
    if each.dim() != 1 or len(each) < 3:
        raise ValueError(
            f"the arms are {list(above.shape)} and {list(below.shape)}; at least one "
            "must have one number for each of at least 3 seeds"
        )
    difference, error = (value.item() for value in mean_and_error(each))
    return Effect(
        above.mean().item(), below.mean().item(), difference, error, len(each)
    )
