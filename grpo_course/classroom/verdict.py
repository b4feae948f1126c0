"""Whether what the text tells still holds once an experiment has been changed."""

import textwrap
from collections.abc import Sequence

import torch
from torch import Tensor

from grpo_course.classroom import record
from grpo_course.classroom.screen import WIDTH
from grpo_course.loop import ENOUGH, mean_and_error


def verdict(
    claim: str, higher: Tensor | Sequence[float], lower: Tensor | Sequence[float]
) -> None:
    """Print whether `higher` lies above `lower`, and by how many standard errors.

    `higher` and `lower` [seed] are one result of each seed, in the same order of
    seeds: they are compared seed by seed. `claim` is the sentence that they are to
    show. Fewer than two standard errors decide nothing.

    Raises ValueError for fewer than 3 seeds, or lengths that differ.
    """
    above = torch.as_tensor(higher).detach().double()
    below = torch.as_tensor(lower).detach().double()
    if above.dim() != 1 or above.shape != below.shape or len(above) < 3:
        raise ValueError(
            f"higher has the shape {list(above.shape)}, lower {list(below.shape)}; "
            "both need one number for each seed, the same seeds, at least 3: train "
            "with seeds=range(8) and take `history.final(...)`"
        )
    mean, error = (value.item() for value in mean_and_error(above - below))
    decided = abs(mean) >= ENOUGH * error and mean != 0
    answer = "It holds" if mean > 0 else "It is the other way round"
    gap = f"a difference of {mean:+.3f} in every seed"
    if error:
        size = f"{abs(mean / error):.1f} standard errors of {error:.3f}"
        gap = f"a difference of {mean:+.3f} or {size}"
    sentence = (
        f"{answer if decided else 'Undecided'}: {above.mean().item():.3f} against "
        f"{below.mean().item():.3f}, {gap}, {len(above)} seeds."
    )
    print(f'"{claim}"')
    print(textwrap.fill(sentence, WIDTH))
    if not decided:
        print(f"These seeds show a difference from about {ENOUGH * error:.3f} on.")


def expect(statement: bool | Tensor, sentence: str) -> None:
    """Say so where a result no longer is what the text tells: a learner moved a knob.

    Raises AssertionError instead where outputs are stored or compared, and in plain
    Python.
    """
    if statement:
        return
    if not record.learner_is_here():
        raise AssertionError(sentence)
    print(textwrap.fill(f"Not as the text tells: {sentence}", WIDTH))


def with_spread(values: Tensor) -> str:
    """[seed] -> mean, standard error, and how far the seeds lie apart, in words."""
    (mean, error), spread = mean_and_error(values), values.std()
    return f"{mean:.2f} ± {error:.2f}, {len(values)} seeds (their spread {spread:.2f})"
