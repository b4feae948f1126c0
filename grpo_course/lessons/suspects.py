"""The inquiry of notebooks 02 and 16: which suspect stops the policies?

An experiment changes one knob. Its numbers convict a suspect or free it, and whoever
names the guilty has to agree with them.
"""

import textwrap
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from grpo_course.classroom.screen import WIDTH
from grpo_course.loop import ENOUGH, mean_and_error

FEWEST = 3  # experiments of an inquiry, each with a knob of its own
LEAST = 0.05  # a change that matters


def judge_suspects(
    experiments: Mapping[str, Mapping[str, object]],
    ends: Mapping[str, Tensor],
    usual: Tensor,
    guilty: Iterable[str],
) -> bool:
    """Print what each experiment says; whether `guilty` is what they show together.

    `experiments` has the knobs that were changed for each suspect, `ends` how good its
    policies became [seed], and `usual` [seed] how good those became for which nothing
    was changed. A suspect is convicted where the change helps by more than two standard
    errors, seed by seed, and by `LEAST` or more.
    """
    accused, convicted, tried = set(guilty), set(), set()
    turned = set()  # knobs: the same one twice is one suspect
    for name, knobs in experiments.items():
        change = ends[name] - usual
        mean, error = (value.item() for value in mean_and_error(change))
        numbers = f"{usual.mean():.3f} -> {ends[name].mean():.3f}"
        numbers += f", a change of {mean:+.3f} ± {error:.3f}"
        if len(knobs) != 1:
            problem = "nothing was changed" if not knobs else "two things were changed"
            finding = f"{problem}, so it shows nothing. Change one knob."
        elif torch.equal(ends[name], usual):
            finding = "every number is what it was. Is the knob where it always is?"
        else:
            tried.add(name)
            turned |= set(knobs)
            helps = mean >= max(ENOUGH * error, LEAST)
            harms = -mean >= max(ENOUGH * error, LEAST)
            convicted |= {name} if helps else set()
            word = "It helps." if helps else "No help is seen."
            word = "It harms." if harms else word
            finding = f"{numbers}. {word}"
        print(textwrap.fill(f"{name}: {finding}", WIDTH, subsequent_indent="    "))
    missing = what_is_missing(accused, convicted, tried, turned, set(experiments))
    free = ", ".join(sorted(tried - convicted)) or "nobody"
    closed = f"The case is closed. Guilty: {', '.join(sorted(convicted))}. "
    closed += f"No help was seen from: {free}."
    print(textwrap.fill(missing or closed, WIDTH))
    return not missing


def what_is_missing(
    accused: set[str],
    convicted: set[str],
    tried: set[str],
    turned: set[str],
    known: set[str],
) -> str:
    """What keeps the case open, in words; "" if nothing does."""
    if unknown := sorted(accused - known):
        return f"No experiment is called {unknown[0]!r}."
    if len(tried) < FEWEST:
        return (
            f"Experiments that show something: {len(tried)}. The case needs "
            f"{FEWEST}, and one of them that helps."
        )
    if len(turned) < FEWEST:
        return f"Knobs that they change: {len(turned)}. The case needs {FEWEST}."
    if not convicted:
        return "Nothing has helped yet. What have you not changed?"
    if innocent := sorted(accused - convicted):
        return f"You accuse {innocent[0]!r}, and your own numbers do not convict it."
    if missed := sorted(convicted - accused):
        return f"Your numbers convict {missed[0]!r}, and you do not name it."
    return ""
