"""A page in a headless Chromium, which notes what goes wrong in it."""

import re
from pathlib import Path

SITE = Path(__file__).resolve().parents[2] / "_site"
PHONE = {"width": 390, "height": 844}
OWN = re.compile(r"(data|blob|file):|(https?|wss?)://(localhost|127\.0\.0\.1)[:/]")


class Visit:
    """A page of its own, and lists of what it missed and what it complained of.

    Nothing leaves this machine: what another computer should have sent is missing.
    """

    def __init__(self, browser, width=1280, height=800, scheme="light"):
        size = {"width": width, "height": height}
        self.context = browser.new_context(viewport=size, color_scheme=scheme)
        self.context.set_default_timeout(90_000)  # other work may keep a machine busy
        self.page, self.missing, self.errors = self.context.new_page(), [], []
        self.page.route(lambda url: not OWN.match(url), self._refuse)
        self.page.on("response", self._note_status)
        self.page.on("requestfailed", self._note_failure)
        self.page.on("console", self._note_console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _refuse(self, route):
        self.missing.append(route.request.url)
        route.abort()

    def _note_status(self, response):
        if response.status >= 400:
            self.missing.append(f"{response.status} {response.url}")

    def _note_failure(self, request):
        if OWN.match(request.url) and request.failure != "net::ERR_ABORTED":
            self.missing.append(f"{request.failure} {request.url}")

    def _note_console(self, message):
        if message.type == "error":
            self.errors.append(message.text)


def scrub(page, film):
    """One step on with the keyboard, then play to the end: the picture changes."""
    film.scroll_into_view_if_needed(timeout=60_000)
    look = "e => [e.querySelector('img').src, e.querySelector('figcaption').innerText]"
    first = film.evaluate(look)
    knob = film.locator("input[type=range]").last
    knob.press("ArrowRight")
    second = film.evaluate(look)
    assert first[0] != second[0] and first[1] != second[1]
    assert second[1] in knob.get_attribute("aria-valuetext")
    film.get_by_role("button", name="Play").click()
    picture = film.locator("img").element_handle()
    page.wait_for_function("([e, src]) => e.src !== src", arg=[picture, second[0]])
