"""`python3 -m claims [03 04.steps]`: replicate what the notebooks claim.

Each claim is run as its notebook tells it, and varied: other seeds, rates, prompts and
lengths, and each arm at its own best rate. What has been run is kept in `table.json`
and not run again: an interrupted call goes on where it stopped. `--again` forgets what
is kept of the claims named; `--list` runs nothing.
"""

import argparse
import json
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from tqdm import tqdm

from claims import table
from claims.claim import Claim, variations
from claims.replication import replicate
from grpo_course.files import write_atomically

FOLDER = Path(__file__).parent
TABLE = FOLDER / "table.json"


def all_claims() -> dict[str, Claim]:
    """Every claim by its key, in the order of the course."""
    names = sorted(m.name for m in iter_modules([str(FOLDER)]) if m.name[:2] == "nb")
    modules = [import_module(f"{__package__}.{name}") for name in names]
    return {claim.key: claim for module in modules for claim in module.CLAIMS}


def main(arguments: list[str], root: Path) -> int:
    """Run what is missing of the claims named, or of all; print their table."""
    parser = argparse.ArgumentParser(prog="claims", description=__doc__)
    parser.add_argument("names", nargs="*", help="notebooks (03) or claims (03.groups)")
    parser.add_argument("--again", action="store_true", help="run them anew")
    parser.add_argument("--list", action="store_true", help="print what is stored")
    parser.add_argument("--page", type=Path, help="write what is stored for the site")
    options = parser.parse_args(arguments)
    claims = chosen(options.names)
    if options.page:
        options.page.write_text(table.page(claims, stored()), encoding="utf-8")
        return 0
    if options.again:
        store({key: rows for key, rows in stored().items() if key not in claims})
    if not options.list:
        run_missing(claims)
    print(table.text(claims, stored()))
    return 0


def chosen(names: list[str]) -> dict[str, Claim]:
    """The claims of notebooks or keys. Raises SystemExit for a name without any."""
    claims = all_claims()
    for name in names:
        if not any(fits(key, name) for key in claims):
            raise SystemExit(f"no claim {name!r}; there are {', '.join(claims)}")
    wanted = names or list(claims)
    return {key: c for key, c in claims.items() if any(fits(key, n) for n in wanted)}


def fits(key: str, name: str) -> bool:
    """Whether a name is a claim's key, or its notebook's number."""
    return name in (key, key.split(".")[0])


def stored() -> dict[str, dict[str, dict]]:
    """key -> variation -> what came out."""
    return json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}


def store(rows: dict[str, dict[str, dict]]) -> None:
    """Keep the table whole, in the order of the course."""
    known = [*all_claims()]
    ordered = {key: rows[key] for key in known if key in rows}
    write_atomically(TABLE, json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


def run_missing(claims: dict[str, Claim]) -> None:
    """Run each variation that is not stored, and store it at once."""
    rows = stored()
    missing = [
        (claim, name)
        for key, claim in claims.items()
        for name in variations(claim)
        if name not in rows.get(key, {})
    ]
    with tqdm(missing, disable=not missing) as bar:
        for claim, name in bar:
            bar.set_description_str(f"{claim.key}, {name}")
            start = time.process_time()
            effect = asdict(replicate(claim, name))
            effect["seconds"] = round(time.process_time() - start, 1)
            rows.setdefault(claim.key, {})[name] = effect
            store(rows)
