"""What stands behind: the package's own source in a notebook, a batch as text.

The source is never a copy that could drift.
"""

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING

from grpo_course.classroom.screen import shell

if TYPE_CHECKING:
    from torch import Tensor

    from grpo_course.loop import Batch


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


def batch_table(batch: "Batch", log_probs: "Tensor | None" = None) -> str:
    """Every response of a batch with its log-probs, reward and delta.

    `log_probs` [batch trial pos] are those of the policy now, the sampling policy's
    unless given. Where each token has a delta, they stand in a row. A batch with a seed
    axis must be cut to one seed first. Raises ValueError if it is not, and if there are
    no log-probs.
    """
    if batch.rewards.ndim != 2:
        raise ValueError(
            f"batch.rewards has shape {list(batch.rewards.shape)}; the table shows "
            "[batch trial]. Train one seed without a seed axis to print its steps."
        )
    log_probs = batch.old_log_probs if log_probs is None else log_probs
    if log_probs is None:
        raise ValueError(
            "log_probs=None, and batch.old_log_probs is None too: the first step notes "
            "them. Pass log_probs=policy.log_probs(batch.rollout)."
        )
    lines = []
    for i, prompt in enumerate(batch.rollout.prompts.tolist()):
        lines.append(f"prompt {prompt}")
        for j, response in enumerate(batch.rollout.responses[i].tolist()):
            scores = " ".join(f"{each:6.2f}" for each in log_probs[i, j])
            deltas = " ".join(f"{each:+.2f}" for each in batch.deltas[i, j].flatten())
            reward = f"R {batch.rewards[i, j]:5.2f}"
            lines.append(f"  {response}  log-probs {scores}  {reward}  delta {deltas}")
    return "\n".join(lines)
