"""Notebook 03's investigation: evidence against "a baseline always saves noise"."""

import textwrap
from collections.abc import Callable

from grpo_course.classroom.screen import WIDTH

SIZES = range(2, 65)

# p, the size of the group, points on top of every reward
# -> variance with raw rewards, and with leave-one-out
Noises = Callable[[float, int, float], tuple[float, float]]


def evidence(
    noises: Noises, always: float, sometimes: float, edge: float, more: float
) -> None:
    """Print what each finding comes to, and whether it stands."""
    chances = {"always": always, "sometimes": sometimes, "edge": edge}
    for name, p in chances.items():
        if not 0.01 < p < 1:  # at 0 and 1 nothing varies, and edge looks at p - 0.01
            return tell(False, f"{name} = {p:g}: take a p above 0.01 and below 1")
    if abs(round(edge, 2) - edge) > 1e-6:
        return tell(False, f"edge = {edge:g}: round it to one hundredth")

    def noisier(p: float, size: int, points: float = 0.0) -> bool:
        raw, left_out = noises(p, size, points)
        return left_out > raw

    worse = [size for size in SIZES if noisier(always, size)]
    tell(
        len(worse) == len(SIZES),
        f"always = {always}: noisier in groups of {spans(worse, SIZES)}",
    )

    worse = [size for size in SIZES if noisier(sometimes, size)]
    stands = {2, 4} <= set(worse) and 64 not in worse
    tell(stands, f"sometimes = {sometimes}: noisier in groups of {spans(worse, SIZES)}")

    below, at = noisier(edge - 0.01, 64), noisier(edge, 64)
    words = f"G = 64 is {'noisier' if at else 'quieter'} at {edge:.2f}"
    words += f" and {'noisier' if below else 'quieter'} at {edge - 0.01:.2f}"
    tell(at and not below, f"edge = {edge:g}: {words}")

    raw, left_out = noises(always, 8, more)
    words = f"p = {always}, G = 8: raw {raw:.4f}, leave-one-out {left_out:.4f}"
    stands = noisier(always, 8) and left_out < raw
    tell(stands, f"more = {more:g}: {words}")


def tell(stands: bool, words: str) -> None:
    """One finding, marked."""
    line = f"[{'v' if stands else 'x'}] {words}"
    print(textwrap.fill(line, WIDTH, subsequent_indent="    "))


def spans(sizes: list[int], of: range) -> str:
    """The sizes in words: which, or none, or all."""
    if not sizes:
        return "no size"
    if len(sizes) == len(of):
        return f"every size from {of[0]} to {of[-1]}"
    together = sizes == list(range(sizes[0], sizes[-1] + 1)) and len(sizes) > 1
    named = f"{sizes[0]} to {sizes[-1]}" if together else ", ".join(map(str, sizes))
    return f"{named} only"
