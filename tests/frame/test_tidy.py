"""What `save` changes in a notebook and what it keeps."""

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
    tidy.tidy(notebook)
    assert set(cell.metadata) == {"tags", "slideshow"}
    assert notebook.cells[1].metadata == {}


@pytest.mark.parametrize("time", ["  9.5 ms", "123.4 ms"])
def test_times_are_not_stored_and_columns_stay(time):
    cell = v4.new_code_cell("timed")
    text = f"GRPO 650 {time}, 1.5 msgs\n"
    cell.outputs = [v4.new_output("stream", name="stdout", text=text)]
    tidy.tidy(v4.new_notebook(cells=[cell]))
    assert cell.outputs[0].text == "GRPO 650     ? ms, 1.5 msgs\n"


def test_the_state_of_widgets_is_not_stored():
    """A kernel names them at random; pictures with sliders do without."""
    notebook = v4.new_notebook(metadata={"widgets": {"state": {"a1": {}}}})
    tidy.tidy(notebook)
    assert "widgets" not in notebook.metadata
