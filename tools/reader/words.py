"""Names, things and places; the verbs, in the past and after "I" beside after "she"."""

import random
import re


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


# The verbs of the frames, to tell a story of the past.
PRESENT_AND_PAST = listed(
    "has:had owns:owned keeps:kept brings:brought starts:started begins:began "
    "holds:held contains:contained gets:got receives:received finds:found "
    "buys:bought picks:picked collects:collected wins:won makes:made is:was "
    "are:were gives:gave sends:sent hands:handed lends:lent adds:added "
    "arrive:arrived comes:came goes:went takes:took loses:lost sells:sold "
    "breaks:broke drops:dropped uses:used throws:threw borrows:borrowed "
    "leaves:left counts:counted grows:grew packs:packed "
    "fills:filled puts:put pays:paid saves:saved earns:earned spends:spent "
    "orders:ordered does:did do:did remain:remained belong:belonged "
    "bakes:baked cooks:cooked eats:ate drinks:drank pours:poured carries:carried "
    "leave:left enter:entered board:boarded climb:climbed drives:drove walks:walked "
    "runs:ran rides:rode travels:traveled flies:flew swims:swam reads:read "
    "writes:wrote draws:drew paints:painted folds:folded builds:built sews:sewed "
    "plants:planted waters:watered digs:dug grow:grew digs:dug picks:picked "
    "catches:caught feeds:fed visits:visited visit:visited works:worked plays:played "
    "scores:scored passes:passed stands:stood stand:stood sits:sat sit:sat "
    "comes:came come:came go:went gets:got get:got joins:joined join:joined "
    "arrives:arrived departs:departed rises:rose falls:fell drops:dropped cuts:cut "
    "needs:needed need:needed wants:wanted hopes:hoped costs:cost cost:cost "
    "charges:charged shares:shared share:shared lays:laid delivers:delivered "
    "prints:printed empties:emptied spills:spilled leaks:leaked weighs:weighed "
    "eat:ate take:took have:had give:gave buy:bought bring:brought sell:sold "
    "hold:held contain:contained cuts:cut peels:peeled serves:served hangs:hung "
    "finishes:finished stays:stayed stay:stayed misses:missed solves:solved "
    "answers:answered practices:practiced watches:watched spend:spent lasts:lasted "
    "takes:took doubles:doubled triples:tripled hides:hid stores:stored "
    "fly:flew swim:swam jump:jumped hop:hopped run:ran drive:drove "
    "borrow:borrowed return:returned returns:returned die:died dry:dried "
    "turns:turned rents:rented donates:donated mails:mailed ships:shipped "
    "loads:loaded unloads:unloaded stacks:stacked moves:moved hatch:hatched "
    "displays:displayed invites:invited wraps:wrapped pulls:pulled begins:began "
    "lives:lived sees:saw likes:liked loves:loved waits:waited sleeps:slept "
    "places:placed looks:looked prepares:prepared chooses:chose sets:set "
    "opens:opened splits:split sorts:sorted arranges:arranged washes:washed "
    "mows:mowed plans:planned beats:beat ends:ended lets:let becomes:became "
    "become:became measures:measured pay:paid carry:carried see:saw use:used "
    "want:wanted own:owned sleep:slept disappear:disappeared travel:traveled "
    "move:moved fit:fit step:stepped wear:wore put:put read:read turn:turned "
    "hikes:hiked studies:studied trains:trained learns:learned colors:colored "
    "knits:knitted "
    "adds:added spends:spent walks:walked removes:removed gather:gathered "
    "gathers:gathered keep:kept decides:decided trades:traded"
)
PLURAL_FORMS = {"has": "have", "is": "are", "was": "were"}
PAST = dict(pair.split(":") for pair in PRESENT_AND_PAST)


AUXILIARY = re.compile(r"\b(do|does|did|can|will|would|must|may|to)\b")
ARTICLES = ("a", "an", "the", "each", "every", "per")  # a noun follows, no verb


def past(verb: str, before: str) -> str:
    """The past form of a verb, or after "does" and the like the verb as it is."""
    infinitive = not verb.endswith("s") and verb != "are"
    last = before.rsplit(None, 1)[-1] if before.split() else ""
    kept = infinitive and (
        last in ("to", "on", *ARTICLES) or AUXILIARY.search(before.replace(" to ", " "))
    )
    return verb if kept else PAST[verb]


def agree(frame: str, person: tuple[str, ...]) -> str:
    """The frame with its verbs as its person {A} wants them: "I have", "do we have"."""
    if person[1] not in PLURAL:
        return frame
    own = PLURAL_FORMS | ({"is": "am", "was": "was"} if person[1] == "I" else {})
    verbs = "|".join([*PAST, "was"])

    def plural(found: re.Match) -> str:
        verb = found["verb"]
        return found[0].replace(verb, own.get(verb) or base_form(verb))

    after = rf"\{{A\}}( \w+ly| also| still| already| now| then)? (?P<verb>{verbs})\b"
    before = r"\b(?P<verb>has|does|is|was) \{A\}"
    return re.sub(before, plural, re.sub(after, plural, frame))


def base_form(verb: str) -> str:
    """What a verb is after "they": "carries" -> "carry"."""
    if verb.endswith("ies"):
        return verb[:-3] + "y"
    if verb.endswith(("ches", "shes", "sses", "oes")):
        return verb[:-2]
    return verb.removesuffix("s")
