"""What the website makes of notebooks and docstrings; that each command is complete."""

import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest
from docutils.core import publish_doctree
from nbformat import v4

import grpo_course
from grpo_course import __main__ as command_line
from grpo_course.lessons.hunt.defects import DEFECTS
from grpo_course.reader.finale import DEEP, read_finale, shares
from grpo_course.workshop import anywhere, api_page, site

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)")  # of this repository


def picture(alt):
    return v4.new_output(
        "display_data",
        data={"image/png": "aGk="},
        metadata={"image/png": {"alt": alt}},
    )


def prepared(*cells):
    notebook = v4.new_notebook(cells=list(cells))
    site.prepare(notebook)
    return notebook["cells"]


def test_each_picture_has_a_cell_and_a_text_of_its_own():
    stream = v4.new_output("stream", text="words")
    outputs = [stream, picture("a"), stream, picture("b"), stream]
    code = v4.new_code_cell("plot()", outputs=outputs, metadata={"tags": ["t"]})
    first, second = prepared(code)
    assert [first["metadata"]["mystnb"], second["metadata"]["mystnb"]] == [
        {"image": {"alt": "a"}},
        {"image": {"alt": "b"}},
    ]
    assert first["outputs"] + second["outputs"] == outputs
    assert first["id"] != second["id"]
    assert first["metadata"]["tags"] == ["t"]
    assert second["metadata"]["tags"] == ["t", "remove-input"]


def test_a_picture_in_finer_pixels_is_as_wide_as_it_says():
    fine = picture("a")
    fine.metadata["image/png"]["width"] = 761
    (cell,) = prepared(v4.new_code_cell("plot()", outputs=[fine]))
    assert cell["metadata"]["mystnb"] == {"image": {"alt": "a", "width": "761px"}}


def test_a_cell_without_a_picture_stays():
    cells = [v4.new_markdown_cell("a"), v4.new_code_cell("b")]
    assert prepared(*cells) == cells


def test_the_pages_of_a_fork_name_the_fork(tmp_path, monkeypatch):
    monkeypatch.setattr(site.anywhere, "origin", lambda root: "ada/course")
    monkeypatch.setattr(site, "mathjax", lambda: Path(__file__))
    site.collect(ROOT, tmp_path / "source")
    readme = (tmp_path / "source" / "README.md").read_text(encoding="utf-8")
    assert "git clone --depth 1 https://github.com/ada/course grpo" in readme


def test_a_page_links_only_to_what_the_site_has(tmp_path, monkeypatch):
    monkeypatch.setattr(site, "mathjax", lambda: Path(__file__))
    site.collect(ROOT, tmp_path / "source")
    for page in (tmp_path / "source").glob("*.md"):
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_imports_are_folded():
    first, other = prepared(
        v4.new_code_cell("import torch\n\nsetup(seed=0)"), v4.new_code_cell("b")
    )
    assert (
        first["metadata"]["tags"] == ["hide-input"] and "tags" not in other["metadata"]
    )


@pytest.mark.parametrize("owner, stays", [("OWNER", False), ("ada", True)])
def test_links_wait_for_an_address(owner, stays, tmp_path):
    line = anywhere.links("05_kl", f"https://github.com/{owner}/grpo-course")
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell(f"# 5. KL\n\n{line}")])
    anywhere.bring_home(notebook, tmp_path)
    assert notebook["cells"][0]["source"] == (
        f"# 5. KL\n\n{line}" if stays else "# 5. KL"
    )


def test_the_first_pages_count_the_bugs():
    index = ROOT / "grpo_course" / "workshop" / "site_source" / "index.md"
    for page in (ROOT / "README.md", index):
        text = page.read_text(encoding="utf-8")
        assert f"[{len(DEFECTS)} bugs found in public code]" in text


def test_the_first_pages_say_what_the_language_model_came_to():
    index = (ROOT / "grpo_course/workshop/site_source/index.md").read_text("utf-8")
    before, after = (
        100 * shares(read_finale(), name, DEEP).mean() for name in ("start", "GRPO")
    )
    assert f"{before:.0f} % to {after:.0f} % right on new ones" in README
    stored = (ROOT / "notebooks" / "12_gsm8k_grpo.ipynb").read_text(encoding="utf-8")
    said = r"accuracy +first 20 epochs 0\.(\d\d), last 20 epochs 0\.(\d\d)"
    first, last = re.search(said, stored).groups()
    weights = re.search(r"Qwen2ForCausalLM: ([\d,]+) weights", stored)
    millions = int(weights[1].replace(",", "")) / 1e6
    told = f"{first} % are right in the first 20 epochs and {last} % in the last"
    for page in (README, index):
        words = " ".join(page.split())
        assert f"language model of {millions:.1f} million weights" in words
    assert told in " ".join(index.split())


PACKAGE = ROOT / "grpo_course"
PAGE = api_page.page(PACKAGE)
MODULES = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "site_source"]
MODULES = [path for path in MODULES if path.parent != PACKAGE]


def typeset(text):
    """What a reader sees of plain text, and the complaints of reStructuredText."""
    tree = publish_doctree(api_page.plain(text), settings_overrides={"report_level": 5})
    complaints = [node.astext() for node in tree.findall() if "problem" in node.tagname]
    complaints += [n.astext() for n in tree.findall() if n.tagname == "system_message"]
    return " ".join(tree.astext().split()), complaints


@pytest.mark.parametrize(
    "text",
    [
        "Rewards [batch trial], x_ and *args, **knobs, |a|, a:: and :b:.",
        "- one\n- two\n1. three\n>>> four\n.. five\n=====",
        "A map:\n\n    one    first\n    two_   second *",
        "Raises ValueError:\n  for a mask\nthat is not 0/1",
    ],
)
def test_a_docstring_is_plain_text(text):
    assert typeset(text) == (" ".join(text.split()), [])


def test_backticks_mark_code():
    tree = publish_doctree(api_page.plain("What `a_b` s and `c\nd`s are."))
    assert [n.astext() for n in tree.findall() if n.tagname == "literal"] == [
        "a_b",
        "c d",
    ]
    assert tree.astext() == "What a_b s and c ds are."


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_page_of_names_tells_what_each_module_is(path):
    told = api_page.plain(api_page.docstring(path))
    assert told and told in PAGE
    assert typeset(api_page.docstring(path))[1] == []


@pytest.mark.parametrize("name", grpo_course.HOMES)
def test_the_page_of_names_has_each_name_in_its_module(name):
    home = grpo_course.HOMES[name]
    section = PAGE.split(f".. py:module:: {home}\n")[1].split(".. py:module::")[0]
    value = getattr(grpo_course, name)
    kind = "class" if inspect.isclass(value) else "function"
    directive = f"auto{kind}" if callable(value) else "py:data"
    assert f".. {directive}:: {name}\n" in section
    if callable(value):
        assert value.__doc__ and typeset(value.__doc__)[1] == []


@pytest.mark.parametrize("name", command_line.COMMANDS)
def test_a_command_has_a_module_and_extras_that_exist(name):
    module, extras, _ = command_line.COMMANDS[name]
    module, _, function = module.partition(":")
    home = "" if module.startswith("tools.") else "grpo_course."
    loaded = importlib.import_module(f"{home}{module}")
    assert callable(getattr(loaded, function or "main"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(extras) <= set(project["project"]["optional-dependencies"])
    assert f"  {name} " in command_line.usage()
