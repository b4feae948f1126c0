"""Every notebook in JupyterLab: Run All from nothing; an exercise, wrong and right."""

import re
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from lab_page import (
    open_address,
    open_notebook,
    read,
    replace_and_run,
    run_above,
    run_all,
    save,
    shut_down,
)
from lab_server import LOG, printed_address
from quick import RUN, leave_out

from grpo_course.classroom.live import ProgressBar
from tools.lab import FOLDER, standing

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
UNFILLED = "raise NotImplementedError"
BAR = re.compile(r"^[# ]{30} (\d+)/(\d+)", re.MULTILINE)  # as ProgressBar prints it
SLIDER = re.compile(r"^(slide_|slide\(|interact)", re.MULTILINE)


@pytest.mark.parametrize("path", ["lab", "api/contents", "api/terminals"])
def test_only_who_has_the_token_is_let_in(lab, path):
    """As anyone on the same machine: without it, and with another one."""
    urlopen(lab(path), timeout=10).close()
    bare, token = lab(path).split("?token=")
    assert len(token) >= 32
    for strange in (bare, f"{bare}?token=", f"{bare}?token={token[::-1]}"):
        try:
            page = urlopen(strange, timeout=10)
        except HTTPError as refused:
            assert refused.code == 403
        else:
            assert "/login" in page.url


def test_the_printed_address_opens_the_welcome_with_its_pictures(
    lab, course, private, visit
):
    """One picture lies beside the folder of the notebooks; no request fails.

    No news and no update ask for attention over the notebook, no warning stands in the
    terminal, and which notebooks are open is kept beside them.
    """
    opened = visit(1280, 900)
    open_address(opened.page, printed_address(private))
    assert f"/{FOLDER}/00_welcome.ipynb" in opened.page.url
    opened.page.wait_for_load_state("networkidle")
    cells = read(opened.page)
    assert opened.page.locator(".Toastify__toast").all_inner_texts() == []
    said = (private / LOG).read_text()  # a kernel that is shut down may say more
    shut_down(opened.page)
    assert not re.search("warn|encrypt", said, re.IGNORECASE)
    assert [*(course / FOLDER / ".jupyterlab").glob("*.jupyterlab-workspace")]
    assert any("](../images/" in cell["source"] for cell in cells)
    assert [cell["index"] for cell in cells if cell["deadPictures"]] == []
    assert (opened.missing, opened.elsewhere) == ([], [])


# Each button and slider is drawn: what JupyterLab has not loaded it does not save.
LOADED = """() => [...document.querySelectorAll('.jp-Notebook .jp-OutputArea-output')]
  .filter(e => e.dataset.mimeType === 'application/vnd.jupyter.widget-view+json')
  .every(e => e.querySelector('.jupyter-widgets'))"""
TURNED = """() => [...document.querySelectorAll('.jp-Notebook img')]
  .map(e => getComputedStyle(e).filter.startsWith('invert'))"""


def test_pictures_turn_with_a_dark_theme(lab, visit, pictures):
    """As a learner chooses it in the menu; a film, a plot, and a picture in a text."""
    page = visit(1280, 900).page
    open_notebook(page, lab, f"{FOLDER}/00_welcome.ipynb")
    page.locator(".jp-RenderedImage img").first.wait_for()
    assert not any(page.evaluate(TURNED))
    choose_theme(page, "JupyterLab Dark")
    pictures(page, "lab_dark")
    turned = page.evaluate(TURNED)
    choose_theme(page, "JupyterLab Light")  # the server keeps it for other tests
    shut_down(page)
    assert len(turned) > 2 and all(turned)


def choose_theme(page, name: str) -> None:
    """Settings > Theme, until the page has turned."""
    item = page.locator(".lm-Menu-itemLabel")
    page.get_by_role("menuitem", name="Settings").click()
    item.get_by_text("Theme", exact=True).hover()
    item.get_by_text(name, exact=True).click()
    page.wait_for_function(
        "name => document.body.dataset.jpThemeName === name", arg=name
    )


def test_run_all_from_nothing(name, visit, lab, pictures):
    """No error; pictures, sliders and formulas appear; exercises are not attempted."""
    leave_out(name, RUN)
    opened = visit(1280, 900)
    open_notebook(opened.page, lab, f"fresh/{name}.ipynb")
    pictures(opened.page, f"lab_{name}_first")
    run_all(opened.page)
    cells = read(opened.page)
    shut_down(opened.page)
    problems = [line for cell in cells for line in complaints(cell)]
    assert not problems, "\n".join(problems)
    assert (opened.missing, opened.elsewhere) == ([], [])
    prose = "\n".join(c["source"] for c in cells if c["kind"] == "markdown")
    if "$" in CODE.sub("", prose):
        assert sum(cell["formulas"] for cell in cells) > 0


