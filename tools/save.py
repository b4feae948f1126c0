"""`python3 -m grpo_course save [names]`: execute the notebooks, store their outputs.

`--form-only` keeps the stored outputs, and brings minutes, links and slides up to
date. The minutes in README.md, INSTRUCTORS.md and the map of the course follow, and
the table of names in TRL.md. Without names, README.md says when all were executed.
`--address https://github.com/...` says where the course is published: `tools/links.py`.

Saving twice gives the same bytes. A notebook with an error, a warning or a path of
this machine in its outputs is not saved.
"""

import io
import platform
import re
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from PIL import Image

from grpo_course.classroom.moving import frames_of
from grpo_course.files import write_atomically
from tools import links
from tools.notebook import (
    FIXED,
    SOLUTION,
    accidents,
    close,
    code_cells,
    digest,
    exercises,
    read,
    tags,
)
from tools.run import Failed, choose, execute, parser, use_variables

NOTEBOOK_METADATA = ("rise", "title")  # that may stay
CELL_METADATA = ("claims", "jupyter", "slideshow", "tags")
MILLISECONDS = re.compile(r"[\d.]+(?= ms\b)")
RISE = {  # what jupyterlab-rise is told
    "center": False,
    "controls": False,  # its arrows lie over the text; the space bar does it
    "margin": 0.02,
    "scroll": True,  # whatever does not fit can still be reached
    "transition": "none",
}
# An author may leave out the second half: then there are no exercises to add yet.
MINUTES = re.compile(
    r"\*\*Minutes:\*\* (\d+)(?: \((\d+) without numbered exercises\))?"
)
DOCUMENTS = ("README.md", "INSTRUCTORS.md")
NAMES = "TRL.md"  # its first table is made from the package's
NAMES_TABLE = re.compile(r"^\| here \| TRL \| verl \|\n(?:\|.*\n)+", re.MULTILINE)
TABLE = "| notebook | minutes |"
LAST = re.compile(
    r"^(- \*\*Does it still run\?\*\*.*?)( Every notebook was last .*)?$", re.M
)
ROW = re.compile(r"^(\|[^|]*?(\d\d_\w+)[^|]*\|) \d+ \|")


def main(arguments: list[str], root: Path) -> int:
    """Execute and store each notebook; non-zero if one was refused."""
    made = parser("save")
    made.add_argument("--form-only", action="store_true", help="keep the outputs")
    told = "of the repository on GitHub, from which every link is made"
    made.add_argument("--address", help=told)
    options = made.parse_args(arguments)
    if options.address is not None:
        address = links.github(options.address)
        if not address:
            made.error("--address must be like https://github.com/ada/grpo-course.")
        links.publish(root, address)
    paths = choose(root / "notebooks", options.names, root / "teaching")
    use_variables()
    began = time.monotonic()
    saved = [save_one(path, root, not options.form_only) for path in paths]
    if all(saved) and not options.names and not options.form_only:
        state_run(root / "README.md", time.monotonic() - began)
    for path, text in documents(root).items():
        write_atomically(path, text)
        print(f"{path.name:<20} saved: its minutes and address", flush=True)
    return int(not all(saved))


def state_run(page: Path, seconds: float) -> None:
    """Say on a page when everything was last executed, on what and for how long."""
    told = (
        f" Every notebook was last executed and stored on {date.today()}, in "
        f"{seconds / 60:.0f} minutes, with `constraints.txt` and Python "
        f"{platform.python_version()}."
    )
    if page.exists():
        text = page.read_text(encoding="utf-8")
        write_atomically(page, LAST.sub(lambda found: found[1] + told, text))


def save_one(path: Path, root: Path, run: bool = True) -> bool:
    """Execute one notebook and store it if nothing is wrong; whether it was stored."""
    problems, text = executed_text(path, root, run)
    if problems:
        lines = "\n  ".join(problems)
        print(f"{path.stem:<20} NOT saved:\n  {lines}", flush=True)
        return False
    changed = text != path.read_text(encoding="utf-8")
    if changed:
        write_atomically(path, text)
    for name, image in pictures(nbformat.reads(text, as_version=4)):
        write_atomically(root / "images" / name, image)
    print(f"{path.stem:<20} {'saved' if changed else 'unchanged'}", flush=True)
    return True


def executed_text(path: Path, root: Path, run: bool = True) -> tuple[list[str], str]:
    """What is wrong with an executed notebook, and the text to store."""
    notebook = read(path)
    give_ids(notebook, path.stem)
    counted = [cell.execution_count for _, cell in code_cells(notebook)]
    if not run and counted != list(range(1, len(counted) + 1)):
        return ["a code cell has never run: save it without --form-only"], ""
    try:
        if run:
            execute(notebook, path.parent)
    except Failed as error:
        return [str(error)], ""
    state_minutes(notebook)
    if path.parent.name == "notebooks":
        links.add(notebook, path.stem, links.published(root))
    else:  # a deck is opened from a checkout
        links.close(notebook, links.published(root))
    tidy(notebook)
    problems = accidents(notebook, (str(root.resolve()), str(Path.home())))
    return problems, nbformat.writes(notebook) + "\n"


