"""Wrong tasks, each with the hint that it must get and no other; right ones with none.

A wrong task is the one to copy with a piece of its source replaced.
"""

import inspect
from dataclasses import replace

import pytest

from grpo_course import reverse
from grpo_course.countdown import Countdown
from grpo_course.gsm8k import GSM8K
from grpo_course.reverse import Reverse
from grpo_course.task_check import attack, changed_answer, check_task, find_fault
from grpo_course.tasks import find_task

SOURCE = inspect.getsource(reverse)
GRADED = "return graded(is_reversed, completions, answer)"
RIGHT = "return extract_answer(text) == word"
DRAWN = 'rng = random.Random(f"{split} {seed}")'
KEPT = "if split_of(word) == split:"
MADE = 'Problem(f"Reverse {word}.", word[::-1])'
GOLD = 'return in_template(" ".join(problem.answer), problem.answer)'
EACH = "[{} for text, word in zip(completions, answer)]"
# What was written in the place of which piece, and the words of the hint.
PLANTED = {
    "eval": (RIGHT, "return eval(extract_answer(text) or '0') == word", "uses eval"),
    "exec": (RIGHT, "exec(text); return text == word", "uses exec"),
    "eval, renamed": ("LETTERS =", "run = eval\nLETTERS =", "uses eval"),
    "hash": (KEPT, "if (hash(word) % 2 == 0) == (split == 'train'):", "uses hash"),
    "no problems": (MADE, "word", "must return Problem"),
    "too many": ("< count:", "< count + 1:", "is the most"),
    "too few": ("< count:", "< 5:", "a step of the warm start takes"),
    "two answers": (MADE, MADE.replace("{word}", "{word[:2]}"), "Two problems ask"),
    "unseeded": (DRAWN, "rng = random", "Equal arguments give other problems"),
    "one seed": (KEPT, "if True:", "memory would pass for learning"),
    "seeded alike": (
        f"{DRAWN}\n",
        "rng = random.Random(seed)\n        split_of = lambda word: split\n",
        "memory would pass for learning",
    ),
    "a leak": (
        MADE,
        MADE.replace("{word}", "{word}, {word[::-1]}"),
        "stands in the question",
    ),
    "to copy": (MADE, MADE.replace("[::-1]", ""), "stands in the question"),
    "no kwargs": (", **kwargs):", "):", "keep (completions, answer, **kwargs)"),
    "a value short": (GRADED, GRADED + "[:-1]", "63 values for 64 completions"),
    "one number": (GRADED, f"return sum({GRADED[7:]})", "a float for 64"),
    "not finite": (GRADED, "return [float('nan')] * len(completions)", "finite number"),
    "at random": (
        GRADED,
        "return [random.random() for _ in completions]",
        "differently the second time",
    ),
    "no chat": (
        GRADED,
        "return " + EACH.format("float(is_reversed(text, word))"),
        "cannot read a chat",
    ),
    "breaks": (
        RIGHT,
        "return extract_answer(text)[0] == word",
        "is_reversed (line 31) ends in TypeError",
    ),
    "constant": (GRADED, "return [0.5] * len(completions)", "the right one and nonsen"),
    "gold without tags": (GOLD, "return problem.answer", "gives the gold response 0"),
    "never right": (RIGHT, "return False", "gives the gold response 0"),
    "in part": (
        GRADED,
        "from difflib import SequenceMatcher as Match\n"
        "    from grpo_course.tasks import completion_texts as read\n"
        "    completions = map(extract_answer, read(completions))\n    return "
        + EACH.format("Match(None, text or '', word).ratio()"),
        "credit for a part of the answer",
    ),
    "form alone": (
        RIGHT,
        "return extract_answer(text) is not None",
        "pays for the form and does not compare",
    ),
    "always the same": (
        MADE,
        'Problem(f"Reverse {word}.", "yes")',
        "Mix the answers",
    ),
    "anywhere": (RIGHT, "return word in text", "and the right one earns 100%"),
    "length pays": (
        '"accuracy": (accuracy, 1.0)}',
        '"accuracy": (accuracy, 1.0), "long": (long, 1.0)}\n\n\n'
        "def long(completions, answer, **kwargs):\n"
        "    from grpo_course.tasks import completion_texts\n"
        "    return [len(text) / 500 for text in completion_texts(completions)]\n\n\n",
        "20 times earns",
    ),
    "demonstrations": (
        "    # A response that earns",
        "    def demonstration(self, problem, rng):\n"
        "        return in_template('?', '?')\n\n    # A response that earns",
        "demonstrations is right",
    ),
    "too short": ("max_new_tokens=20", "max_new_tokens=9", "can never be rewarded"),
    "a tuple": (
        "word[::-1])\n",
        "(word[::-1],))\n",
        "comes back from the table that TRL reads",
    ),
}
# What else must change, so that nothing but the one thing is wrong.
TOO = {
    "a tuple": (
        (RIGHT, RIGHT + "[0]"),
        (GOLD, GOLD.replace("answer)", "answer[0])")),
    ),
}
WORDS = {words for _, _, words in PLANTED.values()}


