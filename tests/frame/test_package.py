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
CHECKED = """
def exact_kl_of(log_probs, ref_log_probs): ...
check(exact_kl_of)
"""
LIGHT = [  # a program, and what is still not loaded after it and those before
    ("import grpo_course", "torch numpy matplotlib transformers datasets IPython"),
    ("from grpo_course import setup, show", "torch matplotlib IPython"),
    (
        "import grpo_course.text.countdown, grpo_course.text.gsm8k",
        "transformers datasets pandas",
    ),
    (
        "from grpo_course import check, predict, show, verdict",
        "transformers datasets grpo_course.lessons",
    ),
    (TYPO, "transformers pandas"),
    (CHECKED, "transformers datasets"),
]


@pytest.mark.slow
def test_what_is_asked_for_first_loads_nothing_heavy():
    names = "\nimport sys\nprint('modules', *sys.modules)\n"
    program = names.join([*(each for each, _ in LIGHT), ""])
    lines = printed_by(sys.executable, "-c", program)
    after_each = [{*line.split()} for line in lines if line.startswith("modules ")]
    for (step, heavy), loaded in zip(LIGHT, after_each, strict=True):
        assert "grpo_course" in loaded and not {*heavy.split()} & loaded, step
    lessons = [name for name in loaded if ".lessons.exercises.nb" in name]
    assert lessons == ["grpo_course.lessons.exercises.nb05"], "one notebook's own"


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
