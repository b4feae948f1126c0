"""The first exercise of 10_bug_hunt: which bug is behind which run."""

from grpo_course.classroom.bugs import losses, rewards, tokens
from grpo_course.classroom.bugs.bug import Bug
from grpo_course.classroom.bugs.sheet import BUGS
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake

RUNS = {  # the run -> its bug, and what is seen of it before any code is read
    "A": (losses.QUOTIENT, "the reward falls from the first step on"),
    "B": (losses.WRONG_SIDE, "it learns fast, then stays behind"),
    "C": (tokens.UNSHIFTED, "ratios leave 1 before any update, each time alike"),
    "D": (losses.DROPOUT, "ratios leave 1 before any update, each time by others"),
    "E": (tokens.ROW_ORDER, "it stays behind only where prompts pay differently"),
    "F": (rewards.TINY_EPSILON, "all rewards of a prompt are equal, and it drifts"),
    "G": (losses.K1_AS_LOSS, "a heavy beta does not hold it at its reference"),
}


def diagnosis(run: str) -> str:
    """The letter of a run -> the name of its bug"""
    return RUNS[run][0].name


def _mistake(run: str, pick: Bug) -> Mistake:
    """One run is taken for another bug."""

    def answer(asked: str) -> str:
        return pick.name if asked == run else diagnosis(asked)

    hint = (
        f"'{pick.name}' shows otherwise: {pick.symptom}. "
        f"Of run {run} you saw: {RUNS[run][1]}."
    )
    return Mistake(answer, hint)


DIAGNOSIS = Exercise(
    key="10.0",
    name="diagnosis",
    solution=diagnosis,
    choice=True,
    cases=tuple(
        Case(
            f"run {run}",
            {"run": run},
            f"No bug of the list has this name. Of run {run} you saw: {seen}.",
        )
        for run, (_, seen) in RUNS.items()
    ),
    mistakes=tuple(
        _mistake(run, bug)
        for run, (right, _) in RUNS.items()
        for bug in BUGS
        if bug is not right
    ),
    insight="Seven causes from seven symptoms. Now find the line at fault in each.",
)
