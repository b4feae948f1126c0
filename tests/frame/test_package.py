"""The package loads nothing heavy, and what runs before the install needs nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import grpo_course

ROOT = Path(__file__).resolve().parents[2]
BEFORE_INSTALL = """
import sys
import grpo_course.__main__
for name, module in sys.modules.items():
    if name.partition(".")[0] == "grpo_course":
        print(module.__file__)
"""


def printed_by(*command):
    return subprocess.check_output(command, cwd=ROOT, text=True).splitlines()


def test_an_installed_package_has_every_file():
    """What is no module comes along only where a pattern of MANIFEST.in names it."""
    words = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").split()
    assert words[:2] == ["recursive-include", "grpo_course"]
    files = printed_by("git", "ls-files", "grpo_course")
    others = [name for name in files if not name.endswith(".py")]
    left = [f for f in others if not any(Path(f).match(each) for each in words[2:])]
    assert others and not left


def test_import_is_light_and_offers_the_names_that_it_looks_up_later():
    program = "import grpo_course as g, sys; print(*sys.modules, *dir(g), sep='\\n')"
    found = {*printed_by(sys.executable, "-c", program)}
    heavy = {"torch", "numpy", "matplotlib", "transformers", "datasets", "IPython"}
    assert not heavy & found and {*grpo_course.HOMES} <= found


def test_what_runs_before_the_install_needs_nothing_and_loads_in_an_old_python():
    """There it refuses politely; most type hints need the import from the future."""
    paths = [Path(line) for line in printed_by(sys.executable, "-c", BEFORE_INSTALL)]
    assert "install.py" in [path.name for path in paths]
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
        imported, hints = set(), []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module.split(".")[0])
            hints += [getattr(node, "returns", None), getattr(node, "annotation", None)]
        assert imported <= {*sys.stdlib_module_names, "grpo_course"}
        plain = (ast.Name, ast.Constant, type(None))
        are_plain = all(isinstance(hint, plain) for hint in hints)
        assert are_plain or "__future__" in imported, path
