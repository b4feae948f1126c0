"""Minutes follow from what authors state; `save` writes them wherever they stand."""

import re
from pathlib import Path

import nbformat
import pytest

from grpo_course.workshop import form, minutes, plans
from grpo_course.workshop import save as save_command

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {
    path.stem: form.read(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
}
INSTRUCTORS = (ROOT / "INSTRUCTORS.md").read_text(encoding="utf-8")
PLANNED = plans.read(ROOT)


def rows(text: str) -> dict[str, dict[str, str]]:
    """The table of notebooks in a text, by notebook and by column."""
    table = text[text.index("| notebook ") :]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    head, *body = map(minutes.columns, lines)
    named = [(minutes.NAME.search(row[0]), row) for row in body]
    return {
        name.group() if name else row[0]: dict(zip(head, row, strict=True))
        for name, row in named
    }


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
    "INSTRUCTORS.md": INSTRUCTORS,
    "the map in 00_welcome": welcome_map(),
}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_names_every_notebook_with_its_minutes(table):
    printed = {name: row["minutes"] for name, row in rows(TABLES[table]).items()}
    printed.pop("**together**", None)
    totals = {name: str(minutes.of(each).total) for name, each in NOTEBOOKS.items()}
    assert printed == totals


@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_leaves_minutes_free_for_questions(name):
    plan = PLANNED[name]
    filled, most = rows(INSTRUCTORS)["**together**"][plan.title].split(" of ")
    assert 0.75 * plan.minutes < int(filled) < 0.98 * int(most)
    assert int(most) == plan.minutes
    parts = {part.notebook: part for part in plan.parts}
    counted = [minutes.length(part, NOTEBOOKS[key]) for key, part in parts.items()]
    assert sum(counted) == int(filled)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_table_names_headings_that_a_plan_tells(name):
    for plan in PLANNED.values():
        words = rows(INSTRUCTORS)[name][plan.title]
        named = re.findall(r"\*([^*]+)\*", words)
        parts = [part for part in plan.parts if part.notebook == name]
        assert parts or not named
        if named:
            part = parts[0]
            assert named in (
                part.sections,
                part.without,
                [getattr(part.talk, "title", "")],
            )


def test_a_whole_notebook_takes_its_own_minutes():
    for name, notebook in NOTEBOOKS.items():
        mine = minutes.of(notebook)
        assert minutes.length(plans.Part(name), notebook) == mine.total


# A checkout of two notebooks, the second with an exercise.

MAP = """\
## The map

| notebook | minutes | words |
|---|---|---|
| `00_start` | 0 | hello |
| `01_work` | 0 | an exercise |"""
TABLE = """\
| notebook | minutes | told | one hour | half a day | two days |
|---|---|---|---|---|---|
| 00_start | 0 | 0 | 0 | 0 | 0 |
| 01_work | 0 | 0 | 0 | 0 | 0 |
| **together** | 0 | 0 | 0 | 0 | 0 |
"""
PLANS = """\
[hour]
title = "one hour"
minutes = 60
homework = ["01_work"]

[[hour.parts]]
notebook = "00_start"
sections = ["The map"]

[half-day]
title = "half a day"
minutes = 210

[[half-day.parts]]
notebook = "00_start"

[[half-day.parts]]
notebook = "01_work"
without = ["Not today"]
exercises = []

[two-day]
title = "two days"
minutes = 720

[[two-day.parts]]
notebook = "00_start"

[[two-day.parts]]
notebook = "01_work"
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
    (tmp_path / "INSTRUCTORS.md").write_text(f"Plans.\n\n{TABLE}\n", encoding="utf-8")
    (tmp_path / plans.FILE).parent.mkdir(parents=True)
    (tmp_path / plans.FILE).write_text(PLANS, encoding="utf-8")
    return tmp_path


def path_of(checkout, name):
    return checkout / "notebooks" / f"{name}.ipynb"


def store(checkout, name, notebook):
    text = nbformat.writes(notebook) + "\n"
    path_of(checkout, name).write_text(text, encoding="utf-8")


def save(checkout, *names):
    assert save_command.main([*names, "--form-only"], checkout) == 0
    first = form.read(path_of(checkout, "01_work")).cells[0].source.splitlines()[2]
    printed = rows((checkout / "INSTRUCTORS.md").read_text(encoding="utf-8"))
    return first, [" | ".join(list(row.values())[1:]) for row in printed.values()]


def test_save_adds_the_exercises_and_fills_every_table(checkout):
    first, table = save(checkout)
    assert first == "**Minutes:** 35 (30 without exercises)."
    assert table == [
        "20 | 20 | 17: *The map* | all | all",
        "35 | 30 | as homework | 27: without *Not today* | all",
        "55 | 50 | 17 of 60 | 47 of 210 | 55 of 720",
    ]
    start = form.read(path_of(checkout, "00_start"))
    assert start.cells[0].source.endswith("**Minutes:** 20.")  # it has no exercise
    drawn = rows(next(c.source for c in start.cells if "## The map" in c.source))
    assert [row["minutes"] for row in drawn.values()] == ["20", "35"]


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
    assert table[1:] == [
        "42 | 30 | as homework | 29: without *Not today* | all",
        "62 | 50 | 17 of 60 | 49 of 210 | 62 of 720",
    ]
    notebook = form.read(path_of(checkout, "01_work"))
    notebook.cells = alone[:2]
    store(checkout, "01_work", notebook)
    first, table = save(checkout, "01")
    assert first == "**Minutes:** 30." and table[1].startswith("30 | 30 |")


def test_a_row_without_a_notebook_is_refused(checkout):
    path_of(checkout, "01_work").unlink()
    with pytest.raises(SystemExit, match="A table names 01_work"):
        save_command.main(["--form-only"], checkout)


def test_a_way_through_the_notebooks_takes_the_hours_that_the_readme_says():
    ways = re.findall(r"\((\d+) hours\):\*\* ([^*\n]*)", TABLES["README.md"])
    lengths = {name[:2]: minutes.of(each).total for name, each in NOTEBOOKS.items()}
    for hours, words in ways:
        taken = set(re.findall(r"\d\d", words))
        for first, last in re.findall(r"(\d\d) to (\d\d)", words):
            taken |= {f"{number:02d}" for number in range(int(first), int(last) + 1)}
        assert round(sum(lengths[number] for number in taken) / 60) == int(hours)
    assert len(ways) == 5


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
