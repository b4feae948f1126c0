"""Show the package's own source in a notebook: never a copy that could drift."""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable


def show(function: Callable, folded: bool = False) -> None:
    """Display the source of a function or a class, highlighted; `folded` behind its
    name, to be opened by a click.

    The output is Markdown, which JupyterLab highlights in light and dark theme
    and GitHub renders; outside a notebook the source is printed.

    Raises TypeError where there is no Python source to show.
    """
    source = _source(function).rstrip()
    place = _place(function)
    inside = max(re.findall("`+", source), default="")  # the longest
    fence = max("```", inside + "`")
    markdown = f"`{place}`\n\n{fence}python\n{source}\n{fence}"
    if folded:
        name = function.__qualname__
        summary = f"<summary><code>{name}</code>: click for its source</summary>"
        markdown = f"<details>{summary}\n\n{markdown}\n\n</details>"
    plain = f"# {place}\n{source}"
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        print(plain)
        return
    from IPython.display import display

    display({"text/markdown": markdown, "text/plain": plain}, raw=True)


def _source(function: Callable) -> str:
    name = getattr(function, "__name__", repr(type(function).__name__))
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (TypeError, OSError):
        if getattr(function, "__module__", "") == "__main__":
            cure = "It is defined in this notebook: look at the cell that defines it."
        else:
            cure = "Pass a function or a class written in Python, such as a reward."
        raise TypeError(f"show({name}): no Python source to be found. {cure}") from None


def _place(function: Callable) -> str:
    """Where the source lives, from the package's root: no path of this machine."""
    module = inspect.getmodule(inspect.unwrap(function))
    if module is None or module.__name__ == "__main__":
        return "this notebook"
    path = module.__name__.replace(".", "/")
    return f"{path}/__init__.py" if hasattr(module, "__path__") else f"{path}.py"
