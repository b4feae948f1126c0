"""One Chromium, and what `lab` starts, for all browser tests."""

import json
import os
import shutil
from pathlib import Path

import pytest
from chromium import Visit, open_browser
from lab_server import copy_course, serve
from site_server import SITE, serve_files

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


def pytest_generate_tests(metafunc):
    """A test that takes `name` runs for every notebook."""
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", NOTEBOOKS)


@pytest.fixture(scope="session")
def browser():
    with open_browser() as opened:
        yield opened


@pytest.fixture
def visit(browser):
    """Open a page: `visit(width, height, scheme)`."""
    opened = []

    def open_page(width=1280, height=800, scheme="light"):
        opened.append(Visit(browser, width, height, scheme))
        return opened[-1]

    yield open_page
    for each in opened:
        each.context.close()


@pytest.fixture(scope="session")
def site():
    """The address of the built website."""
    with serve_files(SITE) as address:
        yield address


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """A checkout, in which `lab` makes its folder `work`.

    A further one, `fresh`, has the notebooks without outputs.
    """
    folder = tmp_path_factory.mktemp("course")
    copy_course(folder)
    shutil.copytree(ROOT / "notebooks", folder / "fresh")
    for path in (folder / "fresh").glob("*.ipynb"):
        strip(path)
    return folder


def strip(path: Path) -> None:
    """Remove outputs, as if nothing had ever run."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    path.write_text(json.dumps(notebook), encoding="utf-8")


@pytest.fixture(scope="session")
def private(tmp_path_factory):
    """What `lab` keeps to itself, and what it prints."""
    return tmp_path_factory.mktemp("private")


@pytest.fixture(scope="session")
def lab(course, private):
    """`python3 -m grpo_course lab`: the addresses of its server, with the token."""
    with serve("lab", course, private) as address:
        yield address


@pytest.fixture(scope="session")
def pictures():
    """Where screenshots go, if GRPO_COURSE_SCREENSHOTS names a folder."""
    folder = os.environ.get("GRPO_COURSE_SCREENSHOTS")

    def take(page, name):
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(folder, f"{name}.png"))

    return take
