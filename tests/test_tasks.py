"""What a task asks and pays, how it is found, and what the check of it says.

A wrong task is the one to copy with a piece of its source replaced.
"""

import inspect
import math
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy
import pytest
import torch

from grpo_course import reverse
from grpo_course.countdown import Countdown
from grpo_course.gsm8k import GSM8K, demonstration, make_problems
from grpo_course.lm import make_tokenizer
from grpo_course.loop import History, Rollout
from grpo_course.sampling import response_mask
from grpo_course.task_check import attack, check_task, find_fault
from grpo_course.tasks import (
    Environment,
    Problem,
    as_rollout,
    chat_messages,
    columns,
    completion_texts,
    encode_prompts,
    find_task,
    sample_rows,
)
from grpo_course.training import GRPOConfig, presets_of, weigh

EASY = {"operands": (1, 4), "operations": "+", "steps": (1,)}
MADE = make_problems("train", 100, seed=0, **EASY)
PROBLEMS = list({problem.question: problem for problem in MADE}.values())[:10]
ONE = [Problem("What?", "1")]


@pytest.fixture(scope="session")
def tokenizer():
    return make_tokenizer(f"{p.question}\n{demonstration(p)}" for p in MADE)


@pytest.fixture
def environment(tokenizer):
    return Environment(PROBLEMS, tokenizer, GSM8K.rewards, num_prompts=4, seed=1)


def answered(environment, prompts, groups):
    """Prompts with given texts as responses, [batch trial]."""
    texts = [text for group in groups for text in group]
    flat = as_rollout(environment.tokenizer, texts, texts).responses
    tokens = flat.view(len(groups), -1, flat.shape[-1])
    mask = response_mask(tokens, environment.tokenizer.eos_token_id)
    return Rollout(prompts, tokens, mask)


def test_a_task_is_loaded_without_what_a_language_model_needs():
    program = (
        "import sys; from grpo_course import correctness_reward, load_gsm8k; "
        "import grpo_course.countdown, grpo_course.reverse; "
        "print(sorted({'transformers', 'datasets', 'pandas'} & set(sys.modules)))"
    )
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert printed.strip() == "[]"


# What an epoch asks.


def test_what_is_asked_depends_on_seed_and_epoch_alone(environment, tokenizer):
    late_first = [environment.prompts(epoch) for epoch in (7, 2, 0)]
    again = Environment(PROBLEMS, tokenizer, GSM8K.rewards, num_prompts=4, seed=1)
    in_order = [again.prompts(epoch) for epoch in range(8)]
    for asked, epoch in zip(late_first, (7, 2, 0), strict=True):
        assert torch.equal(asked, in_order[epoch])
    other = Environment(PROBLEMS, tokenizer, GSM8K.rewards, num_prompts=4, seed=2)
    assert any(environment.chosen(e) != other.chosen(e) for e in range(3))


def test_every_problem_is_asked_once_before_any_comes_again(environment, tokenizer):
    places = [place for epoch in range(10) for place in environment.chosen(epoch)]
    turns = [places[i : i + 10] for i in range(0, 40, 10)]
    assert all(sorted(turn) == list(range(10)) for turn in turns)
    assert len({tuple(turn) for turn in turns}) == 4
    few = Environment(PROBLEMS[:3], tokenizer, GSM8K.rewards, num_prompts=7).chosen(0)
    assert len(few) == 7 and {few.count(place) for place in range(3)} == {2, 3}


def test_prompts_are_no_wider_than_they_must_be(environment, tokenizer):
    for epoch in range(5):
        questions = [PROBLEMS[i].question for i in environment.chosen(epoch)]
        expected = encode_prompts(tokenizer, questions)
        assert torch.equal(environment.prompts(epoch), expected)


# What a response earns.


