"""A case: a complaint, a log, a few samples; then probes, a hypothesis, a repair."""

import random
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any

from grpo_course.checks import require_known
from grpo_course.classroom.hunt import debrief
from grpo_course.classroom.hunt.broken import (
    broken,
    compiled,
    require_defect,
    source_with,
)
from grpo_course.classroom.hunt.defects import CAUSES, DEFECTS, number_of
from grpo_course.classroom.hunt.judge import FIRES, SILENT, ask
from grpo_course.classroom.hunt.recorded import healthy_runs
from grpo_course.classroom.hunt.repair import compare
from grpo_course.classroom.hunt.roles import GUIDED, HUNTED
from grpo_course.classroom.old_check.report import WIDTH, wrap
from grpo_course.classroom.plots.log_panel import plot_log_panel
from grpo_course.classroom.plots.trainer_flow import draw_small_flow

BUDGET = 4  # probes of a case
FREE = 1  # probe for each defect that costs no point
WORTH = 4  # points of a cause


def open_case(name: str | int, *others: int, seed: int = 0) -> "Case":
    """Open a case by the letter of a guided one, or by number; print what is known.

    With a second number the trainer has both defects. `seed` is that of its run.
    Raises ValueError for a letter or a number that there is not.
    """
    if isinstance(name, str):
        require_known("name", name, GUIDED)
    first = GUIDED[name] if isinstance(name, str) else name
    title = " and ".join(map(str, (f"case {name}", *others)))
    return Case(title, (first, *others), seed).present()


def hunt(turn: int, seed: int = 0) -> "Case":
    """Open one of the cases that the notebook does not solve; none comes twice.

    `turn` counts from 1 to their number, `seed` chooses their order. Raises ValueError
    for a turn that there is not.
    """
    order = random.Random(seed).sample(HUNTED, len(HUNTED))
    if turn not in range(1, len(order) + 1):
        raise ValueError(f"turn={turn!r}: there are turns 1 to {len(order)}.")
    # Not by its number, which the verdicts on probes have told.
    return Case(f"turn {turn}", (order[turn - 1],)).present()


class Case:
    """A trainer that somebody complains about. `Trainer` is the class under test."""

    def __init__(self, name: str, numbers: tuple[int, ...], seed: int = 0):
        self._defects = [require_defect(number) for number in numbers]
        self._left = [defect.cause for defect in self._defects]
        self._source = source_with(*numbers)
        self.module: ModuleType = broken(*numbers)
        self.settings: dict = {}
        self.log: list[dict[str, float]] = []
        for defect in self._defects:
            self.settings |= defect.settings
        self.name, self.seed = name, seed
        self.num_probes, self.wrong_causes = 0, set[str]()

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def make_trainer(self, **settings: float) -> Any:
        """A fresh trainer under test; the settings of the case, then these."""
        return self.module.Trainer(**(self.settings | settings))

    @property
    def cause(self) -> str:
        """The answer: the cause of its defect, of two that of the first."""
        return self._defects[0].cause

    def present(self) -> "Case":
        """Train once, print the complaint and three samples, and return the case."""
        print(self.name)
        print(textwrap.fill(f'"{self._complaint()}"', WIDTH))
        trainer = self.make_trainer(seed=self.seed)
        self.log = trainer.train()
        known = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        print(f"settings: {known or 'the defaults of the script'}")
        print("three samples after the last rollout:")
        batch = trainer.collect()
        for row in debrief.three_rows(len(batch.texts)):
            print(debrief.sample_line(batch, row))
        return self

    def plot_log(self) -> None:
        """Draw the log of its run over that of healthy ones."""
        plot_log_panel(self.log, healthy_runs(self.settings))

    def look_back(self) -> None:
        """Mark where in the trainer its defects were.

        Raises ValueError as long as a cause is not found.
        """
        if self._left:
            raise ValueError(f"{self.name}: name its cause first, with case.accuse.")
        places = [debrief.boxes_of(defect) for defect in self._defects]
        draw_small_flow(list(dict.fromkeys(place for some in places for place in some)))

    def _complaint(self) -> str:
        """Of one defect; two together show something else than either alone."""
        if len(self._defects) == 1:
            return self._defects[0].complaint
        return "At least two things are wrong here. This is all that I have."

    def source(self) -> str:
        """The whole script under test."""
        return self._source

    def probe(self, probe: Callable) -> bool:
        """Ask one probe, with the settings of the case; it counts against the budget.

        Raises ValueError for one that ends in an error, and where none is left.
        """
        if self.num_probes >= BUDGET:
            raise ValueError(
                f"{self.name}: all {BUDGET} probes are spent. Read the script, or name "
                "a cause with case.accuse(...)."
            )
        said = ask(probe, self.make_trainer)
        if said not in (SILENT, FIRES):
            raise ValueError(
                f"{probe.__name__} ended in an error and says nothing of the trainer: "
                f"{said}. It was not counted."
            )
        self.num_probes += 1
        healthy = said == SILENT
        verdict = "healthy" if healthy else "not healthy"
        left = BUDGET - self.num_probes
        print(f"{probe.__name__}: {verdict} ({left} of {BUDGET} probes left)")
        return healthy

    def accuse(self, cause: str) -> bool:
        """Name the cause, one of CAUSES; a right one is followed by the debriefing."""
        require_known("cause", cause, CAUSES)
        if cause not in [defect.cause for defect in self._defects]:
            self.wrong_causes.add(cause)
            shows = DEFECTS[number_of(cause)].shows
            print("\n".join(wrap(f"[x] {cause}: it would have shown {shows}.")))
            return False
        self._left = [each for each in self._left if each != cause]
        print("\n".join(wrap(f"[v] {cause}.")))
        debrief.show_debriefing(DEFECTS[number_of(cause)])
        print(f"\n{self._standing()}")
        return True

    def accuse_in_turn(self, *causes: str | None) -> str:
        """Accuse one after the other up to a right one, which is returned; skip None,
        which is a guess that nobody made."""
        return next(cause for cause in causes if cause and self.accuse(cause))

    def score(self) -> int:
        """WORTH for each cause, one less for each wrong one and each probe after FREE.

        0 as long as anything is not found.
        """
        if self._left:
            return 0
        free = FREE * len(self._defects)
        spent = max(0, self.num_probes - free) + len(self.wrong_causes)
        return max(0, WORTH * len(self._defects) - spent)

    def repair(self, old: str | Callable, new: str = "") -> bool:
        """Judge a repair by what the trainer then does, against the healthy one.

        Either a text of the script, which stands there once, and what to put in its
        place; or a class, such as one derived from `case.module.Trainer`.
        """
        make = self._replaced(old, new) if isinstance(old, str) else old
        equal, words = compare(make)
        print("\n".join(wrap(f"[{'v' if equal else 'x'}] {words}")))
        return equal

    def _replaced(self, old: str, new: str) -> Callable:
        if (times := self._source.count(old)) != 1:
            raise ValueError(
                f"old={old!r} stands {times} times in the script; take a text that "
                "stands there once, spaces included."
            )
        return compiled(self._source.replace(old, new)).Trainer

    def _standing(self) -> str:
        """What is left to find, or the points."""
        if self._left:
            return f"There is more: {len(self._left)} cause left."
        return f"{self.score()} of {WORTH * len(self._defects)} points."
