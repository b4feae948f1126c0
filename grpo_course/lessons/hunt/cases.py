"""A case: a complaint and what somebody kept; then probes, a line, a repair."""

import difflib
import io
import json
import textwrap
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grpo_course.checks import require_known
from grpo_course.classroom.check import wrap
from grpo_course.classroom.screen import WIDTH
from grpo_course.classroom.show import show
from grpo_course.lessons.hunt.defects import (
    COMPLAINTS,
    DEFECTS,
    GUIDED,
    HEALTHY,
    NUM_TURNS,
    Complaint,
    Defect,
    broken,
    compiled,
    drawn_hunt,
    number_of,
    require_defect,
    source_with,
)
from grpo_course.lessons.hunt.probes import (
    FIRES,
    SILENT,
    VARIANTS,
    alarms_of,
    found_by,
    hear,
)
from grpo_course.lessons.hunt.script import Trainer
from grpo_course.lessons.pictures.nb10 import plot_log_panel

WORTH = 4  # points of a defect
WRONG = 2  # what a wrong accusation takes off
READS = 2  # methods that one reads for nothing; each further one takes a point off
LONGEST = 12  # lines of what a probe prints that are shown
OTHER_SEEDS = 10  # of hunted runs: not those of the healthy runs beside them


def open_case(name: str | int, *others: int, seed: int = 0) -> "Case":
    """Open a case by the letter of a guided one, or by number; print what is known.

    With a second number the trainer has both defects. `seed` is that of its run.
    Raises ValueError for a letter or a number that there is not.
    """
    if isinstance(name, str):
        require_known("name", name, GUIDED)
        heard, number = GUIDED[name]
        return Case(f"Case {name}", (number,), COMPLAINTS[heard], seed).present()
    numbers = (name, *others)
    says = "At least two things are wrong here. This is all that I have."
    if not others:  # two together show something else than either
        says = require_defect(name).symptom
    settings: dict[str, float] = {}
    for number in numbers:
        settings |= require_defect(number).settings
    title = f"Case {' and '.join(map(str, numbers))}"
    return Case(title, numbers, Complaint(says, numbers, settings), seed).present()


def hunt(turn: int, seed: int = 0) -> "Case":
    """Open one of the cases of a hunt; another `seed` is another hunt.

    Of the run, the one who complains has kept the reward alone. Raises ValueError for a
    turn that there is not.
    """
    if turn not in range(1, NUM_TURNS + 1):
        raise ValueError(f"turn={turn!r}: there are turns 1 to {NUM_TURNS}.")
    heard, number = drawn_hunt(seed)[turn - 1]
    numbers = () if number is None else (number,)
    run = OTHER_SEEDS + 100 * seed + turn
    case = Case(f"Turn {turn}", numbers, COMPLAINTS[heard], run).present(paid=False)
    case.log = [{"reward": row["reward"]} for row in case.log]
    return case


