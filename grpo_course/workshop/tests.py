"""`python3 -m grpo_course test`: style, imports, types, tests, every notebook.

`--checks` stops before the tests, as the pre-commit hook does. What else is given goes
to pytest: a file, `-x`, or `-n0` for one process (which `--pdb` needs).
"""

from pathlib import Path

from grpo_course.workshop import kernels
from grpo_course.workshop.notebooks import CELL_SECONDS

LINT_IMPORTS = "from importlinter.cli import lint_imports_command as lint; lint()"

CHECKS = {
    "ruff check": ["-m", "ruff", "check", "."],
    "ruff format": ["-m", "ruff", "format", "--check", "."],
    "lint-imports": ["-c", LINT_IMPORTS, "--no-cache", "--no-logo"],
    "mypy": ["-m", "mypy"],
}
NOTEBOOKS = [
    "--nbval",
    "--nbval-current-env",
    f"--nbval-cell-timeout={CELL_SECONDS}",
    "--nbval-kernel-startup-timeout=120",
]
# A file at a time for each of two processes; the notebooks first, which take longest.
TWO_AT_ONCE = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
EVERYTHING = ["-o", "testpaths=notebooks teaching tests"]  # where no file is named
CHECKS_ONLY = "--checks"


def main(arguments: list[str], root: Path) -> int:
    """Run every check, then pytest with `arguments`; non-zero if any failed."""
    kernels.use()
    failed = []
    for name, command in CHECKS.items():
        print(f"== {name}", flush=True)
        if kernels.python(command, root) != 0:
            failed.append(name)
    if CHECKS_ONLY in arguments:
        return int(bool(failed))
    pytest = ["-m", "pytest", *NOTEBOOKS, *TWO_AT_ONCE, *EVERYTHING, *arguments]
    status = kernels.python(pytest, root)
    if failed:  # said last: above a passed pytest nobody looks for it
        print(f"== FAILED: {', '.join(failed)} (see the top)", flush=True)
    return status or int(bool(failed))
