"""What buttons and sliders show stays in a saved notebook, also without their kernel.

JupyterLab writes the states of those widgets alone that it knows from a kernel. So a
notebook that is opened, not run and saved would lose what its outputs show.
"""

import json
import re
from pathlib import Path
from typing import Any

from grpo_course.workshop.form import WIDGET_VIEW

STATE = "application/vnd.jupyter.widget-state+json"
OTHER = re.compile(r"IPY_MODEL_(\w+)")  # a widget names those that it consists of
Notebook = dict[str, Any]


def keep(model: dict[str, Any], path: str, contents_manager: Any, **_: Any) -> None:
    """Before a notebook is written, add the states that only its file has.

    A hook of the Jupyter server, `ContentsManager.pre_save_hook`.
    """
    file, notebook = Path(contents_manager.root_dir, path), model.get("content")
    if model.get("type") != "notebook" or not notebook or not file.exists():
        return
    now = states(notebook)
    missing = shown(notebook) - now.keys()
    before = states(json.loads(file.read_text(encoding="utf-8"))) if missing else {}
    if kept := with_parts(missing, before):
        stored = {"state": kept | now, "version_major": 2, "version_minor": 0}
        notebook["metadata"].setdefault("widgets", {})[STATE] = stored


def states(notebook: Notebook) -> dict[str, Any]:
    """The states of widgets that a notebook has, by the widgets' names."""
    widgets = notebook.get("metadata", {}).get("widgets", {})
    return widgets.get(STATE, {}).get("state", {})


def shown(notebook: Notebook) -> set[str]:
    """The widgets that its outputs show."""
    outputs = [out for cell in notebook["cells"] for out in cell.get("outputs", [])]
    views = [output.get("data", {}).get(WIDGET_VIEW) for output in outputs]
    return {view["model_id"] for view in views if view}


def with_parts(names: set[str], known: dict[str, Any]) -> dict[str, Any]:
    """The known states of widgets, and of all that these consist of."""
    found: dict[str, Any] = {}
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name in known and name not in found:
            found[name] = known[name]
            waiting += OTHER.findall(json.dumps(known[name]))
    return found
