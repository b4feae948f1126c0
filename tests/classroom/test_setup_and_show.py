"""What opens a notebook, and what shows source: the same on every machine."""

import asyncio
import base64
import io
import os
import random
import subprocess
import sys
import warnings

import matplotlib
import nbformat
import pytest
import torch
from nbclient import NotebookClient
from PIL import Image

from grpo_course.classroom.setup import QUIET, setup
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


def test_figures_are_opaque(undone):
    setup()
    red, green, blue, alpha = matplotlib.colors.to_rgba(
        matplotlib.rcParams["figure.facecolor"]
    )
    assert min(red, green, blue) > 0.9 and alpha == 1


def test_a_warning_is_shown_without_a_path(undone):
    setup()
    shown = warnings.formatwarning("tied", UserWarning, "/tmp/cell_712.py", 3)
    assert shown == "UserWarning: tied\n"


def test_importing_setup_loads_nothing_heavy():
    code = (
        "import sys, grpo_course.classroom.setup, grpo_course.classroom.show\n"
        "print({'torch', 'matplotlib', 'numpy', 'IPython'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "set()\n", run.stderr


def test_show_outside_a_notebook_prints_the_source(capsys):
    show(compute_deltas)
    text = capsys.readouterr().out
    assert text.startswith("# grpo_course/formulas.py\ndef compute_deltas(")


@pytest.mark.parametrize("thing", [sum, 3, torch.exp, "compute_deltas"])
def test_show_without_source_says_why(thing):
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


def test_show_in_a_notebook_is_markdown_with_a_plain_twin(executed):
    (output,) = executed[0][1]
    source = output.data["text/markdown"]
    assert source.startswith("`grpo_course/formulas.py`\n\n```python\ndef ")
    assert source.endswith("\n```")
    assert output.data["text/plain"].startswith("# grpo_course/formulas.py\n")


def test_show_works_for_the_learner_s_own_function(executed):
    source = executed[0][2][0].data["text/markdown"]
    assert source.startswith("`this notebook`\n\n````python\ndef mine(x):")


def test_a_folded_source_stands_behind_its_name(executed):
    source = executed[0][2][1].data["text/markdown"]
    assert source.startswith("<details><summary><code>mine</code>")
    assert "\n\n`this notebook`\n\n````python" in source and "</details>" in source


def test_outputs_are_the_same_in_another_kernel(executed):
    once, again = executed
    assert once == again
    assert once[4][0].text == "UserWarning: tied\n"


def test_a_figure_is_stored_finer_than_it_is_shown(executed):
    (output,) = executed[0][3]
    with Image.open(io.BytesIO(base64.b64decode(output.data["image/png"]))) as picture:
        wide, high = picture.size
    stated = output.metadata["image/png"]
    assert (stated["width"], stated["height"]) == (round(wide / 1.5), round(high / 1.5))
    assert wide > 1.5 * 600 and stated["alt"]


def test_an_empty_figure_is_no_error(executed):
    (output,) = executed[0][5]
    assert output.output_type == "display_data" and "image/png" not in output.data
