"""Conditions, masks, order, and cuts of a text."""

from grpo_course.classroom.old_check.rules.rule import rule

RULES = (
    rule(
        "mask multiplied",
        "Padding may hold anything, and 0 times infinity is not a number. Choose what "
        "counts instead of multiplying.",
        "torch.where(A, B, 0.0) => A * B",
    ),
    rule(
        "mask lost",
        "The mask is not used here, so padding takes part.",
        "torch.where(A, B, 0.0) => B",
    ),
    rule(
        "mask inverted",
        "The mask is the wrong way round: you keep the padding and drop what counts.",
        "torch.where(A, B, C) => torch.where(~A, B, C)",
    ),
    rule(
        "condition lost",
        "Two conditions have to hold, and you ask for one of them.",
        "A & B => A",
        "A & B => B",
        "A and B => A",
        "A and B => B",
    ),
    rule(
        "either lost",
        "There are two ways to qualify, and you let only one of them count.",
        "A | B => A",
        "A | B => B",
    ),
    rule(
        "and for or",
        "You ask for one of two where both are needed, or for both where one is "
        "enough.",
        "A & B => A | B",
        "A | B => A & B",
        "A and B => A or B",
    ),
    rule(
        "comparison",
        "A comparison lets the wrong ones through: ask what happens at equality, and "
        "which side is meant.",
        "A > B => A >= B",
        "A > B => A < B",
        "A < B => A <= B",
        "A < B => A > B",
        "A <= B => A < B",
        "A <= B => A >= B",
        "A == B => A != B",
    ),
    rule(
        "almost equal",
        "A small difference is a difference. Ask whether the numbers are equal, not "
        "whether they are close.",
        "A == B => (A - B).abs() < 1e-2",
        "A == B => (A - B).abs() < 1e-6",
    ),
    rule(
        "not sorted",
        "You compare with the numbers as they stand. The truth is the sorted list.",
        "sorted(A) => A",
        "A.sort(dim=B).values => A",
    ),
    rule(
        "sorted too much",
        "You sort the response too, which does the policy's work for it.",
        "zip(A, B) => zip(sorted(A), B)",
    ),
    rule(
        "count without limit",
        "What occurs twice still pays. Ask for exactly one.",
        "A.count(B) == 1 => A.count(B) > 0",
        "A.count(B) == 1 => A.count(B)",
    ),
    rule(
        "cut at the other end",
        "You cut at the first place where the last one is meant, or the other way "
        "round.",
        "A.rpartition(B) => A.partition(B)",
        "A.partition(B) => A.rpartition(B)",
    ),
    rule(
        "cut lost",
        "A cut is missing, and more of the text is left than counts.",
        "A.rpartition(B)[0] => A",
        "A.rpartition(B)[2] => A",
        "A.partition(B)[0] => A",
    ),
    rule(
        "not stripped",
        "White space is left around the text.",
        "A.strip() => A",
    ),
    rule(
        "branch lost",
        "You answer the same in both branches. Ask first which of them holds.",
        "A if B else C => A",
        "A if B else C => C",
        "A if B else C => C if B else A",
    ),
    rule(
        "order",
        "The order is wrong: begin at the other end.",
        "reversed(A) => A",
    ),
    rule(
        "sorted the wrong way",
        "You sort from the largest to the smallest.",
        "sorted(A) => sorted(A, reverse=True)",
        "A.sort(dim=B) => A.sort(dim=B, descending=True)",
    ),
    rule(
        "both sorted",
        "You sort the responses too, which does the policy's work for it.",
        "A == B => A.sort(dim=-1).values == B",
    ),
    rule(
        "size of the difference",
        "You add up how far the numbers are apart. What counts is whether they are "
        "equal.",
        "(A == B).sum(dim=C) => (A - B).abs().sum(dim=C)",
    ),
    rule(
        "number type",
        "The values are right, but not their type: a later cell calculates with them.",
        "A.float() => A",
    ),
)
