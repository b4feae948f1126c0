"""The minutes that README and INSTRUCTORS.md print are those of the notebooks."""

import re
from pathlib import Path

import pytest

from grpo_course.workshop import form, speaker

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {
    path.stem: form.read(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
}
HEADING = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)
PLANNED = {"one hour": 50, "half a day": 180, "two days": 660}


def rows(document: str) -> dict[str, dict[str, str]]:
    """The table of a document, by notebook and by column."""
    text = (ROOT / document).read_text(encoding="utf-8")
    lines = [line.strip("| ") for line in text.splitlines() if line.startswith("| ")]
    head, *body = ([c.strip() for c in line.split(" | ")] for line in lines)
    name = re.compile(r"\d\d_\w+")
    return {
        name.search(row[0]).group(): dict(zip(head, row, strict=True))
        for row in body
        if name.search(row[0])
    }


def minutes(name: str) -> int:
    return int(speaker.TOTAL.search(NOTEBOOKS[name].cells[0].source).group(1))


def told(name: str) -> int:
    """Minutes without exercises."""
    exercises = speaker.exercises_of(NOTEBOOKS[name].cells)
    return minutes(name) - sum(int(each) for _, each in exercises)


@pytest.mark.parametrize("document", ["README.md", "INSTRUCTORS.md"])
def test_the_minutes_are_those_of_the_notebooks(document):
    printed = {name: int(row["minutes"]) for name, row in rows(document).items()}
    assert printed == {name: minutes(name) for name in NOTEBOOKS}


def test_the_minutes_without_exercises():
    printed = {name: int(row["told"]) for name, row in rows("INSTRUCTORS.md").items()}
    assert printed == {name: told(name) for name in NOTEBOOKS}


@pytest.mark.parametrize("plan", PLANNED)
def test_a_plan_has_the_minutes_it_names(plan):
    total = 0
    for name, row in rows("INSTRUCTORS.md").items():
        first = re.match(r"\d+", row[plan])
        total += minutes(name) if row[plan] == "all" else int(first[0]) if first else 0
    assert total == PLANNED[plan]
    text = (ROOT / "INSTRUCTORS.md").read_text(encoding="utf-8")
    assert re.search(rf"{plan}[^,]* {total}\b", text)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_plan_names_headings_of_the_notebook(name):
    row = rows("INSTRUCTORS.md")[name]
    named = {h for plan in PLANNED for h in re.findall(r"\*([^*]+)\*", row[plan])}
    source = "\n".join(cell.source for cell in NOTEBOOKS[name].cells)
    assert named <= set(HEADING.findall(source))
