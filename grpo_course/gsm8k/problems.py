"""Word problems in the format of GSM8K, made by rule: as many as wanted, offline.

The format is that of Cobbe et al. 2021 (arXiv:2110.14168): a question, a worked
solution with calculator marks `<<3+4=7>>`, and the final answer after `####`.
"""

import random
from dataclasses import dataclass
from zlib import crc32

from grpo_course.algorithm.validation import require_at_least, unknown_name
from grpo_course.gsm8k.phrasings import HELD_OUT_SCENES, TRAINING_SCENES
from grpo_course.language_model.text_task import Problem

SPLITS = (
    "train",
    "validation",
    "unseen_problems",
    "unseen_phrasings",
    "unseen_facts",
)
OPERATIONS = ("+", "-", "*")
MOST_DRAWS = 10_000  # after so many misses, there is no such problem

Fact = tuple[int, str, int]  # a single step without its result, say (3, "+", 4)


@dataclass(frozen=True)
class WordProblem(Problem):
    """A problem and what it is made of.

    `operations` work from left to right on `operands`: ("+", "-") and (3, 4, 2) are
    (3 + 4) - 2. There is one operand more than there are operations. Both are empty
    for a problem that was not made by rule.
    """

    operations: tuple[str, ...] = ()
    operands: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """The operations in a row, "+-" say."""
        return "".join(self.operations)

    @property
    def group(self) -> str:
        """The calculation, shared by problems that differ in the story alone."""
        if not self.operations:
            return self.question
        return problem_key(self.operations, self.operands)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The single steps that solve it, in order; none if it was not made by rule."""
        return work_out(self.operations, self.operands) if self.operations else ()


def compute(left: int, operation: str, right: int) -> int:
    """One step of arithmetic; a division rounds down."""
    if operation == "+":
        return left + right
    if operation == "-":
        return left - right
    return left * right if operation == "*" else left // right


def work_out(
    operations: tuple[str, ...], operands: tuple[int, ...]
) -> tuple[Fact, ...]:
    """The steps from left to right: ("+", "-"), (3, 4, 2) -> 3+4, then 7-2."""
    value, facts = operands[0], []
    for operation, operand in zip(operations, operands[1:], strict=True):
        facts.append((value, operation, operand))
        value = compute(value, operation, operand)
    return tuple(facts)


def fact_key(fact: Fact) -> str:
    """A name for a fact. 3+4 and 4+3 share one: who knows one may know the other."""
    left, operation, right = fact
    if operation != "-":
        left, right = sorted((left, right))
    return f"{left}{operation}{right}"


def problem_key(operations: tuple[str, ...], operands: tuple[int, ...]) -> str:
    """A name for operations and operands: 3+4-2 and 4+3-2 share one."""
    first = fact_key((operands[0], operations[0], operands[1]))
    rest = zip(operations[1:], operands[2:], strict=True)
    return first + "".join(f"{operation}{operand}" for operation, operand in rest)


def share_of(key: str) -> int:
    """A digit 0 to 9 for a name, the same on every machine and in every run."""
    return crc32(key.encode()) % 10


def is_held_out_fact(fact: Fact) -> bool:
    """Whether a fact belongs to the split `unseen_facts` and to no other."""
    return share_of("fact " + fact_key(fact)) == 0


def pool_of(operations: tuple[str, ...], operands: tuple[int, ...]) -> str:
    """Which pool owns a problem. Every problem belongs to exactly one.

    A tenth of the facts is held out: a problem that needs one, in any of its steps, is
    for `unseen_facts`. Of the other problems, two tenths are for `unseen_problems`, one
    for `validation`, and the rest is for training.
    """
    if any(is_held_out_fact(fact) for fact in work_out(operations, operands)):
        return "unseen_facts"
    share = share_of(problem_key(operations, operands))
    if share < 2:
        return "unseen_problems"
    return "validation" if share == 2 else "train"


def solution_text(facts: tuple[Fact, ...]) -> str:
    """The worked solution, a line for each fact, and the answer after ####."""
    lines = []
    for left, operation, right in facts:
        result = compute(left, operation, right)
        written = f"{left}{operation}{right}"
        lines.append(f"{written}=<<{written}={result}>>{result}")
    return "\n".join([*lines, f"#### {result}"])


def draw_numbers(
    rng: random.Random, pool: str, operations: str, steps: tuple, operands: tuple
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Operations and operands from one pool, with no result below zero.

    A story opens with several things, so the first number is 2 at least. Among the
    pool's problems with equally many steps, each is equally likely.
    """
    count, (smallest, largest) = rng.choice(steps), operands
    for _ in range(MOST_DRAWS):
        chosen = tuple(rng.choices(operations, k=count))
        numbers = tuple(rng.randint(smallest, largest) for _ in range(count + 1))
        if numbers[0] < 2:
            continue
        results = [compute(*fact) for fact in work_out(chosen, numbers)]
        if min(results) >= 0 and pool_of(chosen, numbers) == pool:
            return chosen, numbers
    raise ValueError(
        f"operands={operands} with operations={operations!r} and steps={steps} hold "
        f"no problem for the pool {pool!r}: widen the range of operands."
    )


def make_problems(
    split: str,
    count: int,
    seed: int,
    *,
    operands: tuple[int, int] = (1, 9),
    operations: str = "+-",
    steps: tuple[int, ...] = (1, 2),
) -> list[WordProblem]:
    """`count` problems of one split; the same arguments give the same problems.

    The splits differ from "train" in one thing each:
    "validation" and "unseen_problems": operations and operands that no training
    problem has (a single fact may recur). Choose settings on the first, report the
    second. "unseen_phrasings": training problems, told in sentences that training
    never has. "unseen_facts": each problem needs a fact, a single step such as 7-5,
    that no training problem needs in any step.

    `operands` is the smallest and largest number in a question, `operations` holds
    some of + - *, and `steps` the numbers of operations to draw from: (1, 2, 2) makes
    two problems in three have two steps.
    """
    require_choices(split, operands, operations, steps)
    rng = random.Random(f"{split} {seed}")
    told_anew = split == "unseen_phrasings"
    scenes = HELD_OUT_SCENES if told_anew else TRAINING_SCENES
    pool = "train" if told_anew else split
    problems = []
    for _ in range(count):
        kind, numbers = draw_numbers(rng, pool, operations, steps, operands)
        question = rng.choice(scenes).tell(rng, kind, numbers)
        facts = work_out(kind, numbers)
        answer = str(compute(*facts[-1]))
        worked = solution_text(facts)
        problems.append(WordProblem(question, answer, worked, kind, numbers))
    return problems


def require_choices(split: str, operands: tuple, operations: str, steps: tuple) -> None:
    """Errors for a learner who asks for problems that cannot be made."""
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    for operation in operations:
        if operation not in OPERATIONS:
            raise unknown_name("operations", operation, OPERATIONS)
    if not operations or not steps:
        raise ValueError("operations and steps each need at least one entry.")
    require_at_least("steps", min(steps), 1)
    require_at_least("operands", operands[0], 0)
    require_at_least("operands[1]", operands[1], operands[0])
