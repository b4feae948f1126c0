"""`python3 -m grpo_course test`: style, imports, types, tests, every notebook.

`--checks` stops before the tests; it is what the pre-commit hook runs.
"""

from pathlib import Path

from grpo_course.workshop import kernels

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
    "--nbval-cell-timeout=300",
    "--nbval-kernel-startup-timeout=120",
]
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
    if failed:
        # Said before pytest, whose closing line is the last.
        print(f"== FAILED: {', '.join(failed)} (see above); now pytest", flush=True)
    # Taken where `arguments` name no file of their own.
    everything = ["-o", "testpaths=tests notebooks"]
    pytest = ["-m", "pytest", *NOTEBOOKS, *everything, *arguments]
    return kernels.python(pytest, root) or int(bool(failed))
