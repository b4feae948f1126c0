"""The course in JupyterLab: what a learner sees, runs, types, and finds a day later."""

import json
import re

import pytest
from chromium import SITE, scrub
from lab_page import command, read, replace_and_run
from nbclient import NotebookClient
from nbformat import v4
from quick import RUN, is_left_out

from grpo_course.classroom import record
from tools.lab import FOLDER, standing
from tools.save import tidy

NOTEBOOKS = sorted(p.stem for p in (SITE.parent / "notebooks").glob("*.ipynb"))
WITH_SLIDERS = "03_deltas"  # which is short, and run by a test of its own
FILM = "figure.moving"
TURNED = """() => [...document.querySelectorAll('.jp-Notebook img')]
  .map(e => getComputedStyle(e).filter.startsWith('invert'))"""


def test_the_printed_address_opens_the_welcome_whole(notebook, lab, course):
    """No news and no update ask for attention over the notebook.

    Every picture is found, no warning stands in the terminal, and which notebooks are
    open is kept beside them. A film plays before its cell has run, since `lab` has
    JupyterLab trust what the course stored; pictures turn with a dark theme.
    """
    page = notebook("")
    page.wait_for_load_state("networkidle")
    cells = read(page)
    assert f"/{FOLDER}/00_welcome.ipynb" in page.url
    assert [cell["index"] for cell in cells if cell["deadPictures"]] == []
    assert page.locator(".Toastify__toast").all_inner_texts() == []
    assert not re.search("warn|encrypt", lab.log.read_text(), re.IGNORECASE)
    assert [*(course / FOLDER / ".jupyterlab").glob("*.jupyterlab-workspace")]
    scrub(page, page.locator(FILM).first)
    assert not any(page.evaluate(TURNED))
    for name in ("Dark", "Light"):  # the last one for the other tests
        command(page, "apputils:change-theme", given={"theme": f"JupyterLab {name}"})
        body = f"body[data-jp-theme-name$='{name}']"
        page.wait_for_selector(body, state="attached")
        pictures = page.evaluate(TURNED)
        assert len(pictures) > 2 and {*pictures} == {name == "Dark"}


