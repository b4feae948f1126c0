"""Word problems made by rule, told in many ways, and split without overlap."""

import random
from dataclasses import dataclass
from zlib import crc32

from grpo_course.checks import require_at_least, require_known
from grpo_course.text.tasks import Problem

# A made problem is an opening with the first number, one sentence for each operation,
# and the question, before or after. Sentences of one scene fit together in any mix, so
# problems of any number of steps are told in many ways.

NAMES = ("Mia", "Tom", "Ana", "Ben", "Sue", "Leo")
THINGS = ("apples", "coins", "cards", "pens", "eggs", "stars")
QUESTION_FIRST = 0.25  # the share of the stories that open with their question


@dataclass(frozen=True)
class Scene:
    """Sentences with the places {name}, {things} and {n}, a number."""

    openings: tuple[str, ...]
    plus: tuple[str, ...]
    minus: tuple[str, ...]
    times: tuple[str, ...]
    questions: tuple[str, ...]

    def tell(
        self, rng: random.Random, operations: tuple[str, ...], operands: tuple[int, ...]
    ) -> str:
        """A whole word problem. There is one operand more than operations."""
        fillers = {"name": rng.choice(NAMES), "things": rng.choice(THINGS)}
        events = {"+": self.plus, "-": self.minus, "*": self.times}
        choices = [self.openings, *(events[operation] for operation in operations)]
        statements = [
            rng.choice(sentences).format(n=number, **fillers)
            for sentences, number in zip(choices, operands, strict=True)
        ]
        question = rng.choice(self.questions).format(**fillers)
        first = rng.random() < QUESTION_FIRST
        return " ".join([question, *statements] if first else [*statements, question])


TRAINING_SCENES = (
    Scene(
        openings=("{name} has {n} {things}.", "{name} starts with {n} {things}.",
                  "At first {name} has {n} {things}."),
        plus=("{name} gets {n} more.", "Then {name} finds {n}.", "{name} buys {n}.",
              "Then {name} is given {n} more."),
        minus=("{name} loses {n}.", "Then {name} sells {n}.", "{name} gives away {n}.",
               "Then {name} gives {n} to a friend."),
        times=("Then {name} has {n} times as many.",),
        questions=("How many {things} does {name} have now?",
                   "How many does {name} have in all?",
                   "So how many {things} has {name}?"),
    ),
    Scene(
        openings=("There are {n} {things} in a box.", "A box holds {n} {things}.",
                  "{name} puts {n} {things} in a box."),
        plus=("{name} puts in {n} more.", "Then {n} more are put in.",
              "{name} adds {n} to the box."),
        minus=("{name} takes out {n}.", "Then {n} are taken out.",
               "{name} takes {n} away."),
        times=("Then there are {n} times as many.",),
        questions=("How many {things} are in the box?",
                   "How many {things} does the box hold now?",
                   "How many are there now?"),
    ),
)  # fmt: skip
# Every word of these stands in a training sentence too; the sentences do not.
HELD_OUT_SCENES = (
    Scene(
        openings=("{name} has {n} {things} at first.",),
        plus=("{name} finds {n} more.", "Then {name} buys {n} more."),
        minus=("{name} sells {n}.", "Then {name} gives {n} away."),
        times=("{name} has {n} times as many now.",),
        questions=("How many {things} does {name} have in all?",),
    ),
    Scene(
        openings=("There is a box. {name} puts {n} {things} in.",),
        plus=("{name} adds {n} more to the box.", "{n} more are put in the box."),
        minus=("Then {name} takes {n} out.", "{n} are taken away."),
        times=("Now there are {n} times as many in the box.",),
        questions=("How many {things} are there in the box now?",),
    ),
)

# The splits of made problems; the real data has RUN_SPLITS.
SPLITS = ("train", "validation", "unseen_problems", "unseen_phrasings", "unseen_facts")
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


def pool_of(operations: tuple[str, ...], operands: tuple[int, ...]) -> str:
    """Which pool owns a problem. Every problem belongs to exactly one.

    A tenth of the facts is held out: a problem that needs one, in any of its steps, is
    for `unseen_facts`. Of the other problems, two tenths are for `unseen_problems`, one
    for `validation`, and the rest is for training.
    """
    facts = work_out(operations, operands)
    if any(share_of("fact " + fact_key(fact)) == 0 for fact in facts):
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

    The splits differ from "train" in one thing each. "validation" and
    "unseen_problems": operations and operands that no training problem has.
    "unseen_phrasings": training problems, told in sentences that training never has.
    "unseen_facts": each problem needs a single step, as 7-5, that none of those needs.

    `operands` is the smallest and largest number in a question, `operations` holds
    some of + - *, and `steps` the numbers of operations to draw from: (1, 2, 2) makes
    two problems in three have two steps.
    """
    require_known("split", split, SPLITS)
    require_at_least("operands[1]", operands[1], operands[0])
    rng = random.Random(f"{split} {seed}")
    told_anew = split == "unseen_phrasings"
    scenes = HELD_OUT_SCENES if told_anew else TRAINING_SCENES
    pool = "train" if told_anew else split
    problems = []
    for _ in range(count):
        length = rng.choice(steps)
        # Of the pool's problems with as many steps, each is equally likely.
        for _ in range(MOST_DRAWS):
            kind = tuple(rng.choices(operations, k=length))
            numbers = tuple(rng.randint(*operands) for _ in range(length + 1))
            facts = work_out(kind, numbers)
            # A story opens with several things, and none of its results is below zero.
            tellable = numbers[0] >= 2 and min(compute(*fact) for fact in facts) >= 0
            if tellable and pool_of(kind, numbers) == pool:
                break
        else:
            raise ValueError(
                f"operands={operands} with operations={operations!r} and steps={steps} "
                f"hold no problem for the pool {pool!r}: widen the range of operands."
            )
        question = rng.choice(scenes).tell(rng, kind, numbers)
        answer, solution = str(compute(*facts[-1])), solution_text(facts)
        problems.append(WordProblem(question, answer, solution, kind, numbers))
    return problems
