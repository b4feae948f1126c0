"""Which defect notebook 10 uses for what."""

from grpo_course.classroom.hunt.defects import DEFECTS, HIDING, number_of

# One case for each first look: samples, rate, length, ratio, reward, KL.
GUIDED = {
    letter: number_of(cause)
    for letter, cause in {
        "A": "reward looks at another prompt's answer",
        "B": "schedule too short for the inner steps",
        "C": "padding counted as response",
        "D": "dropout on in the update",
        "E": "ratio of log-probabilities",
        "F": "reference is the policy itself",
    }.items()
}
DIAGNOSED = tuple(
    number_of(cause)
    for cause in (
        "best of several answers paid",
        "old scores taken from the current policy",
        "prompt trained along with the response",
        "k3 upside down",
        "groups that mix prompts",
        "old scores in low precision",
    )
)
REPAIRED = number_of("each part divided by its own tokens")
PAIR = tuple(map(number_of, HIDING[0]))  # the first hides the second
SOLVED = {*GUIDED.values(), *DIAGNOSED, REPAIRED, *PAIR}  # in the notebook
HUNTED = [number for number in DEFECTS if number not in SOLVED]
