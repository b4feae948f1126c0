"""Where the course is published, and every line that leads there.

Until an address is known no such line is there: neither the links below a notebook's
title and the cell that prepares Colab, nor the address in the README and on the last
slide of a deck. `python3 -m grpo_course save --form-only --address URL` writes them
all, from `[project.urls]` of pyproject.toml on. Copies and a website that are made from
a clone of a fork lead to the fork.
"""

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

from nbformat import NotebookNode, v4

from grpo_course.files import write_atomically
from tools.notebook import COLAB, digest, put_behind, tags

BRANCH = "main"
READ = "read it on [its website]"
GITHUB = re.compile(
    r"(?:\w+://)?(?:[^/@\s]+@)?(?:www\.)?github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$"
)
TABLE = re.compile(r"^\[project\.urls\]\n(?:.+\n)*\n?", re.MULTILINE)
EXTRAS = "[project.optional-dependencies]"  # the table that comes behind that one
LINE = re.compile(r"\n*^\*\*Open it in\*\* .*$", re.MULTILINE)
CLONE = re.compile(r"(clone it with git)(?:: `git clone [^`]*`)?")
RUNS = re.compile(r"(print with what is stored)(?: \(\[the last runs\]\([^)]*\)\))?")
DESK = re.compile(r"(Go on at your own desk, from ).*?(?=: `python3)")
# Colab brings its own torch and plots: only the course and what it lacks there come.
LACKING = "docstring-parser einops gguf typeguard tyro"
INSTALL = """\
import sys

if "google.colab" in sys.modules:  # there, and only there, the course is missing
    course = "{lacking} git+{address}"
    get_ipython().run_line_magic("pip", f"install -q --no-deps {{course}}")"""


def published(root: Path) -> str:
    """The address that the stored files lead to; empty where none was set."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return project["project"].get("urls", {}).get("Repository", "")


def home(root: Path) -> str:
    """Where this clone came from, or else where the stored files lead to."""
    return origin(root) or published(root)


@cache
def origin(root: Path) -> str:
    """The page of the GitHub repository that a clone came from; empty for none."""
    git = ["git", f"--git-dir={root / '.git'}", "config", "--get", "remote.origin.url"]
    try:
        address = subprocess.run(git, capture_output=True, text=True).stdout
    except OSError:  # no git here
        return ""
    return github(address)


def github(address: str) -> str:
    """A repository's page, from any address that git takes; empty if not on GitHub."""
    found = GITHUB.fullmatch(address.strip())
    return f"https://github.com/{found[1]}" if found else ""


def publish(root: Path, address: str) -> None:
    """Write the address where every line is made from."""
    path = root / "pyproject.toml"
    text = TABLE.sub("", path.read_text(encoding="utf-8"))
    table = f'[project.urls]\nRepository = "{address}"\n\n'
    write_atomically(path, text.replace(EXTRAS, table + EXTRAS, 1))


def named(text: str, address: str) -> str:
    """A page or a slide that names the address, or names none."""
    clone = f": `git clone --depth 1 {address} grpo-course`" if address else ""
    runs = f"{address}/actions/workflows/course.yml"  # with their dates and minutes
    text = RUNS.sub(rf"\g<1> ([the last runs]({runs}))" if address else r"\g<1>", text)
    words = address.removeprefix("https://")
    place = f"[{words}]({address})" if address else "the course's folder"
    return DESK.sub(rf"\g<1>{place}", CLONE.sub(rf"\g<1>{clone}", text))


def close(deck: NotebookNode, address: str) -> None:
    """Let the last slide of a deck say where to go on."""
    for cell in deck.cells:
        if cell.cell_type == "markdown":
            cell.source = named(cell.source, address)


def settle(notebook: NotebookNode, name: str, root: Path) -> None:
    """Make a copy for a desk: its links lead home, and it has no cell for Colab."""
    add(notebook, name, home(root))
    drop_colab(notebook)
    renumber(notebook)


def drop_colab(notebook: NotebookNode) -> None:
    """Take out the cell that prepares Colab."""
    notebook.cells = [cell for cell in notebook.cells if COLAB not in tags(cell)]


def add(notebook: NotebookNode, name: str, address: str) -> None:
    """Put the links into the first cell and the Colab cell below it, or take them out.

    Words, and no badges: these would need the network.
    """
    drop_colab(notebook)
    titled = notebook.cells and notebook.cells[0].source.startswith("# ")
    if titled:
        first = notebook.cells[0]
        first.source = LINE.sub("", first.source)
    if titled and address:
        place = address.removeprefix("https://github.com/")
        path = f"notebooks/{name}.ipynb"
        colab = f"https://colab.research.google.com/github/{place}/blob/{BRANCH}/{path}"
        binder = f"https://mybinder.org/v2/gh/{place}/{BRANCH}?urlpath=lab/tree/{path}"
        page = f"https://{place.replace('/', '.github.io/')}/notebooks/{name}.html"
        without = f"[Colab]({colab}) or [Binder]({binder}), without installing"
        first.source += f"\n\n**Open it in** {without}; {READ}({page})."
        cell = v4.new_code_cell(INSTALL.format(lacking=LACKING, address=address))
        cell.id = digest(f"{name}:{COLAB}", 8)
        cell.metadata["tags"] = [COLAB]
        put_behind(cell)
        notebook.cells.insert(1, cell)
    renumber(notebook)


def renumber(notebook: NotebookNode) -> None:
    """Count the code cells as they come, results included."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, start=1):
        cell.execution_count = count
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
