"""Names that the source of a task must not use."""

import ast
import inspect
import sys
import textwrap
from pathlib import Path
from typing import Any

from grpo_course.language_model.task_check.look import Look

RUNS = (
    "runs what the model writes, and a model may write anything. Read the text with "
    "int, json.loads or ast.literal_eval, or walk it as grpo_course/countdown.py does."
)
FORBIDDEN = {
    "eval": RUNS,
    "exec": RUNS,
    "hash": "of a text is another number in each process, so a resumed run would ask "
    "other problems. Take split_of(text), or zlib.crc32(text.encode()).",
}


def source_fault(look: Look) -> str:
    """A forbidden name in the file of the task or of one of its rewards."""
    functions = [function for function, _ in look.task.rewards.values()]
    for source in dict.fromkeys(map(source_of, (type(look.task), *functions))):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name) and node.id in FORBIDDEN:
                return f"Line {node.lineno} uses {node.id}. It {FORBIDDEN[node.id]}"
    return ""


def source_of(owner: Any) -> str:
    """The text of the file of a class or function; in a notebook, of itself alone."""
    file = getattr(sys.modules.get(owner.__module__), "__file__", None)
    try:
        if file:
            return Path(file).read_text("utf-8")
        return textwrap.dedent(inspect.getsource(owner))
    except (OSError, TypeError):
        return ""
