"""Notebook 04's investigation: which kind of token does the harm of many steps?

A weight says how hard a loss pushes each token along its delta: weight(ratio, good) of
float and bool [batch trial pos] gives float [batch trial pos]. The naive loss has the
weight 1, and the loss with the ratio has the ratio.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from grpo_course.loop import ENOUGH, mean_and_error

Weight = Callable[[Tensor, Tensor], Tensor]

KINDS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "good, risen": lambda ratio, good: good & (ratio > 1),
    "good, fallen": lambda ratio, good: good & (ratio < 1),
    "bad, risen": lambda ratio, good: ~good & (ratio > 1),
    "bad, fallen": lambda ratio, good: ~good & (ratio < 1),
}
NOT_MOVED = "not moved yet"
GOAL = 0.7  # P(sorted) that one changed kind has to reach
RATES = (0.003, 0.01)


def without(start: Weight, kind: str) -> Weight:
    """No push on one kind of token; the others as `start` has them."""
    return lambda ratio, good: torch.where(
        KINDS[kind](ratio, good), 0.0, start(ratio, good)
    )


def changed_kinds(weight: Weight, start: Weight) -> tuple[list[str], bool]:
    """The kinds of token, among them those at ratio 1, that two weights push apart.

    Then whether `weight` pushes any of them harder than `start`, or the other way.
    """
    ratio = torch.tensor([0.01, 0.1, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 10.0])
    ratio = ratio.repeat(2)[None, None]  # good ones, then bad ones, [batch trial pos]
    good = torch.arange(ratio.shape[-1])[None, None] < ratio.shape[-1] // 2
    ours, theirs = (
        torch.as_tensor(each(ratio, good), dtype=torch.float).expand_as(ratio)
        for each in (weight, start)
    )
    apart = ~torch.isclose(ours, theirs)
    found = [
        name
        for name, of_kind in KINDS.items()
        if (apart & of_kind(ratio, good)).any().item()
    ]
    found += [NOT_MOVED] * bool((apart & (ratio == 1)).any())
    return found, bool((apart & ((ours > theirs) | (ours < 0))).any())


def evidence(
    weight: Weight,
    start: Weight,
    learned: Callable[[Weight, float], Tensor],
    rates: Sequence[float] = RATES,
) -> None:
    """Print what a changed weight does to learning, and what follows from it.

    learned(weight, rate) trains many seeds and gives their P(sorted), [seed]. A kind is
    convicted if it alone was changed, if that helps at every rate by more than two
    standard errors, and if at the last one P(sorted) is above the goal by as much.
    """
    changed, harder = changed_kinds(weight, start)
    print("changed:", "; ".join(changed) or "nothing")
    if not changed:
        print("Nothing follows: change the push on one kind of token.")
        return
    helps = []
    for rate in rates:
        before, after = learned(start, rate), learned(weight, rate)
        gain, error = mean_and_error(after - before)
        helps.append(bool(gain > ENOUGH * error))
        print(
            f"rate {rate:<5}  P(sorted) {before.mean():.2f} -> {after.mean():.2f}, "
            f"a difference of {gain:+.2f} ± {error:.2f}"
        )
    mean, error = mean_and_error(after)
    if len(changed) > 1:
        print("Several kinds changed at once, so you cannot tell which of them did it.")
    elif all(helps) and mean - ENOUGH * error > GOAL:
        print(f"Convicted: {changed[0]}.")
    elif all(helps):
        print(
            f"It does harm, but {GOAL} is not reached: push it still less, or seek on."
        )
    elif harder:
        print(
            "Nobody is acquitted: you pushed harder, or the other way. Push less hard."
        )
    elif any(helps):
        print(f"Not convicted: {changed[0]}. It helps at one rate, but not at both.")
    else:
        print(f"Acquitted: {changed[0]}. It does not help at either rate.")


def without_each(
    starts: Sequence[Weight], learned: Callable[[Weight, float], Tensor]
) -> dict[str, Tensor]:
    """Print what is learned without a push on one kind of token, from each start.

    At each of RATES. -> P(sorted) without each kind, from the first start, at the last
    """
    ends: dict[str, Tensor] = {}
    print(" " * 20 + "".join(f"{'from ' + start.__name__:>26s}" for start in starts))
    print(f"{'P(sorted) at rate':20s}", end="")
    print("".join(f"{rate:13g}" for rate in RATES * len(starts)))
    for name in ("nothing", *KINDS):
        print(f"let go: {name:12s}", end="")
        for start in starts:
            weight = without(start, name) if name in KINDS else start
            for rate in RATES:
                mean, error = mean_and_error(learned(weight, rate))
                print(f"{mean:6.2f} ± {error:.2f}", end="")
            ends.setdefault(name, mean)
        print()
    return {name: ends[name] for name in KINDS}
