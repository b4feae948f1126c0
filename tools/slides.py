"""`python3 -m grpo_course slides hour`: present a deck, or take it along.

Without `--stick`, JupyterLab opens it: Alt+R begins the slides. With it, the deck
becomes one file, `slides/hour.html`, that any browser opens without network: reveal.js
comes from the installed jupyterlab-rise, MathJax from the package that the website
uses. Any notebook will do that has slide types.
"""

import argparse
import importlib.util
import json
import re
from pathlib import Path

from nbconvert import SlidesExporter

from grpo_course import install
from grpo_course.files import write_atomically
from tools import lab, site
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
  slideNumber: "c/t", transition: "none", plugins: [RevealNotes],
});
</script>{% endblock %}
"""


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
    }
    title = notebook.cells[0].source.partition("\n")[0].lstrip("# ")
    exporter = SlidesExporter(raw_template=TEMPLATE, embed_images=True)
    resources = {"deck": deck, "title": title, "metadata": {"path": str(path.parent)}}
    return exporter.from_notebook_node(notebook, resources)[0]


def source_of(path: str) -> str:
    """A file of reveal.js, which the source maps of jupyterlab-rise hold whole."""
    spec = importlib.util.find_spec("jupyterlab_rise")
    if spec is None or not spec.origin:
        raise SystemExit("jupyterlab-rise is missing: pip install -e '.[slides]'")
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
