"""Signs, sums, products, quotients, and other statistics."""

from grpo_course.classroom.old_check.rules.rule import rule

RULES = (
    rule(
        "sign lost",
        "The sign is reversed: a minus is missing.",
        "-A => A",
    ),
    rule(
        "difference turned",
        "A difference is the wrong way round: ask what is taken away from what.",
        "A - B => B - A",
    ),
    rule(
        "plus for minus",
        "You add what has to be taken away.",
        "A - B => A + B",
    ),
    rule(
        "minus for plus",
        "You take away what has to be added.",
        "A + B => A - B",
    ),
    rule(
        "difference lost",
        "A difference is asked for, and you use one of its two sides alone.",
        "A - B => A",
        "A - B => B",
    ),
    rule(
        "term lost",
        "One of two terms that have to be added is missing.",
        "A + B => A",
        "A + B => B",
    ),
    rule(
        "factor lost",
        "One factor of a product is missing.",
        "A * B => A",
        "A * B => B",
    ),
    rule(
        "quotient turned",
        "A quotient is upside down.",
        "A / B => B / A",
    ),
    rule(
        "times for divided",
        "You multiply where you have to divide.",
        "A / B => A * B",
    ),
    rule(
        "not divided",
        "A division is missing.",
        "A / B => A",
    ),
    rule(
        "spread biased",
        "You divide the squares by G. The sample spread divides them by G - 1, as "
        "torch does by default.",
        "A.std(dim=B, keepdim=True) => A.std(dim=B, keepdim=True, correction=0)",
    ),
    rule(
        "variance",
        "You divide by the variance. The spread is its square root.",
        "A.std(dim=B, keepdim=True) => A.var(dim=B, keepdim=True)",
    ),
    rule(
        "another statistic",
        "You take another number than the mean of the group: the middle one, or an "
        "extreme one.",
        "A.mean(dim=B, keepdim=True) => A.median(dim=B, keepdim=True).values",
        "A.mean(dim=B, keepdim=True) => A.amax(dim=B, keepdim=True)",
        "A.mean(dim=B) => A.median(dim=B).values",
        "A.mean(dim=B) => A.amax(dim=B)",
    ),
    rule(
        "factor twice",
        "A factor stands there twice.",
        "A * B => A * A * B",
        "A * B => A * B * B",
    ),
    rule(
        "plus for times",
        "You add two numbers that have to be multiplied.",
        "A * B => A + B",
    ),
    rule(
        "range for spread",
        "You divide by the distance from the smallest to the largest. The spread is "
        "the standard deviation.",
        "A.std(dim=B, keepdim=True) => "
        "(A.amax(dim=B, keepdim=True) - A.amin(dim=B, keepdim=True))",
    ),
    rule(
        "sign dropped",
        "You take the size of a difference, without its sign. Here the sign counts.",
        "A - B => (A - B).abs()",
    ),
)