def test_rewards_of_texts(environment):
    first = PROBLEMS[0]
    gold = demonstration(first)
    wrong = gold.replace(f"<answer>{first.answer}", f"<answer>{first.answer}9")
    texts = [gold, wrong, demonstration(first, "no_tags"), "?"]
    rollout = answered(environment, environment.ask([0]), [texts])
    expected = {
        "accuracy": [1.0, 0.0, 0.0, 0.0],
        "lenient_accuracy": [1.0, 0.0, 1.0, 0.0],
        "format": [1.0, 1.0, 0.0, 0.0],
        "length_reward": [0.0, 0.0, 0.0, 0.0],
    }
    graded = environment.grade(rollout)
    assert {name: column.tolist()[0] for name, column in graded.items()} == expected
    paid = environment.reward(rollout)[0].tolist()
    assert paid == pytest.approx([1.2, 0.2, 0.0, 0.0])
    means = {"accuracy": 0.25, "lenient_accuracy": 0.5, "format": 0.5}
    means |= {"length_reward": 0.0, "tied_right": 0.0, "tied_wrong": 0.0}
    assert environment.latest == pytest.approx(means)


def test_weights(tokenizer):
    """1200 characters lie half-way between 800, which cost nothing, and 1600."""
    rewards = weigh(GSM8K.rewards, {"length_reward": 0.5, "accuracy": 0.0, "format": 3})
    environment = Environment(PROBLEMS, tokenizer, rewards)
    texts = [demonstration(PROBLEMS[1]), "a" * 800, "a" * 1200, "a" * 1700]
    rollout = answered(environment, environment.ask([1]), [texts])
    assert environment.reward(rollout).tolist() == [[3.0, 0.0, -0.25, -0.5]]


def test_answers_are_found_in_any_order_under_any_padding(environment):
    groups = [[demonstration(PROBLEMS[i])] for i in (3, 0, 9)]
    prompts = torch.nn.functional.pad(
        environment.ask([3, 0, 9]), (5, 0), value=environment.tokenizer.pad_token_id
    )
    assert environment.grade(answered(environment, prompts, groups))["accuracy"].all()
    shifted = groups[1:] + groups[:1]
    right = [
        [float(PROBLEMS[i].answer == PROBLEMS[j].answer)]
        for i, j in ((3, 0), (0, 9), (9, 3))
    ]
    graded = environment.grade(answered(environment, prompts, shifted))
    assert graded["accuracy"].tolist() == right


def test_what_stands_after_the_end_does_not_count(environment, tokenizer):
    more = tokenizer("<answer>99</answer>").input_ids
    gold = tokenizer(demonstration(PROBLEMS[0])).input_ids
    tokens = torch.tensor([[[*gold, tokenizer.eos_token_id, *more]]])
    mask = response_mask(tokens, tokenizer.eos_token_id)
    rollout = Rollout(environment.ask([0]), tokens, mask)
    assert environment.reward(rollout).item() == pytest.approx(1.2)


def test_notes_join_the_first_record_of_the_latest_epoch(environment):
    environment.latest = {"accuracy": 0.5}
    places = [(0, 0), (0, 1), (1, 0), (1, 1)]
    history = History([{"epoch": e, "step": s} for e, s in places])
    environment.note(history)
    assert ["accuracy" in record for record in history.records] == [0, 0, 1, 0]
    assert history.epochs("accuracy").tolist() == [0.5]


def said(completions, answer, **_):
    """Whether the right answer, whatever it is made of, is said."""
    pairs = zip(completions, answer, strict=True)
    return [float(str(right) in text) for text, right in pairs]


@pytest.mark.parametrize("gold", [[3, 4], {"x": 1, "y": [2]}, (1,), None, 7.5, "text"])
def test_gold_of_any_type_reaches_the_reward_unchanged(tokenizer, gold):
    seen = []

    def noted(completions, answer, **_):
        seen.extend(answer)
        return said(completions, answer)

    problems = [Problem("What?", gold), Problem("How?", gold)]
    environment = Environment(problems, tokenizer, {"said": (noted, 2.0)})
    groups = [[f"It is {gold}.", "no"], ["no", "no"]]
    rollout = answered(environment, environment.ask([1, 0]), groups)
    assert environment.reward(rollout).tolist() == [[2.0, 0.0], [0.0, 0.0]]
    assert seen == [gold] * 4


