"""A case: a complaint and what somebody kept; then probes, a line, a repair."""

import difflib
import io
import json
import textwrap
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
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
    compiled,
    cost_of,
    drawn_hunt,
    require_defect,
    source_with,
)
from grpo_course.lessons.hunt.probes import (
    FIRES,
    PROPERTIES,
    SILENT,
    VARIANTS,
    alarms_of,
    ask,
    found_by,
    hear,
)
from grpo_course.lessons.hunt.rewrites import rewritten
from grpo_course.lessons.hunt.script import Trainer
from grpo_course.lessons.pictures.nb10 import plot_log_panel

WORTH = 4  # points of a defect
WRONG = 2  # what a wrong accusation takes off
READS = 2  # methods that one reads for nothing; each further one takes a point off
SHORT = 8  # lines of a repair, at most
NARROW = 3  # lines of an accusation that may name the right place
LONGEST = 12  # lines of what a probe prints that are shown
OTHER_SEEDS = 10  # of hunted runs: not those of the healthy runs beside them


@dataclass
class Answer:
    """What a case does not tell: its script, the healthy one by the same hand, and the
    numbers of the defects that are left, as far as they have numbers."""

    source: str
    healthy: str
    left: list[int] = field(default_factory=list)
    num_defects: int = 1  # that it is worth the points of; of a healthy one, too


@dataclass
class Record:
    """What was done in a case, and what it was worth."""

    proofs: list[str] = field(default_factory=list)  # names of probes
    silent: list[Callable] = field(default_factory=list)  # probes that found nothing
    read: set[str] = field(default_factory=set)  # methods
    wrong: set[tuple[str, ...]] = field(default_factory=set)  # accusations
    granted: dict[tuple[str, ...], str] = field(default_factory=dict)  # and the words
    num_twins: int = 0
    points: int | None = None  # none while it is open

    def __str__(self) -> str:
        done = {
            "accused wrongly": len(self.wrong),
            "read": len(self.read),
            "asked a twin": self.num_twins,
        }
        return ", ".join(f"{name} {count}" for name, count in done.items() if count)


# By case, kept outside: who looks into a case shall find no cause, and who opens a turn
# again finds it as he left it.
ANSWERS: dict[str, Answer] = {}
RECORDS: dict[str, Record] = {}


def open_case(
    name: str | int | Callable, *others: int, seed: int | None = None
) -> "Case":
    """Open a case by the letter of a guided one, or by number; print what is known.

    With a second number the trainer has both defects. In place of a number may stand
    somebody's function that puts a bug into the text of the script. `seed` is that of
    its run; each guided case has its own. Raises ValueError for a letter or a number
    that there is not.
    """
    settings: dict[str, float] = {}
    says = "At least two things are wrong here. This is all that I have."
    numbers: tuple[int, ...] = ()
    if callable(name):
        title, says = "A friend's case", "I have put a bug into this trainer."
        answer = Answer(name(HEALTHY), HEALTHY)
    else:
        if isinstance(name, str):
            require_known("name", name, GUIDED)
            heard, number = GUIDED[name]
            numbers = (number,)
            says, settings = COMPLAINTS[heard].says, COMPLAINTS[heard].settings
        else:
            numbers = (name, *others)
            for number in numbers:
                settings |= require_defect(number).settings
            if not others:  # two together show something else than either
                says = require_defect(name).symptom
        title = f"Case {' and '.join(map(str, (name, *others)))}"
        answer = Answer(source_with(*numbers), HEALTHY, [*numbers], len(numbers))
    RECORDS.pop(title, None)
    if seed is None:
        seed = OTHER_SEEDS + [*GUIDED, name].index(name)
    return Case(title, says, settings, answer, seed).present()


def hunt(turn: int, seed: int = 0) -> "Case":
    """Open one of the cases of a hunt; another `seed` is another hunt.

    Each trainer is written by another hand. Of the run, the one who complains has kept
    the reward alone. A turn that was opened before is as it was left. Raises ValueError
    for a turn that there is not.
    """
    if turn not in range(1, NUM_TURNS + 1):
        raise ValueError(f"turn={turn!r}: there are turns 1 to {NUM_TURNS}.")
    heard, number = drawn_hunt(seed)[turn - 1]
    numbers = [] if number is None else [number]
    run = OTHER_SEEDS + 100 * seed + turn
    theirs, healthy = rewritten(run, source_with(*numbers), HEALTHY)
    answer = Answer(theirs, healthy, numbers)
    name, told = f"Turn {turn} of hunt {seed}", COMPLAINTS[heard]
    case = Case(name, told.says, told.settings, answer, run).present(paid=False)
    case.log = [{"reward": row["reward"]} for row in case.log]
    return case


