"""The replications as text, and as a page of the website."""

from claims.claim import Claim, variations
from claims.replication import Effect
from grpo_course.loop import ENOUGH

WORDS = {True: "holds", False: "flips", None: "undecided"}
HEADING = """# Claims, replicated

Every sentence of the notebooks that compares how something learns is run as it is told
and then, wherever that applies, on seeds that it was not found on, at a third of the
learning rate and three times it, on other prompts, half and twice as long, and with
each arm at the best of five rates. A difference is between the same seeds; behind ±
stands its standard error. A claim holds where the difference is more than two of them,
and flips where it is as far on the other side. What is exact is computed again for
other random policies, other rewards and other lengths. `python3 -m claims
--again` runs all of it anew, on one core for half a day.
"""

SIGNS = {r"\beta": "β", r"\lambda": "λ", r"\mu": "μ", r"\sqrt ": "√"}


def effect_of(row: dict) -> Effect:
    """What was stored, as it was."""
    fields = {name: value for name, value in row.items() if name != "seconds"}
    return Effect(**fields | {"rates": tuple(fields["rates"])})


def line(claim: Claim, name: str, row: dict) -> list[str]:
    """One variation: its name, both arms, the difference, the verdict."""
    effect = effect_of(row)
    arms = f"{effect.higher:.3f} against {effect.lower:.3f}"
    if effect.rates != (1.0, 1.0):
        arms += f" (rates × {effect.rates[0]:.2g}, {effect.rates[1]:.2g})"
    change = f"{effect.difference:+.3f} ± {effect.error:.3f}"
    word = WORDS[effect.holds(claim)]
    if word == "undecided":
        word += f", could see {ENOUGH * effect.error:.3f}"
    return [name, arms, change, word]


def summary(claim: Claim, rows: dict[str, dict]) -> str:
    """In how many variations a claim holds, and what it cost to know."""
    verdicts = [effect_of(row).holds(claim) for row in rows.values()]
    count, flips = verdicts.count(True), verdicts.count(False)
    seconds = sum(row["seconds"] for row in rows.values())
    missing = len(variations(claim)) - len(rows)
    words = f"holds in {count} of {len(rows)}"
    words += f", flips in {flips}" if flips else ""
    words += f", {missing} not run" if missing else ""
    return f"{words}; {seconds:.0f} s to run"


def totals(claims: dict[str, Claim], rows: dict[str, dict[str, dict]]) -> str:
    """What all experiments together say."""
    verdicts = [
        effect_of(row).holds(claim)
        for key, claim in claims.items()
        for row in rows.get(key, {}).values()
    ]
    held, undecided, flips = (verdicts.count(each) for each in (True, None, False))
    words = f"{held} agree, {undecided} are undecided and {flips} flips"
    return f"{len(verdicts)} experiments: {words}"


def text(claims: dict[str, Claim], rows: dict[str, dict[str, dict]]) -> str:
    """For the terminal."""
    parts = []
    for key, claim in claims.items():
        mine = rows.get(key, {})
        parts += ["", f"{key}  {claim.sentence}"]
        for name, row in mine.items():
            first, *others = line(claim, name, row)
            parts.append(f"    {first:<22} " + "   ".join(others))
        parts.append(f"    {summary(claim, mine)}")
    return "\n".join(parts[1:])


def page(claims: dict[str, Claim], rows: dict[str, dict[str, dict]]) -> str:
    """For the website, in Markdown."""
    parts = [HEADING, f"In all, {len(claims)} claims and {totals(claims, rows)}.\n"]
    for key, claim in claims.items():
        mine = rows.get(key, {})
        parts += [
            f"## {key}",
            "",
            f"> {plain(claim.sentence)}",
            "",
            summary(claim, mine),
            "",
        ]
        parts += ["| varied | arms | difference | |", "|---|---|---|---|"]
        parts += ["| " + " | ".join(line(claim, *row)) + " |" for row in mine.items()]
        parts += [f"\nNot tried, {n}: {why}" for n, why in claim.leave_out.items()]
        parts.append("")
    return "\n".join(parts)


def plain(sentence: str) -> str:
    """A sentence with its formulas as text: the page typesets no mathematics."""
    for written, sign in SIGNS.items():
        sentence = sentence.replace(written, sign)
    return sentence.replace("$", "")
