"""What learners write instead: each rule turns one piece of a solution into another.

A pattern is Python. A single capital stands for any expression, and a word in capitals
for one of the names in `NAMES`; the same capital means the same in the replacement.
`words` are for whoever made the mistake: they name it, and leave the code to them.
They are empty where general advice says more.
Calls are written as methods, with `dim=` by name (see `mutations.canonical`).
"""

from grpo_course.classroom.old_check.rules import arithmetic, axes, logic, probabilities
from grpo_course.classroom.old_check.rules.rule import NAMES

__all__ = ["NAMES", "RULES"]
RULES = axes.RULES + arithmetic.RULES + probabilities.RULES + logic.RULES
