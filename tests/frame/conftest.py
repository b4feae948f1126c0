"""Small notebooks, made in memory, that the tests then break."""

import nbformat
import pytest
from nbformat import NotebookNode, sign, v4

from tools import save

WORDS = "ten plain words that say what there is to see"


def text(source: str = WORDS, *tags: str) -> NotebookNode:
    return v4.new_markdown_cell(source, metadata={"tags": list(tags)})


def code(source: str = "print(1)", *tags: str, printed: str = "1\n") -> NotebookNode:
    output = v4.new_output("stream", name="stdout", text=printed)
    return v4.new_code_cell(source, outputs=[output], metadata={"tags": list(tags)})


def notebook(*cells: NotebookNode) -> NotebookNode:
    """A notebook with its ids, counts and metadata as `save` stores them."""
    made = v4.new_notebook(cells=list(cells))
    for count, cell in enumerate((c for c in cells if c.cell_type == "code"), start=1):
        cell.execution_count = count
    for index, cell in enumerate(cells):
        cell.id = f"cell-{index}"
    save.tidy(made)
    return nbformat.from_dict(made)


@pytest.fixture(autouse=True)
def unsigned(monkeypatch):
    """Tests trust no notebook in the name of who runs them."""
    monkeypatch.setattr(sign.NotebookNotary, "sign", lambda *given: None)


@pytest.fixture
def make():
    """Builders of cells and notebooks: `make.text`, `make.code`, `make.notebook`."""
    functions = {"text": text, "code": code, "notebook": notebook}
    return type("Make", (), {name: staticmethod(f) for name, f in functions.items()})


@pytest.fixture
def lesson():
    """A notebook that opens and closes as the course's own do, with an exercise."""
    title = text(f"# Title\n\n**Minutes:** 10. **You need:** nothing. {WORDS}")
    task = text("**Exercise 1.1** · difficulty 1 of 3 · 5 minutes", "exercise")
    knobs = code("verdict('A', a, b)", "change-it")
    end = text(f"## What you saw\n\n{WORDS}. Next: more.")
    hint = text("A hint.", "solution")
    return notebook(title, task, code("f = check(f)"), hint, knobs, end)
