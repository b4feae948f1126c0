"""Open a notebook in Colab or Binder: two links, and a cell that prepares Colab.

The repository's address stands in one place, `[project.urls]` of pyproject.toml.
After a change: `python3 -m grpo_course save --form-only`.
"""

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

from nbformat import NotebookNode, v4

from tools.notebook import COLAB, digest, put_behind, tags

BRANCH = "main"
NOBODY = "OWNER"  # in pyproject.toml until the course is published
HERE = "ADDRESS_OF_THIS_PAGE"  # in the README's first command
READ = "read it on [its website]"
GITHUB = re.compile(r"(?:https://|git@)github\.com[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?$")
LINE = re.compile(r"\n*^\*\*Open it in\*\* .*$", re.MULTILINE)
# Colab brings its own torch and plots: only the course and what it lacks there come.
INSTALL = """\
import sys

if "google.colab" in sys.modules:  # there, and only there, the course is missing
    course = "einops tyro git+{repository}"
    get_ipython().run_line_magic("pip", f"install -q --no-deps {{course}}")"""


def repository(root: Path) -> str:
    """The address of the public repository; empty where none is named."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return project["project"].get("urls", {}).get("Repository", "").rstrip("/")


def at_home(text: str, root: Path) -> str:
    """A page or a notebook that names the GitHub repository this clone came from.

    So a fork's website opens the fork. Without such a remote, as it is.
    """
    place = origin(root)
    stored = place and repository(root)
    if not stored:
        return text
    text = text.replace(HERE, f"https://github.com/{place}")
    old = stored.removeprefix("https://github.com/")
    return text.replace(old, place).replace(pages(old), pages(place))


def pages(place: str) -> str:
    """Where GitHub shows a repository's website: ada.github.io/grpo for ada/grpo."""
    return place.replace("/", ".github.io/", 1)


@cache
def origin(root: Path) -> str:
    """The GitHub repository that a clone came from, like ada/grpo; empty for none."""
    git = ["git", "config", "--get", "remote.origin.url"]
    try:
        address = subprocess.run(git, cwd=root, capture_output=True, text=True).stdout
    except OSError:  # no git here
        return ""
    found = GITHUB.match(address.strip())
    return found[1] if found else ""


def bring_home(notebook: dict, root: Path) -> None:
    """Let a notebook's links lead to where this clone came from, or to nowhere.

    While no address is known, there is no line for Colab, Binder and the website.
    """
    for cell in notebook["cells"][:2]:  # the title and the cell for Colab
        source = at_home("".join(cell["source"]), root)
        cell["source"] = LINE.sub("", source) if f"/{NOBODY}/" in source else source


def settle(notebook: NotebookNode, root: Path) -> None:
    """Make a copy for a desk: its links lead home, and it has no cell for Colab."""
    bring_home(notebook, root)
    drop_colab(notebook)
    renumber(notebook)


def drop_colab(notebook: NotebookNode) -> None:
    """Take out the cell that prepares Colab."""
    notebook.cells = [cell for cell in notebook.cells if COLAB not in tags(cell)]


def add(notebook: NotebookNode, name: str, address: str) -> None:
    """Put the links into the first cell and the Colab cell below it.

    Words, and no badges: these would need the network.
    """
    drop_colab(notebook)
    titled = notebook.cells and notebook.cells[0].source.startswith("# ")
    if not address or not titled:
        return
    place = address.removeprefix("https://github.com/")
    path = f"notebooks/{name}.ipynb"
    colab = f"https://colab.research.google.com/github/{place}/blob/{BRANCH}/{path}"
    binder = f"https://mybinder.org/v2/gh/{place}/{BRANCH}?urlpath=lab/tree/{path}"
    page = f"https://{pages(place)}/notebooks/{name}.html"
    without = f"[Colab]({colab}) or [Binder]({binder}), without installing"
    first = notebook.cells[0]
    line = f"**Open it in** {without}; {READ}({page})."
    first.source = f"{LINE.sub('', first.source)}\n\n{line}"
    cell = v4.new_code_cell(INSTALL.format(repository=address))
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
