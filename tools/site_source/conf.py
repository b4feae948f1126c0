"""How Sphinx builds the site; `python3 -m grpo_course site` calls it."""

from html import escape
from pathlib import Path
from textwrap import shorten

from docutils import nodes

import grpo_course
from tools import links
from tools.site import keep_plain

project = "GRPO: from sorting three numbers to a language model"
author = "GRPO course contributors"
copyright = author
extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "sphinx.ext.autodoc",
    "sphinx.ext.githubpages",  # writes .nojekyll
]
exclude_patterns = ["**/.ipynb_checkpoints", "_static"]

nb_execution_mode = "off"
nb_render_markdown_format = "gfm"  # a table that a cell displays is a table
nb_merge_streams = True
nb_code_prompt_show = "Show the {type}"
nb_code_prompt_hide = "Hide the {type}"
myst_enable_extensions = ["amsmath", "attrs_inline", "dollarmath"]
myst_heading_anchors = 2
mathjax_path = "tex-svg.js"
add_module_names = False
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # as written, not an address in memory

html_theme = "sphinx_book_theme"
html_title = "GRPO course"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["course.css"]
html_show_sourcelink = False
html_copy_source = False
html_domain_indices = False  # api.html lists the modules
pygments_style = "a11y-high-contrast-light"
# Light or dark as the reader's system says.
html_context = {"default_mode": "auto"}
html_theme_options = {
    "use_download_button": False,
    "navbar_persistent": [],  # the side bar has the search field
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# What is typed, without prompts; printed results are not offered for copying.
copybutton_selector = "div.cell_input pre, div.highlight-default pre"

if address := links.home(Path(grpo_course.__file__).parents[1]):
    html_theme_options |= {
        "repository_url": address,
        "repository_branch": links.BRANCH,
        "use_edit_page_button": True,
        "use_repository_button": True,
    }


NO_SOURCE = ("index", "api")  # pages that are no file of the repository


def offer_no_edit(app, pagename, templatename, context, doctree) -> None:
    """A link to edit a page leads to a file that there is."""
    if pagename in NO_SOURCE:
        context["page_source_suffix"] = None


def describe(app, pagename, templatename, context, doctree) -> None:
    """What a search engine and a shared link say of a page: its first paragraph."""
    paragraph = doctree.next_node(nodes.paragraph) if doctree else None
    if paragraph:
        words = escape(shorten(paragraph.astext(), 200, placeholder=" ..."))
        title = escape(doctree.next_node(nodes.title).astext())
        context["metatags"] += (
            f'<meta name="description" content="{words}">\n'
            f'<meta property="og:title" content="{title}">\n'
            f'<meta property="og:description" content="{words}">\n'
        )


def add_scripts(app, pagename, templatename, context, doctree) -> None:
    """What trims search results, and what makes a notebook's guesses clickable."""
    if pagename == "search":
        app.add_js_file("search.js")
    if pagename.startswith("notebooks/"):
        app.add_js_file("guess.js")


def setup(app) -> None:
    for change in (offer_no_edit, describe, add_scripts):
        app.connect("html-page-context", change)
    app.connect("autodoc-process-docstring", keep_plain)
