"""The website's page of names: every room, its modules, and what each offers.

Which names there are is read off `grpo_course.HOMES` and off the files, so that nothing
here changes when a module moves. Sphinx writes the signatures; docstrings are plain
text, in which a bracket or a star is just that.
"""

import ast
import inspect
import re
import textwrap
from pathlib import Path

import grpo_course

INTRODUCTION = """\
What `from grpo_course import ...` offers, under the module where it is defined. A shape
such as [batch trial pos] names the axes of a tensor, as einops does.
"""


def page(package: Path) -> str:
    """The page in reStructuredText: a section for each room, one for each module."""
    parts = [heading("Names and modules", "="), plain(INTRODUCTION)]
    for room in rooms(package):
        parts += section(room, package, "-")
        inside = room.parent.rglob("*.py") if room.name == "__init__.py" else ()
        for path in sorted(inside):
            if path != room and (path.parent / "__init__.py").exists():
                parts += section(path, package, "~")
    return "\n".join(parts)


def rooms(package: Path) -> list[Path]:
    """Each file and each folder's `__init__.py`; what HOMES names first, in order."""
    order = [home.split(".")[1] for home in grpo_course.HOMES.values()]
    files = [path for path in package.glob("*.py") if path.stem[0] != "_"]
    found = {path.stem: path for path in sorted(files)}
    found |= {p.parent.name: p for p in sorted(package.glob("*/__init__.py"))}
    return [found[name] for name in dict.fromkeys((*order, *found))]


def section(path: Path, package: Path, mark: str) -> list[str]:
    """One module or room: what it is, and its names in HOMES."""
    inner = path.parent if path.name == "__init__.py" else path.with_suffix("")
    parts = inner.relative_to(package).parts
    home = ".".join([package.name, *parts])
    names = [name for name, place in grpo_course.HOMES.items() if place == home]
    return [
        heading(".".join(parts[1:] or parts), mark),
        plain(docstring(path)),
        f".. py:module:: {home}\n",
        *map(entry, names),
    ]


def entry(name: str) -> str:
    """The directive that describes one public name."""
    value = getattr(grpo_course, name)
    if inspect.isclass(value):
        return f".. autoclass:: {name}\n   :members:\n"
    if callable(value):
        return f".. autofunction:: {name}\n"
    known = ", ".join(f"``{each}``" for each in value)
    return f".. py:data:: {name}\n\n   {known}\n"


def docstring(path: Path) -> str:
    """A module's docstring, without importing it: some need TRL."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def heading(text: str, mark: str) -> str:
    """A heading; the mark tells its level."""
    return f"{text}\n{mark * len(text)}\n"


def plain(text: str) -> str:
    """Plain text as reStructuredText: what is indented stays as it is typed."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(text))
    return "".join(f"{block_of(block)}\n\n" for block in blocks if block.strip())


def block_of(block: str) -> str:
    """One paragraph: kept line by line if it is indented, with `code` marked if not."""
    if re.search(r"^ ", block, re.MULTILINE):
        return ".. code-block:: text\n\n" + textwrap.indent(block, "    ")
    words = re.split(r"``?([^`]+)``?", block)  # every second part stood in backticks
    words[0::2] = [re.sub(r"([^\w\s]|_)", r"\\\1", part) for part in words[0::2]]
    words[1::2] = [rf"\ ``{' '.join(part.split())}``\ " for part in words[1::2]]
    return "".join(words)


def keep_plain(app, what, name, obj, options, lines: list[str]) -> None:
    """Sphinx's autodoc-process-docstring: a docstring is plain text, too."""
    lines[:] = plain("\n".join(lines)).splitlines()
