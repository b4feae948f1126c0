"""The deck as a folder that opens from disk: pictures, films and formulas inside.

reveal.js is taken from the installed jupyterlab-rise, whose source maps hold it whole,
and MathJax from the package that the website uses: nothing is fetched.
"""

import base64
import importlib.util
import json
import re
from html import escape
from pathlib import Path

from nbconvert.filters import markdown2html, strip_ansi
from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from grpo_course.files import write_atomically
from grpo_course.workshop import site
from grpo_course.workshop.deck.heights import HEIGHT, LOWEST, STEP, shown_text

CSS = Path(__file__).with_name("deck.css")
PAGE = Path(__file__).with_name("deck.html")
HIDDEN = "source_hidden"
FORMATTER = HtmlFormatter(nowrap=True, style="friendly")


def write(notebook: NotebookNode, title: str, folder: Path, images: Path) -> Path:
    """Write the deck into `folder`, with pictures of `images`; the page to open."""
    folder.mkdir(parents=True, exist_ok=True)
    reveal = source_of("reveal.js/dist/reveal.esm.js")
    files = {
        "reveal.js": re.sub(r"export default (\w+);", r"window.Reveal = \1;", reveal),
        "reveal.css": css_of(source_of("reveal.js/dist/reveal.css")),
        "mathjax.js": site.mathjax().read_text(encoding="utf-8"),
        "deck.css": style() + FORMATTER.get_style_defs([".cm-content", ".highlight"]),
        "index.html": page(notebook, title, images),
    }
    for name, text in files.items():
        write_atomically(folder / name, text)
    return folder / "index.html"


def source_of(path: str) -> str:
    """A file of reveal.js, as jupyterlab-rise was built from it."""
    spec = importlib.util.find_spec("jupyterlab_rise")
    if spec is None or not spec.origin:
        raise SystemExit("jupyterlab-rise is missing: pip install -e .[slides]")
    for file in sorted(Path(spec.origin).parent.glob("static/*.js.map")):
        text = file.read_text(encoding="utf-8")
        if path in text:
            told = json.loads(text)
            for name, source in zip(
                told["sources"], told["sourcesContent"], strict=True
            ):
                if name.endswith(path):
                    return source
    raise SystemExit(f"jupyterlab-rise has no {path}: is it another version?")


def css_of(module: str) -> str:
    """The style sheet that a webpack module carries in its source map."""
    text = re.search(r'"sourcesContent":\[("(?:[^"\\]|\\.)*")', module)
    if text is None:
        raise SystemExit("reveal.css is not where jupyterlab-rise 0.43 has it.")
    return json.loads(text[1])


def style() -> str:
    """The style sheet of decks, live and offline, without its comments."""
    text = re.sub(r"/\*.*?\*/", "", CSS.read_text(encoding="utf-8"), flags=re.DOTALL)
    heights = range(LOWEST, HEIGHT + STEP, STEP)
    sizes = [
        f".reveal section:not(.stack):has(.picture-{h}) {{ --picture: {h}px; }}"
        for h in heights
    ]
    return re.sub(r"\s+", " ", text).strip() + " " + " ".join(sizes)


def page(notebook: NotebookNode, title: str, images: Path) -> str:
    """The whole page; pictures of the texts are in it, as those of the plots are."""

    def inside(found: re.Match) -> str:
        data = base64.b64encode((images / found[1]).read_bytes()).decode()
        return f'src="data:image/{Path(found[1]).suffix[1:]};base64,{data}"'

    slides = "\n".join(map(slide_html, stacks(notebook.cells)))
    slides = re.sub(r'src="\.\./images/([^"]+)"', inside, slides)
    template = PAGE.read_text(encoding="utf-8")
    return template.replace("TITLE", escape(title)).replace("SLIDES", slides)


def stacks(cells: list[NotebookNode]) -> list[list[list[NotebookNode]]]:
    """Columns of slides, each a list of the cells that are seen."""
    columns: list[list[list[NotebookNode]]] = []
    for cell in cells:
        kind = cell.metadata["slideshow"]["slide_type"]
        if kind == "slide":
            columns.append([])
        if kind in ("slide", "subslide"):
            columns[-1].append([])
        if kind != "skip":
            columns[-1][-1].append(cell)
    return columns


def slide_html(column: list[list[NotebookNode]]) -> str:
    """A section and what lies below it."""
    inner = "\n".join(
        f"<section>{''.join(map(cell_html, cells))}</section>" for cells in column
    )
    return f"<section>{inner}</section>"


def cell_html(cell: NotebookNode) -> str:
    """A cell with the class names that JupyterLab gives it."""
    kind = cell.metadata["slideshow"]["slide_type"]
    if kind == "notes":
        return f'<aside class="notes">{markdown2html(cell.source)}</aside>'
    if cell.cell_type == "markdown":
        text = f'<div class="jp-MarkdownOutput">{markdown2html(cell.source)}</div>'
        waits = " fragment" * (kind == "fragment")
        return f'<div class="jp-Cell jp-MarkdownCell{waits}">{text}</div>'
    hidden = cell.metadata.get("jupyter", {}).get(HIDDEN)
    code = "" if hidden else code_html(cell.source)
    shown = "".join(map(output_html, cell.outputs))
    return (
        f'<div class="jp-Cell jp-CodeCell">{code}<div class="jp-Cell-outputWrapper">'
        f'<div class="jp-OutputArea">{shown}</div></div></div>'
    )


def code_html(source: str) -> str:
    """Code in colours, a box for each line."""
    rows = highlight(source, PythonLexer(stripnl=False), FORMATTER).rstrip("\n")
    lines = "".join(f'<div class="cm-line">{r or " "}</div>' for r in rows.split("\n"))
    return (
        f'<div class="jp-Cell-inputWrapper"><div class="cm-content">{lines}</div></div>'
    )


def output_html(output: NotebookNode) -> str:
    """What an output shows."""
    data = output.get("data", {})
    if "text/html" in data:
        kind, inside = "RenderedHTML", data["text/html"]
    elif "image/svg+xml" in data:
        kind, inside = "RenderedImage", data["image/svg+xml"]
    elif "image/png" in data:
        alt = output.metadata.get("image/png", {}).get("alt", "")
        address = "data:image/png;base64," + data["image/png"].replace("\n", "")
        kind = "RenderedImage"
        inside = f'<img src="{address}" alt="{escape(alt)}">'
    elif "text/markdown" in data:
        kind, inside = "RenderedMarkdown", markdown2html(data["text/markdown"])
    else:
        text = escape(strip_ansi(shown_text(output)))
        kind, inside = "RenderedText", f"<pre>{text}</pre>"
    return (
        '<div class="jp-OutputArea-child"><div class="jp-OutputArea-output '
        f'jp-{kind}">{inside}</div></div>'
    )
