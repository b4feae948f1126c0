"""Minutes follow from what authors state; `save` writes them wherever they stand."""

import re
from pathlib import Path

import nbformat
import pytest

from grpo_course.workshop import form, minutes
from grpo_course.workshop import save as save_command

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {
    path.stem: form.read(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
}


def printed(text: str) -> dict[str, int]:
    """The minutes in the table of notebooks of a text."""
    table = text[text.index(minutes.TABLE) :].split("\n\n")[0]
    found = re.findall(r"^\|[^|]*?(\d\d_\w+)[^|]*\| (\d+) \|", table, re.MULTILINE)
    return {name: int(number) for name, number in found}


def test_what_is_stored_is_what_save_would_write():
    """The cure: `python3 -m grpo_course save --form-only`."""
    stored = {name: notebook.cells[0].source for name, notebook in NOTEBOOKS.items()}
    for notebook in NOTEBOOKS.values():
        minutes.state(notebook)
    written = {name: notebook.cells[0].source for name, notebook in NOTEBOOKS.items()}
    assert written == stored
    assert not minutes.documents(ROOT)


def welcome_map():
    return next(
        c.source for c in NOTEBOOKS["00_welcome"].cells if "## The map" in c.source
    )


TABLES = {
    "README.md": (ROOT / "README.md").read_text(encoding="utf-8"),
    "INSTRUCTORS.md": (ROOT / "INSTRUCTORS.md").read_text(encoding="utf-8"),
    "the map in 00_welcome": welcome_map(),
}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_names_every_notebook_with_its_minutes(table):
    totals = {name: minutes.of(each).total for name, each in NOTEBOOKS.items()}
    assert printed(TABLES[table]) == totals


# A checkout of two notebooks, the second with an exercise.

MAP = """\
## The map

| notebook | minutes | words |
|---|---|---|
| `00_start` | 0 | hello |
| `01_work` | 0 | an exercise |"""
TABLE = """\
| notebook | minutes | words |
|---|---|---|
| [00_start](notebooks/00_start.ipynb) | 0 | hello |
| 01_work | 0 | an exercise |
"""
TASK = "**Exercise {}** · difficulty 1 of 3 · {} minutes"
STUB = "def f(x):\n    raise NotImplementedError\n\n\nf = check(f)"


@pytest.fixture
def exercise(make):
    """The three cells of an exercise of some minutes."""

    def cells(number, length):
        task = make.text(TASK.format(number, length), "exercise")
        return task, make.code(STUB), make.text("A hint.", "solution")

    return cells


@pytest.fixture
def checkout(tmp_path, make, exercise):
    """Its tables hold zeros; its notebooks state 20 and 30 minutes, and 5."""
    start = make.notebook(make.text("# S\n\n**Minutes:** 20."), make.text(MAP))
    work = make.text("# W\n\n**Minutes:** 30.")
    work = make.notebook(work, make.text("## Today"), *exercise("1.1", 5))
    (tmp_path / "notebooks").mkdir()
    for name, notebook in (("00_start", start), ("01_work", work)):
        store(tmp_path, name, notebook)
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    (tmp_path / "INSTRUCTORS.md").write_text(TABLE, encoding="utf-8")
    return tmp_path


def path_of(checkout, name):
    return checkout / "notebooks" / f"{name}.ipynb"


def store(checkout, name, notebook):
    text = nbformat.writes(notebook) + "\n"
    path_of(checkout, name).write_text(text, encoding="utf-8")


def save(checkout, *names):
    assert save_command.main([*names, "--form-only"], checkout) == 0
    first = form.read(path_of(checkout, "01_work")).cells[0].source.splitlines()[2]
    table = printed((checkout / "INSTRUCTORS.md").read_text(encoding="utf-8"))
    return first, list(table.values())


def test_save_adds_the_exercises_and_fills_every_table(checkout):
    first, table = save(checkout)
    assert first == "**Minutes:** 35 (30 without exercises)."
    assert table == [20, 35]
    start = form.read(path_of(checkout, "00_start"))
    assert start.cells[0].source.endswith("**Minutes:** 20.")  # it has no exercise
    drawn = next(c.source for c in start.cells if "## The map" in c.source)
    assert [*printed(drawn).values()] == [20, 35]


def test_saving_again_changes_nothing(checkout):
    save(checkout)
    files = [*(checkout / "notebooks").iterdir(), checkout / "INSTRUCTORS.md"]
    before = {path: path.read_bytes() for path in files}
    save(checkout)
    assert {path: path.read_bytes() for path in files} == before


def test_an_exercise_more_or_less_needs_no_minute_typed(checkout, exercise):
    save(checkout)
    notebook = form.read(path_of(checkout, "01_work"))
    alone = list(notebook.cells)
    notebook.cells += exercise("1.2", 7)
    notebook.cells[-2].execution_count = 2
    store(checkout, "01_work", notebook)
    first, table = save(checkout, "01")
    assert first == "**Minutes:** 42 (30 without exercises)."
    assert table == [20, 42]
    notebook = form.read(path_of(checkout, "01_work"))
    notebook.cells = alone[:2]
    store(checkout, "01_work", notebook)
    first, table = save(checkout, "01")
    assert first == "**Minutes:** 30." and table == [20, 30]


def test_a_row_without_a_notebook_is_refused(checkout):
    path_of(checkout, "01_work").unlink()
    with pytest.raises(SystemExit, match="A table names 01_work"):
        save_command.main(["--form-only"], checkout)


@pytest.mark.parametrize("page", ["README.md", "site"])
def test_a_first_page_says_how_long_all_takes(page):
    index = ROOT / "grpo_course" / "workshop" / "site_source" / "index.md"
    text = TABLES.get(page) or index.read_text(encoding="utf-8")
    told = r"\*\*Time:\*\* (\d+) hour for the idea, (\d+) for the whole loop, (\d+) for"
    hours = re.search(told, text).groups()
    lengths = {name[:2]: minutes.of(each) for name, each in NOTEBOOKS.items()}
    idea = lengths["00"].total + lengths["01"].told
    loop = sum(lengths[f"{number:02d}"].total for number in range(8))
    both = (idea, loop, sum(each.total for each in lengths.values()))
    assert [round(each / 60) for each in both] == [int(each) for each in hours]
