"""The deck of an hour: live in JupyterLab, and as one page from disk."""

import pytest
from lab_server import run, serve

PROJECTOR = (1280, 720)
ZOOMED = (853, 480)  # what it shows when the browser is zoomed to 150 %
FONTS = "https://fonts.googleapis.com/"  # jupyterlab-rise asks; it does without
# The slide on stage: what of it lies outside, and what waits for the next key.
LOOK = """() => {
  const all = [...document.querySelectorAll('.reveal .slides section')];
  const leaves = all.filter(each => !each.querySelector('section'));
  const slide = all.filter(each => each.classList.contains('present')).pop();
  const seen = [...slide.querySelectorAll('h1, h2, p, li, pre, td, img, input')]
    .filter(each => !each.closest('aside') && each.getBoundingClientRect().width);
  const boxes = seen.map(each => each.getBoundingClientRect());
  return {
    at: leaves.indexOf(slide),
    count: leaves.length,
    title: slide.querySelector('h1, h2')?.innerText,
    waits: slide.querySelectorAll('.fragment:not(.visible)').length,
    low: Math.max(...boxes.map(box => box.bottom)) - innerHeight,
    right: Math.max(...boxes.map(box => box.right)) - innerWidth,
    broken: seen.filter(each => each.tagName === 'IMG' && !each.naturalWidth).length,
    raw: seen.filter(e => e.tagName === 'P' && e.innerText.includes('$')).length,
  };
}"""


@pytest.fixture(scope="module")
def live(course, tmp_path_factory):
    """`python3 -m grpo_course slides`: the addresses of its server, with the token."""
    with serve("slides", course, tmp_path_factory.mktemp("private")) as address:
        yield address


def walk(page):
    """Press space to the end; each slide as it is when all of it is shown."""
    page.wait_for_selector(".reveal section.present .jp-MarkdownOutput", timeout=90_000)
    page.wait_for_timeout(3000)  # formulas are set, and reveal lays out once more
    slides = []
    while True:
        slide = page.evaluate(LOOK)
        if not slide["waits"]:
            slides.append(slide)
            if slide["at"] == slide["count"] - 1:
                return slides
        page.keyboard.press("Space")
        page.wait_for_timeout(150)


def check(slides):
    """All of them were seen, whole."""
    assert [slide["at"] for slide in slides] == [*range(slides[0]["count"])]
    wrong = [
        slide
        for slide in slides
        if max(slide["low"], slide["right"]) > 2 or slide["broken"] or slide["raw"]
    ]
    assert len(slides) > 40 and wrong == []


def test_a_deck_is_presented_in_jupyterlab(visit, live):
    stage = visit(*ZOOMED)
    stage.page.goto(live("rise/teaching/hour.ipynb"), wait_until="domcontentloaded")
    check(walk(stage.page))
    assert [url for url in stage.elsewhere if not url.startswith(FONTS)] == []
    assert stage.missing == []


def test_a_deck_on_a_stick_is_whole_and_its_notes_follow(course, visit):
    run(course, "slides", "hour", "--stick")
    stage = visit(*PROJECTOR)
    page = stage.page
    page.goto((course / "slides" / "hour.html").as_uri())
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    page.bring_to_front()
    check(walk(page))
    note = opened.value.locator(".speaker-controls-notes .value")
    assert note.inner_text().startswith("After the last part.")
    assert (stage.elsewhere, stage.errors) == ([], [])
