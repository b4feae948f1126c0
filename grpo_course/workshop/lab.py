"""`python3 -m grpo_course lab`: open the course in JupyterLab."""

import os
from pathlib import Path

from grpo_course.workshop import kernels


def main(arguments: list[str], root: Path) -> int:
    """Start JupyterLab at the welcome notebook; `arguments` go to JupyterLab."""
    return open_at(Path("notebooks", "00_welcome.ipynb"), arguments, root)


def open_at(notebook: Path, arguments: list[str], root: Path) -> int:
    """Start JupyterLab with a notebook, a path from `root`, if it is there."""
    start = [str(notebook)] if (root / notebook).exists() else []
    # JupyterLab refuses to run as root (a container, say) unless it is told to.
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    allow = ["--allow-root"] if is_root else []
    return kernels.python(["-m", "jupyterlab", *start, *allow, *arguments], root)