def test_buttons_and_pictures_outlive_their_kernel(lab, visit, pictures):
    """The day after: what a slider drew is there, though nothing runs behind it.

    So it is when the notebook is saved without being run, and opened once more.
    """
    page = visit(1280, 900).page
    open_notebook(page, lab, "fresh/00_welcome.ipynb")
    run_all(page)
    page.wait_for_function(LOADED)
    drawn = page.locator(".jupyter-widgets img").count()
    save(page)
    page.wait_for_timeout(2000)
    shut_down(page)
    for day in (1, 2):
        again = visit(1280, 900).page
        open_notebook(again, lab, "fresh/00_welcome.ipynb")
        again.locator(".jupyter-widgets img").first.wait_for()
        again.wait_for_function(LOADED)
        pictures(again, f"lab_day_after_{day}")
        assert again.locator(".jupyter-widgets img").count() == drawn > 0
        outputs = again.locator(".jp-OutputArea-output")
        assert outputs.get_by_text("Error displaying widget").count() == 0
        save(again)
        again.wait_for_timeout(2000)
        shut_down(again)


def complaints(cell: dict) -> list[str]:
    """What is wrong with one cell."""
    found = []
    for output in cell["outputs"]:
        raising = "raises-exception" in cell["tags"]
        if output["output_type"] == "error" and not raising:
            found.append(f"{output['ename']}: {output['evalue'][:200]}")
        if output.get("name") == "stderr":
            found.append(f"stderr: {output['text'][:200]}")
    unfilled = UNFILLED in cell["source"] and "check(" in cell["source"]
    if unfilled and "not attempted" not in cell["answer"]:
        found.append(f"exercise says {cell['answer'][:100]!r}")
    if SLIDER.search(cell["source"]) and not cell["widgets"]:
        found.append("no slider appears")
    if "$" in cell["text"]:
        found.append(f"a formula is not typeset: {cell['text'][:80]!r}")
    for done, total in BAR.findall(cell["answer"]):
        if done != total:
            found.append(f"a progress bar stands at {done}/{total}")
    for name in ("badFormulas", "unfolded", "deadPictures"):
        if cell[name]:
            found.append(f"{name}: {cell[name]}")
    return [f"cell {cell['index']}: {line}" for line in found]


def test_a_bar_that_stops_is_seen(capsys):
    """The complaint can come: one step of three, and then all three."""
    cell = {"index": 0, "source": "", "text": "", "tags": [], "outputs": []}
    cell |= dict.fromkeys(("badFormulas", "unfolded", "deadPictures"), 0)
    bar = ProgressBar(3)
    bar.show(0.5)
    cell["answer"] = capsys.readouterr().out.split("\r")[-1]
    assert "progress bar stands at" in complaints(cell)[0]
    bar.show(0.5)
    bar.show(0.5)
    cell["answer"] = capsys.readouterr().out.split("\r")[-1]
    assert "3/3" in cell["answer"] and complaints(cell) == []


def is_untouched(copy) -> bool:
    """Whether the course takes a copy for one in which nobody has written."""
    mark, cells = standing(copy)
    return cells == mark["cells"]


def test_an_exercise_answers_a_wrong_and_a_right_function(course, visit, lab, pictures):
    """Typed as a learner types: first a misconception, then the solution.

    That, and not what JupyterLab writes by itself, makes the copy the learner's own.
    """
    page = visit(1280, 900).page
    open_notebook(page, lab, f"{FOLDER}/01_rewards.ipynb")
    copy = course / FOLDER / "01_rewards.ipynb"
    before = copy.read_bytes()
    (index,) = (
        cell["index"]
        for cell in read(page)
        if cell["source"].startswith("def count_matches")
    )
    run_above(page, index)
    save(page)
    assert copy.read_bytes() != before and is_untouched(copy)
    ending = "\n\n\ncount_matches = check(count_matches)"
    head = "def count_matches(prompt, response): return float(sum(x == y for x, y in "
    wrong = replace_and_run(page, index, f"{head}zip(prompt, response))){ending}")
    pictures(page, "lab_exercise_wrong")
    right = replace_and_run(
        page, index, f"{head}zip(sorted(prompt), response))){ending}"
    )
    pictures(page, "lab_exercise_right")
    save(page)
    assert not is_untouched(copy)
    shut_down(page)
    assert "[x]" in wrong and "sort" in wrong.lower(), wrong
    assert "[v]" in right, right


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_themes(theme, visit, lab, pictures):
    """Code, text and pictures can be read in both themes."""
    page = visit(1280, 900).page
    open_notebook(page, lab, f"{FOLDER}/04_losses.ipynb")
    page.evaluate(
        "t => window.jupyterapp.commands.execute('apputils:change-theme', {theme: t})",
        theme,
    )
    light = str(theme.endswith("Light")).lower()
    page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")
    page.wait_for_timeout(1000)
    picture = page.locator(".jp-RenderedImage").first
    picture.scroll_into_view_if_needed()
    pictures(page, f"lab_{theme.split()[1].lower()}")
    assert picture.locator("img").evaluate("i => i.naturalWidth") > 0
