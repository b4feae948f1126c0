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
def shared_at_random(start, one, two):
    """str, str, str -> float"""
    first = list(zip(start, one)).count(("0", "1"))
    second = list(zip(start, two)).count(("0", "1"))
    return first * second / start.count("0")


DRAWN = (
    "A run can win only rows that were wrong before: that is how many there are to "
    "draw from."
)
RIGHT = "A row that was right before is not won, though it is right at the end."
LOST = "Those are the rows lost. A row is won if it was wrong before, and then right."
THEY_DO = (
    "That is how many they do share. Random draws share fewer or more: how many on the "
    "average?"
)
shared_at_random.insight = (
    "Each row that one run won is among those of the other as often as any row that "
    "was wrong. What they share beyond that, the rows or the runs have in common."
)
shared_at_random.cases = (
    case(
        "four won and one lost, five won and one lost",
        start="000000000111",
        one="111100000011",
        two="111011000110",
    ),
    case("none was lost", start="000001", one="110001", two="101001"),
    case("they share no row", start="00001111", one="11001111", two="00101111"),
    case("one won nothing", start="0001", one="0001", two="1101"),
    case("one won all there were", start="000111", one="111000", two="100111"),
    case("equal ends", start="00000001", one="11000000", two="11000000"),
)
shared_at_random.mistakes = f"""
start.count("0") => len(start) | {DRAWN}
list(zip(start, one)).count(("0", "1")) => one.count("1") && list(zip(start, two))\
.count(("0", "1")) => two.count("1") | {RIGHT}
return sum(marks == ("0", "1", "1") for marks in zip(start, one, two)) | {THEY_DO}
first * second / start.count("0") => (first + second) / start.count("0") | How many of \
the first run's rows does the second draw? It draws each of them equally often.
list(zip(start, one)).count(("0", "1")) => one.count("1") - start.count("1") && list(\
zip(start, two)).count(("0", "1")) => two.count("1") - start.count("1") | That is how \
many more it won than it lost. Count the rows that it won.
list(zip(start, one)).count(("0", "1")) => list(zip(start, one)).count((0, 1)) && list(\
zip(start, two)).count(("0", "1")) => list(zip(start, two)).count((0, 1)) | The marks \
are characters: "0" is not 0.
return sum(map(str.__ne__, start, one)) * sum(map(str.__ne__, start, two)) / start\
.count("0") | Those are the rows that changed, to either side. Count those that were \
won.
first * second / start.count("0") => round(first * second / start.count("0")) | \
Not rounded: it is a mean over many draws.
return list(zip(start, one)).count(("1", "0")) * list(zip(start, two)).count(("1", "0\
")) / start.count("0") | {LOST}
"""
