"""What opens a notebook, and what shows source: the same on every machine."""

import asyncio
import base64
import io
import os
import random
import sys
import warnings
from importlib import metadata

import matplotlib
import nbformat
import pytest
import torch
from nbclient import NotebookClient
from PIL import Image

from grpo_course.classroom.setup import QUIET, check_environment, setup
from grpo_course.classroom.show import show
from grpo_course.formulas import compute_deltas


@pytest.fixture
def undone(monkeypatch):
    """Whatever setup changes in this process is changed back."""
    threads, formatwarning = torch.get_num_threads(), warnings.formatwarning
    for name in QUIET:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    with matplotlib.rc_context():
        yield
    torch.set_num_threads(threads)
    torch.set_printoptions(profile="default")
    warnings.formatwarning = formatwarning


def test_setup_says_what_it_did_and_seeds(undone, capsys):
    setup(seed=3)
    assert capsys.readouterr().out == "Ready: seed 3, one thread.\n"
    first = torch.rand(2), random.random()
    setup(seed=3)
    assert torch.equal(torch.rand(2), first[0]) and random.random() == first[1]
    assert torch.get_num_threads() == 1
    assert str(torch.tensor([1 / 3, 1e-6])) == "tensor([0.333, 0.000])"
    assert all(os.environ[name] == value for name, value in QUIET.items())


def test_packages_that_are_missing_or_too_old_are_named(monkeypatch, capsys):
    lines = ["einops>=0.8", "torch>=99", "no-such-package", 'ruff; extra == "test"']
    monkeypatch.setattr(metadata, "requires", lambda name: lines)
    check_environment()
    old, missing = capsys.readouterr().out.splitlines()
    assert old.startswith(f"torch>=99 is needed, and {metadata.version('torch')} is")
    assert missing.startswith("no-such-package is missing: start with `python3 -m")
    monkeypatch.setattr(metadata, "requires", lambda name: lines[:1])
    check_environment()
    assert capsys.readouterr().out == "All 1 packages are ready.\n"
    # In Colab from a cell; it has a JupyterLab of its own.
    monkeypatch.setitem(sys.modules, "google.colab", object())
    monkeypatch.setattr(metadata, "requires", lambda name: ["torch>=99", "jupyterlab"])
    monkeypatch.setattr(metadata, "version", absent)
    check_environment()
    assert capsys.readouterr().out == (
        'torch>=99 is missing: run `%pip install "torch>=99"` in a cell, then restart\n'
    )


def absent(name):
    raise metadata.PackageNotFoundError(name)


def test_a_course_that_was_not_installed_knows_its_packages(monkeypatch, capsys):
    monkeypatch.setattr(metadata, "requires", absent)
    check_environment()
    assert capsys.readouterr().out == "All 15 packages are ready.\n"


def test_show_outside_a_notebook_prints_the_source(capsys):
    show(compute_deltas)
    text = capsys.readouterr().out
    assert text.startswith("# grpo_course/formulas.py\ndef compute_deltas(")
    for thing in (sum, 3):
        with pytest.raises(TypeError, match="no Python source"):
            show(thing)


CELLS = """\
from grpo_course.classroom.setup import setup; setup()
###
from grpo_course.classroom.show import show
from grpo_course.formulas import compute_deltas
show(compute_deltas)
###
def mine(x):
    return "```"
show(mine)
show(mine, folded=True)
###
import matplotlib.pyplot as plt
plt.plot([1, 2]); plt.show()
###
import warnings; warnings.warn("tied")
###
plt.figure(); plt.show()
"""


@pytest.fixture(scope="module")
def executed():
    """The cells above, run in two kernels at once, to compare."""

    async def both() -> list:
        return await asyncio.gather(_execute(), _execute())

    return asyncio.run(both())


async def _execute() -> list:
    cells = [nbformat.v4.new_code_cell(text) for text in CELLS.split("###\n")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = NotebookClient(notebook, timeout=120, kernel_name="python3")
    await client.async_execute()
    return [cell.outputs for cell in notebook.cells]


@pytest.mark.slow
def test_show_in_a_notebook_is_markdown_with_a_plain_twin(executed):
    """Of the package, of the learner's own function, and folded behind its name."""
    _, (package,), (own, folded), *_ = executed[0]
    source = package.data["text/markdown"]
    assert source.startswith("`grpo_course/formulas.py`\n\n```python\ndef ")
    assert source.endswith("\n```")
    assert package.data["text/plain"].startswith("# grpo_course/formulas.py\n")
    begin = "`this notebook`\n\n````python\ndef mine(x):"
    assert own.data["text/markdown"].startswith(begin)
    source = folded.data["text/markdown"]
    assert source.startswith("<details><summary><code>mine</code>")
    assert f"\n\n{begin}" in source and "</details>" in source


@pytest.mark.slow
def test_a_figure_is_stored_finer_than_it_is_shown_and_alike_in_another_kernel(
    executed,
):
    once, again = executed
    assert once == again
    (output,) = once[3]
    with Image.open(io.BytesIO(base64.b64decode(output.data["image/png"]))) as picture:
        wide, high = picture.size
    stated = output.metadata["image/png"]
    assert (stated["width"], stated["height"]) == (round(wide / 1.5), round(high / 1.5))
    assert wide > 1.5 * 600 and stated["alt"]
    assert once[4][0].text == "UserWarning: tied\n"
    (empty,) = once[5]  # an empty figure is no error
    assert empty.output_type == "display_data" and "image/png" not in empty.data
