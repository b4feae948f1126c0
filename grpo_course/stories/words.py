"""Who and what the stories are about."""

import random


def listed(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


SHE = (
    "Mia Ana Sue Lena Emma Rosa Nina Kate Lucy Olga Ruth Zoe Maria Julia Ella Hanna "
    "Alice Bella Carla Diana Eva Fiona Grace Helen Iris Jane Laura Nora Paula Sarah"
)
HE = (
    "Tom Ben Leo Max Paul Sam Omar Jack Noah Adam Ivan Carl Luis Peter David Hugo "
    "Alex Bruno Chris Daniel Eric Frank George Henry Jonas Kevin Marco Oliver Ryan Tim"
)
JOBS = "baker farmer nurse driver painter gardener singer captain pilot waiter cook"
# name, he or she, him or her, his or her
PEOPLE = [(name, "she", "her", "her") for name in SHE.split()]
PEOPLE += [(name, "he", "him", "his") for name in HE.split()]
WORKERS = [(f"the {job}", "she", "her", "her") for job in JOBS.split()]
WORKERS += [(f"the {job}", "he", "him", "his") for job in JOBS.split()]

THINGS = listed(
    "apples coins cards pens eggs stars books marbles stickers shells stamps cookies "
    "oranges pencils flowers balloons candles buttons toys muffins tickets stones "
    "peaches beads lemons cups plates photos keys ribbons pears plums cherries nuts "
    "carrots onions tomatoes melons sandwiches pies bottles glasses spoons forks hats "
    "shirts socks shoes gloves coats rings dolls kites robots puzzles drums maps "
    "letters newspapers magazines crayons brushes notebooks rulers erasers envelopes "
    "magnets feathers leaves seeds plants roses trees bricks tiles nails ropes boards "
    "lamps chairs pillows towels baskets fish ducks rabbits sheep horses chickens"
)
HOLDERS = listed("boxes bags baskets packs rows jars drawers shelves crates trays")
MEMBERS = listed("friends cousins classmates neighbors children students players")
GOODS = ("books", "pens", "hats", "cakes", "tickets", "toys", "cups", "plants")
FRIENDS = (
    "a friend",
    "an aunt",
    "a neighbor",
    "a teacher",
    "a cousin",
    "an uncle",
    "the girl next door",
    "a classmate",
    "a visitor",
)
PLACES = listed("market park store zoo farm beach station library office garden")
DAYS = listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
# Words that no one knows are made of these, so that a model learns to read past them.
STARTS = listed("b bl br c ch d dr f fl g gr h k l m n p pl r s sk st t tr v w z")
MIDDLES = listed("a e i o u ai ea oo ou")
ENDS = listed("ck d g l ll m mp n nd ng p r rt sk t x")
UNKNOWN_SHARE = 0.15  # of the names, things, holders, places and the like

# The verbs of the frames, to tell a story of the past.
PRESENT_AND_PAST = listed(
    "has:had owns:owned keeps:kept brings:brought starts:started begins:began "
    "holds:held contains:contained gets:got receives:received finds:found "
    "buys:bought picks:picked collects:collected wins:won makes:made is:was "
    "are:were gives:gave sends:sent hands:handed lends:lent adds:added "
    "arrive:arrived comes:came goes:went takes:took loses:lost sells:sold "
    "breaks:broke drops:dropped uses:used throws:threw borrows:borrowed "
    "parts:parted leaves:left counts:counted grows:grew packs:packed "
    "fills:filled puts:put pays:paid saves:saved earns:earned spends:spent "
    "orders:ordered does:did do:did remain:remained belong:belonged"
)
PAST = dict(pair.split(":") for pair in PRESENT_AND_PAST)


def unknown_word(rng: random.Random) -> str:
    """A word that means nothing, of one or two syllables."""
    syllables = rng.choice((1, 2, 2))
    made = [rng.choice(STARTS) + rng.choice(MIDDLES) for _ in range(syllables)]
    return "".join(made) + rng.choice(ENDS)


def pick(rng: random.Random, known: tuple[str, ...], ending: str = "s") -> str:
    """One of some words, or now and then one that no one knows, with its ending."""
    if rng.random() < UNKNOWN_SHARE:
        return unknown_word(rng) + ending
    return rng.choice(known)


def draw_people(rng: random.Random) -> list[tuple[str, str, str, str]]:
    """Two people of a story; now and then one has a job for a name, or a new name."""
    people = rng.sample(PEOPLE, 2)
    if rng.random() < UNKNOWN_SHARE:
        people[0] = rng.choice(WORKERS)
    if rng.random() < UNKNOWN_SHARE:
        people[1] = (unknown_word(rng).capitalize(), *people[1][1:])
    rng.shuffle(people)
    return people


def draw_things(rng: random.Random) -> list[str]:
    """What is counted, and what is beside the point."""
    things = rng.sample(THINGS, 2)
    return [pick(rng, (thing,)) for thing in things]
