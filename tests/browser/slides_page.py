"""Walk through live slides (jupyterlab-rise) and measure each."""

from lab_server import Address
from playwright.sync_api import Page

# What a projector of 1280 x 720 shows when the browser is zoomed to 150 %.
STAGE = (853, 480)
START_SECONDS = 90

# The innermost slide on stage: its place, and how far its content reaches.
LOOK = """() => {
  const leaves = [...document.querySelectorAll('.reveal .slides section')]
    .filter(s => !s.querySelector('section'));
  const slide = [...document.querySelectorAll('.reveal .slides section.present')].pop();
  const box = slide.getBoundingClientRect();
  const wide = [...slide.querySelectorAll('pre, table, img, mjx-container')]
    .filter(e => !e.closest('details'))
    .filter(e => e.getBoundingClientRect().right > innerWidth + 2);
  const scrolling = [...slide.querySelectorAll('.jp-Cell *')]
    .filter(e => getComputedStyle(e).overflowY !== 'visible')
    .filter(e => e.clientHeight > 0 && e.scrollHeight > e.clientHeight + 2);
  return {
    index: leaves.indexOf(slide),
    count: leaves.length,
    hidden: slide.querySelectorAll('.fragment:not(.visible)').length,
    top: Math.round(box.top),
    bottom: Math.round(box.bottom),
    inner: slide.scrollHeight - slide.clientHeight,
    height: innerHeight,
    wide: wide.length,
    boxes: scrolling.map(e => [e.className, getComputedStyle(e).overflowY]),
    // Pictures and tables that reach below a box that scrolls: the room misses them.
    cut: scrolling.flatMap(box => [...box.querySelectorAll('img, table')].filter(
      e => e.getBoundingClientRect().bottom + box.scrollTop
        > box.getBoundingClientRect().bottom + 2)).length,
    cells: [...slide.querySelectorAll('.jp-Cell')].length,
    heading: (slide.innerText || '').trim().slice(0, 60),
  };
}"""
SETTLED = (
    "() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
)


def open_slides(page: Page, address: Address, path: str) -> None:
    """Enter live slides and wait for the first."""
    page.goto(address(f"rise/{path}"), wait_until="domcontentloaded")
    page.wait_for_selector(
        ".reveal section.present .jp-MarkdownOutput", timeout=START_SECONDS * 1000
    )
    page.wait_for_function(
        "() => document.querySelectorAll('.reveal .slides .jp-Cell').length > 20"
    )
    page.wait_for_timeout(1500)  # reveal lays out once more, then takes keys


def walk(page: Page, each=lambda slide: None) -> list[dict]:
    """Press space to the end; every slide as it is when all of it is shown."""
    slides, still = [], 0
    while still < 4:
        seen = look(page)
        if slides and slides[-1]["index"] == seen["index"]:
            still = still + 1 if seen == slides[-1] else 0
            slides[-1] = seen
        else:
            slides.append(seen)
            still = 0
        if seen["hidden"] == 0 and still == 0:
            each(seen)
        page.keyboard.press("Space")
        page.evaluate(SETTLED)
    return slides


def look(page: Page) -> dict:
    """Measure the slide on stage."""
    page.evaluate(SETTLED)
    return page.evaluate(LOOK)


def excess(slide: dict) -> int:
    """By how many pixels a slide's content leaves the stage, or scrolls."""
    return max(slide["inner"], slide["bottom"] - slide["height"], -slide["top"])
