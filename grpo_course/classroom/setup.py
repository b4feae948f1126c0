"""One call opens each notebook: seed, threads, printing, plots, quiet libraries.

In the first notebook another says whether all packages are there.
"""

import base64
import os
import random
import sys
import tomllib
import warnings
from importlib import metadata
from io import BytesIO
from pathlib import Path

from grpo_course.classroom.screen import WRITTEN, in_kernel, smaller

QUIET = {  # every kernel of `tools/run.py` has them from its start
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
}

PLOT_STYLE = {
    "figure.figsize": (7.0, 3.2),
    "figure.dpi": 110,
    # Opaque: `DARK` turns the ground with the ink.
    "figure.facecolor": "#fcfcfc",
    "axes.facecolor": "#fcfcfc",
    "savefig.facecolor": "auto",
    "savefig.transparent": False,
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: one font everywhere
    "font.size": 12,
    "axes.titlesize": 12,
    "figure.labelsize": 12,
    "figure.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 2.0,
    "legend.frameon": True,  # light, so that a curve behind it does not hide it
    "legend.framealpha": 0.8,
    "legend.edgecolor": "none",
    "svg.hashsalt": "grpo_course",
}
# In JupyterLab's dark theme pictures turn with the page: light ink on a dark ground, in
# the same hues. Slides and paper stay light.
DARK = """<style>@media screen {
[data-jp-theme-light="false"] :is(.jp-RenderedImage, .jp-RenderedMarkdown, .moving)
img:not(.reveal *) {filter: invert(0.93) hue-rotate(180deg)}
}</style>"""
CURE = (
    "start with `python3 -m grpo_course lab` from the course's folder (Windows: `py`)"
)
# Stored pixels for one of the page: screens and projectors have more than that.
FINER = 1.5


def setup(seed: int = 0) -> None:
    """Prepare a notebook, then print one line that says so.

    Seeds Python, numpy and torch; one thread (small models run slower on two);
    three decimals in printed tensors; the course's plot style; libraries that
    print no progress bars. A cell that samples still seeds itself, so that it
    can be run again alone.
    """
    for name, value in QUIET.items():  # libraries read these when first imported
        os.environ.setdefault(name, value)
    # The usual text of a warning begins with a path that differs from run to run.
    warnings.formatwarning = lambda text, kind, *_, **__: f"{kind.__name__}: {text}\n"
    _prepare_torch(seed)
    _prepare_plots()
    print(f"Ready: seed {seed}, one thread.")


def _prepare_torch(seed: int) -> None:
    import numpy
    import torch

    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    torch.set_printoptions(precision=3, sci_mode=False, linewidth=75)


def _prepare_plots() -> None:
    from cycler import cycler
    from matplotlib import style

    from grpo_course.classroom.plots import COLOURS

    style.use(PLOT_STYLE | {"axes.prop_cycle": cycler(color=COLOURS)})
    if in_kernel():
        from IPython.display import display
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("png", **WRITTEN)
        _describe_pictures()
        display({"text/html": DARK, "text/plain": ""}, raw=True)


def _describe_pictures() -> None:
    # Each picture carries its alternative text, where nbconvert and the site look.
    from IPython import get_ipython
    from matplotlib.figure import Figure
    from PIL import Image

    from grpo_course.classroom.alt_text import alternative_text

    formatter = get_ipython().display_formatter.formatters["image/png"]
    draw = formatter.lookup_by_type(Figure)

    def draw_and_describe(figure: Figure) -> tuple | None:
        drawn = draw(figure, dpi=FINER * figure.dpi)
        if drawn is None:  # an empty figure
            return None
        png = smaller(base64.b64decode(drawn))
        wide, high = (round(side / FINER) for side in Image.open(BytesIO(png)).size)
        stated = {"width": wide, "height": high, "alt": alternative_text(figure)}
        return base64.b64encode(png).decode(), stated

    formatter.for_type(Figure, draw_and_describe)


def check_environment() -> None:
    """Say that all packages are there, or for each that is not, what to do."""
    from packaging.requirements import Requirement

    needed = [Requirement(line) for line in _requirements() if "extra ==" not in line]
    wrong = []
    for each in needed:
        there = "google.colab" in sys.modules
        cure = f'run `%pip install "{each}"` in a cell, then restart' if there else CURE
        try:
            version = metadata.version(each.name)
        except metadata.PackageNotFoundError:
            if each.name != "jupyterlab":  # whoever reads this has what shows notebooks
                wrong.append(f"{each} is missing: {cure}")
            continue
        if not each.specifier.contains(version, prereleases=True):
            wrong.append(f"{each} is needed, and {version} is here: {cure}")
    print("\n".join(wrong) or f"All {len(needed)} packages are ready.")


def _requirements() -> list[str]:
    try:
        return metadata.requires("grpo-course") or []
    except metadata.PackageNotFoundError:  # the course was not installed, only found
        file = Path(__file__).parents[2] / "pyproject.toml"
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        return project["dependencies"]