class Case:
    """A trainer that somebody complains about; `module` is the script under test."""

    def __init__(
        self,
        name: str,
        says: str,
        settings: dict[str, float],
        answer: Answer,
        seed: int = 0,
    ):
        self.name, self.says, self.settings = name, says, settings
        self.seed = seed
        self.log: list[dict[str, float]] = []
        if name not in RECORDS:
            ANSWERS[name], RECORDS[name] = answer, Record()
        self.record = RECORDS[name]
        self.module = compiled(ANSWERS[name].source)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def points(self) -> int:
        """What it was worth; 0 as long as it is open."""
        return self.record.points or 0

    def make_trainer(self, **settings: float) -> Any:
        """A fresh trainer under test; the settings of the case, then these."""
        return self.module.Trainer(**(self.settings | settings))

    def present(self, paid: bool = True) -> "Case":
        """Train once, print the complaint and three samples, and return the case.

        Where somebody has kept what they were `paid`, that is printed, too.
        """
        print(self.name)
        if self.record.points is not None:
            print(f"closed, with {self.points} points")
        elif str(self.record):
            print(f"so far: {self.record}")
        print(textwrap.fill(f'"{self.says}"', WIDTH))
        trainer = self.make_trainer(seed=self.seed)
        self.log = trainer.train()
        known = ", ".join(f"{key}={value}" for key, value in self.settings.items())
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
        plot_log_panel(self.log, healthy_runs(self.settings))

    def probe(self, *probes: Callable) -> bool:
        """Ask probes, as many as you like.

        One that fires here and in no healthy trainer is a proof. Returns whether all
        were silent. Raises ValueError for one that ends in an error.
        """
        silent, quiet = True, []
        for probe in probes:
            said, printed = heard_of(probe, self.make_trainer)
            told = f"{probe.__name__}: silent"
            if said == SILENT:
                self.record.silent.append(probe)
                if not printed:  # told together, so that the numbers stand out
                    quiet.append(probe.__name__)
                    continue
            else:
                silent, told = False, self._weigh(probe)
            print("\n".join(wrap(told)))
            show_printed(printed)
        if quiet:
            print("\n".join(wrap(f"{', '.join(quiet)}: silent")))
        return silent

    def _weigh(self, probe: Callable) -> str:
        """Whether a probe that fires here proves anything.

        A number copied from this very run differs in all other trainers, so the healthy
        one by the same hand is asked, too.
        """
        name = probe.__name__
        alarms = alarms_of(probe, self.settings)
        if not alarms and ask(probe, self._make_twin) != SILENT:
            alarms = ["its healthy twin"]
        if alarms:
            return (
                f"{name}: fires, and on healthy trainers too ({', '.join(alarms)}), so "
                "it proves nothing"
            )
        if name not in self.record.proofs:
            self.record.proofs.append(name)
        return f"{name}: FIRES, and is silent in {len(VARIANTS) + 1} healthy trainers"

    def twin(self, probe: Callable) -> None:
        """A hint, for a point: what a probe says of the healthy trainer by the same
        hand, with the same settings."""
        said, printed = heard_of(probe, self._make_twin)
        if self.record.points is None:
            self.record.num_twins += 1
        print(f"{probe.__name__}, of its healthy twin: {said}")
        show_printed(printed)

    def _make_twin(self, **settings: float) -> Any:
        """The healthy trainer by the same hand."""
        make = compiled(ANSWERS[self.name].healthy).Trainer
        return make(**(self.settings | settings))

    def read(self, stage: str) -> None:
        """Show a method of the trainer under test, once a probe has proved something.

        Raises ValueError before that, and for a method that there is not.
        """
        methods = [name for name, each in vars(Trainer).items() if callable(each)]
        require_known("stage", stage, methods)
        self._require_proof()
        if self.record.points is None:
            self.record.read.add(stage)
        show(getattr(self.module.Trainer, stage))

    def _require_proof(self) -> None:
        if not self.record.proofs and self.record.points is None:
            raise ValueError(
                f"{self.name}: no probe of yours has shown yet that anything is wrong. "
                "One has to fire here and be silent in healthy trainers; then read, "
                "and accuse."
            )

    def accuse(self, old: str, new: str, *more: str) -> bool:
        """Accuse a line: what stands there, and what ought to. The repaired trainer is
        run beside the healthy one; if they are equal, the debriefing follows.

        `old` is a text that stands in the script once; where two places are at fault,
        `more` is the second pair. Raises ValueError for a text that does not stand
        there, for a repair of more than a few lines, and before a probe has proved
        something. One that was right tells the same when its cell is run again.
        """
        given, record = (old, new, *more), self.record
        if given in record.granted:
            print(record.granted[given], end="")
            return True
        if record.points is not None:
            print(f"{self.name} is closed, with {self.points} points.")
            return False
        self._require_proof()
        source = self._repaired(*given)
        with redirect_stdout(io.StringIO()) as told:
            right, is_fined = self._judge(source, given[::2])
        if right:
            record.granted[given] = told.getvalue()
        elif is_fined:
            record.wrong.add(given)
        print(told.getvalue(), end="")
        return right

    def _repaired(self, *texts: str) -> str:
        """The script with a repair."""
        source = ANSWERS[self.name].source
        count = sum(len(text.strip().splitlines()) for text in texts[1::2])
        if count > SHORT:
            raise ValueError(
                f"your repair has {count} lines. A bug is a few lines: take those that "
                f"are at fault, and write at most {SHORT} in their place."
            )
        for wrong, right in zip(texts[::2], texts[1::2], strict=True):
            if (times := source.count(wrong)) != 1:
                raise ValueError(
                    f"{wrong!r} stands {times} times in the script; take a text that "
                    "stands there once, spaces included."
                )
            source = source.replace(wrong, right)
        return source

    def _judge(self, source: str, accused: Sequence[str]) -> tuple[bool, bool]:
        """Whether a repair mends something, and whether it costs points; also the
        case's state and words after it."""
        answer = ANSWERS[self.name]
        is_fined = not self._at_fault(accused)
        make, before = compiled(source).Trainer, answer.source
        equal, words = compare(make, answer.healthy)
        mended = [*answer.left]
        if compare(make, before)[0]:
            equal, mended, is_fined = False, [], True
            words = "It does what it did before, so this line was not at fault."
        elif not equal:  # one of two may be repaired
            mended = [n for n in answer.left if is_mended(make, n, answer.left)]
            words = "This line was at fault." if mended else words
        right = equal or bool(mended)
        print("\n".join(wrap(f"[{'v' if right else 'x'}] {words}")))
        if not right:
            fine = f"A wrong accusation takes {WRONG} points off."
            free = "The place is right, and your repair is not. That costs nothing."
            print(f"    {fine if is_fined else free}")
            return False, is_fined
        for number in mended:
            show_debriefing(number)
        show_change(before, source)
        if equal:
            self._close(WORTH)
        else:
            answer.source, self.module = source, compiled(source)
            answer.left = [n for n in answer.left if n not in mended]
            print("\nThat was one. Something else is still wrong.")
        return True, False

    def _at_fault(self, accused: Sequence[str]) -> bool:
        """Whether one of a few accused lines is among those that are wrong."""
        answer, named, wrong = ANSWERS[self.name], set(), set()
        for text in accused:
            start = answer.source.index(text) + len(text) - len(text.lstrip())
            first = answer.source.count("\n", 0, start)
            named |= {*range(first, first + len(text.strip().splitlines()))}
        theirs, ours = answer.source.splitlines(), answer.healthy.splitlines()
        matcher = difflib.SequenceMatcher(None, theirs, ours, autojunk=False)
        for tag, start, end, _, _ in matcher.get_opcodes():
            if tag == "insert":  # a line is missing: either neighbour is accused
                wrong |= {start - 1, start}
            elif tag != "equal":
                wrong |= {*range(start, end)}
        return len(named) <= NARROW and bool(named & wrong)

    def acquit(self) -> bool:
        """Say that nothing is wrong with this trainer.

        If so, that is worth as much as your silent probes would have seen: all points
        only where they find all defects. Raises ValueError where none was silent.
        """
        record, answer = self.record, ANSWERS[self.name]
        if record.points is not None:
            print(f"{self.name} is closed, with {self.points} points.")
            return False
        if not record.silent:
            raise ValueError(
                f"{self.name}: no probe of yours was silent here, so you know nothing "
                "of it yet. Ask what it gets right, and then acquit."
            )
        if answer.source != answer.healthy:
            record.wrong.add(("acquitted",))
            print(f"[x] Something is wrong here. That takes {WRONG} points off.")
            return False
        sound = [probe for probe in {*record.silent} if not alarms_of(probe)]
        seen = found_by(sound)
        print(
            "\n".join(
                wrap(
                    f"[v] It is healthy. Your silent probes find {len(seen)} of "
                    f"{len(DEFECTS)} defects elsewhere; that is how sure you can be."
                )
            )
        )
        self._close(round(WORTH * len(seen) / len(DEFECTS)))
        return True

    def _close(self, worth: int) -> None:
        """Print the points."""
        record, paid = self.record, ANSWERS[self.name].num_defects
        further = max(0, len(record.read) - READS * paid)
        costs = WRONG * len(record.wrong) + further + record.num_twins
        record.points = max(0, worth * paid - costs)
        print(f"\n{self.name}: {self.points} of {WORTH * paid} points.")


