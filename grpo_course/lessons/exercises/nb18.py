"""The exercises of 18_full_gsm8k."""

from math import comb

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import numbers
from grpo_course.loop import half_width


@exercise("18.1")
def by_chance(lost, won):
    """int, int -> float"""
    flips, few = lost + won, min(lost, won)
    ways = sum(comb(flips, heads) for heads in range(few + 1))
    return min(1.0, 2 * ways / 2**flips)


SIDES = (
    "A coin may fall unevenly to either side, and nobody said before which: as many "
    "lost rows would have surprised you no less than as many won ones."
)
EXACTLY = "At least as unevenly: the falls that are more uneven still count, too."
MORE = "At least as unevenly: the fall that you saw counts as well."
WAYS = (
    "Twelve flips with two heads or fewer, or with ten or more, are at least as uneven "
    "as ten and two. Count their ways, and divide by all of them."
)
EVEN = (
    "Where as many were lost as won, every fall is at least as uneven: 1. Both sides "
    "together hold the middle twice, so cut at 1."
)
FEW = "Count from the smaller number: up to the larger one it is nearly all falls."
by_chance.insight = (
    "Rows that did not change say nothing, and the others are flips of a coin. Ten "
    "against two is rare, three against one is not."
)
by_chance.cases = (
    case("ten lost, two won", WAYS, lost=10, won=2),
    case("two lost, ten won", "Ten won are as uneven as ten lost.", lost=2, won=10),
    case("six lost, none won", lost=6, won=0),
    case("one lost, three won", "A coin often does so.", lost=1, won=3),
    case("five and five", EVEN, lost=5, won=5),
    case("nothing changed", EVEN, lost=0, won=0),
)
by_chance.mistakes = f"""
2 * ways => ways | {SIDES}
sum(comb(flips, heads) for heads in range(few + 1)) => comb(flips, few) | {EXACTLY}
range(few + 1) => range(few) | {MORE}
min(1.0, 2 * ways / 2**flips) => 2 * ways / 2**flips | {EVEN}
min(lost, won) => max(lost, won) | {FEW}
min(lost, won) => lost | Start from the smaller of the two, whichever that is.
min(lost, won) => won | Start from the smaller of the two, whichever that is.
min(1.0, 2 * ways / 2**flips) => 1 - 2 * ways / 2**flips | That is how often a coin \
falls more evenly: the question is how often it falls at least as unevenly.
"""


@exercise("18.2")
def intervals(change):
    """[seed row] -> float, float"""
    over_seeds = half_width(change.sum(dim=1))
    over_rows = change.shape[1] * half_width(change.mean(dim=0))
    return over_seeds, over_rows


def _changes(seeds, rows, lean=0.0):
    """Rows lost and won at random, some of them by all seeds alike."""
    alike = numbers(rows) + 0.5 * numbers(seeds, rows) + lean
    return (alike > 0.9).double() - (alike < -0.9).double()


IN_ROWS = "In rows: add up what a run won and lost."
TIMES = (
    "That is the interval of a single row's mean. Of all the rows together, in rows, it "
    "is as many times wider."
)
APART = (
    "Five runs asked one row are not five rows: what makes it easy is the same for all. "
    "First make one number of each row."
)
intervals.insight = (
    "Ask what would be new if the experiment were made again. One number for each of "
    "these, a seed or a row, and then the interval."
)
intervals.cases = (
    case("five seeds, forty rows", APART, change=_changes(5, 40)),
    case("three seeds, thirty rows, more won than lost", change=_changes(3, 30, 0.5)),
    case("nine seeds, six rows", change=_changes(9, 6)),
    case(
        "every seed wins and loses the same rows",
        "Other seeds would change nothing: their half-width is 0.",
        change=_changes(1, 20, 0.3).repeat(4, 1),
    ),
)
intervals.mistakes = f"""
change.sum(dim=1) => change.mean(dim=1) | {IN_ROWS}
change.shape[1] * => | {TIMES}
half_width(change.mean(dim=0)) => half_width(change.flatten()) | {APART}
change.mean(dim=0) => change.sum(dim=0) | The mean over the runs, not their sum: you \
want what one run wins.
change.shape[1] => change.shape[0] | You multiply by the number of seeds. How many \
rows are there?
over_seeds, over_rows => over_rows, over_seeds | The seeds first, then \
the rows.
change.sum(dim=1) => change.sum(dim=0) && change.mean(dim=0) => change.mean(dim=1) | \
For other seeds you want one number a seed, so add up over the rows; for other rows \
one number a row.
over_seeds, over_rows => 2 * over_seeds, 2 * over_rows | That is the \
whole width. half_width gives the half already.
"""
