"""How long the package's functions and files may be."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "grpo_course").rglob("*.py"))
FUNCTION_LINES = 25
FILE_LINES = 200
# The exercises of one notebook stand together, and are looked up, not read through.
UNCAPPED = "exercises/nb*.py"


def long_functions(source: str) -> list[str]:
    """The functions whose body, its docstring not counted, does not fit a slide."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    sizes = [
        (node.lineno, node.name, body_lines(node, source.splitlines()))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, functions)
    ]
    return [
        f"line {line}: {name} has {size} lines; {FUNCTION_LINES} at most"
        for line, name, size in sizes
        if size > FUNCTION_LINES
    ]


def body_lines(function: ast.FunctionDef, lines: list[str]) -> int:
    """The lines of a function's body that are not blank, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    if not body:
        return 0
    # From the end of the signature or docstring, so that comments count.
    docstring_end = function.body[0].end_lineno if body is not function.body else None
    start = docstring_end or function.body[0].lineno - 1
    return sum(bool(line.strip()) for line in lines[start : function.end_lineno])


def long_file(source: str) -> list[str]:
    """A file longer than a head holds."""
    count = len(source.splitlines())
    return [f"{count} lines; {FILE_LINES} at most"] if count > FILE_LINES else []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_functions_fit_a_slide_and_files_a_head(path):
    source = path.read_text(encoding="utf-8")
    is_capped = not path.match(UNCAPPED)
    problems = long_functions(source) + (long_file(source) if is_capped else [])
    name = path.relative_to(ROOT)
    assert not problems, "\n".join(f"{name} {problem}" for problem in problems)


def function(body_lines, docstring):
    head = 'def f(\n    x,\n):\n    """One.\n\n    Two.\n    """\n'
    head = head if docstring else "def f(x):\n"
    return head + "    x += 1\n\n    # why\n" + "    x += 1\n" * (body_lines - 2)


@pytest.mark.parametrize("docstring", [True, False])
def test_long_functions(docstring):
    assert long_functions(function(26, docstring)) == [
        "line 1: f has 26 lines; 25 at most"
    ]
    assert long_functions(function(25, docstring)) == []


def test_long_file():
    assert long_file("x\n" * 201) == ["201 lines; 200 at most"]
    assert long_file("x\n" * 200) == []