class Case:
    """A trainer that somebody complains about; `module` is the script under test."""

    def __init__(
        self, name: str, numbers: tuple[int, ...], heard: Complaint, seed: int = 0
    ):
        self._left = [*numbers]
        self._defects = [require_defect(number) for number in numbers]
        self._source = source_with(*numbers)
        self.module = broken(*numbers)
        self.name, self.heard, self.seed = name, heard, seed
        self.log: list[dict[str, float]] = []
        self.proofs: list[str] = []  # names of probes
        self.silent: list[Callable] = []  # probes that found nothing
        self.read_stages: set[str] = set()
        self._granted: dict[tuple, str] = {}  # a right accusation, and what was told
        self.num_wrong, self.points, self.is_closed = 0, 0, False

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def make_trainer(self, **settings: float) -> Any:
        """A fresh trainer under test; the settings of the case, then these."""
        return self.module.Trainer(**(self.heard.settings | settings))

    def present(self, paid: bool = True) -> "Case":
        """Train once, print the complaint and three samples, and return the case.

        Where somebody has kept what they were `paid`, that is printed, too.
        """
        print(self.name)
        print(textwrap.fill(f'"{self.heard.says}"', WIDTH))
        trainer = self.make_trainer(seed=self.seed)
        self.log = trainer.train()
        settings = self.heard.settings.items()
        known = ", ".join(f"{key}={value}" for key, value in settings)
        print(f"settings: {known or 'the defaults of the script'}")
        print("three samples after the last rollout:")
        batch = trainer.collect()
        count = len(batch.texts)
        for row in (1, count // 3 + 2, count * 2 // 3 + 4):  # of three groups
            asked = " ".join(str(number) for number in batch.problems[row])
            told = f"{asked:>11} -> {batch.texts[row]!r}"
            reward, delta = batch.rewards[row], batch.deltas[row]
            print(
                f"{told:39} reward {reward:.1f}  delta {delta:+.2f}" if paid else told
            )
        return self

    def plot_log(self) -> None:
        """Draw what was kept of its log over that of healthy runs."""
        plot_log_panel(self.log, healthy_runs(self.heard.settings))

    def probe(self, *probes: Callable) -> bool:
        """Ask probes, as many as you like; what they print stands beside the healthy.

        One that fires here and in no healthy trainer is a proof. Returns whether all
        were silent. Raises ValueError for one that ends in an error.
        """
        silent = True
        for probe in probes:
            said, printed = hear(probe, self.make_trainer)
            if said not in (SILENT, FIRES):
                raise ValueError(
                    f"{probe.__name__} ended in an error and says nothing of the "
                    f"trainer: {said}."
                )
            told = f"{probe.__name__}: silent"
            if said == SILENT:
                self.silent.append(probe)
            else:
                silent, told = False, self._weigh(probe)
            print("\n".join(wrap(told)))
            beside = hear(
                probe, lambda **given: Trainer(**(self.heard.settings | given))
            )
            show_beside(printed, beside[1])
        return silent

    def _weigh(self, probe: Callable) -> str:
        """Whether a probe that fires here proves anything."""
        name = probe.__name__
        if alarms := alarms_of(probe, self.heard.settings):
            return (
                f"{name}: fires, and on healthy trainers too ({', '.join(alarms)}), so "
                "it proves nothing"
            )
        if name not in self.proofs:
            self.proofs.append(name)
        return f"{name}: FIRES, and is silent in {len(VARIANTS)} healthy trainers"

    def read(self, stage: str) -> None:
        """Show a method of the trainer under test, once a probe has proved something.

        Raises ValueError before that, and for a method that there is not.
        """
        methods = [name for name, each in vars(Trainer).items() if callable(each)]
        require_known("stage", stage, methods)
        if not (self.proofs or self.is_closed):
            raise ValueError(
                f"{self.name}: no probe of yours has shown yet that anything is wrong. "
                "One has to fire here and be silent in healthy trainers; then read."
            )
        self.read_stages.add(stage)
        show(getattr(self.module.Trainer, stage))

    def accuse(self, old: str | Callable, new: str = "", *more: str) -> bool:
        """Accuse a line: what stands there, and what ought to. The repaired trainer is
        run beside the healthy one; if they are equal, the debriefing follows.

        `old` is a text that stands in the script once; where two lines are at fault,
        `more` is the second pair. Or it is a class, such as one derived from
        `case.module.Trainer`. Raises ValueError for a text that does not stand there.
        One that was right tells the same when its cell is run again.
        """
        given = (old, new, *more)
        if given not in self._granted:
            with redirect_stdout(io.StringIO()) as told:
                right = self._judge(old, new, *more)
            if not right:
                print(told.getvalue(), end="")
                return False
            self._granted[given] = told.getvalue()
        print(self._granted[given], end="")
        return True

    def _judge(self, old: str | Callable, new: str, *more: str) -> bool:
        """Whether a line is at fault, and the case's state and words after that."""
        if self.is_closed:
            print(f"{self.name} is closed, with {self.points} points.")
            return False
        make, source = self._repaired(old, new, *more)
        equal, words = compare(make)
        found, before = [*self._left], self._source
        if compare(make, before)[0]:
            equal, found = False, []
            words = "It does what it did before, so this line was not at fault."
        elif not equal:  # one of two may be repaired
            found = [n for n in self._left if self._is_repaired(make, n)]
            words = "This line was at fault." if found else words
        print("\n".join(wrap(f"[{'v' if found else 'x'}] {words}")))
        if not found:
            self.num_wrong += 1
            print(f"    A wrong accusation takes {WRONG} points off.")
            return False
        self._left = [n for n in self._left if n not in found]
        for number in found:
            show_debriefing(DEFECTS[number])
        if self._left:
            self._source, self.module = source, compiled(source)
            print("\nThat was one. Something else is still wrong.")
        else:
            self._close(WORTH if self.proofs else 0)
        return True

    def _repaired(self, old: str | Callable, *texts: str) -> tuple[Callable, str]:
        """The trainer with a repair, and its script."""
        source = self._source
        if not isinstance(old, str):
            return old, source
        pairs = [old, *texts]
        for wrong, right in zip(pairs[::2], pairs[1::2], strict=True):
            if (times := source.count(wrong)) != 1:
                raise ValueError(
                    f"{wrong!r} stands {times} times in the script; take a text that "
                    "stands there once, spaces included."
                )
            source = source.replace(wrong, right)
        return compiled(source).Trainer, source

    def _is_repaired(self, make: Callable, number: int) -> bool:
        """Whether this one of several defects is repaired, and no other."""
        others = [n for n in self._left if n != number]
        return bool(others) and compare(make, source_with(*others))[0]

    def acquit(self) -> bool:
        """Say that nothing is wrong with this trainer.

        If so, that is worth as much as your silent probes would have seen: all points
        only where they find all defects.
        """
        if self._defects:
            self.num_wrong += 1
            print(f"[x] Something is wrong here. That takes {WRONG} points off.")
            return False
        seen = frozenset[int]().union(*map(found_by, self.silent))
        print(
            "\n".join(
                wrap(
                    f"[v] It is healthy. Your silent probes find {len(seen)} of "
                    f"{len(DEFECTS)} defects elsewhere, so far are you sure of it."
                )
            )
        )
        self._close(round(WORTH * len(seen) / len(DEFECTS)))
        return True

    def _close(self, worth: int) -> None:
        """Print the points: 0 for who has proved nothing."""
        paid = max(1, len(self._defects))
        further = max(0, len(self.read_stages) - READS * paid)
        self.points = max(0, worth * paid - WRONG * self.num_wrong - further)
        self.is_closed = True
        print(f"\n{self.name}: {self.points} of {WORTH * paid} points.")
        if self._defects and not self.proofs:
            print("No probe of yours has shown it, and a lucky guess earns nothing.")


# What is told afterwards.


def show_beside(here: str, healthy: str) -> None:
    """Print what a probe printed here, and what it printed of a healthy trainer; long
    lines are broken, and of many the number is told."""
    for name, printed in (("here:", here), ("healthy:", healthy)):
        whole = printed.splitlines()
        lines = [part for line in whole for part in textwrap.wrap(line, WIDTH - 13)]
        if len(lines) > LONGEST:
            left = f"({len(lines) - LONGEST + 1} more lines)"
            lines = [*lines[: LONGEST - 1], left]
        for line in lines:
            print(f"    {name:9}{line}")
            name = ""


def show_debriefing(defect: Defect) -> None:
    """Print symptom, cause, probe, line and thread."""
    for name, words in (
        ("symptom", defect.symptom),
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
    {"seed": 1, "micro_batch_size": 8, "learning_rate": 0.02, "tool": True},
    {"seed": 2, "num_inner_steps": 1, "beta": 0.5},
    {"seed": 3, "temperature": 1.3, "max_new_tokens": 8, "beta": 0.5},
    {"seed": 4, "min_numbers": 2, "max_numbers": 2, "num_prompts": 3},
)
CLOSE = 1e-3  # of a weight or a reward; a step moves a weight by up to 5e-3
LOOKED_AT = ("tokens", "mask", "rewards", "deltas", "old_log_probs", "ref_log_probs")


def behaviour(make_trainer: Callable, settings: dict) -> dict[str, Tensor]:
    """The first rollout, then the weights after two and the KL that was logged, which a
    repair may get wrong though its gradient is right. -> tensors by name"""
    batch = make_trainer(**({"num_steps": 3} | settings)).collect()
    trainer = make_trainer(**({"num_steps": 3} | settings))
    for _ in range(2):
        trainer.step()
    weights = [weight.detach().flatten() for weight in trainer.model.parameters()]
    seen = {name: getattr(batch, name) for name in LOOKED_AT}
    seen["weights after two rollouts"] = torch.cat(weights)
    logged = torch.tensor([row["kl"] for row in trainer.log])
    return seen | {"values of the logged KL": logged}


@cache
def known_behaviour(source: str, trial: int) -> dict[str, Tensor]:
    """That of the trainer of a script, in one of the trials."""
    return behaviour(compiled(source).Trainer, TRIALS[trial])


def compare(make_trainer: Callable, source: str = HEALTHY) -> tuple[bool, str]:
    """Whether a trainer behaves as that of a script, the healthy one, and a sentence
    that says how."""
    largest = 0.0
    for trial, settings in enumerate(TRIALS):
        try:
            theirs = behaviour(make_trainer, settings)
        except Exception as error:
            return False, f"It ends in {type(error).__name__}: {error}"
        for name, expected in known_behaviour(source, trial).items():
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