def test_a_row_for_each_response_to_the_first_prompts(tokenizer):
    problems = [Problem("2 + 2?", "4"), Problem("2 + 3?", "5"), Problem("3 + 3?", "6")]
    lengths = (lambda completions, **_: [float(len(text)) for text in completions], 0.1)
    rewards = {"accuracy": (said, 2.0), "length": lengths}
    environment = Environment(problems, tokenizer, rewards)
    assert sample_rows(environment, 2) == []
    groups = [["4", "5 or 4"], ["5", "6"], ["6", "66"]]
    environment.reward(answered(environment, environment.ask([0, 1, 2]), groups))
    rows = sample_rows(environment, 2)
    assert [row["completion"] for row in rows] == ["4", "5 or 4", "5", "6"]
    assert [row["question"] for row in rows] == ["2 + 2?"] * 2 + ["2 + 3?"] * 2
    assert [row["answer"] for row in rows] == ["4", "4", "5", "5"]
    assert [row["accuracy"] for row in rows] == [1, 1, 1, 0]
    assert [row["reward"] for row in rows] == pytest.approx([2.1, 2.6, 2.1, 0.1])


@dataclass(frozen=True)
class Graph(Problem):
    """A problem with fields of its own; the last is none that a table holds."""

    edges: tuple[int, ...] = ()
    mixed: tuple = ()


def test_a_reward_gets_prompts_and_columns_here_as_under_trl(tokenizer):
    """The two calls differ in the form of the completions and in what TRL adds."""
    trl = pytest.importorskip("trl", reason="TRL is the optional extra `scale`")
    from accelerate import Accelerator

    from grpo_course.trl import chat_dataset

    problems = [
        Graph("Is 3 odd?", "yes", "3 = 2 + 1", (3, 1), (1, "a")),
        Graph("Is 4 odd?", "no", "4 = 2 + 2", (4,), (2, "b")),
    ]
    calls = []

    def noted(completions, **columns):
        calls.append(columns)
        return [float(text == "yes") for text in completion_texts(completions)]

    system, rewards = "Yes or no.", {"noted": (noted, 1.0)}
    environment = Environment(problems, tokenizer, rewards, system_prompt=system)
    groups = [["yes", "no"], ["no", "yes"]]
    prompts = environment.ask([0, 1])
    paid = environment.reward(answered(environment, prompts, groups)).flatten()
    rows = [row for row in chat_dataset(problems, system) for _ in range(2)]
    trainer = object.__new__(trl.GRPOTrainer)  # what this step reads, no more
    vars(trainer).update(
        args=trl.GRPOConfig(use_cpu=True, bf16=False),
        accelerator=Accelerator(cpu=True),
        reward_funcs=[noted],
        reward_processing_classes=[None],
        reward_func_names=["noted"],
        environments=None,
        state=SimpleNamespace(global_step=0),
    )
    asked = [row["prompt"] for row in rows]
    said = [[{"role": "assistant", "content": t}] for group in groups for t in group]
    theirs = trainer._calculate_rewards(rows, asked, said, [[1]] * 4)
    assert paid.tolist() == theirs.flatten().tolist() == [1, 0, 0, 1]
    ours, given = calls
    assert ours.pop("mixed") == [[1, "a"]] * 2 + [[2, "b"]] * 2
    assert ours == {name: given[name] for name in ours}
    assert ours["prompts"][0] == chat_messages("Is 3 odd?", system)
    assert ours["edges"] == [[3, 1]] * 2 + [[4]] * 2
    assert ours.keys() == {"prompts", "question", "answer", "solution", "edges"}


