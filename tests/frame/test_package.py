"""The package loads nothing heavy, and what runs before the install needs nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

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


TYPO = """
from contextlib import suppress
from grpo_course.text.cli import train
with suppress(SystemExit):
    train(["--epochs", "3"])
"""
LIGHT = [  # a program, and what it must not load
    ("import grpo_course", "torch numpy matplotlib transformers datasets IPython"),
    ("from grpo_course import setup, show", "torch matplotlib IPython"),
    (
        "from grpo_course import check, predict, show, verdict",
        "transformers datasets grpo_course.lessons",
    ),
    (
        "import grpo_course.text.countdown, grpo_course.text.gsm8k",
        "transformers datasets pandas",
    ),
    (TYPO, "transformers pandas"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "heavy"), LIGHT)
def test_what_is_asked_for_first_loads_nothing_heavy(program, heavy):
    names = "\nimport sys\nprint(*sys.modules, sep='\\n')"
    loaded = {*printed_by(sys.executable, "-c", program + names)}
    assert "grpo_course" in loaded and not {*heavy.split()} & loaded


def test_the_names_that_are_looked_up_later_are_offered():
    assert {*grpo_course.HOMES} <= {*dir(grpo_course)}


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
