"""The table that one takes to work: first look, then probe, then line."""

from dataclasses import dataclass

from grpo_course.classroom.hunt.broken import HEALTHY
from grpo_course.classroom.hunt.debrief import stage_of
from grpo_course.classroom.hunt.defects import DEFECTS
from grpo_course.classroom.hunt.findings import course_matrix
from grpo_course.classroom.hunt.properties import PROPERTIES


@dataclass(frozen=True)
class Advice:
    """A row: what to look at first, the probes that fire then, cause and stage."""

    first_look: str
    probes: tuple[str, ...]  # the most telling first: the one that finds fewest
    cause: str
    stage: str


def advice() -> list[Advice]:
    """A row for each defect; its probes are those that the matrix saw fire."""
    matrix = course_matrix()
    found = {name: row.found() for name, row in matrix.items()}
    rows = []
    for number, defect in DEFECTS.items():
        fired = [name for name, numbers in found.items() if number in numbers]
        fired.sort(key=lambda name: (name != defect.probe, len(found[name])))
        stage = stage_of(defect.edits[0][0])
        rows.append(Advice(defect.first_look, tuple(fired), defect.cause, stage))
    order = [*PROPERTIES]
    return sorted(rows, key=lambda row: order.index(row.probes[0]))


def defects_by_stage() -> dict[str, dict[int, str]]:
    """The causes by number, by the stage in which their line stands."""
    found: dict[str, dict[int, str]] = {}
    for number, defect in DEFECTS.items():
        stage = stage_of(defect.edits[0][0])
        found.setdefault(stage, {})[number] = defect.cause
    order = sorted(found, key=lambda stage: HEALTHY.index(f"def {stage}("))
    return {stage: found[stage] for stage in order}


def decision_table() -> str:
    """The rows as Markdown."""
    lines = [
        "| look first at | then ask | the line is in | cause |",
        "|---|---|---|---|",
    ]
    for row in advice():
        asked = PROPERTIES[row.probes[0]].says
        lines.append(
            f"| {row.first_look} | {asked} `{row.probes[0]}` | `{row.stage}` | "
            f"{row.cause} |"
        )
    return "\n".join(lines)
