"""The decks: live in JupyterLab, and as files that need nothing else."""

import re

import pytest
from bs4 import BeautifulSoup
from chromium import SITE
from lab_page import serve
from quick import IS_QUICK, RUN, is_left_out

from tools import slides
from tools.notebook import read

DECKS = ["hour", "half_day"]
# What every test looks at: the slide on stage.
STAGE = """
  const all = [...document.querySelectorAll('.reveal .slides section')];
  const leaves = all.filter(each => !each.querySelector('section'));
  const slide = all.filter(each => each.classList.contains('present')).pop();"""
GLANCE = f"""() => {{{STAGE}
  return [slide.querySelectorAll('.fragment:not(.visible)').length,
          Boolean(slide.querySelector('input[type=range]'))];
}}"""
# What of it lies outside, and what lies over it: a look of a third of a second.
SLIDE = f"""() => {{{STAGE}
  const seen = [...slide.querySelectorAll('h1, h2, p, li, pre, td, img, input')]
    .filter(each => !each.closest('aside') && each.getBoundingClientRect().width);
  const boxes = seen.map(each => each.getBoundingClientRect());
  const over = new Set();
  const speaks = each => each.matches('a, button, i, img, input, svg')
    || [...each.childNodes].some(text => text.nodeType === 3 && text.data.trim());
  const style = document.createElement('style');  // what ignores a pointer, too
  style.textContent = '* {{ pointer-events: auto !important; }}';
  document.head.append(style);
  for (let x = 5; x < innerWidth; x += 40)
    for (let y = 5; y < innerHeight; y += 13)
      for (const each of document.elementsFromPoint(x, y))
        if (!each.closest('section, .slide-number') && speaks(each))
          over.add(each.className + ': ' + each.innerText);
  style.remove();
  return {{
    at: leaves.indexOf(slide),
    count: leaves.length,
    title: slide.querySelector('h1, h2')?.innerText,
    outside: Math.max(...boxes.map(
      box => Math.max(box.bottom - innerHeight, box.right - innerWidth))) > 2,
    over: [...over],
    broken: seen.filter(each => each.tagName === 'IMG' && !each.naturalWidth).length,
    raw: seen.filter(e => e.tagName === 'P' && e.innerText.includes('$')).length,
  }};
}}"""
SLIDER = "section.present:not(.stack) input[type=range]"
ZOOMED = (853, 480)  # what a projector shows when the browser is zoomed to 150 %
FONTS = "https://fonts.googleapis.com/"  # jupyterlab-rise asks; it does without


def drag(page):
    """Drag the slider on stage to another value with the mouse. -> its value"""
    slider = page.locator(SLIDER).first
    box, before = slider.bounding_box(), slider.input_value()
    middle = box["y"] + box["height"] / 2
    share = 0.04 if int(before) else 0.96
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * share, middle, steps=3)
    page.mouse.up()
    assert slider.input_value() != before
    return slider.input_value()


def walk(page):
    """Press space to the end: every slide is seen, and whole once all of it shows.

    A quick walk ends behind the fourth slider.

    Nothing of JupyterLab lies over it. On each slide with a slider, this is dragged
    before a key of a clicker is pressed.
    """
    page.wait_for_selector(".reveal section.present .jp-MarkdownOutput", timeout=90_000)
    page.wait_for_timeout(3000)  # formulas are set, and reveal lays out once more
    seen, sliders = [], 0
    while not seen or seen[-1]["at"] < seen[-1]["count"] - 1:
        if IS_QUICK and sliders > 3:
            break
        waits, has_slider = page.evaluate(GLANCE)
        if not waits:
            seen.append(page.evaluate(SLIDE))
        key = "Space"
        if has_slider:
            drag(page)
            sliders, key = sliders + 1, ("PageDown", "Space")[sliders % 2]
        page.keyboard.press(key)
        page.wait_for_timeout(60)
    count = len(seen) if IS_QUICK else seen[0]["count"]
    assert [slide["at"] for slide in seen] == [*range(count)]
    faults = ("outside", "over", "broken", "raw")
    wrong = [slide for slide in seen if any(slide[fault] for fault in faults)]
    assert seen[0]["count"] > 40 and sliders > 3 and wrong == []


@pytest.mark.parametrize("name", DECKS)
def test_a_deck_is_presented_in_jupyterlab(name, course, visit, tmp_path):
    """And so is a notebook that is no deck and brings no style of its own."""
    if is_left_out(name, RUN):
        pytest.skip("left out by --quick")
    stage = visit(*ZOOMED)
    with serve("slides", course, tmp_path, name) as live:
        address = live(f"rise/teaching/{name}.ipynb")
        stage.page.goto(address, wait_until="domcontentloaded")
        walk(stage.page)
        address = live("rise/notebooks/00_welcome.ipynb")
        stage.page.goto(address, wait_until="domcontentloaded")
        turn_a_notebook(stage.page)
    assert [url for url in stage.missing if not url.startswith(FONTS)] == []


