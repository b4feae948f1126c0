"""What came out, as text and as a page. The standard library is enough for it."""

import json
from pathlib import Path

TABLE = Path(__file__).with_name("table.json")
UNSURE = "undecided"
ENOUGH = 2.0  # standard errors
BEST = "each at its best rate"
VARIATIONS = (
    "as told",
    "seeds 100 to 115",
    "seeds 200 to 215",
    "a third of the rate",
    "three times the rate",
    "other prompts",
    "half as long",
    "twice as long",
    BEST,
)


def stored() -> dict[str, dict]:
    """key -> says, within, not tried, and runs: variation -> what came out."""
    return json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}


def chosen(names: list[str], keys: list[str]) -> list[str]:
    """The keys that are named, or whose notebook is; all without a name."""
    for name in names:
        if not any(name in (key, key[:2]) for key in keys):
            raise SystemExit(f"no claim {name!r}; there are {', '.join(keys)}")
    return [key for key in keys if not names or {key, key[:2]} & set(names)]


def verdict(run: dict, within: float | None) -> str:
    """Whether one run agrees with its claim: holds, flips or undecided."""
    difference, reach = run["difference"], ENOUGH * run["error"]
    if within is not None:  # it claims a difference that is smaller than that
        difference = within - abs(difference)
    return "holds" if difference > reach else "flips" if -difference > reach else UNSURE


def line(name: str, run: dict, within: float | None) -> list[str]:
    """One variation: its name, both arms, the difference, the verdict."""
    arms = f"{run['higher']:.3f} against {run['lower']:.3f}"
    if run["rates"] != [1.0, 1.0]:
        arms += " (rates × {:.2g}, {:.2g})".format(*run["rates"])
    word = verdict(run, within)
    if word == UNSURE:
        word += f", could see {ENOUGH * run['error']:.3f}"
    return [name, arms, f"{run['difference']:+.3f} ± {run['error']:.3f}", word]


def summary(entry: dict) -> str:
    """In how many variations a claim holds, and what it cost to know."""
    runs = entry["runs"]
    words = [verdict(run, entry.get("within")) for run in runs.values()]
    missing = len(VARIATIONS) - len(entry["not tried"]) - len(runs)
    told = f"holds in {words.count('holds')} of {len(words)}"
    told += f", flips in {words.count('flips')}" if "flips" in words else ""
    told += f", {missing} not run" if missing else ""
    return f"{told}; {sum(run['seconds'] for run in runs.values()):.0f} s to run"


def totals(table: dict[str, dict]) -> str:
    """What all of them together say."""
    words = [
        verdict(run, entry.get("within"))
        for entry in table.values()
        for run in entry["runs"].values()
    ]
    holds, unsure, flips = (words.count(word) for word in ("holds", UNSURE, "flips"))
    told = f"{holds} agree, {unsure} are undecided and {flips} flips"
    return f"{len(table)} claims in {len(words)} experiments: {told}"


def text(table: dict[str, dict]) -> str:
    """For the terminal."""
    parts = []
    for key, entry in table.items():
        parts += ["", f"{key}  {entry['says']}"]
        for name, run in entry["runs"].items():
            first, *others = line(name, run, entry.get("within"))
            parts.append(f"    {first:<22} " + "   ".join(others))
        parts.append(f"    {summary(entry)}")
    return "\n".join(parts[1:])


def page(table: dict[str, dict]) -> str:
    """For the website, in Markdown: README.md of this folder, and every number."""
    readme = TABLE.with_name("README.md").read_text(encoding="utf-8")
    parts = [readme, f"In all, {totals(table)}.", ""]
    for key, entry in table.items():
        parts += [f"## {key}", "", f"> {entry['says']}", "", summary(entry), ""]
        parts += ["| varied | arms | difference | |", "|---|---|---|---|"]
        for name, run in entry["runs"].items():
            parts.append(f"| {' | '.join(line(name, run, entry.get('within')))} |")
        parts += [f"\nNot tried, {n}: {why}" for n, why in entry["not tried"].items()]
        parts.append("")
    return "\n".join(parts)
