"""What `save` changes in a notebook and what it keeps."""

import copy

import pytest
from nbformat import v4

from grpo_course.workshop import tidy


def test_ids_are_kept_and_made_from_the_place():
    def notebook():
        cells = [v4.new_markdown_cell(str(i)) for i in range(4)]
        made = v4.new_notebook(cells=cells)  # it would repair what comes next
        cells[0].id = cells[2].id = "kept"
        del cells[1]["id"], cells[3]["id"]
        return made

    first, second, other = notebook(), notebook(), notebook()
    tidy.give_ids(first, "01")
    tidy.give_ids(second, "01")
    tidy.give_ids(other, "02")
    ids = [cell.id for cell in first.cells]
    assert ids[0] == "kept"
    assert len(set(ids)) == 4
    assert ids == [cell.id for cell in second.cells]
    assert ids[1] != other.cells[1].id


def test_tags_and_slides_stay_and_the_rest_goes():
    cell = v4.new_code_cell("1")
    cell.metadata.update(
        tags=["exercise"],
        slideshow={"slide_type": "slide"},
        execution={"iopub.execute_input": "2026"},
        collapsed=True,
    )
    notebook = v4.new_notebook(cells=[cell, v4.new_markdown_cell("x")])
    notebook.cells[1].metadata["tags"] = []
    tidy.tidy(notebook, "01")
    assert set(cell.metadata) == {"tags", "slideshow"}
    assert notebook.cells[1].metadata == {}


@pytest.mark.parametrize("time", ["  9.5 ms", "123.4 ms"])
def test_times_are_not_stored_and_columns_stay(time):
    cell = v4.new_code_cell("timed")
    text = f"GRPO 650 {time}, 1.5 msgs\n"
    cell.outputs = [v4.new_output("stream", name="stdout", text=text)]
    tidy.tidy(v4.new_notebook(cells=[cell]), "01")
    assert cell.outputs[0].text == "GRPO 650     ? ms, 1.5 msgs\n"


def with_widget(bar, box):
    """A notebook that shows a box with a bar in it, under a kernel's random ids."""
    cell = v4.new_code_cell("bar")
    view = {tidy.WIDGET_VIEW: {"model_id": box, "version_major": 2}}
    cell.outputs = [v4.new_output("display_data", data=view)]
    state = {bar: {"state": {"value": 5}}}
    state[box] = {"state": {"children": [f"IPY_MODEL_{bar}"]}}
    notebook = v4.new_notebook(cells=[cell])
    notebook.metadata["widgets"] = {tidy.WIDGET_STATE: {"state": state}}
    return notebook


def test_widgets_get_the_same_names_every_time():
    first, second = with_widget("a1", "b1"), with_widget("zz", "yy")
    tidy.tidy(first, "01")
    tidy.tidy(second, "01")
    assert first.cells[0].outputs == second.cells[0].outputs
    assert first.metadata == second.metadata
    state = first.metadata.widgets[tidy.WIDGET_STATE]["state"]
    box = first.cells[0].outputs[0].data[tidy.WIDGET_VIEW]["model_id"]
    (child,) = state[box]["state"]["children"]
    assert state[child.removeprefix("IPY_MODEL_")]["state"]["value"] == 5


def test_widgets_of_a_saved_notebook_keep_their_names():
    """A file has them sorted by name, which is not the order they were made in."""
    notebook = with_widget("a1", "b1")
    tidy.tidy(notebook, "01")
    state = notebook.metadata.widgets[tidy.WIDGET_STATE]["state"]
    for order in (sorted(state), sorted(state, reverse=True)):
        read = copy.deepcopy(notebook)
        read.metadata.widgets[tidy.WIDGET_STATE]["state"] = {k: state[k] for k in order}
        tidy.tidy(read, "01")
        assert read == notebook


def test_a_notebook_without_widgets_has_no_widget_metadata():
    notebook = v4.new_notebook(metadata={"widgets": {tidy.WIDGET_STATE: {"state": {}}}})
    tidy.tidy(notebook, "01")
    assert "widgets" not in notebook.metadata
