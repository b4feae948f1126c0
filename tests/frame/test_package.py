"""The package loads nothing heavy and resolves every name it offers."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import grpo_course

ROOT = Path(__file__).resolve().parents[2]
BEFORE_INSTALL = [
    "__init__.py",
    "__main__.py",
    "workshop/__init__.py",
    "workshop/environment.py",
    "workshop/installed.py",
    "workshop/pip_options.py",
]


@pytest.mark.parametrize("name", grpo_course.HOMES)
def test_every_name_resolves(name):
    assert getattr(grpo_course, name) is not None
    assert name in dir(grpo_course)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="compute_delta'"):
        _ = grpo_course.compute_delta


def test_import_is_light():
    heavy = "{'torch', 'numpy', 'matplotlib', 'transformers', 'datasets', 'IPython'}"
    program = f"import grpo_course, sys; print(sorted({heavy} & set(sys.modules)))"
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert printed.strip() == "[]"


@pytest.mark.parametrize("name", BEFORE_INSTALL)
def test_what_runs_before_the_install_needs_nothing(name):
    """Standard library only, and an old Python can read it to refuse politely."""
    source = (ROOT / "grpo_course" / name).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 8))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module.split(".")[0])
    assert imported <= {*sys.stdlib_module_names, "grpo_course"}
