"""The exercises of 15_own_task."""

import random
from collections.abc import Callable
from typing import Any, ClassVar

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.nb12 import yes_or_no
from grpo_course.lessons.word_order import WORDS
from grpo_course.text.responses import extract_answer, graded, in_template
from grpo_course.text.task_check import find_fault
from grpo_course.text.tasks import Problem, TextTask, split_of
from grpo_course.text.training import GRPOConfig


def in_tags(text, word):
    return f"<answer>{word}</answer>" in text


@exercise("15.1", use=yes_or_no, exact=True, draft=in_tags)
def is_right(text, word):
    """str, str -> bool"""
    return extract_answer(text) == word


TAGGED = "The word counts between <answer> and </answer>: extract_answer finds it."
OTHER = "Another word stands between the tags: compare it with the right one."
LIST = "Many words stand between the tags. Compare the whole answer by `==`."
PAIRS = (
    "This text tries many answers, each in tags of its own. One answer counts, the "
    "last: extract_answer finds it."
)
LONGER = "There is more between the tags than the word. Compare by `==`."
PART = "A part of the word is not the word. Compare by `==`."


def text_case(description, text, hint="", word="cba"):
    return case(description, hint, text=text, word=word)


is_right.insight = "It grades one answer, and all of it."
is_right.cases = (
    text_case("the right response", in_template("c b a", "cba"), TAGGED),
    text_case("another answer", in_template("c b a", "abc"), OTHER),
    text_case("many words in one pair of tags", in_template("?", "abc cba acb"), LIST),
    text_case(
        "many pairs of tags",
        "<answer>cba</answer><answer>abc</answer><answer>acb</answer>",
        PAIRS,
    ),
    text_case(
        "many pairs of tags, the last right",
        "<answer>abc</answer><answer>cba</answer>",
        "The last answer is right. Pairs before it do not count.",
    ),
    text_case("a longer word", in_template("c b a", "cbaa"), LONGER),
    text_case("a longer word that ends so", in_template("c b a", "acba"), LONGER),
    text_case("a part of the word", in_template("c b a", "cb"), PART),
    text_case("no tags", "cba", TAGGED),
    text_case("nothing", ""),
    text_case("another word", in_template("z d w", "zdw"), TAGGED, word="zdw"),
)
is_right.mistakes = f"""
extract_answer(text) == word => word in (extract_answer(text) or "") | {LIST}
extract_answer(text) == word => text.find(f"<answer>{{word}}</answer>") >= 0 | {PAIRS}
extract_answer(text) == word => word in text | {TAGGED}
extract_answer(text) == word => (extract_answer(text) or "?") in word | {PART}
extract_answer(text) == word => text == word | {TAGGED}
extract_answer(text) == word => text.endswith(word) | {TAGGED}
"""


# 15.2, a whole task

ASKED, TURNED = "Write in the other order: ", "fish lamp snow"
SMALL = GRPOConfig(num_problems=256, eval_problems=64)  # checked in a moment


def questions(task, split="train", count=2048, seed=0):
    return [problem.question for problem in task.problems(split, count, seed)]


def kinds_of_questions(task):
    for text in questions(task):
        words = text.removeprefix(ASKED).split()
        if not text.startswith(ASKED) or len(words) != 3 or not {*words} <= {*WORDS}:
            return f"not {ASKED!r} and three of WORDS"
        if len({*words}) < 3:
            return "a word twice"
    return "three different words"


def kinds_of_answers(task):
    for problem in task.problems("train", 64, 0):
        asked = problem.question.removeprefix(ASKED)
        kinds = {asked: "the same order", asked[::-1]: "letters in the other order"}
        if problem.answer != " ".join(asked.split()[::-1]):
            return kinds.get(str(problem.answer), "another answer")
    return "words in the other order"


def paid(task, *texts, answer=TURNED):
    """What the first reward pays responses to a question, a list."""
    accuracy = next(iter(task.rewards.values()))[0]
    return accuracy(completions=[*texts], answer=[answer] * len(texts), prompts=[])


def paid_to_gold(task):
    (problem,) = task.problems("train", 1, 0)
    return paid(task, task.gold(problem), answer=problem.answer)


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
    "train and test": lambda task: (
        "some are in both"
        if {*questions(task)} & {*questions(task, "test", 256)}
        else "none is in both"
    ),
    "gold": paid_to_gold,
    "two responses": lambda task: paid(task, "", TURNED),
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


@exercise("15.2", use=seen)
def order_task():
    """-> a task: three words are asked for in the other order"""

    def is_turned(text, right):
        return text == right

    def accuracy(completions, answer, **kwargs):
        return graded(is_turned, completions, answer)

    class Order(TextTask):
        words: ClassVar = WORDS
        rewards: ClassVar = {"accuracy": (accuracy, 1.0)}

        def problems(self, split, count, seed):
            rng = random.Random(f"{split} {seed}")
            found: dict[str, Problem] = {}
            while len(found) < count:
                words = rng.sample(self.words, 3)
                question = f"Write in the other order: {' '.join(words)}"
                if split_of(question) == split:
                    found[question] = Problem(question, " ".join(words[::-1]))
            return list(found.values())

        def gold(self, problem):
            return problem.answer

    return Order()


