"""The pages of the handbook that are printed, as a browser prints them."""

import re

import pytest
from lab_server import run

SHEET = re.compile(rb"/Type\s*/Page\b")  # of a PDF


@pytest.fixture(scope="module")
def handbook(course):
    run(course, "handbook")
    return course / "handbook"


@pytest.mark.parametrize(
    ("sheet", "pages"),
    [
        ("hour/syllabus", 1),
        ("half-day/syllabus", 1),
        ("two-day/syllabus", 1),
        ("course/handout", 2),
        ("half-day/handout", 2),
    ],
)
def test_a_page_to_hand_out_has_its_sheets(sheet, pages, handbook, visit):
    page = visit().page
    page.goto((handbook / f"{sheet}.html").as_uri())
    page.wait_for_function("window.MathJax?.startup?.promise !== undefined")
    page.evaluate("MathJax.startup.promise")
    assert len(SHEET.findall(page.pdf(prefer_css_page_size=True))) == pages
