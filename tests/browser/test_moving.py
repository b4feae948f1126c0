"""Sliders and films: in JupyterLab with a kernel and without, and on the website."""

import json

import pytest
from lab_page import open_notebook, shut_down
from nbclient import NotebookClient
from nbformat import v4

from grpo_course.classroom import record
from tools.run import use_variables
from tools.save import tidy

DRAW = """\
from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.moving import play
from grpo_course.classroom.moving import slide

def draw(height):
    axes_row(width=4, height=2)[0].bar(["a"], [height])
    return f"The bar is {height} high."
"""
CELLS = (
    DRAW,
    'slide("How high?", draw, height=[1, 2, 3])',
    "play(draw, height=[1, 2])",
)
FRAME = "figure.moving"


@pytest.fixture
def moving(course, monkeypatch):
    """A notebook with a slider and a film, as `save` stores it."""
    monkeypatch.setenv(record.STORED, "1")
    use_variables()
    book = v4.new_notebook(cells=[v4.new_code_cell(source) for source in CELLS])
    book.cells[0].source += "\nprint('ready')"
    NotebookClient(book).execute()
    tidy(book)
    folder = course / "moving"
    folder.mkdir(exist_ok=True)
    (folder / "moving.ipynb").write_text(json.dumps(book), encoding="utf-8")
    return "moving/moving.ipynb"


def test_a_slider_moves_the_picture_in_jupyterlab(moving, visit, lab, pictures):
    """Untrusted: a still. Run: a slider that draws in the kernel, and a film."""
    opened = visit(1280, 900)
    page = opened.page
    open_notebook(page, lab, moving)
    stored = page.locator(f"{FRAME} img")
    stored.first.wait_for()
    assert [stored.nth(k).evaluate("e => e.naturalWidth > 100") for k in (0, 1)]
    pictures(page, "lab_moving_stored")
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    handle = page.locator(".jupyter-widgets .noUi-handle").first
    handle.wait_for(timeout=90_000)
    drawn = page.locator(".jupyter-widgets.widget-output")
    live = drawn.locator("img")
    live.wait_for(timeout=30_000)
    before = live.get_attribute("src")
    handle.focus()
    page.keyboard.press("ArrowRight")
    drawn.get_by_text("The bar is 2 high.").wait_for(timeout=30_000)
    assert live.get_attribute("src") != before
    pictures(page, "lab_moving_live")
    scrub(page, page.locator(FRAME).last)
    shut_down(page)
    assert opened.elsewhere == []


def test_a_film_of_a_learner_s_copy_plays_before_it_is_run(visit, lab, pictures):
    """`lab` makes the copy, and JupyterLab trusts what the course has stored in it."""
    page = visit(1280, 900).page
    open_notebook(page, lab, "work/00_welcome.ipynb")
    film = page.locator(FRAME).first
    film.scroll_into_view_if_needed(timeout=60_000)
    scrub(page, film)
    pictures(page, "lab_film_not_run")
    shut_down(page)


def test_films_and_sliders_of_the_website_need_no_kernel(visit, site, pictures):
    """A film is scrubbed and played, each knob of a slider changes the picture."""
    opened = visit(1280, 900)
    page = opened.page
    page.goto(f"{site}/notebooks/00_welcome.html")
    scrub(page, page.locator(FRAME).first)
    pictures(page, "site_film")
    page.goto(f"{site}/notebooks/03_deltas.html")
    slider = page.locator(f"{FRAME}:has(input + output)").first
    picture, seen = slider.locator("img"), set()
    for knob in slider.locator("input[type=range]").all():
        seen.add(picture.get_attribute("src"))
        knob.focus()
        page.keyboard.press("ArrowRight")
        seen.add(picture.get_attribute("src"))
    pictures(page, "site_slider")
    assert len(seen) == 3
    assert slider.get_by_role("button").count() == 0
    assert (opened.errors, opened.elsewhere) == ([], [])


LAST = """html => {
  document.body.innerHTML = html;
  for (const stored of document.body.querySelectorAll("script")) {
    const made = document.createElement("script");
    made.text = stored.innerText;
    document.body.appendChild(made).remove();
  }
}"""


def test_a_film_plays_where_its_script_is_run_last(visit, monkeypatch):
    """VS Code runs a copy of it, at the end of the output."""
    shown = []
    monkeypatch.setattr(
        "IPython.display.display", lambda data, **_: shown.append(data["text/html"])
    )
    monkeypatch.setattr("grpo_course.classroom.moving.shell", object)
    exec(f"{DRAW}\nplay(draw, height=[1, 2, 3])", {})
    opened = visit(1280, 900)
    opened.page.evaluate(LAST, shown[0])
    scrub(opened.page, opened.page.locator(FRAME))
    assert opened.errors == []


def scrub(page, film):
    """One step on with the keyboard, then play to the end: the picture changes."""
    film.scroll_into_view_if_needed()
    knob, picture = film.locator("input[type=range]").last, film.locator("img")
    seen = [picture.get_attribute("src")]
    told = [film.locator("figcaption").inner_text()]
    knob.focus()
    page.keyboard.press("ArrowRight")
    seen.append(picture.get_attribute("src"))
    told.append(film.locator("figcaption").inner_text())
    assert seen[0] != seen[1] and told[0] != told[1]
    assert told[1] in knob.get_attribute("aria-valuetext")
    film.get_by_role("button", name="Play").click()
    page.wait_for_function(
        "([e, src]) => e.src !== src", arg=[picture.element_handle(), seen[1]]
    )
