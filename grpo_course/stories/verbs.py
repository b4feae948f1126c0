"""The verbs of the frames: in the past, and as I, we and they want them."""

import re

from grpo_course.stories.words import PLURAL, listed

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
