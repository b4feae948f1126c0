"""Slide types, links to Colab and Binder: what `save` writes."""

import copy
import json
from pathlib import Path

import pytest
from nbformat import v4

from grpo_course.workshop import anywhere, form, slides
from grpo_course.workshop import save as save_command
from grpo_course.workshop.cells import COLAB, is_behind, tags

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ADDRESS = "https://github.com/someone/course"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_generated_is_up_to_date(path):
    """The cure: `python3 -m grpo_course save --form-only`."""
    notebook = form.read(path)
    stored = [(cell.source, copy.deepcopy(cell.metadata)) for cell in notebook.cells]
    save_command.arrange(notebook, path, ROOT)
    assert [(cell.source, cell.metadata) for cell in notebook.cells] == stored


def types(*cells):
    notebook = v4.new_notebook(cells=list(cells))
    slides.place(notebook)
    return [cell.metadata.slideshow["slide_type"] for cell in notebook.cells]


def test_each_cell_has_a_slide_type_and_an_authors_choice_stays():
    chosen = v4.new_code_cell("x", metadata={"slideshow": {"slide_type": "skip"}})
    solution = v4.new_markdown_cell("s", metadata={"tags": ["solution"]})
    title, text = v4.new_markdown_cell("# T"), v4.new_markdown_cell("t")
    made = types(title, text, v4.new_code_cell("x"), chosen, solution)
    assert made == ["slide", "subslide", "fragment", "skip", "skip"]


def lesson():
    exercise = "**Exercise 1.1** · difficulty 1 of 3 · 6 minutes\n\nWrite it."
    return v4.new_notebook(
        cells=[
            v4.new_markdown_cell("# 1. T\n\n**Minutes:** 20. **You need:** nothing."),
            v4.new_code_cell("print(1)"),
            v4.new_markdown_cell("## A\n\n**Predict** the number."),
            v4.new_code_cell("print(2)"),
            v4.new_markdown_cell("## B"),
            v4.new_markdown_cell(exercise),
            v4.new_code_cell("print(3)"),
        ]
    )


def test_links_and_the_colab_cell_come_from_one_address():
    notebook = lesson()
    anywhere.add(notebook, "01_x", "https://github.com/other/place")
    anywhere.add(notebook, "01_x", ADDRESS)
    first, colab = notebook.cells[:2]
    assert "other/place" not in json.dumps(notebook)
    assert first.source.count("Open it in") == 1
    assert "someone/course/blob/main/notebooks/01_x.ipynb" in first.source
    assert tags(colab) == [COLAB, "remove-cell"]
    assert f"git+{ADDRESS}" in colab.source
    assert [c.execution_count for c in notebook.cells if c.cell_type == "code"] == [
        *range(1, 5)
    ]


def test_the_colab_cell_does_nothing_elsewhere_and_installs_there(monkeypatch):
    source, called = anywhere.INSTALL.format(repository=ADDRESS), []
    shell = type("Shell", (), {"run_line_magic": lambda self, *a: called.append(a)})
    exec(source, {"get_ipython": shell})
    assert called == []
    monkeypatch.setitem(__import__("sys").modules, "google.colab", object())
    exec(source, {"get_ipython": shell})
    assert called == [("pip", f"install -q --no-deps einops git+{ADDRESS}")]


def test_generated_cells_are_marked():
    notebook = lesson()
    anywhere.add(notebook, "01", ADDRESS)
    assert len(list(filter(is_behind, notebook.cells))) == 1


def test_form_only_refuses_a_notebook_that_was_not_run(tmp_path, capsys):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        f'[project.urls]\nRepository = "{ADDRESS}"\n', encoding="utf-8"
    )
    path = tmp_path / "notebooks" / "01_x.ipynb"
    path.write_text(json.dumps(lesson()), encoding="utf-8")
    before = path.read_bytes()
    assert save_command.main(["--form-only"], tmp_path) == 1
    assert "never run" in capsys.readouterr().out
    assert path.read_bytes() == before
