"""A page in a headless Chromium, which notes what goes wrong in it; the built site."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page

SITE = Path(__file__).resolve().parents[2] / "_site"
PHONE = {"width": 390, "height": 844}
OWN = re.compile(r"(data|blob|file):|(https?|wss?)://(localhost|127\.0\.0\.1)[:/]")


class Visit:
    """A page of its own, and lists of what it asked for and what it complained of."""

    def __init__(self, browser: Browser, width=1280, height=800, scheme="light"):
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        self.page: Page = self.context.new_page()
        self.missing: list[str] = []  # also what another computer should have sent
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
            self.missing.append(route.request.url)
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


def scrub(page: Page, film: Locator) -> None:
    """One step on with the keyboard, then play to the end: the picture changes."""
    film.scroll_into_view_if_needed(timeout=60_000)
    knob, picture = film.locator("input[type=range]").last, film.locator("img")
    look = "e => [e.querySelector('img').src, e.querySelector('figcaption').innerText]"
    first = film.evaluate(look)
    knob.focus()
    page.keyboard.press("ArrowRight")
    second = film.evaluate(look)
    assert first[0] != second[0] and first[1] != second[1]
    assert second[1] in knob.get_attribute("aria-valuetext")
    film.get_by_role("button", name="Play").click()
    page.wait_for_function(
        "([e, src]) => e.src !== src", arg=[picture.element_handle(), second[0]]
    )


class Quiet(SimpleHTTPRequestHandler):
    """A file server that prints no log."""

    def log_message(self, *_arguments) -> None:
        """Say nothing."""


@contextmanager
def serve_site() -> Iterator[str]:
    """The address of the built website."""
    handler = partial(Quiet, directory=str(SITE))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
