"""A claim about learning, the experiment it rests on, and how that is varied."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor


@dataclass(frozen=True)
class Setting:
    """How an experiment runs; `rate` and `length` multiply what the notebook takes."""

    seeds: range = range(16)
    rate: float = 1.0
    length: float = 1.0
    prompts: int = 0  # which set of prompts; 0 is the notebook's


Arm = Callable[[Setting], Tensor | float]  # one result of each seed [seed], or a bound


@dataclass(frozen=True)
class Claim:
    """`higher` lies above `lower`; with `within`, the two differ by less than that.

    `sentence` stands in the notebook word for word. `key` begins with the notebook's
    number. `told` are the settings of the notebook, `leave_out` names variations that
    the experiment does not have, with the reason. The seeds of an exact claim draw the
    policies that it is computed for.
    """

    key: str
    sentence: str
    higher: Arm
    lower: Arm
    within: float | None = None
    told: Setting = field(default_factory=Setting)
    leave_out: Mapping[str, str] = field(default_factory=dict)


FRESH = range(100, 116)
BEST = "each at its best rate"
CHANGES: dict[str, dict] = {
    "as told": {},
    "seeds 100 to 115": {"seeds": FRESH},
    "seeds 200 to 215": {"seeds": range(200, 216)},
    "a third of the rate": {"seeds": FRESH, "rate": 1 / 3},
    "three times the rate": {"seeds": FRESH, "rate": 3.0},
    "other prompts": {"seeds": FRESH, "prompts": 1},
    "half as long": {"seeds": FRESH, "length": 0.5},
    "twice as long": {"seeds": FRESH, "length": 2.0},
}
VARIATIONS = (*CHANGES, BEST)
# What an exact claim leaves out: its seeds are random policies, and nothing trains.
RATES_OF_NOTHING = dict.fromkeys(
    ("a third of the rate", "three times the rate", BEST), "nothing is trained"
)


def varied(claim: Claim, variation: str) -> Setting:
    """The setting of a variation, other than each arm at its own best rate."""
    return replace(claim.told, **CHANGES[variation])


def variations(claim: Claim) -> list[str]:
    """Those that a claim is tried in. A bound has no rate of its own to tune."""
    return [name for name in VARIATIONS if name not in claim.leave_out]