def is_mended(make: Callable, number: int, left: list[int]) -> bool:
    """Whether this one of several defects is repaired, and no other."""
    others = [each for each in left if each != number]
    return bool(others) and compare(make, source_with(*others))[0]


def heard_of(probe: Callable, make_trainer: Callable) -> tuple[str, str]:
    """What a probe says and prints. Raises ValueError for one that ends in an error."""
    said, printed = hear(probe, make_trainer)
    if said not in (SILENT, FIRES):
        raise ValueError(
            f"{probe.__name__} ended in an error and says nothing of the trainer: "
            f"{said}."
        )
    return said, printed


# What is told afterwards.


def show_printed(printed: str) -> None:
    """Print what a probe printed; long lines are broken, and of many the number is
    told."""
    lines = [
        part for line in printed.splitlines() for part in textwrap.wrap(line, WIDTH - 4)
    ]
    if len(lines) > LONGEST:
        left = f"({len(lines) - LONGEST + 1} more lines)"
        lines = [*lines[: LONGEST - 1], left]
    for line in lines:
        print(f"    {line}")


def show_debriefing(number: int) -> None:
    """Print cause, property and thread, and how one would have come to look there."""
    defect = DEFECTS[number]
    cost = cost_of(defect.cause, awake=True)
    known = "".join(f", {key}={value}" for key, value in defect.settings.items())
    for name, words in (
        ("first look", defect.first_look),
        ("cause", f"{defect.cause}, number {number}. {defect.why}"),
        ("property", PROPERTIES[defect.probes[0]].says),
        ("depends on", defect.sleeps),
        ("reward", f"{cost} in eight pairs of runs of ten rollouts{known}"),
        ("seen in", defect.thread),
    ):
        if words:
            told = textwrap.fill(words, WIDTH - 12)
            print(f"{name + ':':12}" + textwrap.indent(told, " " * 12).lstrip())


