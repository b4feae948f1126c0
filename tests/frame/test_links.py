"""Notebooks lead to each other and to the papers that they name."""

import re
from pathlib import Path

import pytest

from grpo_course.workshop import form

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
NAMES = {path.name for path in NOTEBOOKS}
NOT_TEXT = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")
BARE = re.compile(r"\b[Nn]otebook \d\d\b|\barXiv \d{4}\.\d{5}")


def texts(path):
    cells = form.read(path).cells
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_or_a_paper_that_is_named_is_linked_somewhere(path):
    text = "\n".join(texts(path))
    targets = " ".join([path.name, *(to for _, to in LINK.findall(text))])
    for named in BARE.findall(LINK.sub("", NOT_TEXT.sub("", text))):
        number = named.split()[-1]
        assert re.search(rf"\b{number}", targets), f"{named} has no link"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_link_goes_where_its_words_say(path):
    for words, target in LINK.findall("\n".join(texts(path))):
        if target.endswith(".ipynb") and "://" not in target:
            assert target in NAMES, target
            number = re.search(r"\b\d\d\b|^`\d\d", words)
            if number:
                assert target.startswith(number[0].strip("`")), (words, target)
        if "arxiv.org" in target:
            named = re.search(r"\d{4}\.\d{5}", words)
            assert target.endswith(named[0] if named else ""), (words, target)


def test_a_reader_who_looks_for_the_advantage_finds_deltas():
    third = next(path for path in NOTEBOOKS if path.name.startswith("03"))
    assert "advantage" in texts(third)[0].splitlines()[0]