def turn_a_notebook(page):
    """Nothing lies over its first slide, and a dragged slider gives the keys back."""
    page.wait_for_selector(".reveal section.present h1", timeout=90_000)
    page.wait_for_timeout(2000)
    # Its own films stand still, since `slides` has JupyterLab trust the deck alone.
    page.evaluate(f"""() => {{{STAGE}
      slide.insertAdjacentHTML('afterbegin', '<input type=range value=0>'); }}""")
    assert page.evaluate(SLIDE)["over"] == []
    drag(page)
    page.keyboard.press("PageDown")
    page.wait_for_function(f"() => ({SLIDE})().at === 1")


@pytest.fixture(scope="session")
def files(course):
    """Every deck as one file, and a notebook that is no deck; by its name."""
    folders = dict.fromkeys(DECKS, "teaching") | {"00_welcome": "notebooks"}
    for name, folder in folders.items():
        slides.main([str(course / folder / f"{name}.ipynb"), "--stick"], course)
    return {name: course / "slides" / f"{name}.html" for name in folders}


WORDS = re.compile(r"\w+")
TAGGED = re.compile(r"<(b|i|pre|sub|summary|sup)\b[^>]*>(.*?)</\1>", re.DOTALL)
# What Markdown has beside its words: tags, pictures, addresses, numbers, fences.
MARKS = re.compile(
    r"</?[a-z][^>]*>|!\[[^]]*\]\([^)]*\)|\]\([^)]*\)|^ *(?:\d+\.|```\w*)|&\w+;|_",
    re.MULTILINE,
)
SHOWN = ("slide", "subslide", "fragment", "notes", "-", None)


def words(text):
    """The words of a text in Markdown, or of what was made from it."""
    return WORDS.findall(MARKS.sub(" ", text))


