"""One Chromium, one website and one JupyterLab for all tests of a process."""

import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from chromium import SITE, Visit
from lab_page import OPENED, SHUT_DOWN, serve
from playwright.sync_api import sync_playwright

from tools import run
from tools.browser import find_chromium

run.use_variables()
# Chromium has no sandbox as root, as in a container.
ARGUMENTS = ["--disable-gpu", "--disable-background-networking", "--no-sandbox"]


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        path = find_chromium()
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a page: `visit(width, height, scheme)`."""
    opened = []
    yield lambda *given: opened.append(Visit(browser, *given)) or opened[-1]
    for each in opened:
        each.context.close()


@pytest.fixture(scope="session")
def site():
    """The address of the built website."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """A checkout, as a person clones it, in which `lab` makes its folder `work`."""
    folder = tmp_path_factory.mktemp("course")
    leave = shutil.ignore_patterns("__pycache__")
    for name in ("notebooks", "images", "grpo_course", "teaching", "tools"):
        shutil.copytree(SITE.parent / name, folder / name, ignore=leave)
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(SITE.parent / name, folder)
    return folder


@pytest.fixture(scope="session")
def lab(course, tmp_path_factory):
    """`python3 -m grpo_course lab`: the addresses of its server, with the token."""
    with serve("lab", course, tmp_path_factory.mktemp("private")) as server:
        yield server


@pytest.fixture
def notebook(lab, visit):
    """Open a notebook in JupyterLab, alone with its kernel; no request fails."""
    opened = []

    def leave():
        for each in opened:
            each.page.evaluate(SHUT_DOWN)
            assert each.missing == []
            each.context.close()
        opened.clear()

    def open_page(path):
        leave()
        opened.append(visit(1280, 900))
        address = lab(f"lab/tree/{path}") if path else lab.printed[0]
        address += "&reset"  # or JupyterLab opens again what earlier tests had open
        opened[0].page.goto(address, wait_until="domcontentloaded")
        opened[0].page.wait_for_function(OPENED, timeout=120_000)
        return opened[0].page

    yield open_page
    leave()
