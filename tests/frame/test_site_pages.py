"""What the website makes of a notebook, and that each command is complete."""

import importlib.util
import tomllib
from pathlib import Path

import pytest
from nbformat import v4

from grpo_course import __main__ as command_line
from grpo_course.workshop import lab, site
from grpo_course.workshop.tidy import WIDGET_VIEW

ROOT = Path(__file__).resolve().parents[2]


def picture(alt):
    return v4.new_output(
        "display_data",
        data={"image/png": "aGk="},
        metadata={"image/png": {"alt": alt}},
    )


def prepared(*cells):
    notebook = v4.new_notebook(cells=list(cells), metadata={"widgets": {}})
    site.prepare(notebook)
    return notebook["cells"]


def test_each_picture_has_a_cell_and_a_text_of_its_own():
    stream = v4.new_output("stream", text="words")
    outputs = [stream, picture("a"), stream, picture("b"), stream]
    code = v4.new_code_cell("plot()", outputs=outputs, metadata={"tags": ["t"]})
    first, second = prepared(code)
    assert [first["metadata"]["mystnb"], second["metadata"]["mystnb"]] == [
        {"image": {"alt": "a"}},
        {"image": {"alt": "b"}},
    ]
    assert first["outputs"] + second["outputs"] == outputs
    assert first["id"] != second["id"]
    assert first["metadata"]["tags"] == ["t"]
    assert second["metadata"]["tags"] == ["t", "remove-input"]


def test_a_cell_without_a_picture_stays():
    cells = [v4.new_markdown_cell("a"), v4.new_code_cell("b")]
    assert prepared(*cells) == cells


def test_a_slider_becomes_a_sentence():
    data = {WIDGET_VIEW: {}, "text/plain": "interactive(children=())"}
    slider = v4.new_output("display_data", data=data)
    (cell,) = prepared(v4.new_code_cell("interact()", outputs=[slider]))
    assert cell["outputs"][0]["data"] == {"text/markdown": site.SLIDER}


@pytest.mark.parametrize("name", command_line.COMMANDS)
def test_a_command_has_a_module_and_extras_that_exist(name):
    module, extras, _ = command_line.COMMANDS[name]
    assert importlib.util.find_spec(f"grpo_course.workshop.{module}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(extras) <= set(project["project"]["optional-dependencies"])
    assert f"  {name} " in command_line.usage()


def test_slides_open_jupyterlab_with_live_slides(monkeypatch, tmp_path):
    """`slides` is `lab` after an installation that has jupyterlab-rise."""
    asked, started = [], []
    monkeypatch.setattr(
        command_line.environment, "ensure", lambda root, extras: asked.append(extras)
    )
    monkeypatch.setattr(command_line.environment, "is_running", lambda python: True)
    monkeypatch.setattr(
        lab.kernels, "python", lambda command, root: started.append(command) or 0
    )
    assert command_line.main(["slides", "--no-browser"]) == 0
    assert asked == [("slides",)]
    assert started[0][:2] == ["-m", "jupyterlab"] and "--no-browser" in started[0]
