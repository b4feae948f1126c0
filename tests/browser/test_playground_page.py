"""Everybody can use the playground: mouse, keyboard, screen reader, phone, a file."""

import re

import pytest
from chromium import Visit
from site_server import SITE
from test_site import PHONE, audit

OWN_PAGE = "_static/playground/index.html"


@pytest.fixture(scope="module")
def opened(site, browser):
    visit = Visit(browser, 1280, 800, "light")
    visit.page.goto(f"{site}/index.html")
    visit.page.locator(".pg-drawer > summary").click()
    yield visit
    visit.context.close()


@pytest.fixture
def page(opened):
    """The landing page with a story just begun; at the end: no complaint."""
    opened.page.set_viewport_size({"width": 1280, "height": 800})
    button(opened.page, "It learns").click()
    yield opened.page
    assert [opened.missing, opened.elsewhere, opened.errors] == [[], [], []]


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def said(page):
    """The live region, which a screen reader reads out."""
    return page.locator("#playground [role=status]").inner_text()


def heatmap(page):
    return page.locator(".pg-heat td").all_inner_texts()


def test_a_story_and_a_step(page):
    story = button(page, "The loss is zero")
    story.click()
    assert story.get_attribute("aria-pressed") == "true"
    assert "the loss is 0 in every step" in page.locator(".pg-watch").inner_text()
    before = heatmap(page)
    button(page, "One inner step").click()
    assert "The loss was 0.000." in said(page)
    assert heatmap(page) != before
    moved = re.search(
        r"right answer to 1 0 2 went from ([.0-9]+) to ([.0-9]+)", said(page)
    )
    assert moved and moved[1] != moved[2]


def test_each_story_leads_to_its_notebook(page):
    for story in page.locator("[data-story]").all():
        story.click()
        link = page.locator(".pg-watch a").get_attribute("href")
        assert (SITE / link).is_file()


def test_an_epoch_greys_out_what_the_clip_takes(page):
    assert page.locator(".pg-ratios .pg-cut").count() == 0
    button(page, "One epoch").click()
    grey = page.locator(".pg-ratios .pg-cut").count()
    words = page.locator(".pg-ratios svg").get_attribute("aria-label")
    assert grey > 0 and f"the clip takes {grey} of 30 numbers" in words
    assert "10 steps on the group of epoch 1" in said(page)


def test_run_and_pause(page):
    run = button(page, "Run")
    run.focus()
    page.keyboard.press("Enter")
    page.get_by_text(re.compile(r"^epoch [3-9]")).wait_for()
    button(page, "Pause").click()
    told = r"Paused in epoch \d+\. Means of 3 prompts: reward [.0-9]+, prob"
    assert re.match(told, said(page))
    curve = page.get_by_role("img", name=re.compile("^mean reward: now"))
    assert curve.count() == 1
    held = heatmap(page)
    page.wait_for_timeout(300)
    assert heatmap(page) == held


def test_a_run_begins_step_by_step_in_view(page):
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    button(page, "Run").click()
    page.get_by_text(
        re.compile(r"^epoch 1, step [2-9] of 10, reward [.0-9]+ of 3$")
    ).wait_for()
    page.wait_for_function(
        "['.pg-buttons', '.pg-policy'].map(name => document.querySelector(name)"
        "  .getBoundingClientRect()).every(r => r.top >= 0 && r.bottom <= innerHeight)"
    )
    button(page, "Pause").click()


def test_a_run_ends_where_its_story_ends(page):
    page.emulate_media(reduced_motion="reduce")  # whole epochs from the first one on
    button(page, "Twenty steps, no clip").click()
    button(page, "Run").click()
    page.get_by_text(re.compile("^5 epochs are done")).wait_for()
    # The mean hides a prompt that is never sorted: it is shown.
    assert re.search(r"Shown: (3 2 4|1 2 3), right with 0\.00\.$", said(page))
    assert page.locator('[name="pg-prompt"]:checked').get_attribute("value") != "0"
    assert button(page, "Run").is_visible()
    page.emulate_media(reduced_motion="no-preference")


def test_reset_and_seed_bring_back_the_same_group(page):
    groups = [page.locator(".pg-columns").inner_text()]
    page.get_by_label("seed").fill("7")
    groups.append(page.locator(".pg-columns").inner_text())
    assert "Seed 7" in said(page) and groups[0] != groups[1]
    button(page, "One epoch").click()
    button(page, "Reset").click()
    groups.append(page.locator(".pg-columns").inner_text())
    page.get_by_label("seed").fill("0")
    groups.append(page.locator(".pg-columns").inner_text())
    assert groups[2:] == groups[1::-1]