def returns(value):
    return {"mine": (lambda **_: value, 1.0)}


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        (None, r"rewards\['mine'\] returned a NoneType"),
        (1.0, "a float"),
        ("11", "a str"),
        (torch.ones(2), "a Tensor"),
        ([1.0], "1 values"),
        ([1.0] * 3, "3 values"),
        ([1.0, None], "None"),
        ([1.0, "1"], "'1'"),
        ([1.0, [1.0]], r"\[1.0\]"),
        ([1.0, math.nan], "nan"),
        ([1.0, -math.inf], "-inf"),
    ],
)
def test_what_a_reward_function_may_not_return(tokenizer, returned, what):
    environment = Environment(ONE, tokenizer, returns(returned))
    rollout = answered(environment, environment.ask([0]), [["a", "b"]])
    with pytest.raises(ValueError, match=what + " for 2 completions. Return a list"):
        environment.reward(rollout)


@pytest.mark.parametrize(
    "returned", [[1, 0], (1.0, 0.0), [True, False], list(numpy.eye(2)[0])]
)
def test_what_a_reward_function_may_return(tokenizer, returned):
    environment = Environment(ONE, tokenizer, returns(returned))
    rollout = answered(environment, environment.ask([0]), [["a", "b"]])
    assert environment.reward(rollout).tolist() == [[1.0, 0.0]]


def no_kwargs(completions, answer):
    return said(completions, answer)


RIGHT = {"said": (said, 1.0)}
NOT_REWARDS = (
    *(None, {}, [said], {"a": said}, {"a": (said,)}, {"a": (1.0, said)}),
    *({"a": (said, "1")}, {"a": (said, math.nan)}, {"a": (said, -1)}),
)


@pytest.mark.parametrize(
    ("problems", "rewards", "more", "says"),
    [
        ([], RIGHT, {}, "problems is empty"),
        (ONE, RIGHT, {"num_prompts": 0}, "num_prompts=0"),
        ([*ONE, Problem("What?", "2")], RIGHT, {}, "Two problems ask .* '1' and '2'"),
        (ONE, RIGHT, {"measures": ("b",)}, "measures='b' is not known.*'said'"),
        (ONE, {"a": (no_kwargs, 1)}, {}, r"'a'\]: .*'prompts'.*answer, \*\*kwargs\)"),
        *((ONE, rewards, {}, r"\(my_reward, 1\.0\)") for rewards in NOT_REWARDS),
    ],
)
def test_an_environment_that_cannot_be(problems, rewards, more, says, tokenizer):
    with pytest.raises(ValueError, match=says):
        Environment(problems, tokenizer, rewards, **more)


def test_a_problem_twice_is_one_and_a_prompt_of_somebody_else_is_none(environment):
    twice = Problem(PROBLEMS[0].question, PROBLEMS[0].answer)
    more = Environment([*PROBLEMS, twice], environment.tokenizer, GSM8K.rewards)
    assert more.problems_of(more.ask([10, 1])) == PROBLEMS[:2]
    assert columns([*PROBLEMS, twice]).keys() == {"question", "answer", "solution"}
    with pytest.raises(ValueError, match=r"prompts\[0\] is none of these 10"):
        environment.problems_of(environment.ask([0])[:, 1:])


# Finding a task. One of a learner's own, whole; the file is loaded anew once changed.

SOURCE = inspect.getsource(reverse)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the task to copy in a file, and on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine.py").write_text(SOURCE)
    yield tmp_path
    for name in ("mine", "half"):
        sys.modules.pop(name, None)


