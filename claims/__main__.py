"""`python3 -m claims [03 04.steps]`: what the notebooks claim, and what came out.

It prints what is stored in `table.json`, and needs nothing but Python. `--run` runs
what is not stored yet and keeps each result at once: an interrupted call goes on where
it stopped.
"""

import argparse
import sys
from pathlib import Path

from claims import report


def main(arguments: list[str]) -> int:
    """Print, run or write the claims named, or all."""
    parser = argparse.ArgumentParser(prog="python3 -m claims", description=__doc__)
    parser.add_argument("names", nargs="*", help="notebooks (03) or claims (03.offset)")
    parser.add_argument("--run", action="store_true", help="run what is not stored")
    parser.add_argument("--again", action="store_true", help="run them anew")
    parser.add_argument("--page", type=Path, help="write the page of the website there")
    options = parser.parse_args(arguments)
    if options.run or options.again:
        from claims.runner import all_claims, run_missing  # needs the course

        run_missing(report.chosen(options.names, [*all_claims()]), options.again)
    table = report.stored()
    table = {key: table[key] for key in report.chosen(options.names, [*table])}
    if options.page:
        options.page.write_text(report.page(table), encoding="utf-8")
    else:
        print(report.text(table))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