def show_change(before: str, after: str) -> None:
    """Print the lines of a script that a repair has changed."""
    lines = changed_lines(before, after)
    margin = min(len(line) - len(line[1:].lstrip()) for line in lines)
    for line in lines:
        text = f"{line[0]} {line[margin:]}"
        print(textwrap.fill(text, WIDTH, subsequent_indent=f"{line[0]}     "))


def changed_lines(before: str, after: str) -> list[str]:
    """The lines that differ: - in the first script, + in the second."""
    compared = difflib.unified_diff(
        before.splitlines(), after.splitlines(), lineterm="", n=0
    )
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
def known_behaviour(make_trainer: Callable, trial: int) -> dict[str, Tensor]:
    """That in one of the trials, which runs once."""
    return behaviour(make_trainer, TRIALS[trial])


def compare(make_trainer: Callable, source: str = HEALTHY) -> tuple[bool, str]:
    """Whether a trainer behaves as that of a script, the healthy one, and a sentence
    that says how."""
    largest = 0.0
    for trial, settings in enumerate(TRIALS):
        try:
            theirs = known_behaviour(make_trainer, trial)
        except Exception as error:
            return False, f"It ends in {type(error).__name__}: {error}"
        known = known_behaviour(compiled(source).Trainer, trial)
        for name, expected in known.items():
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