def test_a_task_is_found_by_name_file_and_module(folder):
    assert find_task("countdown") is Countdown
    by_file, by_module = find_task("mine.py:Reverse"), find_task("mine:Reverse")
    assert find_task("mine.py:Reverse") is by_file is not by_module
    asked = [task().problems("test", 9, 0) for task in (by_file, reverse.Reverse)]
    assert asked[0] == asked[1]
    (folder / "mine.py").write_text(SOURCE.replace("Reverse {word}", "Turn {word}"))
    os.utime(folder / "mine.py", ns=(1, 1))
    (problem,) = find_task("mine.py:Reverse")().problems("train", 1, 0)
    assert problem.question.startswith("Turn ")


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("mines:Reverse", "named 'mines'. Run from the folder of mines.py"),
        ("mine:Mine", "mine.py. The tasks in it are: Reverse."),
        ("mine.py:accuracy", "accuracy must be a subclass of TextTask in "),
        ("other/mine.py:Reverse", "There is no file "),
        ("typo.py:Mine", "typo.py cannot be loaded, line 2: SyntaxError"),
        ("name.py:Mine", "name.py cannot be loaded, line 3: NameError: name 'rando'"),
        ("mine", "is not known. Choose one of: 'gsm8k', 'countdown'"),
        ("mine:", "Or name a class of your own by its file, my_task.py:"),
        ("half:Half", "lacks gold, problems: define what TextTask asks for"),
        ("half:Plain", "must be decorated with @settings()"),
        ("half:Unpaid", "a function and its weight under each name"),
    ],
)
def test_a_wrong_name_of_a_task_is_refused_with_the_cure(task, says, folder):
    (folder / "half.py").write_text(
        SOURCE
        + "\nclass Half(TextTask):\n    rewards: ClassVar = Reverse.rewards\n\n"
        + "class Plain(Reverse):\n    pass\n\n"
        + "@settings()\nclass Unpaid(Reverse):\n    rewards: ClassVar = {'a': 1}\n"
    )
    (folder / "typo.py").write_text("import random\nrandom.Random(\n")
    (folder / "name.py").write_text("import random\n\nrng = rando.Random()\n")
    with pytest.raises(ValueError) as caught:
        find_task(task)
    assert says in str(caught.value)


# The check: wrong tasks, each with the words that it must get; right ones with none.

GRADED = "return graded(is_reversed, completions, answer)"
IS_RIGHT = "return extract_answer(text) == word"
DRAWN = 'rng = random.Random(f"{split} {seed}")'
KEPT = "if split_of(word) == split:"
ASKED = 'Problem(f"Reverse {word}.", word[::-1])'
GOLD = 'return in_template(" ".join(problem.answer), problem.answer)'
LUCK = """def luck(completions, **kwargs):
    return [random.random() for _ in completions]


@settings()"""
# What was written in the place of which piece, and the words of the hint.
PLANTED = {
    "unseeded": (DRAWN, "rng = random", "Equal arguments give other problems"),
    "one seed": (KEPT, "if True:", "memory would pass for learning"),
    "a set": (
        "return list(words.values())",
        "return [words[word] for word in {*words}]",
        "sorted(...) makes a list of it in one order",
    ),
    "no kwargs": (", **kwargs):", "):", "take those that you need"),
    "a value short": (GRADED, GRADED + "[:-1]", "63 values for 64 completions"),
    "one number": (GRADED, f"return sum({GRADED[7:]})", "a float for 64"),
    "not finite": (
        GRADED,
        "return [float('nan')] * len(completions)",
        "returned nan for 64",
    ),
    "at random": (
        "(accuracy, 1.0)}",
        '(accuracy, 1.0), "luck": (luck, 0.1)}',
        "differently the second time",
    ),
    "no chat": (
        GRADED,
        "return [float(is_reversed(*pair)) for pair in zip(completions, answer)]",
        "cannot read a chat",
    ),
    "breaks": (
        IS_RIGHT,
        "return extract_answer(text)[0] == word",
        "is_reversed (line 27) ends in TypeError",
    ),
    "constant": (GRADED, "return [0.5] * len(completions)", "gold response 0.5, not 1"),
    "paid for nothing": (GRADED, "return [1] * len(completions)", "Nothing earns 100%"),
    "gold without tags": (GOLD, "return problem.answer", "gives the gold response 0"),
    "no weight": ("(accuracy, 1.0)}", "(accuracy, 0.0)}", "a weight above 0"),
    "form alone": (
        IS_RIGHT,
        "return extract_answer(text) is not None",
        "The question again earns 100%",
    ),
    "always the same": (
        ASKED,
        'Problem(f"Reverse {word}.", "yes")',
        "The commonest answer earns 100%",
    ),
    "anywhere": (IS_RIGHT, "return word in text", "and the right one earns 100%"),
    "too short": ('max_new_tokens": 20', 'max_new_tokens": 9', "can never be rewar"),
}


