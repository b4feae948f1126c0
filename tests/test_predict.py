"""A guess before the result, kept beside the notebook, and what is never kept."""

import sys

import nbformat
import pytest
import torch
from nbclient import NotebookClient

from grpo_course.classroom import check as checking
from grpo_course.classroom import predict as guessing
from grpo_course.classroom import record
from grpo_course.classroom.predict import guesses, predict
from tools import run

QUESTION = "Which way does the entropy go?"
WAYS = ("rises", "falls", "stays")


@pytest.fixture(autouse=True)
def nothing_asked(monkeypatch):
    monkeypatch.setattr(guessing, "_session", {})


@pytest.fixture
def learner(monkeypatch, tmp_path):
    """A learner who works in a notebook in `tmp_path`."""
    monkeypatch.setattr(record, "learner_is_here", lambda: True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(capsys):
    return capsys.readouterr().out.splitlines()


def ask(question=QUESTION, *choices):
    """Ask, and click on the first choice, where there is a button."""
    guess = predict(question, *(choices or WAYS))
    if guess.buttons:
        guess.buttons.value = guess.choices[0]
    return guess


def test_without_a_learner_it_is_text_and_nothing_is_kept(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    predict(QUESTION, *WAYS).reveal("falls")
    predict("Long?", "it learns nothing" * 3, "it forgets" * 4)
    guesses()
    asked, choices, came, _, *below, none = printed(capsys)
    assert asked == QUESTION and choices == "  ( ) rises   ( ) falls   ( ) stays"
    assert came == "Came out: falls."
    assert [line[:6] for line in below] == ["  ( ) "] * 2
    assert none == "No guess was made in this notebook yet."
    assert not any(tmp_path.iterdir())


def test_a_guess_stands_beside_what_came_out_and_is_counted(learner, capsys):
    ask().reveal("falls")
    assert printed(capsys)[-1] == "Came out: falls. You guessed: rises."
    ask("And with centered rewards?", "stays", "falls").reveal("stays")
    assert printed(capsys)[-1] == "Came out: stays, as you guessed."
    ask("Not revealed?")
    predict("Not guessed?", *WAYS).reveal("falls")
    capsys.readouterr()
    guesses()
    assert printed(capsys) == [
        "1 of 2 guesses right; the ones to look at again:",
        f"- {QUESTION} You guessed: rises. It was: falls.",
    ]
    ask().reveal("rises")  # the same question again
    capsys.readouterr()
    guesses()
    assert printed(capsys) == ["2 of 2 guesses right."]


@pytest.mark.parametrize(
    "choices, result, came",
    [
        (["yes", "no"], True, "yes"),
        (["yes", "no"], torch.tensor(1) > 2, "no"),
        (["a", "b"], {"a": torch.tensor(-2.0), "b": torch.tensor([-1.0])}, "b"),
        ([1, 4, 16], torch.tensor(3.0), "3, nearest to 4"),
        (
            [{"never": 0, "half the time": 0.5, "always": 1}],
            0.46,
            "half the time (0.46)",
        ),
        ([{"down": -1, "nowhere": 0, "up": 1}], "up", "up"),
    ],
)
def test_a_result_finds_its_choice(choices, result, came, capsys):
    predict(QUESTION, *choices).reveal(result)
    assert printed(capsys)[-1] == f"Came out: {came}."


def test_an_answer_that_is_no_choice_is_refused_and_told_to_a_learner(
    learner, capsys, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(record, "learner_is_here", lambda: False)
        with pytest.raises(ValueError, match=r"result='sinks' .*'rises', 'falls', 'st"):
            predict(QUESTION, *WAYS).reveal("sinks")
        with pytest.raises(ValueError, match=r"result=3\.0 is no choice"):
            predict("Mixed?", 1, "many").reveal(3.0)
    guess = ask()
    guess.reveal("sinks")
    assert printed(capsys)[-1] == (
        "Came out: sinks, none of the choices. What did you change?"
    )
    assert not guess.buttons.disabled
    assert "answer" not in record.read(learner)["guesses"][QUESTION]


@pytest.mark.parametrize("choices", [(), ("one",), ("up", "up"), ({"up": 1},)])
def test_a_guess_needs_two_choices(choices):
    with pytest.raises(ValueError, match="two or more that differ"):
        predict(QUESTION, *choices)


def test_a_guess_is_there_again_in_the_next_session(learner):
    guess = ask()
    guess.reveal("falls")
    assert guess.buttons.disabled  # what was seen cannot be guessed
    again = predict(QUESTION, *WAYS).buttons  # until it is asked again
    assert again.value == "rises" and not again.disabled
    assert predict(QUESTION, "up", "down").guess is None  # it was asked otherwise
    stored = record.read(learner)["guesses"][QUESTION]
    assert stored == {"guess": "rises", "answer": "falls"}


def test_a_file_that_cannot_be_read_or_written_stops_nothing(
    learner, monkeypatch, capsys
):
    for text in ("{ broken", "[]", '{"guesses": 3}'):
        (learner / record.NAME).write_text(text, encoding="utf-8")
        ask().reveal("falls")
        assert "You guessed: rises." in printed(capsys)[-1]

    def refuse(*_):
        raise OSError("read-only")

    monkeypatch.setattr(record, "write_atomically", refuse)
    ask("On a stick?").reveal("falls")
    assert "You guessed: rises." in printed(capsys)[-1]


def test_what_others_have_kept_stays_and_a_fresh_stub_takes_nothing_back(
    learner, monkeypatch
):
    monkeypatch.setattr(checking, "_session", {})
    for state, kept in (("v", "v"), (" ", "v"), ("x", "x")):
        checking.note("5.1", state)
        assert record.kept("exercises") == checking._session == {"5.1": kept}
    ask()
    guessed = {"guesses": {QUESTION: {"guess": "rises"}}}
    assert record.read(learner) == {"exercises": {"5.1": "x"}} | guessed


SEVEN = "import ipywidgets; ipywidgets.Widget._repr_mimebundle_ = None"
NONE = "import sys; sys.modules['ipywidgets'] = None"
ASK = """
from grpo_course import predict
guess = predict("up?", "yes", "no")
guess.buttons and setattr(guess.buttons, "value", "no")
guess.reveal("yes")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "stored, before, buttons",
    [(True, "", False), (False, "", True), (False, SEVEN, True), (False, NONE, False)],
)
def test_in_a_kernel_buttons_appear_for_a_learner_who_has_them(
    tmp_path, monkeypatch, stored, before, buttons
):
    for name, value in run.VARIABLES.items():
        monkeypatch.setenv(name, value)
    if not stored:
        monkeypatch.delenv(record.STORED)
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    cells = [nbformat.v4.new_code_cell(before + ASK)]
    book = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(book, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = book.cells[0].outputs
    views = [o.data for o in outputs if o.output_type == "display_data"]
    text = "".join(o.get("text", "") for o in outputs)
    if not buttons:
        assert views == [] and "( ) yes" in text and not any(tmp_path.iterdir())
        assert text.endswith("Came out: yes.\n")
    else:
        assert "application/vnd.jupyter.widget-view+json" in views[0]
        assert "( ) yes" in views[0]["text/plain"]
        assert "Came out: yes. You guessed: no." in text
        assert (tmp_path / record.NAME).exists()