def give_ids(notebook: NotebookNode, name: str) -> None:
    """Keep each cell's id; where one is missing or taken, make it from the place."""
    notebook["nbformat_minor"] = max(5, notebook.get("nbformat_minor", 5))
    taken = set()
    for position, cell in enumerate(notebook["cells"]):
        identity, attempt = cell.get("id"), 0
        while not identity or identity in taken:
            identity = digest(f"{name}:{position}:{attempt}", 8)
            attempt += 1
        cell["id"] = identity
        taken.add(identity)


def tidy(notebook: NotebookNode) -> None:
    """Fix what is left of its metadata; drop what varies between two executions.

    An author's slide type stays; elsewhere a section goes right, a text below it down,
    and code joins the text above it.
    """
    notebook.metadata.setdefault("rise", RISE)
    close(notebook)
    keep_only(notebook.metadata, NOTEBOOK_METADATA)
    notebook.metadata.update(FIXED)
    for cell in notebook.cells:
        slide = cell.metadata.setdefault("slideshow", {})
        section = cell.source.startswith(("# ", "## "))
        kind = "fragment" if cell.cell_type == "code" else "subslide"
        kind = "slide" if section and kind == "subslide" else kind
        kind = "skip" if SOLUTION in tags(cell) else kind
        slide["slide_type"] = slide.get("slide_type") or kind
        keep_only(cell.metadata, CELL_METADATA)
        for output in cell.get("outputs", []):
            if "text" in output:  # each machine has its own times: `? ms`, as wide
                output["text"] = MILLISECONDS.sub(
                    lambda found: "?".rjust(len(found.group())), output["text"]
                )


def keep_only(metadata: dict, keys: tuple[str, ...]) -> None:
    """Delete the other keys, and those that hold nothing."""
    for key in list(metadata):
        if key not in keys or not metadata[key]:
            del metadata[key]


# Minutes: the first cell of a notebook states how long it takes without its exercises,
# and each exercise states its own.


def minutes(notebook: NotebookNode) -> tuple[int, int]:
    """Minutes of a notebook without its exercises, and of these; 0 if none stated."""
    found = MINUTES.search(notebook.cells[0].source) if notebook.cells else None
    if found is None:
        return 0, 0
    return int(found[2] or found[1]), sum(each for _, each in exercises(notebook.cells))


def state_minutes(notebook: NotebookNode) -> None:
    """Bring the minutes in a notebook's first cell up to date."""
    told, more = minutes(notebook)
    if told:
        words = f"**Minutes:** {told + more}"
        words += f" ({told} without numbered exercises)" if more else ""
        notebook.cells[0].source = MINUTES.sub(words, notebook.cells[0].source, count=1)


def documents(root: Path) -> dict[Path, str]:
    """The files whose table of notebooks is out of date, and their new text."""
    books = {path: read(path) for path in sorted((root / "notebooks").glob("*.ipynb"))}
    lengths = {path.stem: sum(minutes(book)) for path, book in books.items()}
    new = {}
    address = links.published(root)
    for path in [root / name for name in DOCUMENTS if (root / name).exists()]:
        before = path.read_text(encoding="utf-8")
        if (text := links.named(filled(before, lengths), address)) != before:
            new[path] = text
    page = root / NAMES
    if page.exists():
        from grpo_course.text.trl import names_table  # transformers: slow to load

        before = page.read_text(encoding="utf-8")
        text = NAMES_TABLE.sub(lambda _: names_table() + "\n", before, count=1)
        new |= {page: text} if text != before else {}
    for path, book in books.items():
        for cell in book.cells:
            before = cell.source
            if cell.cell_type == "markdown":
                cell.source = filled(before, lengths)
            if cell.source != before:
                new[path] = nbformat.writes(book) + "\n"
    return new


def filled(text: str, lengths: dict[str, int]) -> str:
    """A text with the minutes of its table of notebooks filled in, where it has one."""
    lines, inside = text.split("\n"), False
    for place, line in enumerate(lines):
        inside = line.startswith(TABLE) or (inside and line.startswith("|"))
        row = ROW.match(line) if inside else None
        if row and not lengths.get(row[2]):
            raise SystemExit(
                f"A table names {row[2]}, but no notebook of that name states its "
                "minutes. Write **Minutes:** 30. into its first cell, or drop the row."
            )
        if row:
            lines[place] = f"{row[1]} {lengths[row[2]]} |{line[row.end() :]}"
    return "\n".join(lines)


def pictures(notebook: NotebookNode) -> Iterator[tuple[str, bytes]]:
    """The README's films: each is the output of a cell `film-X`."""
    for _, cell in code_cells(notebook):
        for tag in tags(cell):
            kind, _, name = tag.partition("-")
            for output in cell.outputs:
                data = output.get("data", {})
                if kind == "film" and "text/html" in data:
                    yield f"{name}.gif", animated(data["text/html"])


def animated(html: str) -> bytes:
    """A stored film as a GIF, which plays twice where no script runs, then rests."""
    kind = Image.Quantize.FASTOCTREE
    first, *others = [frame.quantize(128, kind) for frame in frames_of(html)]
    times = [500] * len(others) + [3000]  # milliseconds that a frame stands
    file = io.BytesIO()
    options = {"append_images": others, "duration": times, "loop": 2}
    first.save(file, "GIF", save_all=True, optimize=True, **options)
    return file.getvalue()