@pytest.mark.parametrize("name", [*DECKS, "00_welcome"])
def test_a_file_says_what_its_notebook_says_cell_by_cell(name, files):
    """Every word in its place, every tag around its words, pictures with their text."""
    page = BeautifulSoup(files[name].read_text(encoding="utf-8"), "html.parser")
    for link in page.select(".anchor-link"):
        link.decompose()
    folder = "notebooks" if name == "00_welcome" else "teaching"
    cells = read(SITE.parent / folder / f"{name}.ipynb").cells
    shown = [c for c in cells if c.metadata.slideshow.get("slide_type") in SHOWN]
    drawn = page.select(".jp-Cell")
    assert len(drawn) == len(shown) > 40
    for folded in page.select("details"):
        assert len(folded.get_text()) > len(folded.summary.get_text()) + 10
    for cell, place in zip(shown, drawn, strict=True):
        if cell.cell_type == "markdown":
            text = WORDS.findall(place.get_text(" ").replace("_", " "))
            assert text == words(cell.source)
            for tag, inside in TAGGED.findall(re.sub(r"`[^`\n]*`", "", cell.source)):
                said = [words(each.get_text(" ")) for each in place.select(tag)]
                assert words(inside) in said, (tag, inside)
        pngs = [o for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
        stated = [o.metadata["image/png"]["alt"] for o in pngs]
        pictures = place.select(".jp-OutputArea img")
        assert [each["alt"] for each in pictures] == stated
    assert all(each["src"].startswith("data:") for each in page.select("img"))


OPEN = "() => window.Reveal?.isReady() && document.querySelector('mjx-container')"
# Every slide with all that shows on it: how far its end lies below the edge, of 480
# pixels. One that is not half full is found, too, and code that the edge cuts off.
MEASURE = """() => Reveal.getSlides().map((slide, k) => {
  const {h, v} = Reveal.getIndices(slide);
  Reveal.slide(h, v);
  slide.querySelectorAll('.fragment').forEach(e => e.classList.add('visible'));
  const edge = document.querySelector('.slides').getBoundingClientRect();
  const number = document.querySelector('.slide-number').getBoundingClientRect();
  const all = [...slide.querySelectorAll('h1, h2, p, li, pre, td, img, input')]
    .filter(each => !each.closest('aside') && each.getBoundingClientRect().width);
  const low = Math.max(...all.map(each => each.getBoundingClientRect().bottom));
  const text = document.createRange();
  text.selectNodeContents(slide.querySelector('h1, h2') ?? slide.firstChild);
  const near = text.getBoundingClientRect();
  const hits = near.right > number.left && near.top < number.bottom;
  const cut = [...slide.querySelectorAll('pre')].some(each => {
    text.selectNodeContents(each);
    return text.getBoundingClientRect().right > edge.right && each.offsetWidth;
  });
  return [k + 1, Math.round((low - edge.bottom) / Reveal.getScale()), hits, cut];
}).filter(([k, low, hits, cut]) => low > 0 || low < -240 || hits || cut)"""
FILLED = """() => {
  const {width, height} = document.querySelector('.slides').getBoundingClientRect();
  return [width / innerWidth, height / innerHeight]; }"""


@pytest.mark.parametrize("name", DECKS)
def test_a_file_fills_any_screen_in_any_font(name, files, visit):
    """DejaVu, which Linux falls back to, is an eighth wider than Arial."""
    if is_left_out(name, RUN):
        pytest.skip("left out by --quick")
    stage = visit(1280, 720)
    stage.page.goto(files[name].as_uri())
    stage.page.wait_for_function(OPEN)
    for font in ("Arial", "DejaVu Sans"):
        style = f".reveal {{ --text: '{font}' !important; }}"
        stage.page.add_style_tag(content=style)
        assert stage.page.evaluate(MEASURE) == [], font
    for width, height in ((1024, 576), (1920, 1080), (2560, 1440), (3840, 2160)):
        stage.page.set_viewport_size({"width": width, "height": height})
        stage.page.wait_for_function(f"() => Math.min(...({FILLED})()) > 0.98")
    assert (stage.errors, stage.missing) == ([], [])


PLACE = "() => (({h, v, f}) => [h, v, f ?? -1])(Reveal.getIndices())"
# Controls of every kind on the slide on stage.
CONTROLS = """() => {
  const box = document.createElement('div');
  box.id = 'controls';
  box.style = 'position: absolute; z-index: 9; background: white; top: 0; left: 0';
  box.innerHTML = `<button>b</button> <input type=checkbox> <input type=radio>
    <select><option>one<option>two</select> <details><summary>s</summary>x</details>
    <span role=slider tabindex=0>drag</span> <input type=number value=3 size=4>
    <input type=text value=words> <textarea>more</textarea>
    <p contenteditable=true style='margin: 0'>code</p>`;
  document.querySelector('.reveal').append(box);
}"""
NOT_WRITTEN = ["button", "[type=checkbox]", "[type=radio]", "summary", "[role=slider]"]
WRITTEN = ["[type=number]", "[type=text]", "textarea", "[contenteditable]"]


def at_a_slider(visit, file):
    """The page of a deck at its first slide with a slider."""
    page = visit(1280, 720).page
    page.goto(file.as_uri())
    page.wait_for_function(OPEN)
    page.evaluate("""() => {
      const {h, v} = Reveal.getIndices(
        Reveal.getSlides().find(each => each.querySelector('input[type=range]')));
      Reveal.slide(h, v);
    }""")
    return page


def test_keys_turn_the_slides_again_once_a_pointer_has_used_a_control(files, visit):
    page = at_a_slider(visit, files["hour"])

    def moves(key):
        """Whether a key turned the deck, which is then where it was."""
        before = page.evaluate(PLACE)
        page.keyboard.press(key)
        after = page.evaluate(PLACE)
        page.evaluate("([h, v, f]) => Reveal.slide(h, v, f)", before)
        return after != before

    for key in ("PageDown", "PageUp", "Space", "ArrowRight", "n", "Shift+Space"):
        value = drag(page)
        assert moves(key), key
        assert page.locator(SLIDER).first.input_value() == value
    page.evaluate(CONTROLS)
    for control in NOT_WRITTEN + WRITTEN:
        page.locator(f"#controls {control}").click()
        assert moves("PageDown") and moves("PageUp"), control
        page.locator(f"#controls {control}").click()
        assert moves("Space") == (control in NOT_WRITTEN), control
    page.locator("#controls select").select_option("two")
    page.locator("#controls [type=text]").click()
    page.keyboard.press("Enter")
    assert moves("Space")


def test_who_comes_by_the_tab_key_moves_a_slider_and_plays_a_film(files, visit):
    page = at_a_slider(visit, files["hour"])
    drag(page)  # a pointer was used before

    def reach(name):
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.localName") == name:
                return
        raise AssertionError(f"Tab reaches no {name}")

    page.keyboard.press("Shift+Tab")
    reach("input")
    slider, place = page.locator(SLIDER).first, page.evaluate(PLACE)
    for key in ("ArrowLeft", "ArrowRight"):
        before = slider.input_value()
        page.keyboard.press(key)
        assert slider.input_value() != before
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.localName") == "button"
    page.keyboard.press("Space")
    assert "Pause" in page.locator(f"section.present:has({SLIDER}) button").inner_text()
    assert page.evaluate(PLACE) == place
    page.keyboard.press("PageDown")
    assert page.evaluate(PLACE) > place
