"""Where outputs are seen: in a kernel or in plain Python, as widgets and pictures."""

import sys
from collections.abc import Callable
from io import BytesIO
from typing import Any

WIDTH = 75  # longer lines wrap in JupyterLab and scroll on the site
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# Without the version stamp, the same figure is the same file, which `smaller` packs.
WRITTEN: dict[str, Any] = {
    "metadata": {"Software": None},
    "pil_kwargs": {"compress_level": 1},
}


def show_widget(make: Callable[[Any], Any], otherwise: dict[str, str]) -> Any:
    """Display the widget that `make(ipywidgets)` returns; without ipywidgets, None.

    `otherwise` is what a front end without widgets shows, by MIME type: on GitHub, in
    an export, or when the notebook is opened again.
    """
    from IPython.display import display

    try:
        import ipywidgets
    except Exception:  # missing, or made for another Python
        return None
    widget = make(ipywidgets)
    # The format is public, and the same in ipywidgets 7 and 8; their methods differ.
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    display({WIDGET_VIEW: view} | otherwise, raw=True)
    return widget


def in_kernel() -> bool:
    """Whether this runs in a Jupyter kernel (not in plain Python or a test)."""
    return getattr(shell(), "kernel", None) is not None


def shell() -> Any:
    """The IPython that this runs in; None in plain Python."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def smaller(png: bytes) -> bytes:
    """The same picture in few colours, which takes a quarter of the bytes."""
    from PIL import Image

    file = BytesIO()
    picture = Image.open(BytesIO(png)).convert("RGB")
    # The default would drop the colours of thin arrows.
    picture = picture.quantize(128, Image.Quantize.FASTOCTREE)
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()
