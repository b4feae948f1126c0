"""The package loads nothing heavy and resolves every name it offers."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import grpo_course

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "grpo_course"
MAPPED = ("classroom", "lessons/hunt", "reader")
LOADED = """
import sys
import grpo_course.__main__
for name, module in sys.modules.items():
    if name.partition(".")[0] == "grpo_course":
        print(module.__file__)
"""


def before_install():
    """The modules that `python3 -m grpo_course` loads before there is a `.venv`."""
    command = [sys.executable, "-c", LOADED]
    printed = subprocess.check_output(command, cwd=ROOT, text=True)
    return [Path(line).relative_to(PACKAGE).as_posix() for line in printed.splitlines()]


BEFORE_INSTALL = before_install()


def parse(name):
    """The tree of a module, as an old Python reads it."""
    source = (PACKAGE / name).read_text(encoding="utf-8")
    return ast.parse(source, feature_version=(3, 8))


def computed_hints(tree):
    """The lines of type hints that are more than a name: `list[str]`, `X | None`."""
    nodes = list(ast.walk(tree))
    hints = [getattr(node, "returns", None) for node in nodes]
    hints += [getattr(node, "annotation", None) for node in nodes]
    plain = (ast.Name, ast.Constant, type(None))
    return [hint.lineno for hint in hints if not isinstance(hint, plain)]


def test_an_installed_package_has_every_file():
    """What is no module comes along only where a pattern of MANIFEST.in names it."""
    words = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").split()
    assert words[:2] == ["recursive-include", "grpo_course"]
    listed = ["git", "ls-files", "grpo_course"]
    files = subprocess.check_output(listed, cwd=ROOT, text=True).split()
    others = [name for name in files if not name.endswith(".py")]
    left = [f for f in others if not any(Path(f).match(each) for each in words[2:])]
    assert others and not left


@pytest.mark.parametrize("name", grpo_course.HOMES)
def test_every_name_resolves(name):
    assert getattr(grpo_course, name) is not None


def test_a_name_is_offered_before_it_is_used():
    program = "import grpo_course; print(*dir(grpo_course))"
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert set(grpo_course.HOMES) <= set(printed.split())


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="compute_delta'"):
        _ = grpo_course.compute_delta


def test_import_is_light():
    heavy = "{'torch', 'numpy', 'matplotlib', 'transformers', 'datasets', 'IPython'}"
    program = f"import grpo_course, sys; print(sorted({heavy} & set(sys.modules)))"
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert printed.strip() == "[]"


def test_what_refuses_an_old_python_is_known():
    assert "install.py" in BEFORE_INSTALL


@pytest.mark.parametrize("name", BEFORE_INSTALL)
def test_what_runs_before_the_install_needs_nothing(name):
    imported = set()
    for node in ast.walk(parse(name)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module.split(".")[0])
    assert imported <= {*sys.stdlib_module_names, "grpo_course"}


@pytest.mark.parametrize("name", BEFORE_INSTALL)
def test_an_old_python_can_load_it_to_refuse_politely(name):
    """Most type hints are errors there, unless the import below leaves them alone."""
    tree = parse(name)
    futures = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for alias in node.names
    ]
    assert "annotations" in futures or not computed_hints(tree)


@pytest.mark.parametrize("name", MAPPED)
def test_a_package_s_docstring_is_the_map_of_its_modules(name):
    tree = ast.parse((PACKAGE / name / "__init__.py").read_text(encoding="utf-8"))
    named = re.findall(r"^    (\w+)  ", ast.get_docstring(tree), re.MULTILINE)
    modules = {path.stem for path in (PACKAGE / name).glob("*.py")} - {"__init__"}
    rooms = {path.parent.name for path in (PACKAGE / name).glob("*/__init__.py")}
    assert sorted(named) == sorted(modules | rooms)