COUNT = "`problems` returns `count` problems. Draw anew what another split has."
TWICE = "A question comes twice: keep it once, as the dictionary in Reverse does."
THREE = "A word comes twice in a question: rng.sample draws different ones."
FORM = "The question is `Write in the other order: ` and three words of WORDS."
TURN = "The answer is the three words, the last first, as one text."
SPELL = "The letters are in the other order, too: turn the list of words."
AGAIN = (
    "Equal arguments give other problems each time: draw them from "
    'random.Random(f"{split} {seed}").'
)
SEED = 'The seed changes nothing: put it into random.Random(f"{split} {seed}").'
BOTH = "A test question is trained on, as in D. Keep it if split_of(it) == split."
GOLD = "`gold` is a response that is paid in full: the answer itself."
SAID = (
    "The right answer is paid nothing. It stands in no tags, and `answer` is a list, "
    "with one for each response."
)
ORDER = "Words in a wrong order are paid: compare the whole text."
AMONG = "A text with more than the answer is paid: compare the whole text."
SOME = "A part of the answer is paid: compare the whole text."
LIST = "A reward gets lists, and returns a list with a number for each response."
CHECK = "`find_fault` tells you what is wrong."

order_task.insight = "Questions, answers and pay agree: a run may begin."
order_task.cases = tuple(
    case(description, hint, look=look)
    for description, look, hint in (
        ("how many problems there are", "2048 problems", COUNT),
        ("what is asked", "questions", FORM),
        ("how many questions differ", "different questions", TWICE),
        ("what the answers are", "answers", TURN),
        ("equal arguments", "the same arguments twice", AGAIN),
        ("two seeds", "seeds 0 and 1", SEED),
        ("the splits", "train and test", BOTH),
        ("the pay of two responses", "two responses", LIST),
        ("the pay of the answer", TURNED, SAID),
        ("the pay of the question again", "snow lamp fish", ORDER),
        ("the pay of a third order", "lamp snow fish", ORDER),
        ("the pay of the answer among others", "red fish lamp snow sun", AMONG),
        ("the pay of the answer and more", "fish lamp snow sun", AMONG),
        ("the pay of more and the answer", "sun fish lamp snow", AMONG),
        ("the pay of the answer twice", "fish lamp snow fish lamp snow", AMONG),
        ("the pay of two of the words", "fish lamp", SOME),
        ("the pay of a word", "snow", SOME),
        ("the pay of nothing", "", SOME),
        ("the pay of the gold response", "gold", GOLD),
        ("the whole task", "find_fault", CHECK),
    )
)
order_task.mistakes = f"""
if split_of(question) == split: => if True: | {BOTH}
while len(found) < count: => for _ in range(count): | {COUNT}
rng.sample(self.words, 3) => rng.choices(self.words, k=3) | {THREE}
random.Random(f"{{split}} {{seed}}") => random.Random() | {AGAIN}
random.Random(f"{{split}} {{seed}}") => random.Random(split) | {SEED}
words[::-1] => words | {TURN}
" ".join(words[::-1]) => " ".join(words)[::-1] | {SPELL}
found[question] = => found[len(found)] = | {TWICE}
problem.answer => problem.question | {GOLD}
problem.answer => in_template("?", problem.answer) | {GOLD}
text == right => right in text | {AMONG}
text == right => text in right | {SOME}
text == right => text.startswith(right) | {AMONG}
text == right => text.endswith(right) | {AMONG}
text == right => {{*text.split()}} == {{*right.split()}} | {ORDER}
text == right => {{*text.split()}} >= {{*right.split()}} | {ORDER}
text == right => extract_answer(text) == right | {SAID}
graded(is_turned, completions, answer) => float(completions == answer) | {LIST}
graded(is_turned, completions, answer) => [x == answer for x in completions] | {SAID}
"""


# 15.3, credit for letters


def level(function, text, word):
    """How much is earned, in words. A missing `return` stays None."""
    earned, given = function(text, word), extract_answer(text) or ""
    if earned is None:
        return None
    if len(given) > len(word):  # how much, is left open
        return "not all" if earned < 1 else "all"
    return "nothing" if earned <= 0 else "a part" if earned < 1 else f"{earned:g}"


def of_those_given(text, word):
    given = extract_answer(text) or ""
    same = sum(a == b for a, b in zip(given, word))
    return same / max(len(given), 1)


@exercise("15.3", use=level, exact=True, draft=of_those_given)
def credit(text, word):
    """str, str -> float"""
    given = extract_answer(text) or ""
    same = sum(a == b for a, b in zip(given, word))
    return same / max(len(given), len(word))


SHORT = "The first letters of the word earn all: a letter that is missing has to cost."
LONG = "The word with more behind it earns all: a letter too many has to cost."
NONE = "Letters that are right and in their places still earn a part."
ALL = "The word itself earns 1."
NOTHING = "No letter is in its place here: that earns 0."

credit.insight = "A missing letter costs, and so does one too many."
credit.cases = (
    text_case("the word", in_template("c b a", "cba"), ALL),
    text_case("its first letter alone", in_template("c", "c"), SHORT),
    text_case("its first two letters", in_template("c b", "cb"), SHORT),
    text_case("the word and more", in_template("c b a", "cbaz"), LONG),
    text_case("a wrong last letter", in_template("c b z", "cbz"), NONE),
    text_case("no letter in its place", in_template("a c b", "acb"), NOTHING),
    text_case("no tags", "cba", TAGGED),
    text_case("a longer word", in_template("d c b a", "dcba"), ALL, word="dcba"),
)
credit.mistakes = f"""
max(len(given), len(word)) => len(word) | {LONG}
max(len(given), len(word)) => max(min(len(given), len(word)), 1) | {SHORT}
same / max(len(given), len(word)) => float(given == word) | {NONE}
same / max(len(given), len(word)) => float(same) | {ALL}
max(len(given), len(word)) => max(len(text), len(word)) | {ALL}
"""