def test_knobs_by_keyboard(page):
    """G samples anew, the deltas of the same group change, the band gets wider."""
    page.locator("#pg-num_responses").focus()
    page.keyboard.press("ArrowRight")
    assert said(page) == "num_responses is now 12. A new group was sampled."
    assert page.locator(".pg-columns li").count() == 12
    assert button(page, "It learns").get_attribute("aria-pressed") == "false"
    answers = page.locator(".pg-answer").all_inner_texts()
    assert page.locator(".pg-columns .pg-down").count() > 0
    page.locator("#pg-deltas_mode").focus()
    page.keyboard.press("Home")
    assert "deltas_mode is now rewards. The group was judged anew." in said(page)
    assert page.locator(".pg-columns .pg-down").count() == 0
    assert page.locator(".pg-answer").all_inner_texts() == answers
    width = "document.querySelector('.pg-band').getBBox().width"
    before = page.evaluate(width)
    page.locator("#pg-epsilon").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(width) > before * 1.3
    assert page.locator("#pg-epsilon").get_attribute("aria-valuetext") == "0.3"


def test_tab_reaches_everything(page):
    """From the first story to the last knob, and each control has a name."""
    page.locator("[data-story]").first.focus()
    wanted = page.locator("#playground :is(button, select, input)").count() - 2
    reached = set()
    for _ in range(wanted):  # of three radio buttons, Tab stops at one
        reached.add(page.evaluate("document.activeElement.outerHTML.slice(0, 60)"))
        page.keyboard.press("Tab")
    assert len(reached) == wanted


def test_another_prompt(page):
    page.get_by_label("3 2 4 → 2 3 4").check()
    caption = page.locator(".pg-heat caption").inner_text()
    assert caption.endswith("prompt 3 2 4")
    right = page.locator(".pg-heat td.pg-right")
    columns = right.evaluate_all("cells => cells.map(cell => cell.cellIndex - 1)")
    assert columns == [2, 3, 4]
    assert all("right" in text for text in right.all_inner_texts())


def test_a_loss_that_is_not_finite_is_not_followed(page):
    for name in ("#pg-learning_rate", "#pg-kl_penalty"):
        page.locator(name).focus()
        page.keyboard.press("End")
    for _ in range(4):
        button(page, "One epoch").click()
    assert "This step was not taken" in said(page)


def test_who_cannot_see_is_told(site, visit):
    """axe in both themes after some steps; every drawing has words or is hidden."""
    page = visit().page  # of its own: axe looks for style sheets that are not there
    page.goto(f"{site}/index.html")
    button(page, "One epoch").click()
    page.add_style_tag(content="* { transition: none !important; }")
    problems = []
    for scheme in ("light", "dark"):
        page.evaluate("theme => document.documentElement.dataset.theme = theme", scheme)
        problems += audit(page, scheme)
    assert not problems, "\n".join(problems)
    silent = page.locator("#playground svg").evaluate_all(
        "all => all.filter(svg => !svg.closest('[aria-hidden=true]')"
        "  && !(svg.getAttribute('aria-label') || '').match(/\\d|no step/))"
        ".map(svg => svg.outerHTML.slice(0, 90))"
    )
    assert silent == []
    first = page.locator(".pg-columns li").first.inner_text()
    assert re.match(r"Response \d \d \d: reward \d, delta [+−]\d\.\d\d", first)


def test_on_a_phone(page, pictures):
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.locator("#pg-num_responses").focus()
    page.keyboard.press("End")
    button(page, "One epoch").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    out = page.locator("#playground *").evaluate_all(
        "all => all.filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert out == []
    pictures(page, "playground_phone")


def test_reduced_motion(page):
    cell = "getComputedStyle(document.querySelector('.pg-heat td')).transitionDuration"
    assert page.evaluate(cell) == "0.1s"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(cell) == "0s"
    page.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("address", ["index.html", OWN_PAGE])
def test_from_disk(address, browser):
    """Without a server, and the page of its own without the website."""
    page = browser.new_page(viewport={"width": PHONE[0], "height": PHONE[1]})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((SITE / address).as_uri())
    button(page, "One inner step").click()
    assert "One step on the group of epoch 1" in said(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    assert errors == []
    page.close()