@pytest.fixture
def load(tmp_path):
    """The task in some source, with a run of few problems."""

    def loaded(source):
        file = tmp_path / "mine.py"
        file.write_text(source)
        task = find_task(f"{file}:Reverse")
        few = {"num_problems": 512, "eval_problems": 128}
        return task(), replace(task.presets["laptop"], **few)

    return loaded


def planted(name):
    """The source with a mistake in it."""
    old, new, _ = PLANTED[name]
    assert SOURCE.count(old) >= 1, name
    source = SOURCE.replace(old, new)
    if name == "length pays":  # the function must stand before the class
        head, rest = source.split("@settings()")
        body, function, tail = rest.split("\n\n\n", 2)
        return f"{head}{function}\n\n\n@settings(){body}\n\n{tail}"
    for old, new in TOO.get(name, ()):
        source = source.replace(old, new)
    return source


@pytest.mark.parametrize("name", PLANTED)
def test_a_mistake_gets_its_own_hint_and_no_other(name, load):
    fault = find_fault(*load(planted(name)))
    assert [words for words in WORDS if words in fault] == [PLANTED[name][2]], fault


def test_the_task_to_copy_is_right(load, capsys):
    assert find_fault(*load(SOURCE)) == ""
    assert check_task(Reverse())
    assert "[v]" in capsys.readouterr().out


@pytest.mark.parametrize("kind", [GSM8K, Countdown])
def test_the_tasks_of_the_course_are_right(kind):
    config = replace(kind.presets["laptop"], num_problems=256, eval_problems=64)
    assert find_fault(kind(**config.task_settings), config) == ""


JSON_FORM = """
import json, random
from typing import ClassVar
from grpo_course.training import GRPOConfig
from grpo_course.tasks import graded
from grpo_course.tasks import Problem, TextTask, settings, split_of

def same(text, gold):
    try:
        return json.loads(text) == gold
    except ValueError:
        return False

def accuracy(completions, answer, **kwargs):
    return graded(same, completions, answer)

@settings()
class Reverse(TextTask):
    rewards: ClassVar = {"accuracy": (accuracy, 1.0)}
    presets: ClassVar = {"laptop": GRPOConfig(max_new_tokens=40)}

    def problems(self, split, count, seed):
        rng, made = random.Random(f"{split} {seed}"), {}
        while len(made) < count:
            person = {"name": rng.choice(("Ann", "Bob")), "age": rng.randint(1, 9999)}
            asked = f"{person['name']} is {person['age']}."
            if split_of(asked) == split:
                made[asked] = Problem(asked, person)
        return list(made.values())

    def gold(self, problem):
        return json.dumps(problem.answer)
"""
YES_OR_NO = SOURCE.replace(
    MADE, """Problem(f"Does {word} come before n?", "ny"[word < "n"])"""
).replace(GOLD, "return in_template('so', problem.answer)")


@pytest.mark.parametrize("source", [JSON_FORM, YES_OR_NO], ids=["JSON", "yes or no"])
def test_other_right_tasks_pass(source, load):
    assert find_fault(*load(source)) == ""


def test_a_wrong_task_is_told_and_nothing_else(load, capsys):
    task, config = load(planted("form alone"))
    assert not check_task(task, config)
    told = capsys.readouterr().out
    assert told.startswith("[x]") and "pays for the form" in " ".join(told.split())


def test_what_cheap_policies_earn(load):
    earned = attack(load(planted("anywhere"))[0])
    assert list(earned.columns) == ["accuracy", "total"]
    assert earned.loc["the right response", "total"] == 1
    assert earned.loc["20 answers and the right one", "accuracy"] == 1
    assert earned.loc["nothing", "total"] == 0
    right = attack(Countdown())
    assert right.loc["the right response", "total"] == pytest.approx(1.2)
    assert right.loc["the question again"].tolist() == pytest.approx([0, 1, 0.2])


@pytest.mark.parametrize(
    ("answers", "same"),
    [
        (["a", "b"], True),
        ([1, 2], True),
        ([{"a": 1}, {"a": 2}], True),
        ([[1], [2, 3]], True),
        ([{"a": 1}, {"b": 2}], False),
        ([(1, 2)], False),
        ([{1, 2}], False),
        ([1, "a"], False),
    ],
)
def test_answers_that_a_table_changes(answers, same):
    assert bool(changed_answer(answers)) != same
