"""A guess in JupyterLab: the answer is closed until its cell runs."""

import json

import pytest
from lab_page import NOTEBOOK, open_notebook, read, shut_down
from nbformat import v4

from grpo_course.classroom import record
from tools.lab import FOLDER
from tools.save import tidy

ASK = 'from grpo_course import predict\nguess = predict("Which way?", "up", "down")'
SHOW = 'print("a result")\nguess.reveal("down")'


@pytest.fixture
def asking(course):
    """A stored notebook with one prediction, beside the learner's folder."""
    show = v4.new_code_cell(SHOW, execution_count=2)
    show.outputs = [v4.new_output("stream", text="a result\nCame out: down.\n")]
    cells = [v4.new_code_cell(ASK, metadata={"tags": ["predict"]}), show]
    book = v4.new_notebook(cells=cells)
    tidy(book)
    folder = course / "asking"
    folder.mkdir()
    (folder / "guess.ipynb").write_text(json.dumps(book), encoding="utf-8")
    return folder


def run(page, index):
    """Select a cell and press Shift+Enter."""
    page.evaluate(
        f"i => {{ const book = {NOTEBOOK}.content; book.activeCellIndex = i;"
        " book.mode = 'command'; }",
        index,
    )
    page.locator(".jp-Notebook").focus()
    page.keyboard.press("Shift+Enter")


def test_the_answer_is_closed_until_its_cell_runs(asking, course, visit, lab, pictures):
    page = visit(1280, 900).page
    open_notebook(page, lab, "asking/guess.ipynb")
    pictures(page, "lab_guess_closed")
    assert "Came out" not in page.locator(".jp-Notebook").inner_text()
    run(page, 0)
    button = page.locator(".jupyter-button").filter(has_text="up")
    button.wait_for(timeout=60_000)
    button.click()
    run(page, 1)
    answer = page.get_by_text("Came out: down. You guessed: up.")
    answer.wait_for(timeout=60_000)
    pictures(page, "lab_guess_open")
    assert button.is_disabled()
    assert "a result" in read(page)[1]["answer"]
    shut_down(page)
    kept = record.read(course / FOLDER)["guesses"]
    assert kept == {"Which way?": {"guess": "up", "answer": "down"}}
