"""Who and what the stories are about."""

import random


def listed(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


SHE = (
    "Mia Ana Sue Lena Emma Rosa Nina Kate Lucy Olga Ruth Zoe Maria Julia Ella Hanna "
    "Alice Bella Carla Diana Eva Fiona Grace Helen Iris Jane Laura Nora Paula Sarah "
    "Anna Lily Amy Molly Tina Lea Dana Lara Sofia Chloe Aisha Fatima Mei Priya Leila "
    "Ingrid Marta Clara Vera Elif Yuki Amina Daisy Ivy Megan Rachel Linda Susan Mary"
)
HE = (
    "Tom Ben Leo Max Paul Sam Omar Jack Noah Adam Ivan Carl Luis Peter David Hugo "
    "Alex Bruno Chris Daniel Eric Frank George Henry Jonas Kevin Marco Oliver Ryan Tim "
    "John James Nick Joe Bob Jim Mark Ali Ravi Ken Finn Liam Lucas Oscar Theo Felix "
    "Emil Jan Pedro Diego Hassan Kofi Wei Simon Steve Mike Matt Andy Robert William"
)
JOBS = (
    "baker farmer nurse driver painter gardener singer captain pilot waiter cook "
    "teacher carpenter tailor plumber postman librarian florist fisherman shopkeeper "
    "coach clown doctor builder mechanic student cashier grocer boy girl child man "
    "woman artist"
)
SHE_KIN = listed(
    "sister mother mom aunt grandmother grandma cousin friend neighbor teacher"
)
HE_KIN = listed(
    "brother father dad uncle grandfather grandpa cousin friend neighbor coach"
)
FAMILIES = "Brown Green Hill Lee Smith Jones King Wood Stone Park Young Miller"
# name, he or she, him or her, his or her
PEOPLE = [(name, "she", "her", "her") for name in SHE.split()]
PEOPLE += [(name, "he", "him", "his") for name in HE.split()]
WORKERS = [(f"the {job}", "she", "her", "her") for job in JOBS.split()]
WORKERS += [(f"the {job}", "he", "him", "his") for job in JOBS.split()]
WORKERS = [
    one
    for one in WORKERS
    if (one[0], one[1])
    not in (
        ("the boy", "she"),
        ("the man", "she"),
        ("the postman", "she"),
        ("the fisherman", "she"),
        ("the girl", "he"),
        ("the woman", "he"),
    )
]
WORKERS += [(f"my {kin}", "she", "her", "her") for kin in SHE_KIN]
WORKERS += [(f"my {kin}", "he", "him", "his") for kin in HE_KIN]
WORKERS += [(f"Mrs. {family}", "she", "her", "her") for family in FAMILIES.split()]
WORKERS += [(f"Mr. {family}", "he", "him", "his") for family in FAMILIES.split()]
WE = [("I", "I", "me", "my"), ("we", "we", "us", "our")]
WE += [(name, "they", "them", "their") for name in ("the twins", "the children")]
PLURAL = ("I", "we", "they")
PRONOUNS = ("i", "we", "they", "he", "she")

ADJECTIVES = listed(
    "red blue green yellow white black big small new old large little long short round"
)
ADJECTIVE_SHARE = 0.12
THINGS: tuple[str, ...] = listed(
    "apples coins cards pens eggs stars books marbles stickers shells stamps cookies "
    "oranges pencils flowers balloons candles buttons toys muffins tickets stones "
    "peaches beads lemons cups plates photos keys ribbons pears plums cherries nuts "
    "carrots onions tomatoes melons sandwiches pies bottles glasses spoons forks hats "
    "shirts socks shoes gloves coats rings dolls kites robots puzzles drums maps "
    "letters newspapers magazines crayons brushes notebooks rulers erasers envelopes "
    "magnets feathers leaves seeds plants roses trees bricks tiles nails ropes boards "
    "lamps chairs pillows towels baskets fish ducks rabbits sheep horses chickens "
    "bananas grapes strawberries potatoes cakes cupcakes rolls donuts pizzas candies "
    "sweets chocolates lollipops berries mangoes pumpkins cabbages peppers pancakes "
    "cars trucks boats trains bikes balls bats dice games posters paintings drawings "
    "pictures postcards jars boxes bags folders clips badges bracelets necklaces "
    "tulips daisies bulbs pots cows goats pigs hens cats dogs birds frogs snails bees "
    "butterflies blocks sticks logs rocks pebbles batteries phones laptops clocks "
    "mugs bowls knives blankets cushions scarves sweaters coupons points tokens "
    "invitations comics novels medals trophies songs poems sandcastles planes"
)
THINGS += (
    "toy cars",
    "ice creams",
    "cans of soup",
    "bags of rice",
    "pieces of cake",
    "slices of pizza",
    "sheets of paper",
    "bars of chocolate",
    "loaves of bread",
    "pairs of socks",
    "cups of tea",
    "glasses of juice",
    "bottles of water",
    "baseball cards",
    "paper boats",
    "comic books",
    "jars of honey",
    "bars of soap",
    "rose bushes",
    "picture books",
    "water bottles",
    "tennis balls",
    "pieces of candy",
)
HOLDERS = listed(
    "boxes bags baskets packs rows jars drawers shelves crates trays bowls plates "
    "packets cartons piles sacks buckets pockets cases tins bundles stacks cupboards "
    "tables envelopes albums"
)
MEMBERS = listed(
    "friends cousins classmates neighbors children students players guests kids "
    "visitors customers girls boys teachers brothers sisters"
)
GOODS = listed(
    "books pens hats cakes tickets toys cups plants shirts balls apples pies games "
    "notebooks melons sandwiches candles posters scarves mugs"
)

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
    "a customer",
    "another child",
    "someone",
    "the boy next door",
    "a little girl",
    "a stranger",
)
PLACES = listed(
    "market park store zoo farm beach station library office garden shop fair museum "
    "school club mall playground lake"
)
DAYS = listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
# Words that no one knows are made of these, so that a model learns to read past them.
STARTS = listed("b bl br c ch d dr f fl g gr h k l m n p pl r s sk st t tr v w z")
MIDDLES = listed("a e i o u ai ea oo ou")
ENDS = listed("ck d g l ll m mp n nd ng p r rt sk t x")
WE_SHARE = 0.1  # of the stories, of me or us
UNKNOWN_SHARE = 0.15  # of the names, things, holders, places and the like


