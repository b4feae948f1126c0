"""The exercises of 15_own_task."""

import re
from collections.abc import Callable
from random import Random
from typing import Any

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.own_task import task_of
from grpo_course.text.responses import extract_answer, in_template
from grpo_course.text.reverse import LETTERS
from grpo_course.text.task_check import find_fault
from grpo_course.text.tasks import Problem, TextTask, split_of
from grpo_course.text.training import GRPOConfig

# 15.1, a task with two mistakes

RIGHT, OTHER = in_template("c b a", "cba"), in_template("?", "cba")
MANY = in_template("?", "abc") + OTHER + in_template("?", "acb")
SMALL = GRPOConfig(num_problems=256, eval_problems=64, vocab_size=290)


def questions(task, split="train", count=2048, seed=0):
    return [problem.question for problem in task.problems(split, count, seed)]


def unseen_questions(task):
    return questions(task, "test", 256) + questions(task, "validation", 256)


def kinds_of_questions(task):
    found = [re.fullmatch(r"Reverse ([a-z]+)\.", text) for text in questions(task)]
    if None in found:
        return "not `Reverse `, a word and a full stop"
    lengths = {len(each[1]) for each in found if each}
    return f"words of {' and '.join(map(str, sorted(lengths)))} letters"


def kinds_of_answers(task):
    for problem in task.problems("train", 64, 0):
        word = problem.question.removeprefix("Reverse ").removesuffix(".")
        if problem.answer != word[::-1]:
            return "the word itself" if problem.answer == word else "another answer"
    return "the letters of the word, the last first"


def kind_of_gold(task):
    for problem in task.problems("train", 8, 0):
        answer = str(problem.answer)
        if task.gold(problem) != in_template(" ".join(answer), answer):
            return str(task.gold(problem)).replace(answer, "cba")
    return "letter by letter, then the answer in tags"


def paid(task, *texts, answer="cba"):
    """What the first reward pays responses to a question, a list."""
    accuracy = next(iter(task.rewards.values()))[0]
    return accuracy(completions=[*texts], answer=[answer] * len(texts), prompts=[])


LOOKS: dict[str, Callable[[TextTask], Any]] = {
    "2048 problems": lambda task: len(questions(task)),
    "questions": kinds_of_questions,
    "different questions": lambda task: len({*questions(task)}),
    "answers": kinds_of_answers,
    "the same arguments twice": lambda task: (
        "equal" if questions(task) == questions(task) else "different"
    ),
    "seeds 0 and 1": lambda task: (
        "equal" if questions(task) == questions(task, seed=1) else "different"
    ),
    "the splits": lambda task: (
        "some are in both"
        if {*questions(task)} & {*unseen_questions(task)}
        else "none is in both"
    ),
    "gold": kind_of_gold,
    "find_fault": lambda task: find_fault(task, SMALL) or "no mistake",
}


def seen(function, look):
    """One thing about a task: what a look shows, or what a response is paid."""
    task = function()
    task.problems("train", 1, 0)  # where nothing is written, nothing is judged
    try:
        return LOOKS[look](task) if look in LOOKS else float(*paid(task, look))
    except NotImplementedError:
        return "not written yet"


# The draft: every seed draws the same words, and who names many answers is paid.
def drafted_task():
    def problems(split, count, seed):
        rng = Random(split)
        found: dict[str, Problem] = {}
        while len(found) < count:
            word = "".join(rng.choices(LETTERS, k=rng.randint(3, 4)))
            if split_of(word) == split:
                found[word] = Problem(f"Reverse {word}.", word[::-1])
        return list(found.values())

    def is_right(text, word):
        return f"<answer>{word}</answer>" in text

    def gold(problem):
        return in_template(" ".join(problem.answer), problem.answer)

    return task_of(problems, is_right, gold)


@exercise("15.1", use=seen, draft=drafted_task)
def my_task():
    """-> a task: a word is asked for letter by letter, the last first"""

    def problems(split, count, seed):
        rng = Random(f"{split} {seed}")
        found: dict[str, Problem] = {}
        while len(found) < count:
            word = "".join(rng.choices(LETTERS, k=rng.randint(3, 4)))
            if split_of(word) == split:
                found[word] = Problem(f"Reverse {word}.", word[::-1])
        return list(found.values())

    def is_right(text, word):
        return extract_answer(text) == word

    def gold(problem):
        return in_template(" ".join(problem.answer), problem.answer)

    return task_of(problems, is_right, gold)


COUNT = "`problems` returns `count` problems. Draw anew what another split has."
TWICE = "A question comes twice: keep it once, as the dictionary in WordOrder does."
FORM = (
    "The question is `Reverse `, a word of three or four of LETTERS, and a full stop."
)
TURN = "The answer is the word with its last letter first: word[::-1]."
AGAIN = (
    "Equal arguments give other problems each time: draw them from "
    'Random(f"{split} {seed}").'
)
SEED = (
    "Every seed draws the same words, so runs on five seeds would train on one set of "
    "problems. What is the generator made from, here and in WordOrder?"
)
BOTH = "Two splits share a word, as in B. Keep a word if split_of(word) == split."
GOLD = "`gold` spells the answer with spaces, then writes it: in_template has the tags."
TAGGED = (
    "What counts stands between <answer> and </answer>, and earns 1 if it is right: "
    "extract_answer finds it."
)
THOUGHTS = "The right answer earns 1, whatever was thought. Grade the answer alone."
PAIRS = (
    "A response with many answers, each in tags of its own, is paid if one of them is "
    "right, so it need not know which. Grade one answer: extract_answer finds the last."
)
AMONG = "There is more between the tags than the answer. Compare by `==`."
WITHIN = (
    "Without tags extract_answer returns None, which holds nothing. And more than the "
    "answer may stand between the tags. Compare by `==`."
)
PART = "A part of the answer is paid, or nothing at all. Compare by `==`."
CHECK = "`find_fault` tells you what is wrong."

