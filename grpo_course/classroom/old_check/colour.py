"""The verdict in colour, where a learner sees HTML; what differs in a shape is marked.

The words stay those of the plain report, so that both can be read alike.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

from grpo_course.classroom import record

# JupyterLab's own colours follow its theme; others see the second.
COLOURS = {
    "[v]": "var(--jp-success-color0, #1b5e20)",
    "[x]": "var(--jp-error-color1, #b71c1c)",
    "[!]": "var(--jp-error-color1, #b71c1c)",
    "    yours": "var(--jp-error-color1, #b71c1c)",
    "    your line": "var(--jp-error-color1, #b71c1c)",
    "    expected": "var(--jp-success-color0, #1b5e20)",
}
STYLE = "white-space: pre-wrap; margin: 0; padding: 0"
SHAPE = re.compile(r"(?<=shape \[)[\d, ]*(?=\])")


def show_verdict(lines: Sequence[str]) -> None:
    """Print the lines; in colour where a learner looks on."""
    if not record.learner_is_here():
        print("\n".join(lines))
        return
    from IPython.display import display

    shown = {"text/html": as_html(lines), "text/plain": "\n".join(lines)}
    display(shown, raw=True)


def as_html(lines: Sequence[str]) -> str:
    """The lines, each in its colour, with the sizes that differ between two shapes."""
    sizes = [found.group().split(", ") for x in lines if (found := SHAPE.search(x))]
    rows = [coloured(line, sizes if len(sizes) == 2 else []) for line in lines]
    return f'<pre style="{STYLE}">{"<br>".join(rows)}</pre>'


def coloured(line: str, sizes: list[list[str]]) -> str:
    """One line in the colour of how it begins."""
    shape = SHAPE.search(line)
    text = escape(line)
    if shape and sizes:
        mine = shape.group().split(", ")
        (other,) = [each for each in sizes if each != mine] or [mine]
        text = escape(line[: shape.start()]) + marked(mine, other)
        text += escape(line[shape.end() :])
    colour = next((c for begin, c in COLOURS.items() if line.startswith(begin)), "")
    return f'<span style="color: {colour}">{text}</span>' if colour else text


def marked(sizes: list[str], other: list[str]) -> str:
    """The sizes of a shape; those that the other shape lacks there are underlined."""
    parts = []
    for same, begin, end, *_ in SequenceMatcher(None, sizes, other).get_opcodes():
        each = [escape(size) for size in sizes[begin:end]]
        parts += each if same == "equal" else [f"<b><u>{size}</u></b>" for size in each]
    return ", ".join(parts)
