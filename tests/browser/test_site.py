"""Every page of the website: whole, accessible, linked; guesses, films, paper."""

from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import PHONE, SITE, scrub
from quick import LOOK, is_left_out

from tools.notebook import questions, read

PAGES = sorted(str(p.relative_to(SITE)) for p in SITE.rglob("*.html"))
PAGES = [page for page in PAGES if not page.startswith("_static")]
TOOLS = {"genindex.html", "search.html"}
RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa"]},
    "resultTypes": ["violations"],
    "preload": False,  # or axe asks for style sheets that are not there
}
FORMULAS = {"exclude": ["mjx-container"]}  # they are MathJax's, and many


class Links(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self, page: str):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed((SITE / page).read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        self.links += [v for k, v in attributes if k in ("href", "src") and v]
        self.anchors |= {v for k, v in attributes if k in ("id", "name") and v}


def test_links_lead_somewhere():
    """Each address inside the site is a file, each anchor is in it."""
    found, broken = {page: Links(page) for page in PAGES}, []
    for page, link in ((p, link) for p in PAGES for link in found[p].links):
        address, anchor = urldefrag(urljoin(f"http://site/{page}", link))
        target = unquote(address.removeprefix("http://site/").split("?")[0])
        if address.startswith("http://site/") and not (
            (SITE / target).is_file()
            and (target not in found or anchor in found[target].anchors)
        ):
            broken.append(f"{page}: {link}")
    assert not broken


# What is wrong with a page.
WRONG = """async () => {
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  const article = document.querySelector('article.bd-article') || document.body;
  const text = article.cloneNode(true);
  text.querySelectorAll('code, pre, script, mjx-container').forEach(e => e.remove());
  const levels = [...article.querySelectorAll('h1, h2, h3, h4')]
    .map(e => +e.tagName[1]);
  const wrong = {
    broken: [...document.images]
      .filter(i => !i.naturalWidth || !i.alt || /_images/.test(i.alt))
      .map(i => i.src.slice(-60) + ' alt: ' + i.alt),
    unfolded: [...article.querySelectorAll('details[open]:not(.pg-drawer)')],
    answered: [...article.querySelectorAll('.cell_output')]
      .filter(e => e.textContent.includes('Came out: ') && e.checkVisibility()),
    formulas: text.textContent.match(/\\\\\\(|\\$[^$\\n]{1,60}\\$/g) || [],
    widgets: article.textContent.match(/interactive\\(children/g) || [],
    twins: [...article.querySelectorAll('img')].map(i => i.alt)
      .filter((alt, i, all) => all.indexOf(alt) !== i),
    jumps: levels.filter((level, i) => i && level > levels[i - 1] + 1),
    nameless: ['meta[name=description]', 'meta[property="og:title"]', 'link[rel~=icon]']
      .filter(each => !document.head.querySelector(each)),
  };
  return Object.entries(wrong).filter(([_, found]) => found.length)
    .map(([name, found]) => name + ': ' + found.map(e => e.outerHTML || e).join(', '));
}"""


# Text of a page that is too pale for white paper.
PALE = """() => [...document.querySelectorAll('article.bd-article *')]
  .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
  .filter(e => e.checkVisibility() && !e.closest('svg, mjx-container'))
  .filter(e => getComputedStyle(e).color.match(/[0-9]+/g).slice(0, 3)
    .reduce((sum, part) => sum + +part, 0) > 450)
  .map(e => e.outerHTML.slice(0, 90))"""


def is_asked_for(page):
    stem = page.rpartition("/")[2].removesuffix(".html")
    is_long = page.startswith(("notebooks/", "claims/")) or page == "api.html"
    return page not in TOOLS and not (is_long and is_left_out(stem, LOOK))


@pytest.mark.parametrize("page", [*filter(is_asked_for, PAGES)])
def test_a_page_is_whole_and_accessible(page, site, visit):
    """No error, nothing from elsewhere; folded; axe in both themes and on a phone.

    And a page of the dark theme is printed dark on white.
    """
    opened = visit()
    opened.page.goto(f"{site}/{page}")
    problems = opened.page.evaluate(WRONG)
    for scheme in ("light", "dark"):
        problems += audit(opened.page, scheme)
    opened.page.emulate_media(media="print", color_scheme="dark")
    problems += opened.page.evaluate(PALE)
    opened.page.emulate_media(media="screen")
    opened.page.set_viewport_size(PHONE)
    opened.page.wait_for_timeout(400)  # the sidebars slide out
    problems += audit(opened.page, "dark", {"color-contrast": {"enabled": False}})
    width = opened.page.evaluate("document.documentElement.scrollWidth")
    assert problems + opened.missing + opened.errors == []
    assert width <= PHONE["width"]


def audit(page, scheme, without=None):
    """What axe complains of in a theme, one line a rule."""
    page.emulate_media(color_scheme=scheme)
    page.add_style_tag(content="* { transition: none !important; }")
    rules = RULES | {"rules": without or {}}
    found = Axe().run(page, FORMULAS, rules).response["violations"]
    return [f"{rule['id']}: {rule['nodes'][0]['html'][:160]}" for rule in found]


@pytest.mark.parametrize("book", ["00_welcome", "05_kl"])
def test_a_guess_can_be_made_on_a_page(book, site, visit):
    """By mouse and by keyboard; each question is a group of its own."""
    asked = questions(read(SITE.parent / "notebooks" / f"{book}.ipynb").cells)
    page = visit().page
    page.goto(f"{site}/notebooks/{book}.html")
    groups = page.get_by_role("group").filter(has=page.get_by_role("radio"))
    told = groups.locator("legend").all_inner_texts()
    assert [each.split() for each in told] == [question.split() for question in asked]
    first, second, *_ = groups.first.get_by_role("radio").all()
    first.check()
    first.press("ArrowRight")
    assert second.is_checked() and not first.is_checked()
    assert page.get_by_text("( )").count() == 0


def test_films_and_sliders_need_no_kernel(visit, site):
    """A film is scrubbed and played, each knob of a slider changes the picture."""
    opened = visit()
    page = opened.page
    page.goto(f"{site}/notebooks/00_welcome.html")
    scrub(page, page.locator("figure.moving").first)
    page.goto(f"{site}/notebooks/04_losses.html")
    slider = page.locator("figure.moving:has(input + output)").first
    picture = slider.locator("img")
    seen = {picture.get_attribute("src")}
    knobs = slider.locator("input[type=range]").all()
    for knob in knobs:
        knob.press("ArrowRight")
        seen.add(picture.get_attribute("src"))
    assert len(seen) == 1 + len(knobs) > 1 and slider.get_by_role("button").count() == 0
    assert opened.errors + opened.missing == []
