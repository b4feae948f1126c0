"""The decks of the plans, opened from disk without a network."""

import os
from pathlib import Path

import pytest
from lab_server import run
from slides_page import SETTLED, STAGE, excess, look, open_slides, walk
from test_moving import scrub

from grpo_course.classroom.setup import FINER, PLOT_STYLE
from grpo_course.workshop import browser_tests, plans

ROOT = Path(__file__).resolve().parents[2]
PROJECTOR = (1280, 720)
SMALLEST, SPARSE = 18, 720 / 3
DOT = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw=="
FEW = 0.02  # of the slides may hold one sentence that no other slide had room for
DRAWN = PLOT_STYLE["font.size"] / 72 * PLOT_STYLE["figure.dpi"]  # pixels of its type
# What the room sees of a slide: how low and how far right it reaches, the smallest type
# (a formula's indices aside), the smallest picture as a share of its own size, and
# formulas that were not understood.
LOOK = """() => {
  const all = [...document.querySelectorAll('.slides section')];
  const leaves = all.filter(s => !s.querySelector('section'));
  const slide = all.filter(s => s.classList.contains('present')).pop();
  const parts = [...slide.querySelectorAll('*')].filter(
    e => !e.closest('aside, script, style') && e.getClientRects().length);
  const type = parts.filter(e => !e.closest('mjx-container')).filter(
    e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()));
  const outer = parts.filter(e => !e.parentElement.closest('.cm-content'));
  return {
    index: leaves.indexOf(slide),
    count: leaves.length,
    title: (slide.querySelector('h1, h2, h3, h4, h5, h6') || {}).innerText,
    first: Boolean(slide.querySelector('h1')),
    low: Math.max(...parts.map(e => e.getBoundingClientRect().bottom)),
    right: Math.max(...outer.map(e => e.getBoundingClientRect().right)),
    type: Math.min(...type.map(
      e => parseFloat(getComputedStyle(e).fontSize) * Reveal.getScale())),
    long: [...slide.querySelectorAll('.cm-content')].filter(
      e => e.scrollWidth > e.clientWidth + 1).length,
    formulas: slide.querySelectorAll('mjx-container svg').length,
    wrong: slide.querySelectorAll('[data-mml-node=merror]').length,
    raw: [...slide.querySelectorAll('.jp-MarkdownOutput :is(p, li)')].some(
      e => /\\$[^$]+\\$|\\\\frac|\\\\pi/.test(e.innerText)),
    drawn: Math.min(...parts.filter(e => e.matches('img')).map(
      e => e.getBoundingClientRect().width / (e.getAttribute('width') || e.naturalWidth
        / FINER))),
    broken: [...slide.querySelectorAll('img')].filter(e => !e.naturalWidth).length,
  };
}""".replace("FINER", str(FINER))


@pytest.fixture(scope="module")
def decks(course):
    """Build the deck of a plan, each once; its notebook."""
    built = {}

    def build(plan):
        if plan not in built:
            run(course, "slides", "--plan", plan, "--build")
            built[plan] = course / "slides" / f"{plan}.ipynb"
        return built[plan]

    return build


def open_deck(visit, made):
    """The folder beside a deck, as a person opens it; the network is off."""
    opened = visit(*PROJECTOR)
    opened.context.set_offline(True)
    opened.page.goto((made.with_suffix("") / "index.html").as_uri())
    opened.page.wait_for_function("() => window.Reveal && Reveal.isReady()")
    opened.page.wait_for_function("() => window.MathJax && MathJax.startup.promise")
    opened.page.evaluate("() => MathJax.startup.promise")
    return opened


@pytest.mark.parametrize("plan", plans.read(ROOT))
def test_a_deck_opens_from_disk(plan, decks, visit, pictures):
    """Formulas are set, nothing leaves the slide, the last row can read all of it."""
    if os.environ.get(browser_tests.QUICK) and plan != "hour":
        pytest.skip("left out by --quick")
    opened = open_deck(visit, decks(plan))
    slides = [opened.page.evaluate(LOOK)]
    while slides[-1]["index"] < slides[-1]["count"] - 1:
        slides = seen(slides, opened.page.evaluate(LOOK))
        if slides[-1]["index"] % 7 == 0 or complaint(slides[-1]):
            pictures(opened.page, f"deck_{plan}_{slides[-1]['index']:03d}")
        opened.page.keyboard.press("ArrowRight")
    assert len(slides) == slides[0]["count"] > 40, "an arrow skipped a slide"
    problems = [line for slide in slides if (line := complaint(slide))]
    assert not problems, f"of {len(slides)} slides:\n" + "\n".join(problems)
    sparse = [s["title"] for s in slides if s["low"] < SPARSE and not s["first"]]
    assert len(sparse) <= FEW * len(slides), sparse
    least = 5 if plan == "hour" else 50  # a talk shows few
    assert sum(slide["formulas"] for slide in slides) > least
    assert (opened.elsewhere, opened.errors) == ([], [])


def seen(slides, now):
    """The slides so far; a key that shows what waited leaves the slide as it is."""
    is_same = slides[-1]["index"] == now["index"]
    return [*slides[:-1], now] if is_same else [*slides, now]


