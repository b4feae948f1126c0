"""A headless Chromium and its pages; each page notes what goes wrong in it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from tools import run

ARGUMENTS = [
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-sandbox",  # Chromium has none as root, as in a container
]
OWN = re.compile(r"(data|blob|file):|(https?|wss?)://(localhost|127\.0\.0\.1)[:/]")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """The one Chromium of a test run."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=run.find_chromium(), args=ARGUMENTS
        )
        yield browser
        browser.close()


class Visit:
    """A page of its own, and lists of what it asked for and what it complained of."""

    def __init__(self, browser: Browser, width: int, height: int, scheme: str):
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        self.page: Page = self.context.new_page()
        self.elsewhere: list[str] = []
        self.missing: list[str] = []
        self.errors: list[str] = []
        self.page.route("**/*", self._guard)
        self.page.on("response", self._note_status)
        self.page.on("requestfailed", self._note_failure)
        self.page.on("console", self._note_console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _guard(self, route) -> None:
        """Nothing leaves this machine; what tried to is noted."""
        if OWN.match(route.request.url):
            route.continue_()
        else:
            self.elsewhere.append(route.request.url)
            route.abort()

    def _note_status(self, response) -> None:
        if response.status >= 400:
            self.missing.append(f"{response.status} {response.url}")

    def _note_failure(self, request) -> None:
        if OWN.match(request.url) and request.failure != "net::ERR_ABORTED":
            self.missing.append(f"{request.failure} {request.url}")

    def _note_console(self, message) -> None:
        if message.type == "error":
            self.errors.append(message.text)
