"""A notebook that is opened, not run and saved keeps what its widgets show."""

import json
from types import SimpleNamespace

import pytest

from grpo_course.workshop import widget_state
from grpo_course.workshop.form import WIDGET_VIEW
from grpo_course.workshop.widget_state import STATE

BUTTONS = {"model_name": "ToggleButtonsModel", "state": {"layout": "IPY_MODEL_b2"}}
STORED = {"a1": BUTTONS, "b2": {"state": {}}, "c3": {"state": {}}}


def notebook(states, *shown):
    outputs = [{"data": {WIDGET_VIEW: {"model_id": each}}} for each in shown]
    text = {"cell_type": "markdown", "source": "Guess."}
    code = {"cell_type": "code", "outputs": [{"text": "7"}, *outputs]}
    made = {"cells": [text, code], "metadata": {}}
    if states is not None:
        made["metadata"]["widgets"] = {STATE: {"state": states}}
    return made


@pytest.fixture
def save(tmp_path):
    """Save over a file with other states; what is written then."""
    path = tmp_path / "00.ipynb"
    path.write_text(json.dumps(notebook(STORED, "a1")), encoding="utf-8")
    server = SimpleNamespace(root_dir=str(tmp_path))

    def saved(content, kind="notebook", name="00.ipynb"):
        model = {"type": kind, "content": content}
        widget_state.keep(model=model, path=name, contents_manager=server)
        return widget_state.states(content) if kind == "notebook" else content

    return saved


def test_what_an_output_shows_is_kept_with_its_parts_and_no_more(save):
    assert save(notebook(None, "a1")) == {"a1": BUTTONS, "b2": STORED["b2"]}


def test_what_the_kernel_knows_comes_first(save):
    new = {"state": {"value": 1}}
    assert save(notebook({"d4": new}, "a1", "d4")).keys() == {"a1", "b2", "d4"}
    assert save(notebook({"a1": new}, "a1")) == {"a1": new}


def test_a_notebook_without_widgets_and_other_files_stay_as_they_are(save):
    assert save(notebook(None)) == {} == save(notebook(None, "z9"))
    assert save(notebook(None, "a1"), name="new.ipynb") == {}
    assert save("text", kind="file") == "text"
