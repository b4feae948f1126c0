"""`python3 -m grpo_course site`: the course as a website, from the stored outputs.

Sphinx, myst-nb and sphinx-book-theme; nothing is executed, and the pages fetch
nothing from elsewhere: mathematics is typeset by a MathJax that lies beside them.
"""

import ast
import importlib.util
import inspect
import json
import re
import shutil
import tempfile
import textwrap
from pathlib import Path

import grpo_course
from grpo_course import install
from tools import links
from tools.notebook import HIDDEN, read
from tools.run import python

MATHJAX = "sphinx-mathjax-offline/static/mathjax/tex-svg.js"
TO_WEBSITE = re.compile(rf"; {re.escape(links.READ)}\([^)]*\)\.")
SETUP = re.compile(r"^setup\(", re.MULTILINE)  # below the imports of a notebook
PAGES = (
    *("README.md", "INSTALL.md", "TRAINING.md", "TRL.md", "INSTRUCTORS.md"),
    *("CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "CITATION.cff"),
    *("teaching/plan.md", "teaching/exams.md"),
)


def main(arguments: list[str], root: Path) -> int:
    """Build `_site`; Sphinx's exit status. `arguments` go to Sphinx."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        collect(root, source)
        built, target = Path(folder, "built"), root / "_site"
        options = ["-W", "--keep-going", "-q", "-b", "html"]
        doctrees = ["-d", str(Path(folder, "doctrees"))]
        status = python(
            ["-m", "sphinx", *options, *doctrees, *arguments, str(source), str(built)],
            root,
        )
        if built.exists():
            shutil.rmtree(target, ignore_errors=True)
            shutil.move(built, target)
    if status == 0:
        print(f"The site is in {target}: open {target / 'index.html'}")
    return status


def collect(root: Path, source: Path) -> None:
    """Copy what the site shows into `source`, ready for Sphinx."""
    (source / "teaching").mkdir(parents=True)
    shutil.copytree(root / "notebooks", source / "notebooks")
    shutil.copytree(root / "images", source / "images")
    here = Path(__file__).parent / "site_source"
    shutil.copytree(here, source, dirs_exist_ok=True)
    for name in PAGES:
        if (root / name).exists():
            text = (root / name).read_text(encoding="utf-8")
            text = links.named(text, links.home(root))
            (source / name).write_text(text, encoding="utf-8")
    page = names_page(root / "grpo_course")
    (source / "api.rst").write_text(page, encoding="utf-8")
    (source / "claims").mkdir()
    page_of_claims = str(source / "claims" / "README.md")  # they are not installed
    python(["-m", "claims", "--page", page_of_claims], root)
    shutil.copy(mathjax(), source / "_static" / "tex-svg.js")
    for path in sorted((source / "notebooks").glob("*.ipynb")):
        notebook = read(path)
        links.add(notebook, path.stem, links.home(root))
        prepare(notebook)
        path.write_text(json.dumps(notebook), encoding="utf-8")


def mathjax() -> Path:
    """The one file of MathJax 3 that a PyPI package carries."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or not spec.origin:
        needs = install.pip_install("sphinx-mathjax-offline")
        raise SystemExit(f"sphinx-mathjax-offline is missing. Install it:\n{needs}")
    return Path(spec.origin).parents[1] / MATHJAX


def prepare(notebook: dict) -> None:
    """Name the pictures; fold the imports, and what a guess comes before."""
    for cell in notebook["cells"][:1]:  # here the reader is on the website
        cell["source"] = TO_WEBSITE.sub(".", "".join(cell["source"]))
    for cell in notebook["cells"]:
        if SETUP.search("".join(cell["source"])) and cell["cell_type"] == "code":
            cell["metadata"].setdefault("tags", []).append("hide-input")
        if cell["metadata"].get("jupyter", {}).get(HIDDEN):
            cell["metadata"].setdefault("tags", []).append("hide-output")
    notebook["cells"] = [
        part for cell in notebook["cells"] for part in one_picture_each(cell)
    ]


def one_picture_each(cell: dict) -> list[dict]:
    """The cell, and one without code for each further picture.

    myst-nb reads the alternative text from a cell, so that each cell has one.
    """
    outputs = cell.get("outputs", [])
    pictures = [k for k, output in enumerate(outputs) if alternative(output)]
    cells = []
    for number, place in enumerate(pictures):
        options = {"image": image_options(outputs[place])}
        metadata = {**cell["metadata"], "mystnb": options}
        if number:
            metadata["tags"] = [*metadata.get("tags", []), "remove-input"]
        begin = place if number else 0
        end = pictures[number + 1] if place != pictures[-1] else len(outputs)
        each = {"id": f"{cell['id']}-{number}", "outputs": outputs[begin:end]}
        cells.append({**cell, "metadata": metadata, **each})
    return cells or [cell]


def image_options(output: dict) -> dict[str, str]:
    """The text of a picture, and how wide it is: Sphinx links one whose width it has.

    A click on it opens it alone, in all its pixels.
    """
    wide = output["metadata"]["image/png"].get("width")
    size = {"width": f"{wide}px"} if wide else {}
    return {"alt": alternative(output), **size}


def alternative(output: dict) -> str:
    """The stored alternative text of a picture."""
    return output.get("metadata", {}).get("image/png", {}).get("alt", "")


# The page of names: every room, its modules, and what each offers. Which names there
# are is read off `grpo_course.HOMES` and off the files, so that nothing here changes
# when a module moves. Sphinx writes the signatures; docstrings are plain text, in which
# a bracket or a star is just that.

INTRODUCTION = """\
What `from grpo_course import ...` offers, under the module where it is defined. A shape
such as [batch trial pos] names the axes of a tensor, as einops does.
"""


def names_page(package: Path) -> str:
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