@pytest.fixture
def load(folder):
    """The task in some source, with a run of few problems."""

    def loaded(source):
        (folder / "mine.py").write_text(source)
        name = "mine.py:Reverse"
        few = {"num_problems": 512, "eval_problems": 128}
        return find_task(name)(), replace(presets_of(name)["laptop"], **few)

    return loaded


def planted(name):
    old, new, _ = PLANTED[name]
    assert SOURCE.count(old) >= 1, name
    return SOURCE.replace(old, new).replace("@settings()", LUCK)


@pytest.mark.parametrize("name", PLANTED)
def test_a_mistake_gets_its_own_words(name, load):
    assert PLANTED[name][2] in find_fault(*load(planted(name)))


PROMPTED = SOURCE.replace(
    "def accuracy(completions, answer, **kwargs):\n",
    "print('loaded')\n\n\ndef accuracy(prompts, completions, question, answer, **_):\n"
    "    assert [p[-1]['content'] for p in prompts] == question\n",
)
A_DICT = (
    SOURCE.replace(ASKED, 'Problem(f"Turn {word}.", {"is": word[::-1]})')
    .replace(IS_RIGHT, IS_RIGHT.replace("word", 'word["is"]'))
    .replace("problem.answer", 'problem.answer["is"]')
)
YES_OR_NO = SOURCE.replace(
    ASKED, """Problem(f"Does {word} come before n?", "ny"[word < "n"])"""
).replace(GOLD, "return in_template('so', problem.answer)")


@pytest.mark.parametrize("source", [SOURCE, PROMPTED, A_DICT, YES_OR_NO])
def test_right_tasks_pass_also_when_they_print_and_ask_for_prompts(source, load):
    assert find_fault(*load(source)) == ""


@pytest.mark.parametrize("kind", [GSM8K, Countdown])
def test_the_tasks_of_the_course_are_right(kind):
    config = presets_of(kind.__name__.lower())["laptop"]
    few = replace(config, num_problems=256, eval_problems=64)
    assert find_fault(kind(**config.task_settings), few) == ""


def test_a_task_with_tuples_and_no_settings_of_a_run_is_checked_without_a_name():
    assert find_fault(Countdown()) == ""
    assert GRPOConfig(**Countdown.presets["laptop"]).learning_rate == 1e-3


def test_what_is_printed_and_what_cheap_policies_earn(load, capsys):
    task, config = load(planted("anywhere"))
    assert not check_task(task, config)
    assert capsys.readouterr().out.startswith("[x] 20 answers and the right one")
    earned = attack(task)
    assert list(earned.columns) == ["accuracy", "total"] and len(earned) == 8
    assert earned.loc["the right response", "total"] == 1
    assert earned.loc["20 answers and the right one", "accuracy"] == 1
    assert earned.loc["nothing", "total"] == 0
    assert check_task(Countdown())
    assert capsys.readouterr().out.startswith("[v] Nothing wrong was found.")
    right = attack(Countdown())
    assert right.loc["the right response", "total"] == pytest.approx(1.2)
    assert right.loc["the question again"].tolist() == pytest.approx([0, 1, 0.2])


def test_a_given_response_is_a_rollout_that_is_paid(tokenizer):
    environment = Environment(PROBLEMS, tokenizer, GSM8K.rewards)
    questions = [problem.question for problem in PROBLEMS]
    rollout = as_rollout(tokenizer, questions, [demonstration(p) for p in PROBLEMS])
    assert environment.grade(rollout)["accuracy"].tolist() == [[1.0]] * 10