def run_all(page):
    """From nothing: no error; pictures and formulas; no exercise is attempted."""
    command(page, "notebook:clear-all-cell-outputs")
    command(page, "notebook:run-all-cells")
    problems = [line for cell in read(page) for line in complaints(cell)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", sorted({*NOTEBOOKS} - {WITH_SLIDERS}))
def test_run_all_from_nothing(name, notebook):
    if is_left_out(name, RUN):
        pytest.skip("left out by --quick")
    run_all(notebook(f"notebooks/{name}.ipynb"))


def complaints(cell):
    """What is wrong with one cell."""
    found = []
    for output in cell["outputs"]:
        if output["output_type"] == "error" and "raises-exception" not in cell["tags"]:
            found.append(f"{output['ename']}: {output['evalue'][:200]}")
        if output.get("name") == "stderr":
            found.append(f"stderr: {output['text'][:200]}")
    is_stub = "raise NotImplementedError" in cell["source"]
    if is_stub and "check(" in cell["source"] and "not attempted" not in cell["answer"]:
        found.append(f"exercise says {cell['answer'][:100]!r}")
    if "$" in cell["text"]:
        found.append(f"a formula is not typeset: {cell['text'][:80]!r}")
    for name in ("badFormulas", "unfolded", "deadPictures"):
        if cell[name]:
            found.append(f"{name}: {cell[name]}")
    return [f"cell {cell['index']}: {line}" for line in found]


# Each button and slider is drawn: what JupyterLab has not loaded it does not save.
LOADED = """() => [...document.querySelectorAll('.jp-Notebook .jp-OutputArea-output')]
  .filter(e => e.dataset.mimeType === 'application/vnd.jupyter.widget-view+json')
  .every(e => e.querySelector('.jupyter-widgets'))"""


def test_buttons_and_pictures_outlive_their_kernel(notebook):
    """The day after: what a slider drew is there, though nothing runs behind it.

    So it is when the notebook is saved without being run, and opened once more.
    """
    drawn = []
    for day in (0, 1, 2):
        page = notebook(f"notebooks/{WITH_SLIDERS}.ipynb")
        if day == 0:
            run_all(page)
        page.locator(".jupyter-widgets img").first.wait_for()
        page.wait_for_function(LOADED)
        drawn.append(page.locator(".jupyter-widgets img").count())
        outputs = page.locator(".jp-OutputArea-output")
        assert outputs.get_by_text("Error displaying widget").count() == 0
        command(page, "docmanager:save")
    assert drawn[0] == drawn[1] == drawn[2] > 0


DEAD_END = """def is_dead_end(rewards):
    lines = [rewards == rewards.amax(axis, keepdim=True) for axis in range({})]
    return (rewards < rewards.max()) & torch.stack(lines).all(dim=0)

is_dead_end = check(is_dead_end)"""


def test_an_exercise_answers_a_wrong_and_a_right_function(course, notebook):
    """Typed as a learner types: first a misconception, then the solution.

    That, and not what JupyterLab writes by itself, makes the copy the learner's own.
    """
    page = notebook(f"{FOLDER}/01_rewards.ipynb")
    copy = course / FOLDER / "01_rewards.ipynb"

    def is_untouched():
        command(page, "docmanager:save")
        mark, cells = standing(copy)
        return cells == mark["cells"]

    before = copy.read_bytes()
    sources = [cell["source"] for cell in read(page)]
    (index,) = (i for i, s in enumerate(sources) if s.startswith("def is_dead_end"))
    command(page, "notebook:run-all-above", index)
    assert is_untouched() and copy.read_bytes() != before
    wrong = replace_and_run(page, index, DEAD_END.format(1))
    assert "[x]" in wrong and "first axis" in wrong, wrong
    right = replace_and_run(page, index, DEAD_END.format(3))
    assert "[v]" in right, right
    assert not is_untouched()


CELLS = (
    """\
from grpo_course import predict
from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.moving import play, slide

def draw(height):
    axes_row(width=4, height=2)[0].bar(["a"], [height])
    return f"The bar is {height} high."
print("ready")
""",
    'slide("How high?", draw, height=[1, 2, 3])',
    "play(draw, height=[1, 2, 3])",
    'guess = predict("Which way?", "up", "down")',
    'print("a result")\nguess.reveal("down")',
)


def test_what_is_stored_stands_still_and_what_is_run_moves(course, notebook):
    """Untrusted: stills, and a closed answer. Run: a slider, a film, a guess."""
    book = v4.new_notebook(cells=[v4.new_code_cell(source) for source in CELLS])
    book.cells[3].metadata["tags"] = ["predict"]
    NotebookClient(book).execute()
    tidy(book)
    (course / "trial.ipynb").write_text(json.dumps(book), encoding="utf-8")
    page = notebook("trial.ipynb")
    stills = page.locator(f"{FILM} img")
    stills.nth(1).wait_for()
    assert stills.evaluate_all("all => all.map(e => e.naturalWidth > 9)") == [True] * 2
    assert page.locator(f"{FILM} input").count() == 0
    assert "Came out" not in page.locator(".jp-Notebook").inner_text()

    command(page, "notebook:run-all-above", 4)
    drawn = page.locator(".jupyter-widgets.widget-output")
    before = drawn.locator("img").get_attribute("src")
    page.locator(".jupyter-widgets .noUi-handle").first.press("ArrowRight")
    drawn.get_by_text("The bar is 2 high.").wait_for()
    assert drawn.locator("img").get_attribute("src") != before
    scrub(page, page.locator(FILM).last)
    button = page.locator(".jupyter-button").filter(has_text="up")
    button.click()
    command(page, "notebook:run-cell", 4)
    page.get_by_text("Came out: down. You guessed: up.").wait_for(timeout=60_000)
    assert button.is_disabled() and "a result" in read(page)[4]["answer"]
    kept = record.read(course / FOLDER)["guesses"]
    assert kept == {"Which way?": {"guess": "up", "answer": "down"}}
