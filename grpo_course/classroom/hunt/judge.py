"""What a probe says of the healthy script in many variants, and of every defect."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from grpo_course.checks import require_known
from grpo_course.classroom.hunt.broken import broken
from grpo_course.classroom.hunt.defects import DEFECTS
from grpo_course.classroom.hunt.properties import PROPERTIES, Property
from grpo_course.classroom.hunt.script import Trainer
from grpo_course.classroom.old_check.colour import show_verdict
from grpo_course.classroom.old_check.report import wrap
from grpo_course.classroom.plots.probe_matrix import plot_matrix

# A healthy trainer has to look healthy with any of these.
VARIANTS: dict[str, dict[str, float]] = {
    "as it is": {},
    "seed 1": {"seed": 1},
    "seed 2": {"seed": 2},
    "half the rate": {"learning_rate": 0.0025},
    "a large rate": {"learning_rate": 0.02},
    "one inner step": {"num_inner_steps": 1},
    "no KL": {"beta": 0.0},
    "a heavy KL": {"beta": 0.5},
    "groups of four": {"num_responses": 4},
    "two prompts": {"num_prompts": 2},
    "short responses": {"max_new_tokens": 10},
    "three numbers": {"min_numbers": 3, "max_numbers": 3},
}
SLOW = 1.5  # seconds of one call on one core, above which a probe is told so
FIRES, SILENT = "fires", "silent"


@dataclass(frozen=True)
class Row:
    """What one probe said: of variants by name, of trainers by number.

    An entry is "fires", "silent", or the error that the probe ended in.
    """

    healthy: dict[str, str]
    broken: dict[int, str]
    seconds: float  # of the slowest call

    def found(self) -> list[int]:
        """Numbers of the trainers in which it fires."""
        return [number for number, said in self.broken.items() if said != SILENT]

    def alarms(self) -> list[str]:
        """Healthy variants in which it fires."""
        return [name for name, said in self.healthy.items() if said != SILENT]


def make_variant(module_trainer: Callable, settings: dict) -> Callable:
    """A factory that a probe may give further settings; its own go before."""

    def make_trainer(**own: float) -> object:
        return module_trainer(**(settings | own))

    return make_trainer


def ask(probe: Callable, make_trainer: Callable) -> str:
    """Silent, fires, or the error; random numbers outside are left as they were."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        try:
            healthy = probe(make_trainer)
            if healthy is None:
                return "it returned nothing: end it with `return` and a truth value"
            return SILENT if bool(healthy) else FIRES
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def run_probe(
    probe: Callable, numbers: Iterable[int] = DEFECTS, variants: dict | None = None
) -> Row:
    """Ask a probe about the healthy script and about trainers with a defect."""
    variants = VARIANTS if variants is None else variants
    factories = {name: make_variant(Trainer, known) for name, known in variants.items()}
    slowest, healthy, sick = 0.0, {}, {}
    Trainer(num_prompts=1).collect()  # whatever is loaded on first use
    for name, factory in factories.items():
        start = time.process_time()
        healthy[name] = ask(probe, factory)
        slowest = max(slowest, time.process_time() - start)
    for number in numbers:
        sick[number] = ask(probe, make_variant(broken(number).Trainer, {}))
    return Row(healthy, sick, slowest)


def judge_probe(
    probe: Callable,
    property_name: str,
    numbers: Iterable[int] = DEFECTS,
    variants: dict | None = None,
) -> bool:
    """Print what a probe finds, misses and fires at wrongly, and draw its row.

    `property_name` is one of PROPERTIES: what the probe is to ask. Returns whether the
    probe does its work, so that a cell can use it or the course's own. Trainers are
    named by number alone.
    """
    require_known("property_name", property_name, PROPERTIES)
    row = run_probe(probe, numbers, variants)
    problems = faults(row, PROPERTIES[property_name])
    show_verdict([line for words in told(row, problems) for line in wrap(words)])
    plot_matrix({probe.__name__: row})
    return not problems


def faults(row: Row, asked: Property) -> list[str]:
    """What is wrong with a probe of a property, in sentences; none if it is right."""
    found, asked_of = set(row.found()), set(row.broken)
    missed = sorted((asked.must_find() & asked_of) - found)
    wrongly = sorted(asked.must_not() & found)
    words = alarm_words(row)
    if missed:
        words.append(
            f"It stays silent for {numbered(missed)}, where the property is broken. "
            "Ask for the worst token instead of the mean, make the case harder, or "
            "look at what the update itself computes."
        )
    if wrongly:
        words.append(
            f"It fires for {numbered(wrongly)}, where the property holds: it looks "
            "at something else as well."
        )
    if row.seconds > SLOW:
        words.append(
            f"One call takes {row.seconds:.1f} s: a probe should take less than "
            f"{SLOW:g} s. Train less, or not at all."
        )
    return words


def alarm_words(row: Row) -> list[str]:
    """What to say of a probe that is not silent on healthy trainers."""
    if errors := [said for said in row.healthy.values() if said not in (SILENT, FIRES)]:
        return [f"On a healthy trainer it ends in an error: {errors[0]}"]
    if alarms := row.alarms():
        return [
            f"It fires on healthy trainers: {', '.join(alarms)}. What you look at "
            "depends on more than the property, or the tolerance is too narrow."
        ]
    return []


def told(row: Row, problems: list[str]) -> list[str]:
    """The verdict as paragraphs, the first with its mark."""
    if problems:
        return [f"[x] {problems[0]}", *(f"    {each}" for each in problems[1:])]
    found = row.found()
    return [
        f"[v] It is silent in {len(row.healthy)} healthy trainers and fires for "
        f"{numbered(found)}, as it must."
    ]


def numbered(numbers: list[int]) -> str:
    """Trainers by number, as one says it."""
    names = ", ".join(str(number) for number in numbers)
    return f"trainer {names}" if len(numbers) == 1 else f"trainers {names}"
