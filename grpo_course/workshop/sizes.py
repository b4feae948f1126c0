"""How long the package's functions and files may be."""

import ast

FUNCTION_LINES = 25
FILE_LINES = 200
DATA_LINES = 300  # a list of exercises is looked up, not read through


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


def long_file(source: str, most: int = FILE_LINES) -> list[str]:
    """A file longer than a head holds."""
    count = len(source.splitlines())
    return [f"{count} lines; {most} at most"] if count > most else []
