"""`python3 -m grpo_course test`: style, one-way imports, tests, every notebook."""

from pathlib import Path

from grpo_course.workshop import kernels

LINT_IMPORTS = "from importlinter.cli import lint_imports_command as lint; lint()"

CHECKS = {
    "ruff check": ["-m", "ruff", "check", "."],
    "ruff format": ["-m", "ruff", "format", "--check", "."],
    "lint-imports": ["-c", LINT_IMPORTS, "--no-cache", "--no-logo"],
}


def main(arguments: list[str], root: Path) -> int:
    """Run every check, then pytest with `arguments`; non-zero if any failed."""
    kernels.use()
    failed = []
    for name, command in CHECKS.items():
        print(f"== {name}", flush=True)
        if kernels.python(command, root) != 0:
            failed.append(name)
    if failed:
        # Said before pytest, whose closing line is the last.
        print(f"== FAILED: {', '.join(failed)} (see above); now pytest", flush=True)
    status = kernels.python(["-m", "pytest", *arguments], root)
    return status or int(bool(failed))
