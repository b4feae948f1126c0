"""All bugs in the order of the hunt, and the debugging sheet to take home."""

from grpo_course.classroom.bugs import losses, rewards, tokens

BUGS = (
    losses.QUOTIENT,
    losses.WRONG_SIDE,
    tokens.UNSHIFTED,
    losses.DROPOUT,
    tokens.EOS_MASK,
    tokens.ROW_ORDER,
    rewards.REGEX,
    rewards.TINY_EPSILON,
    rewards.SPREAD,
    losses.UPSIDE_DOWN_K3,
    losses.K1_AS_LOSS,
    tokens.MEAN_OF_MEANS,
    rewards.UNBOUND,
)


def debugging_sheet() -> str:
    """From symptom to probe to cause, as a Markdown table with a row for each bug."""
    rows = [("symptom", "probe", "cause"), ("---", "---", "---")]
    rows += [(bug.symptom, bug.probe, f"{bug.name}: {bug.cause}") for bug in BUGS]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
