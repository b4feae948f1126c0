"""What stands behind: the package's own source in a notebook.

It is never a copy that could drift.
"""

import inspect
import re
import textwrap
from collections.abc import Callable

from grpo_course.classroom.screen import shell


def show(function: Callable, folded: bool = False) -> None:
    """Display the source of a function or a class, highlighted; `folded` behind its
    name, to be opened by a click.

    The output is Markdown, which JupyterLab highlights in light and dark theme
    and GitHub renders; outside a notebook the source is printed.

    Raises TypeError where there is no Python source to show.
    """
    try:
        source = textwrap.dedent(inspect.getsource(function)).rstrip()
    except (TypeError, OSError):
        name = getattr(function, "__name__", repr(type(function).__name__))
        cure = "Pass a function or a class written in Python, such as a reward."
        if getattr(function, "__module__", "") == "__main__":
            cure = "It is defined in this notebook: look at the cell that defines it."
        message = f"show({name}): no Python source to be found. {cure}"
        raise TypeError(message) from None
    module, place = inspect.getmodule(inspect.unwrap(function)), "this notebook"
    if module and module.__name__ != "__main__":  # from the package's root: the same
        ending = "/__init__.py" if hasattr(module, "__path__") else ".py"
        place = module.__name__.replace(".", "/") + ending  # on every machine
    plain = f"# {place}\n{source}"
    if shell() is None:
        print(plain)
        return
    from IPython.display import display

    inside = max(re.findall("`+", source), default="")  # the longest
    fence = max("```", inside + "`")
    markdown = f"`{place}`\n\n{fence}python\n{source}\n{fence}"
    if folded:
        name = function.__qualname__
        summary = f"<summary><code>{name}</code>: click for its source</summary>"
        markdown = f"<details>{summary}\n\n{markdown}\n\n</details>"
    display({"text/markdown": markdown, "text/plain": plain}, raw=True)