my_task.insight = "Each seed has its own words, and one answer counts."
my_task.cases = tuple(
    case(description, hint, look=look)
    for description, look, hint in (
        ("how many problems there are", "2048 problems", COUNT),
        ("what is asked", "questions", FORM),
        ("how many questions differ", "different questions", TWICE),
        ("what the answers are", "answers", TURN),
        ("equal arguments", "the same arguments twice", AGAIN),
        ("two seeds", "seeds 0 and 1", SEED),
        ("the splits", "the splits", BOTH),
        ("the pay of the answer", RIGHT, TAGGED),
        ("the pay of the answer after other thoughts", OTHER, THOUGHTS),
        ("the pay of the word itself", in_template("a b c", "abc"), PART),
        ("the pay of the answer without tags", "cba", TAGGED),
        ("the pay of words in one pair of tags", in_template("?", "abc cba"), AMONG),
        ("the pay of more at its end", in_template("c b a", "cbaa"), AMONG),
        ("the pay of more before it", in_template("c b a", "acba"), AMONG),
        ("the pay of a part", in_template("c b", "cb"), PART),
        ("the pay of no answer in tags", in_template("?", ""), PART),
        ("the pay of nothing", "", PART),
        ("the pay of three answers, the second right", MANY, PAIRS),
        ("what gold writes", "gold", GOLD),
        ("the whole task", "find_fault", CHECK),
    )
)
my_task.mistakes = f"""
Random(f"{{split}} {{seed}}") => Random(split) | {SEED}
Random(f"{{split}} {{seed}}") => Random() | {AGAIN}
if split_of(word) == split: => if True: | {BOTH}
while len(found) < count: => for _ in range(count): | {COUNT}
extract_answer(text) == word => f"<answer>{{word}}</answer>" in text | {PAIRS}
extract_answer(text) == word => word in extract_answer(text) | {WITHIN}
extract_answer(text) == word => text == word | {TAGGED}
extract_answer(text) == word => text == in_template(" ".join(word), word) | {THOUGHTS}
" ".join(problem.answer) => problem.answer | {GOLD}
"""


# 15.2, credit for letters


def level(function, text, word):
    """How much is earned, in words. A missing `return` stays None."""
    earned = function(text, word)
    if earned is None:
        return None
    if 0 < earned < 1:  # how much, is left open
        return "a part"
    return "less than nothing" if earned < 0 else f"{earned:g}"


@exercise("15.2", use=level, exact=True)
def credit(text, word):
    """str, str -> float"""
    given = extract_answer(text) or ""
    same = sum(a == b for a, b in zip(given, word))
    return same / max(len(given), len(word))


SHORT = "The first letters of the word earn a part: not all of it, and not nothing."
LONG = "The word with more behind it earns a part: not all of it, and not nothing."
FREE = "The word with more behind it earns all: a letter too many has to cost."
HARSH = "An answer that is too long earns nothing: its right letters earn a part."
NONE = "Letters that are right and in their places earn a part."
ALL = "The word itself earns 1."
NOTHING = "No letter is in its place here: that earns 0, not more and not less."
BELOW = "Where no letter is right, less than 0 is paid. The least is 0."
UNTAGGED = 'Without tags extract_answer returns None: `or ""` makes a text of it.'


def text_case(description, text, hint, word="cba"):
    return case(description, hint, text=text, word=word)


credit.insight = "A missing letter costs, and so does one too many."
credit.cases = (
    text_case("the word", RIGHT, ALL),
    text_case("its first letter alone", in_template("c", "c"), SHORT),
    text_case("its first two letters", in_template("c b", "cb"), SHORT),
    text_case("the word and more", in_template("c b a", "cbaz"), LONG),
    text_case("the word and three letters more", in_template("c b a", "cbazzz"), LONG),
    text_case("a wrong last letter", in_template("c b z", "cbz"), NONE),
    text_case("no letter in its place", in_template("a c b", "acb"), NOTHING),
    text_case("no right letter, and too many", in_template("z", "zzzzz"), NOTHING),
    text_case("no tags", "cba", TAGGED),
    text_case("a longer word", in_template("d c b a", "dcba"), ALL, word="dcba"),
)
credit.mistakes = f"""
max(len(given), len(word)) => max(len(given), 1) | {SHORT}
max(len(given), len(word)) => len(word) | {FREE}
max(len(given), len(word)) => len(word) * (len(given) <= len(word)) | {HARSH}
max(len(given), len(word)) => max(min(len(given), len(word)), 1) | {SHORT}
same / max(len(given), len(word)) => float(given == word) | {NONE}
same / max(len(given), len(word)) => float(same) | {ALL}
max(len(given), len(word)) => max(len(text), len(word)) | {ALL}
len(word)) => len(word)) - 0.1 * abs(len(given) - len(word)) | {BELOW}
len(word)) => len(word)) - (not same) | {BELOW}
extract_answer(text) or "" => extract_answer(text) | {UNTAGGED}
"""
