"""`python3 -m grpo_course slides hour`: present a deck, or take it along.

Without `--stick`, JupyterLab opens it: Alt+R begins the slides. With it, the deck
becomes one file, `slides/hour.html`, that any browser opens without network: reveal.js
comes from the installed jupyterlab-rise, MathJax from the package that the website
uses. Any notebook will do that has slide types. Opened with `?print-pdf` behind its
address, that file prints as a handout, one page a slide.
"""

import argparse
import base64
import importlib.util
import json
import mimetypes
import re
from pathlib import Path
from urllib.parse import unquote

from jinja2 import pass_context
from nbconvert import SlidesExporter

from grpo_course import install
from grpo_course.files import write_atomically
from tools import lab, links, site
from tools.notebook import read

TEMPLATE = """\
{% extends 'reveal/index.html.j2' %}
{% block header %}<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{{ resources.title }}</title>
<style>{{ resources.deck["reveal.css"] }}</style>
{% for css in resources.inlining.css %}<style>{{ css }}</style>{% endfor %}
<style>html, body, main { height: 100%; margin: 0; }</style>
<style>{{ resources.deck["slides.css"] }}</style>
<script>
window.MathJax = {tex: {inlineMath: [["$", "$"]]}, options: {enableMenu: false}};
</script>
<script>{{ resources.deck["mathjax.js"] }}</script>
</head>{% endblock %}
{% block footer_js %}
<script>{{ resources.deck["reveal.js"] }}</script>
<script>{{ resources.deck["notes.js"] }}</script>
<script>
Reveal.initialize({
  width: 853, height: 480, margin: 0, center: false, controls: false, hash: true,
  maxScale: 100, slideNumber: "c/t", transition: "none",
  pdfSeparateFragments: false, plugins: [RevealNotes],
});
{{ resources.deck["slides.js"] }}
</script>{% endblock %}
"""
# A picture in an output, with the alternative text that the notebook stores beside it.
PICTURE = """\
{% block data_BLOCK scoped %}{% set alt = output | get_metadata("alt", "MIME") %}
{{ super() | replace("<img ", '<img alt="' ~ alt | e ~ '" ') if alt else super() }}
{% endblock %}
"""
for block, mime in [("png", "png"), ("jpg", "jpeg"), ("svg", "svg+xml")]:
    TEMPLATE += PICTURE.replace("BLOCK", block).replace("MIME", f"image/{mime}")
# A picture in a text, named by the path of its file.
NAMED = re.compile(r'(<img\b[^>]*?\ssrc=")(?!\w+:)([^"]+)')


def main(arguments: list[str], root: Path) -> int:
    """Present a notebook, or write it as one file."""
    parser = argparse.ArgumentParser(
        prog=install.call("slides"),
        epilog="All other options go to JupyterLab.",
        allow_abbrev=False,
    )
    told = "hour, half_day, or the path of a notebook"
    parser.add_argument("name", nargs="?", default="hour", help=told)
    parser.add_argument("--stick", action="store_true", help="write one file instead")
    options, others = parser.parse_known_args(arguments)
    named = root / "teaching" / f"{options.name}.ipynb"
    path = named if named.exists() else Path(options.name).resolve()
    if not path.is_file():
        parser.error(f"there is no {options.name}; {told}")
    notebook = read(path)
    if options.stick:
        links.close(notebook, links.home(root))
        page = root / "slides" / f"{path.stem}.html"
        write_atomically(page, exported(notebook, path, root))
        print(f"Open it in any browser, without network: {page}")
        return 0
    lab.trust(notebook)  # its sliders act before a cell has run
    return lab.open_at(path.relative_to(root), others, root)


def exported(notebook, path: Path, root: Path) -> str:
    """The slides of a notebook as a page that needs nothing else."""
    for cell in notebook.cells:
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            cell.metadata["transient"] = {"remove_source": True}
    deck = {
        "reveal.css": source_of("dist/reveal.css"),
        "reveal.js": script_of("dist/reveal.esm.js", "Reveal"),
        "notes.js": script_of("plugin/notes/notes.esm.js", "RevealNotes"),
        "mathjax.js": closed(site.mathjax().read_text(encoding="utf-8")),
        "slides.css": (root / "teaching" / "slides.css").read_text(encoding="utf-8"),
        "slides.js": (root / "teaching" / "slides.js").read_text(encoding="utf-8"),
    }
    title = notebook.cells[0].source.partition("\n")[0].lstrip("# ")
    resources = {"deck": deck, "title": title}
    exporter = WholePages(raw_template=TEMPLATE)
    exporter.folder = path.parent
    return exporter.from_notebook_node(notebook, resources)[0]


class WholePages(SlidesExporter):
    """Slides with the bytes of each picture that a text names by its file.

    nbconvert's own `embed_images` takes none from another folder, and closes every tag
    of a text where it opens: a subscript stands empty beside its letters.
    """

    folder: Path

    @pass_context
    def markdown2html(self, context, source):
        page = super().markdown2html(context, source)
        return NAMED.sub(lambda found: found[1] + self.embedded(found[2]), page)

    def embedded(self, name: str) -> str:
        """The address that holds a picture's bytes; its name if no file has it."""
        file = self.folder / unquote(name)
        if not file.is_file():
            return name
        kind = mimetypes.guess_type(file.name)[0]
        return f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"


def source_of(path: str) -> str:
    """A file of reveal.js, which the source maps of jupyterlab-rise hold whole."""
    spec = importlib.util.find_spec("jupyterlab_rise")
    if spec is None or not spec.origin:
        needs = install.pip_install("jupyterlab-rise")
        raise SystemExit(f"jupyterlab-rise is missing. Install it:\n{needs}")
    for file in sorted(Path(spec.origin).parent.glob("static/*.js.map")):
        told = json.loads(file.read_text(encoding="utf-8"))
        for name, source in zip(told["sources"], told["sourcesContent"], strict=True):
            if name.endswith(f"reveal.js/{path}"):
                css = re.search(r'"sourcesContent":\[("(?:[^"\\]|\\.)*")', source)
                return json.loads(css[1]) if css else source
    raise SystemExit(f"jupyterlab-rise has no {path}: is it another version?")


def script_of(path: str, name: str) -> str:
    """A module of reveal.js as a script that sets one name and no other."""
    body = source_of(path).replace("export default", f"window.{name} =")
    return closed(f"{{{body}\n}}")


def closed(script: str) -> str:
    """A script that can stand in a page: no text in it ends the page's own tag."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
