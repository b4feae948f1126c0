"""`python3 -m grpo_course site`: the course as a website, from the stored outputs.

Sphinx, myst-nb and sphinx-book-theme; nothing is executed, and the pages fetch
nothing from elsewhere: mathematics is typeset by a MathJax that lies beside them.
"""

import importlib.util
import json
import re
import shutil
import tempfile
from pathlib import Path

from grpo_course.workshop import anywhere, api_page, kernels
from grpo_course.workshop.prediction_cells import HIDDEN

MATHJAX = "sphinx-mathjax-offline/static/mathjax/tex-svg.js"
TO_WEBSITE = re.compile(rf"; {re.escape(anywhere.READ)}\([^)]*\)\.")
SETUP = re.compile(r"^setup\(", re.MULTILINE)  # below the imports of a notebook
PAGES = (
    *("README.md", "INSTALL.md", "TRAINING.md", "INSTRUCTORS.md"),
    *("CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"),
)


def main(arguments: list[str], root: Path) -> int:
    """Build `_site`; Sphinx's exit status. `arguments` go to Sphinx."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        collect(root, source)
        built, target = Path(folder, "built"), root / "_site"
        options = ["-W", "--keep-going", "-q", "-b", "html"]
        doctrees = ["-d", str(Path(folder, "doctrees"))]
        status = kernels.python(
            ["-m", "sphinx", *options, *doctrees, *arguments, str(source), str(built)],
            root,
        )
        shutil.rmtree(target, ignore_errors=True)
        if built.exists():
            shutil.move(built, target)
    if status == 0:
        print(f"The site is in {target}: open {target / 'index.html'}")
    return status


def collect(root: Path, source: Path) -> None:
    """Copy what the site shows into `source`, ready for Sphinx."""
    source.mkdir()
    shutil.copytree(root / "notebooks", source / "notebooks")
    shutil.copytree(root / "images", source / "images")
    here = Path(__file__).parent / "site_source"
    shutil.copytree(here, source, dirs_exist_ok=True)
    for name in PAGES:
        if (root / name).exists():
            text = (root / name).read_text(encoding="utf-8")
            text = anywhere.at_home(text, root)
            (source / name).write_text(text, encoding="utf-8")
    page = api_page.page(root / "grpo_course")
    (source / "api.rst").write_text(page, encoding="utf-8")
    (source / "claims").mkdir()
    page_of_claims = str(source / "claims" / "README.md")  # they are not installed
    kernels.python(["-m", "claims", "--page", page_of_claims], root)
    shutil.copy(mathjax(), source / "_static" / "tex-svg.js")
    for path in sorted((source / "notebooks").glob("*.ipynb")):
        stored = path.read_text(encoding="utf-8")
        notebook = json.loads(stored)
        anywhere.bring_home(notebook, root)
        prepare(notebook)
        path.write_text(json.dumps(notebook), encoding="utf-8")


def mathjax() -> Path:
    """The one file of MathJax 3 that a PyPI package carries."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or not spec.origin:
        raise SystemExit("sphinx-mathjax-offline is missing: pip install -e .[site]")
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
