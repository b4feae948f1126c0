"""A page of the handbook as HTML that a browser prints; `mathjax.js` lies beside it."""

from html import escape
from pathlib import Path

from nbconvert.filters import markdown2html

TEMPLATE = Path(__file__).with_name("paper.html")


def page(text: str, kind: str) -> str:
    """Markdown as one page of HTML, whose title is the first line of the text."""
    template = TEMPLATE.read_text(encoding="utf-8")
    title = text.partition("\n")[0].lstrip("# ")
    named = template.replace("TITLE", escape(title)).replace("KIND", kind)
    return named.replace("BODY", markdown2html(text))
