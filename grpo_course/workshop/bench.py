"""`python3 -m grpo_course bench [names]`: run the benchmarks."""

import sys
from pathlib import Path

from grpo_course.workshop import kernels


def main(arguments: list[str], root: Path) -> int:
    """Run `benchmarks/bench_*.py`, or those named; non-zero if any failed."""
    known = {
        path.stem.removeprefix("bench_"): path
        for path in sorted((root / "benchmarks").glob("bench_*.py"))
    }
    unknown = [name for name in arguments if name not in known]
    if unknown or not known:
        listed = ", ".join(known) or "none yet; write benchmarks/bench_NAME.py"
        print(f"usage: bench [names]. Benchmarks: {listed}.", file=sys.stderr)
        return 2 if unknown else 0
    kernels.use()
    statuses = []
    for name in arguments or known:
        print(f"== {name}", flush=True)
        statuses.append(kernels.python([str(known[name])], root))
    return int(any(statuses))
