"""A case: a complaint, a log, a few samples; then probes, a cause, a repair."""

import difflib
import json
import random
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grpo_course.checks import require_known
from grpo_course.classroom.check import WIDTH, wrap
from grpo_course.lessons.hunt.defects import (
    CAUSES,
    DEFECTS,
    GUIDED,
    HEALTHY,
    HUNTED,
    Defect,
    broken,
    compiled,
    number_of,
    require_defect,
    source_with,
)
from grpo_course.lessons.hunt.probes import FIRES, SILENT, ask
from grpo_course.lessons.hunt.script import Trainer
from grpo_course.lessons.pictures.nb10 import draw_flow, plot_log_panel

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
    """A trainer that somebody complains about; `module` is the script under test."""

    def __init__(self, name: str, numbers: tuple[int, ...], seed: int = 0):
        self._defects = [require_defect(number) for number in numbers]
        self._left = [defect.cause for defect in self._defects]
        self._source = source_with(*numbers)
        self.module = broken(*numbers)
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
        complaint = "At least two things are wrong here. This is all that I have."
        if len(self._defects) == 1:  # two together show something else than either
            complaint = self._defects[0].complaint
        print(self.name)
        print(textwrap.fill(f'"{complaint}"', WIDTH))
        trainer = self.make_trainer(seed=self.seed)
        self.log = trainer.train()
        known = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        print(f"settings: {known or 'the defaults of the script'}")
        print("three samples after the last rollout:")
        batch = trainer.collect()
        count = len(batch.texts)
        for row in (1, count // 3 + 2, count * 2 // 3 + 4):  # of three groups
            asked = " ".join(str(number) for number in batch.problems[row])
            print(
                f"{asked:>11} -> {batch.texts[row]!r:24} reward "
                f"{batch.rewards[row]:.1f}  delta {batch.deltas[row]:+.2f}"
            )
        return self

    def plot_log(self) -> None:
        """Draw the log of its run over that of healthy ones."""
        plot_log_panel(self.log, healthy_runs(self.settings))

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
        defect = DEFECTS[number_of(cause)]
        if defect not in self._defects:
            self.wrong_causes.add(cause)
            print("\n".join(wrap(f"[x] {would_have_shown(cause)}")))
            return False
        self._left = [each for each in self._left if each != cause]
        print("\n".join(wrap(f"[v] {cause}.")))
        show_debriefing(defect)
        points = f"{self.score()} of {WORTH * len(self._defects)} points."
        more = f"There is more: {len(self._left)} cause left."
        print(f"\n{more if self._left else points}")
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

    def look_back(self) -> None:
        """Mark where in the trainer its defects were.

        Raises ValueError as long as a cause is not found.
        """
        if self._left:
            raise ValueError(f"{self.name}: name its cause first, with case.accuse.")
        boxes = [box for each in self._defects for box in boxes_of(each)]
        draw_flow([*dict.fromkeys(boxes)])

    def repair(self, old: str | Callable, new: str = "") -> bool:
        """Judge a repair by what the trainer then does, against the healthy one.

        Either a text of the script, which stands there once, and what to put in its
        place; or a class, such as one derived from `case.module.Trainer`.
        """
        make: Any = old
        if isinstance(old, str):
            if (times := self._source.count(old)) != 1:
                raise ValueError(
                    f"old={old!r} stands {times} times in the script; take a text that "
                    "stands there once, spaces included."
                )
            make = compiled(self._source.replace(old, new)).Trainer
        equal, words = compare(make)
        print("\n".join(wrap(f"[{'v' if equal else 'x'}] {words}")))
        return equal


# What is told afterwards.


def would_have_shown(cause: str) -> str:
    """What is said to who names a wrong cause."""
    return f"{cause}: it would have shown {DEFECTS[number_of(cause)].shows}."


def show_debriefing(defect: Defect) -> None:
    """Print symptom, cause, probe, line and thread."""
    for name, words in (
        ("symptom", defect.complaint),
        ("first look", defect.first_look),
        ("cause", f"{defect.cause}. {defect.why}"),
        ("probe", f"{defect.probes[0]}; look into {' and '.join(defect.stages)}"),
        ("sleeps", defect.sleeps),
        ("seen in", defect.thread),
    ):
        if words:
            told = textwrap.fill(words, WIDTH - 12)
            print(f"{name + ':':12}" + textwrap.indent(told, " " * 12).lstrip())
    lines = changed_lines(defect)
    margin = min(len(line) - len(line[1:].lstrip()) for line in lines)
    for line in lines:
        text = f"{line[0]} {line[margin:]}"
        print(textwrap.fill(text, WIDTH, subsequent_indent=f"{line[0]}     "))


def changed_lines(defect: Defect) -> list[str]:
    """The lines of the script that differ: - in the case, + in the healthy one."""
    theirs = source_with(number_of(defect.cause)).splitlines()
    compared = difflib.unified_diff(theirs, HEALTHY.splitlines(), lineterm="", n=0)
    return [line for line in compared if line[:2] not in ("--", "++", "@@")]


def boxes_of(defect: Defect) -> list[str]:
    """What to mark of the stages: its own place, or the methods of its lines."""
    return [defect.box] if defect.box else defect.stages


# The healthy trainer beside it.

HEALTHY_SEEDS = range(5)
DIGITS = 5  # as many as a picture shows


def healthy_runs(settings: dict) -> list[list[dict[str, float]]]:
    """Logs of the healthy script, one for each seed: recorded, or else run now."""
    key = json.dumps(settings, sort_keys=True)
    return recorded_runs().get(key) or run_healthy(key)


@cache
def recorded_runs() -> dict[str, list]:
    """Logs by settings, for those of the notebook's cases."""
    path = Path(__file__).with_name("healthy_runs.json")
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def run_healthy(key: str) -> list[list[dict[str, float]]]:
    """Run the healthy script with each seed."""
    logs = [
        Trainer(**(json.loads(key) | {"seed": seed})).train() for seed in HEALTHY_SEEDS
    ]
    return [
        [{name: float(f"{x:.{DIGITS}g}") for name, x in row.items()} for row in log]
        for log in logs
    ]


# Two rollouts in each of these; a defect that sleeps in one is awake in another.
TRIALS: tuple[dict, ...] = (
    {},
    {"seed": 1, "micro_batch_size": 8, "learning_rate": 0.02},
    {"seed": 2, "num_inner_steps": 1, "beta": 0.5},
    {"seed": 3, "temperature": 1.3, "max_new_tokens": 8, "beta": 0.5},
    {"seed": 4, "min_numbers": 2, "max_numbers": 2, "num_prompts": 3},
)
CLOSE = 1e-3  # of a weight or a reward; a step moves a weight by up to 5e-3
LOOKED_AT = ("tokens", "mask", "rewards", "deltas", "old_log_probs", "ref_log_probs")


def behaviour(make_trainer: Callable, settings: dict) -> dict[str, Tensor]:
    """The first rollout, then the weights after two. -> tensors by name"""
    batch = make_trainer(**({"num_steps": 3} | settings)).collect()
    trainer = make_trainer(**({"num_steps": 3} | settings))
    for _ in range(2):
        trainer.step()
    weights = [weight.detach().flatten() for weight in trainer.model.parameters()]
    seen = {name: getattr(batch, name) for name in LOOKED_AT}
    return seen | {"weights after two rollouts": torch.cat(weights)}


@cache
def healthy_behaviour(trial: int) -> dict[str, Tensor]:
    """That of the healthy script in one of the trials."""
    return behaviour(Trainer, TRIALS[trial])


def compare(make_trainer: Callable) -> tuple[bool, str]:
    """Whether a trainer behaves as the healthy one, and a sentence that says how."""
    largest = 0.0
    for trial, settings in enumerate(TRIALS):
        try:
            theirs = behaviour(make_trainer, settings)
        except Exception as error:
            return False, f"It ends in {type(error).__name__}: {error}"
        for name, expected in healthy_behaviour(trial).items():
            gap = distance(theirs[name], expected)
            largest = max(largest, gap)
            if gap > CLOSE:
                where = ", ".join(f"{key}={value}" for key, value in settings.items())
                words = f"differ by {gap:.2g}"
                if gap == float("inf"):
                    words = "have another shape"
                return False, (
                    f"Not healthy yet: {name} {words} with "
                    f"{where or 'the settings as they are'}. What comes before is "
                    "equal."
                )
    if largest == 0:
        words = f"bit for bit, in {len(TRIALS)} runs."
    else:
        words = f"to {largest:.0e} in {len(TRIALS)} runs (up to {CLOSE:g} is rounding)."
    return True, f"It equals the healthy trainer {words}"


def distance(theirs: Tensor, expected: Tensor) -> float:
    """The largest difference; infinite where shapes differ or a number is none."""
    if theirs.shape != expected.shape:
        return float("inf")
    gap = (theirs.double() - expected.double()).abs().max().item()
    return gap if gap == gap else float("inf")
