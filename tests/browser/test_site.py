"""Every page of the website: links, pictures, mathematics, phone, search, axe."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from axe_playwright_python.sync_playwright import Axe
from quick import LOOK as AUDITED
from quick import leave_out
from site_server import SITE

from tools.notebook import questions, read

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(str(p.relative_to(SITE)) for p in SITE.rglob("*.html"))
PAGES = [page for page in PAGES if not page.startswith("_static")]
TOOLS = {"genindex.html", "search.html"}
PHONE = (390, 844)
AXE_RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa"]}}


class Links(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [v for k, v in attributes if k in ("href", "src") and v]
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}


def parsed(page: str) -> Links:
    return Links((SITE / page).read_text(encoding="utf-8"))


def test_every_notebook_has_a_page():
    notebooks = (SITE.parent / "notebooks").glob("*.ipynb")
    assert {f"notebooks/{path.stem}.html" for path in notebooks} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    """Each address inside the site is a file, each anchor is in it."""
    broken = []
    for link in parsed(page).links:
        address, anchor = urldefrag(urljoin(f"site:///{page}", link))
        if not address.startswith("site:"):
            continue
        target = unquote(address.removeprefix("site:///").split("?")[0])
        if not (SITE / target).is_file():
            broken.append(link)
        elif anchor and target.endswith(".html"):
            broken += [] if anchor in parsed(target).anchors else [link]
    assert not broken


def test_what_a_guess_comes_before_is_folded(name, site, visit):
    """One toggle or more for each result; the learner's question above stays open."""
    text = (SITE.parent / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
    closed = text.count('"outputs_hidden": true')
    page = visit().page
    page.goto(f"{site}/notebooks/{name}.html")
    toggles = page.locator("details.hide:has(.cell_output)")
    answers = page.get_by_text("Came out: ")
    assert toggles.count() >= closed >= answers.count()
    assert not any(answers.nth(k).is_visible() for k in range(answers.count()))
    if closed:
        toggles.first.locator("summary").first.click()  # others may lie inside
        assert toggles.first.locator(".cell_output").first.is_visible()


@pytest.mark.parametrize("page", [p for p in PAGES if p not in TOOLS])
def test_a_page_is_whole(page, site, visit, pictures):
    """No error, nothing missing, nothing from elsewhere; folded; readable."""
    opened = visit(1280, 800)
    opened.page.goto(f"{site}/{page}")
    seen = opened.page.evaluate(LOOK)
    assert [opened.missing, opened.elsewhere, opened.errors] == [[], [], []]
    assert seen["broken"] == [] and seen["unfolded"] == 0 and seen["jumps"] == []
    assert seen["raw"] == [], "mathematics that was not typeset"
    assert seen["widgets"] == [], "the name of a slider in the place of a slider"
    assert seen["twins"] == [], "two pictures with the same alternative text"
    opened.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    width = opened.page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE[0], f"{width} px wide on a phone"
    opened.page.wait_for_timeout(400)  # the sidebars slide out
    pictures(opened.page, f"site_phone_{Path(page).stem}")


def test_a_phone_shows_the_way_in_at_once_and_the_table_of_notebooks_whole(site, visit):
    page = visit(*PHONE).page
    page.goto(f"{site}/index.html")
    button = page.locator("a.start").bounding_box()
    assert button["y"] + button["height"] <= PHONE[1]
    table = page.locator(".pst-scrollable-table-container:has-text('00_welcome')")
    assert table.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_a_laptop_shows_the_button_of_the_playground_at_once(site, visit):
    page = visit(1280, 800).page
    page.goto(f"{site}/index.html")
    run = page.get_by_role("button", name="Run", exact=True).bounding_box()
    assert run["y"] + run["height"] <= 800


@pytest.mark.parametrize("page", [p for p in PAGES if p not in TOOLS])
def test_axe_finds_nothing(page, site, visit, pictures):
    """The automated accessibility audit: contrast in both themes, and on a phone."""
    if page.startswith("notebooks/") or page == "api.html":  # these take longest
        leave_out(Path(page).stem, AUDITED)
    opened = visit(1280, 800).page
    opened.goto(f"{site}/{page}")
    opened.add_style_tag(content="* { transition: none !important; }")
    problems = []
    for scheme in ("light", "dark"):
        opened.emulate_media(color_scheme=scheme)
        problems += audit(opened, scheme)
        pictures(opened, f"site_{scheme}_{Path(page).stem}")
    opened.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    opened.wait_for_timeout(400)  # the sidebars slide out
    problems += audit(opened, "phone")
    assert not problems, "\n".join(problems)


def audit(page, where: str) -> list[str]:
    """What axe complains of, one line a rule."""
    ready = "async () => { if (window.MathJax) await MathJax.startup.promise; }"
    page.evaluate(ready)
    found = Axe().run(page, options=AXE_RULES).response["violations"]
    return [
        f"{where} {rule['id']} x{len(rule['nodes'])}: {rule['nodes'][0]['html'][:160]}"
        for rule in found
    ]


LOOK = """async () => {
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  const article = document.querySelector('article.bd-article') || document.body;
  const text = article.cloneNode(true);
  text.querySelectorAll('code, pre, script, mjx-container').forEach(e => e.remove());
  const levels = [...article.querySelectorAll('h1, h2, h3, h4')]
    .map(e => +e.tagName[1]);
  return {
    broken: [...document.images]
      .filter(i => !i.naturalWidth || !i.alt || /_images/.test(i.alt))
      .map(i => i.src.slice(-60) + ' alt: ' + i.alt),
    unfolded: article.querySelectorAll('details[open]:not(.pg-drawer)').length,
    raw: text.textContent.match(/\\\\\\(|\\$[^$\\n]{1,60}\\$/g) || [],
    widgets: article.textContent.match(/interactive\\(children/g) || [],
    twins: [...article.querySelectorAll('img')].map(i => i.alt)
      .filter((alt, i, all) => all.indexOf(alt) !== i),
    jumps: levels.filter((level, i) => i && level > levels[i - 1] + 1),
  };
}"""


def test_search_finds_a_notebook(site, visit):
    opened = visit()
    opened.page.goto(f"{site}/search.html?q=surrogate+clipped")
    found = opened.page.locator("ul.search a[href*='notebooks/']")
    found.first.wait_for(timeout=15_000)
    assert (opened.errors, opened.elsewhere) == ([], [])
    excerpt = opened.page.locator("ul.search p.context")
    excerpt.first.wait_for()
    words = " ".join(excerpt.all_inner_texts())
    assert "System Settings" not in words and "\\(" not in words


@pytest.mark.parametrize("page", ["index.html", "notebooks/05_kl.html"])
def test_a_shared_link_has_words_and_a_sign(page):
    text = (SITE / page).read_text(encoding="utf-8")
    for words in ('name="description"', 'property="og:title"', 'rel="icon"'):
        assert words in text


@pytest.mark.parametrize("page", ["notebooks/03_deltas.html", "README.html"])
def test_paper_is_light_in_the_dark_theme_too(page, site, visit):
    opened = visit(1280, 800, "dark").page
    opened.goto(f"{site}/{page}")
    assert opened.evaluate(PALE) != []
    opened.emulate_media(media="print", color_scheme="dark")
    assert opened.evaluate(PALE) == []


# Text of a page that is too pale for white paper.
PALE = """() => [...document.querySelectorAll('article.bd-article *')]
  .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
  .filter(e => e.checkVisibility() && !e.closest('svg, mjx-container'))
  .filter(e => getComputedStyle(e).color.match(/[0-9]+/g).slice(0, 3)
    .reduce((sum, part) => sum + +part, 0) > 450)
  .map(e => e.outerHTML.slice(0, 90))"""


@pytest.mark.parametrize("book", ["00_welcome", "05_kl"])
def test_a_guess_can_be_made_on_a_page(book, site, visit):
    """By mouse and by keyboard; each question is a group of its own."""
    cells = read(ROOT / "notebooks" / f"{book}.ipynb").cells
    asked = questions(cells)
    page = visit(1280, 800).page
    page.goto(f"{site}/notebooks/{book}.html")
    groups = page.get_by_role("group").filter(has=page.get_by_role("radio"))
    told = [
        " ".join(each.split()) for each in groups.locator("legend").all_inner_texts()
    ]
    assert told == [" ".join(question.split()) for question in asked]
    first, second, *_ = groups.first.get_by_role("radio").all()
    first.check()
    first.press("ArrowRight")
    assert second.is_checked() and not first.is_checked()
    assert page.get_by_text("( )").count() == 0


def test_dark_and_light_differ(site, visit):
    grounds = set()
    for scheme in ("light", "dark"):
        page = visit(1280, 800, scheme).page
        page.goto(f"{site}/index.html")
        script = "getComputedStyle(document.body).backgroundColor"
        grounds.add(page.evaluate(script))
    assert len(grounds) == 2
