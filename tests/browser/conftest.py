"""One Chromium, one website and one JupyterLab for all tests of a process."""

import shutil
from pathlib import Path

import pytest
from chromium import Visit, serve_site
from lab_page import serve
from playwright.sync_api import sync_playwright

from tools import run

ROOT = Path(__file__).resolve().parents[2]
run.use_variables()
ARGUMENTS = [
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-sandbox",  # Chromium has none as root, as in a container
]


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        path = run.find_chromium()
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a page: `visit(width, height, scheme)`."""
    opened = []

    def open_page(*given):
        opened.append(Visit(browser, *given))
        return opened[-1]

    yield open_page
    for each in opened:
        each.context.close()


@pytest.fixture(scope="session")
def site():
    """The address of the built website."""
    with serve_site() as address:
        yield address


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """A checkout, as a person clones it, in which `lab` makes its folder `work`."""
    folder = tmp_path_factory.mktemp("course")
    leave = shutil.ignore_patterns("__pycache__")
    for name in ("notebooks", "images", "grpo_course", "teaching", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=leave)
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="session")
def lab(course, tmp_path_factory):
    """`python3 -m grpo_course lab`: the addresses of its server, with the token."""
    with serve("lab", course, tmp_path_factory.mktemp("private")) as server:
        yield server
