"""What was recorded of the defects, as numbers to print and to draw."""

from dataclasses import dataclass

import torch
from torch import Tensor

from grpo_course.checks import require_known
from grpo_course.classroom.hunt import recorded
from grpo_course.classroom.hunt.defects import CAUSES, DEFECTS, number_of
from grpo_course.classroom.hunt.judge import Row
from grpo_course.classroom.hunt.sleeping import KNOBS


@dataclass(frozen=True)
class Cost:
    """Reward at the end, with the defect minus without, paired by seed."""

    mean: float
    error: float  # standard error over seeds
    num_seeds: int

    @property
    def is_seen(self) -> bool:
        """Whether the seeds tell it from nothing: two standard errors."""
        return abs(self.mean) > 2 * self.error

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.error:.3f}"


def cost_of(cause: str, awake: bool = False) -> Cost:
    """What a defect costs with the settings as they are; `awake`: with those in which
    it shows. The reward after ten rollouts, graded by the healthy script on fresh
    prompts."""
    require_known("cause", cause, CAUSES)
    settings = DEFECTS[number_of(cause)].settings if awake else {}
    key = recorded.key_of(settings)
    ends = recorded.stored(recorded.COSTS)
    theirs, ours = (
        torch.tensor(ends[f"{name} {key}"], dtype=torch.double)
        for name in (cause, "healthy")
    )
    gap = theirs - ours
    return Cost(gap.mean().item(), (gap.std() / len(gap) ** 0.5).item(), len(gap))


def sweep_of(cause: str) -> tuple[str, list[float], Tensor]:
    """The setting that wakes a defect, its values, and how wrong one rollout's move is
    at each: [value seed], relative to the healthy move."""
    require_known("cause", cause, KNOBS)
    setting, values = KNOBS[cause]
    errors = recorded.stored(recorded.COSTS)[f"sweep {cause}"]
    return setting, list(values), torch.tensor(errors)


def sweeps_of(setting: str) -> tuple[list[float], dict[str, Tensor]]:
    """The values tried for a setting, and the errors of each defect that it wakes."""
    causes = [cause for cause, (knob, _) in KNOBS.items() if knob == setting]
    found = {cause: sweep_of(cause) for cause in causes}
    values = found[causes[0]][1]
    return values, {cause: errors for cause, (_, _, errors) in found.items()}


def course_matrix() -> dict[str, Row]:
    """What the course's own probes said of all trainers, as it was recorded."""
    return {
        name: Row(
            row["healthy"],
            {int(number): said for number, said in row["broken"].items()},
            row["seconds"],
        )
        for name, row in recorded.stored(recorded.MATRIX).items()
    }