def complaint(slide):
    """What is wrong with a slide, or nothing."""
    drawn = DRAWN * slide["drawn"]  # infinite where there is no picture
    wrong = {
        "has no title": not slide["title"],
        "is too high": slide["low"] > PROJECTOR[1] + 1,
        "is too wide": slide["right"] > PROJECTOR[0] + 1 or slide["long"],
        f"has type of {slide['type']:.1f} px": slide["type"] < SMALLEST - 0.1,
        f"has type of {drawn:.1f} px in a picture": drawn < SMALLEST - 0.1,
        "has a formula that is not set": slide["wrong"] or slide["raw"],
        "has a picture that is not there": slide["broken"],
    }
    found = [words for words, true in wrong.items() if true]
    return f"slide {slide['index']} ({slide['title']!r}) {found}" if found else ""


def test_what_is_wrong_on_a_slide_is_seen(decks, visit):
    """The measure can fail: a long text, small type, a formula, a missing picture."""
    page = open_deck(visit, decks("hour")).page
    assert complaint(page.evaluate(LOOK)) == ""
    for html, words in (
        ("<p>more</p>" * 40, "too high"),
        ("<p style='font-size: 11px'>small</p>", "has type of 16.5 px"),
        ("<div class='jp-MarkdownOutput'><p>$\\pi$</p></div>", "formula"),
        ("<img src='nowhere.png' alt='a'>", "not there"),
        (f"<img src='{DOT}' width='300' style='width: 150px'>", "px in a picture"),
        ("<div class='cm-content'>" + "wide " * 60 + "</div>", "too wide"),
    ):
        page.evaluate(
            """html => document.querySelector('section.present section.present')
            .insertAdjacentHTML('beforeend', `<div id="more">${html}</div>`)""",
            html,
        )
        assert words in complaint(page.evaluate(LOOK)), words
        page.evaluate("() => document.querySelector('#more').remove()")


def test_the_window_of_notes_follows_the_slides_and_turns_them(decks, visit):
    """From disk: both windows go on together, whichever has the keys."""
    stage = open_deck(visit, decks("hour")).page
    with stage.expect_popup() as popup:
        stage.keyboard.press("s")
    notes = popup.value
    for page, number in ((stage, 2), (stage, 3), (notes, 4), (stage, 5)):
        page.bring_to_front()
        while stage.evaluate("() => Reveal.getSlidePastCount()") < number - 1:
            page.keyboard.press("ArrowRight")
        told = notes.inner_text("body")
        assert told.startswith(f"Slide {number} of ") and "Next: " in told
        said = stage.evaluate("() => Reveal.getSlideNotes()")
        assert said and said in notes.inner_html("body")


def test_films_play_in_a_deck_and_give_the_keys_back(decks, visit, pictures):
    """Scrub and play; after a click on a knob, arrows show what to see and go on."""
    page = open_deck(visit, decks("hour")).page
    film = page.locator("section.present section.present figure.moving")
    for _ in range(10):
        if film.count():
            break
        page.keyboard.press("ArrowRight")
    scrub(page, film)
    pictures(page, "deck_film")
    film.locator("input").click()
    page.wait_for_function("() => document.activeElement === document.body")
    before = page.evaluate("() => Reveal.getSlidePastCount()")
    waits = page.locator("section.present section.present .fragment:not(.visible)")
    assert waits.text_content().strip()
    page.keyboard.press("ArrowRight")
    assert (waits.count(), page.evaluate("() => Reveal.getSlidePastCount()")) == (
        0,
        before,
    )
    page.keyboard.press("ArrowRight")
    assert page.evaluate("() => Reveal.getSlidePastCount()") == before + 1


def test_the_deck_of_an_hour_fits_the_live_stage(decks, visit, live):
    """The same deck in JupyterLab: as many slides, none too high or too wide."""
    if os.environ.get(browser_tests.QUICK):
        pytest.skip("left out by --quick")
    decks("hour")
    stage = visit(*STAGE)
    open_slides(stage.page, live, "slides/hour.ipynb")
    slides = walk(stage.page)
    assert len(slides) == slides[0]["count"] > 40
    wrong = [s for s in slides if excess(s) > 2 or s["wide"] or s["cut"]]
    assert not wrong


def test_a_film_is_clicked_on_the_live_stage(visit, live, pictures):
    """Signed when it was made, it plays before any cell has run."""
    stage = visit(*STAGE)
    page = stage.page
    open_slides(page, live, "slides/00_welcome.ipynb")
    film = page.locator(".reveal section.present section.present figure.moving")
    for _ in range(12):
        if film.count():
            break
        page.keyboard.press("Space")
        page.evaluate(SETTLED)
    scrub(page, film)
    before, picture = look(page)["index"], film.locator("img").get_attribute("src")
    film.locator("input").click(position={"x": 2, "y": 8})
    assert film.locator("img").get_attribute("src") != picture
    pictures(page, "live_film")
    film.locator("img").click()
    for hidden, index in ((0, before), (0, before + 1)):  # what to see, and on
        page.keyboard.press("Space")
        page.wait_for_timeout(500)
        assert (look(page)["hidden"], look(page)["index"]) == (hidden, index)
