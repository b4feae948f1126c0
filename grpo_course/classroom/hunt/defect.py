"""A defect of a training script as data."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Defect:
    """What was done to the script, and how it comes to light.

    `edits` are pairs (old text, new text), the line at fault first; each old text
    stands in the script once.
    `settings` are those of a run in which the defect shows, where the script's own do
    not; `knob` says in words what lets it sleep.
    """

    cause: str  # its name, as one would say it
    complaint: str  # one sentence, as on a forum
    first_look: str  # where to look before any probe
    shows: str  # what a run with it shows, said to who accuses it wrongly
    probe: str  # name of the course's probe that finds it
    why: str  # the mechanism, for the debrief
    thread: str  # who has met it: project and number
    edits: tuple[tuple[str, str], ...]
    settings: dict[str, float] = field(default_factory=dict)
    knob: str = ""
    box: str = ""  # what to mark of the stages, if not the method its lines stand in