def may_be(kin: str, person: tuple[str, ...]) -> bool:
    """Whether a person may be a sister, a friend and so on: one with a first name."""
    named = person[0][0].isupper() and "." not in person[0]
    return named and kin in (SHE_KIN if person[1] == "she" else HE_KIN)


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


def draw_people(
    rng: random.Random, third_person: bool = False
) -> list[tuple[str, str, str, str]]:
    """Three people of a story; now and then one has a job for a name, or a new name.

    The first may be I, we or the like, unless it must be a `third_person`.
    """
    people = rng.sample(PEOPLE, 3)
    if rng.random() < 2 * UNKNOWN_SHARE:
        people[0] = rng.choice(WORKERS)
    if rng.random() < UNKNOWN_SHARE:
        people[1] = (unknown_word(rng).capitalize(), *people[1][1:])
    rng.shuffle(people)
    if not third_person and rng.random() < WE_SHARE:
        people[0] = rng.choice(WE)
    return people


def draw_things(rng: random.Random) -> list[str]:
    """What is counted, and what is beside the point."""
    things = [pick(rng, (thing,)) for thing in rng.sample(THINGS, 2)]
    if rng.random() < ADJECTIVE_SHARE:
        things[0] = f"{rng.choice(ADJECTIVES)} {things[0]}"
    return things
