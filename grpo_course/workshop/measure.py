"""How long a cell is: its lines of code, its words of prose."""

import re

from nbformat import NotebookNode

from grpo_course.workshop import anywhere, minutes

HEADING = re.compile(r"^(#{1,6}) +(.+)$", re.MULTILINE)
NOT_PROSE = re.compile(r"```.*?```|\$\$.*?\$\$|<!--.*?-->", re.DOTALL)


def line_count(cell: NotebookNode) -> int:
    """The lines of a code cell that are not blank."""
    return sum(bool(line.strip()) for line in cell.source.splitlines())


def word_count(cell: NotebookNode) -> int:
    """The words of a text cell; code, formulas, headings, what `save` writes apart."""
    own = minutes.STATED.sub("", anywhere.LINE.sub("", cell.source))
    prose = HEADING.sub("", NOT_PROSE.sub("", own))
    prose = re.sub(r"\$[^$]+\$", "formula", prose)
    return sum(any(letter.isalnum() for letter in word) for word in prose.split())
