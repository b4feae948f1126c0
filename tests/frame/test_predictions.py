"""The cells of a prediction: tagged, answered soon, closed until they run."""

import csv
import json

import pytest

from grpo_course.classroom import record
from grpo_course.workshop import prediction_cells, progress, site, tidy

ASK = (
    'guess = predict(\n    "Which way "\n    "does it go?",\n    "up",\n    "down",\n)'
)
SHOW = 'print(x)\nguess.reveal("up" if x > 0 else "down")'


@pytest.fixture
def three(make):
    """A text, the question under it, the result."""
    return [make.text("## A"), make.code(ASK, "predict"), make.code(SHOW)]


def test_the_question_is_read_as_it_is_typed(three):
    assert prediction_cells.questions(three) == ["Which way does it go?"]


@pytest.mark.parametrize(
    "damage, complaint",
    [
        (lambda cells: None, []),
        (lambda cells: cells.reverse(), ["cell 1: none of"]),
        (lambda cells: cells[1].metadata.tags.clear(), ["cell 1: it asks"]),
        (lambda cells: cells[1].update(source="predict(2)"), ["cell 1: write name"]),
        (lambda cells: cells.pop(2), ["cell 1: none of the next 2 code cells"]),
        (lambda cells: cells[2].update(source="other.reveal(1)"), ["cell 1: none of"]),
    ],
)
def test_each_question_is_tagged_and_answered(make, three, damage, complaint):
    damage(three)
    found = prediction_cells.complaints(make.notebook(*three))
    assert [
        line[: len(c)] for line, c in zip(found, complaint, strict=True)
    ] == complaint


def test_one_cell_may_train_before_the_next_one_shows(make, three):
    ask, show = three[1:]
    train = make.code("train()")
    assert prediction_cells.complaints(make.notebook(ask, train, show)) == []
    assert prediction_cells.complaints(make.notebook(ask, train, make.code(), show))


def test_what_trains_before_the_answer_is_closed_too(make, three):
    ask, show = three[1:]
    train = make.code("train()")
    notebook = make.notebook(make.code(), ask, train, show, make.code())
    prediction_cells.close(notebook)
    settings = [cell.metadata.get("jupyter", {}) for cell in notebook.cells]
    closed = [each.get("outputs_hidden") for each in settings]
    assert closed == [None, None, True, True, None]


def test_what_holds_is_folded(make, three):
    below = make.code("expect(x > 0, '')", "holds")
    notebook = make.notebook(*three, make.code(), below, make.code())
    for _ in range(2):
        prediction_cells.close(notebook)
    below = notebook.cells[4]
    assert below.metadata.tags == ["holds", "remove-cell"]
    assert below.metadata.jupyter == {"source_hidden": True}
    assert below.metadata.slideshow == {"slide_type": "skip"}
    assert prediction_cells.complaints(make.notebook(*three[:2], below, three[2])) == []


def test_results_are_closed_and_stay_closed_in_the_stored_form(make, three):
    notebook = make.notebook(*three, make.code())
    notebook.cells[3].metadata.jupyter = {"outputs_hidden": True, "source_hidden": True}
    for _ in range(2):
        prediction_cells.close(notebook)
        tidy.tidy(notebook)
        settings = [cell.metadata.get("jupyter") for cell in notebook.cells]
        assert settings == [
            None,
            None,
            {"outputs_hidden": True},
            {"source_hidden": True},
        ]


def test_the_website_has_a_toggle(make, three):
    notebook = make.notebook(*three)
    prediction_cells.close(notebook)
    site.prepare(notebook)
    tagged = [c.metadata.get("tags", []) for c in notebook.cells]
    assert ["hide-output" in each for each in tagged] == [False, False, True]


TASK = "**Exercise 1.{}** · difficulty 1 of 3 · 5 minutes"
KEPT = {
    "exercises": {"1.1": "v", "1.2": "x", "9.9": "v"},
    "guesses": {
        "Which way does it go?": {"guess": "up", "answer": "up"},
        "old": {"guess": "up"},
    },
}

DONE = ["30", "1", "of", "2", "1", "of", "1"]


@pytest.fixture
def checkout(tmp_path, make, three):
    """A notebook with two exercises and a prediction, and what was done in it."""
    title = make.text("# T\n\n**Minutes:** 20.")
    tasks = [make.text(TASK.format(n), "exercise") for n in (1, 2)]
    folder = tmp_path / "notebooks"
    folder.mkdir()
    book = json.dumps(make.notebook(title, *tasks, *three))
    (folder / "01_work.ipynb").write_text(book, encoding="utf-8")
    (folder / record.NAME).write_text(json.dumps(KEPT), encoding="utf-8")
    return tmp_path


def test_progress_shows_every_notebook_and_exports_every_item(checkout, capsys):
    path = checkout / "ada.csv"
    assert progress.main(["--export", str(path)], checkout) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[1].split() == ["01_work", *DONE]
    assert table[2].split() == ["together", *DONE]
    with path.open(newline="") as file:
        rows = [list(row.values()) for row in csv.DictReader(file)]
    assert rows == [
        ["ada", "01_work", "exercise", "1.1", "right", "", ""],
        ["ada", "01_work", "exercise", "1.2", "not right yet", "", ""],
        ["ada", "01_work", "guess", "Which way does it go?", "right", "up", "up"],
    ]


@pytest.mark.parametrize(
    "kept, state",
    [
        ({}, "no guess yet"),
        ({"guess": "up"}, "not seen yet"),
        ({"guess": "up", "answer": "down"}, "wrong"),
    ],
)
def test_the_states_of_a_guess(make, three, kept, state):
    file = {"guesses": {"Which way does it go?": kept}}
    (row,) = progress.guesses(make.notebook(*three), file)
    assert row[2] == state
