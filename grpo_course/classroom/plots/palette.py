"""The visual language of the course: one colour and one sign for one thing.

A group is a column of bars, delta an arrow, a policy a table of colours with the right
cells outlined, the clip range a grey band. What a colour says, a direction, a sign or
a line style says too.
"""

from typing import Any

# Safe for colour-blind readers: Okabe and Ito, https://jfly.uni-koeln.de/color/
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))

# The policy that learns, the one that sampled (drawn as a ghost), the reference.
PI, PI_OLD, PI_REF, NO_POLICY = COLOURS[0], COLOURS[1], COLOURS[2], "#666666"
UP, DOWN, LEVEL = COLOURS[2], COLOURS[1], "#666666"  # of delta: above, below, at zero
CLIP: dict[str, Any] = {"color": "grey", "alpha": 0.2, "lw": 0}  # the clip range
GONE = "#9a9a9a"  # a token without gradient
GROUND = "#fcfcfc"
LOSS_COLOURS = {
    "naive": COLOURS[3],
    "unclipped": COLOURS[1],
    "clipped": PI,
    "penalty": COLOURS[4],
    "any loss": COLOURS[2],
}


def sign_colour(value: float) -> str:
    """The colour of a delta; its sign or its arrow says the same."""
    return UP if value > 0 else DOWN if value < 0 else LEVEL
