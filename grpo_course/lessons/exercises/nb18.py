"""The exercises of 18_full_gsm8k."""

from math import comb

from grpo_course.classroom.check import case, exercise


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
EXACTLY = "At least so unevenly: the falls that are more uneven still count, too."
MORE = "At least so unevenly: the fall that you saw counts as well."
WAYS = (
    "Twelve flips with two heads or fewer, or with ten or more, are at least as uneven "
    "as ten and two. Count their ways, and divide by all of them."
)
EVEN = (
    "Where as many were lost as won, every fall is at least so uneven: 1. Both sides "
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
falls more evenly: the question is how often it falls at least so unevenly.
"""
