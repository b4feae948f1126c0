"""How long hostile completions of one megabyte take to grade, and of two.

Run from the repository root: python benchmarks/bench_grading.py
"""

import time
from collections.abc import Callable

from grpo_course.text.grader import correctness_reward, length_reward, lenient_reward
from grpo_course.text.responses import format_reward, in_template

MEGABYTE = 1_000_000
REWARDS = (correctness_reward, lenient_reward, format_reward, length_reward)
REPEATS = 5
# A text is one of these, repeated, between a beginning and an end.
HOSTILE = {
    "digits in the tag": ("<answer>", "9", "</answer>"),
    "leading zeros": ("<answer>", "0", "7</answer>"),
    "commas and digits": ("<answer>", "1,", "</answer>"),
    "slashes and digits": ("<answer>", "1/", "1</answer>"),
    "minus signs": ("<answer>", "-", "7</answer>"),
    "spaces in the tag": ("<answer>", " ", "7</answer>"),
    "equals signs": ("<answer>", "=", "7</answer>"),
    "digits of other scripts": ("<answer>", "\u0667", "</answer>"),
    "opening tags": ("", "<answer>", ""),
    "closing tags": ("", "</answer>", ""),
    "whole answers": ("", "<answer>7</answer>", ""),
    "crossed tags": ("", "</think><answer>", ""),
    "beginnings of a tag": ("", "</answer", ""),
    "angle brackets": ("", "<", ""),
    "calculator marks": ("", "<<1+1=", ""),
    "no digit at all": ("", "so ", ""),
    "numbers in the text": ("", "12 ", ""),
}


def hostile(begin: str, piece: str, end: str, size: int) -> str:
    """One text of about `size` bytes."""
    return begin + piece * (size // len(piece.encode())) + end


def milliseconds(reward: Callable, text: str) -> float:
    """The fastest of a few calls on one completion."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        reward([text], answer=["7"])
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def main() -> None:
    print(f"milliseconds for one completion, fastest of {REPEATS} calls: 1 MB, 2 MB")
    print(f"{'':24}" + "".join(f"{r.__name__:>22}" for r in REWARDS))
    worst = 0.0
    for name, parts in HOSTILE.items():
        once, twice = (hostile(*parts, size) for size in (MEGABYTE, 2 * MEGABYTE))
        cells = []
        for reward in REWARDS:
            one, two = milliseconds(reward, once), milliseconds(reward, twice)
            worst = max(worst, one)
            cells.append(f"{one:14.2f}, {two:5.2f} ")
        print(f"{name:24}" + "".join(cells))
    usual = milliseconds(correctness_reward, in_template("3+4=7", "7"))
    print(f"\nworst of all at 1 MB: {worst:.2f} ms. A usual completion: {usual:.4f} ms")


if __name__ == "__main__":
    main()
