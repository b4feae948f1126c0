"""Live slides of every notebook, walked on a small stage."""

from quick import LOOK, leave_out
from slides_page import STAGE, excess, look, open_slides, walk

FONTS = "https://fonts.googleapis.com/"  # jupyterlab-rise asks; it does without
# Boxes that may scroll on stage: a shown source file, and code of over 23 lines.
DEAD = "all => all.filter(e => !e.naturalWidth).map(e => e.src.slice(0, 80))"
SCROLLS = ("jp-OutputArea", "cm-scroller")


def test_every_slide_fits_the_stage(name, visit, live, pictures):
    """Nothing leaves the slide and nothing scrolls but a listing in its box."""
    leave_out(name, LOOK)
    stage = visit(*STAGE)
    open_slides(stage.page, live, f"slides/{name}.ipynb")

    def each(slide):
        wrong = complaint(slide)
        if wrong or slide["index"] in (0, 3, 9):
            number = f"{slide['index']:02d}"
            pictures(stage.page, f"slide_{name}_{number}{'_wrong' if wrong else ''}")

    slides = walk(stage.page, each)
    assert len(slides) == slides[0]["count"] > 15, "the walk did not reach the end"
    problems = [line for slide in slides if (line := complaint(slide))]
    assert not problems, f"of {len(slides)} slides:\n" + "\n".join(problems)
    assert [url for url in stage.elsewhere if not url.startswith(FONTS)] == []
    assert stage.missing == []


def complaint(slide: dict) -> str:
    """What is wrong with a slide, or nothing."""
    boxes = [
        kind
        for kind, overflow in slide["boxes"]
        if overflow == "hidden" or not any(s in kind for s in SCROLLS)
    ]
    if excess(slide) <= 2 and not (slide["wide"] or slide["cut"] or boxes):
        return ""
    return (
        f"slide {slide['index']} ({slide['heading']!r}): {excess(slide)} px too high, "
        f"{slide['wide']} parts too wide, {slide['cut']} pictures or tables cut, "
        f"boxes that scroll or hide: {boxes}"
    )


def test_every_picture_of_the_welcome_is_on_its_slide(visit, live):
    """One of them lies beside the folder of the notebooks."""
    stage = visit(*STAGE)
    open_slides(stage.page, live, "slides/00_welcome.ipynb")
    shown = stage.page.locator(".reveal .slides img")
    assert stage.page.locator(".reveal .slides img[src*='/images/']").count() > 0
    assert (shown.evaluate_all(DEAD), stage.missing) == ([], [])


def test_a_slide_that_is_too_high_is_seen(visit, live):
    """The measure can fail: 40 lines more make a slide too high."""
    stage = visit(*STAGE)
    open_slides(stage.page, live, "slides/01_rewards.ipynb")
    stage.page.evaluate(
        """() => document.querySelector('.reveal section.present .jp-MarkdownOutput')
        .insertAdjacentHTML('beforeend', '<p>more</p>'.repeat(40))"""
    )
    assert complaint(walk(stage.page)[0])


def test_a_picture_below_its_box_is_seen(visit, live):
    """The measure can fail: a box that may scroll, but with a picture below its end."""
    stage = visit(*STAGE)
    open_slides(stage.page, live, "slides/01_rewards.ipynb")
    box = "<div class='jp-OutputArea' style='height: 40px; overflow: auto'>{}</div>"
    picture = "<img style='margin-top: 60px; height: 40px; width: 40px'>"
    for inside, wrong in (("<p>a</p>" * 9, False), (picture, True)):
        stage.page.evaluate(
            "html => { document.querySelector('.reveal section.present"
            " section.present .jp-Cell').innerHTML = html; }",
            box.format(inside),
        )
        assert bool(complaint(look(stage.page))) == wrong


def test_a_cell_runs_on_stage(visit, lab):
    """Click, Control+Enter, and the kernel's answer stands on the slide."""
    stage = visit(*STAGE).page
    open_slides(stage, lab, "fresh/01_rewards.ipynb")
    cell = ".reveal section.present section.present .jp-CodeCell:not(.reveal-skip)"
    for _ in range(12):
        if stage.locator(f"{cell}:visible").count():
            break
        stage.keyboard.press("Space")
        stage.wait_for_timeout(300)
    stage.locator(f"{cell} .cm-content").first.click()
    stage.keyboard.press("Control+Enter")
    answer = stage.locator(cell).first.locator(".jp-OutputArea-output")
    answer.filter(has_text="Ready: seed 0").wait_for(timeout=90_000)


def test_speaker_notes_open_with_the_minutes(visit, live):
    """Click the title, Escape, T: the speaker's window follows the stage."""
    stage = visit(*STAGE)
    open_slides(stage.page, live, "slides/01_rewards.ipynb")
    stage.page.locator(".reveal section.present section.present h1").click()
    stage.page.keyboard.press("Escape")
    with stage.context.expect_page(timeout=20_000) as opened:
        stage.page.keyboard.press("t")
    note = opened.value.locator(".speaker-controls-notes .jp-MarkdownOutput")
    for _ in range(60):  # while its previews load, they pull the stage to the title
        if note.is_visible():
            break
        if look(stage.page)["index"] < 2:  # title and imports have no note
            stage.page.keyboard.press("Space")
        stage.page.wait_for_timeout(500)
    assert "min, from 0:" in note.inner_text(timeout=1000)
