"""What a task asks and pays, how it is found, and what the check of it says.

A wrong task is the one to copy with a piece of its source replaced.
"""

import inspect
import json
import math
import os
import re
import sys
from dataclasses import dataclass, replace

import numpy
import pytest
import torch
from pandas import Series
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from grpo_course.loop import History, Rollout
from grpo_course.sampling import response_mask
from grpo_course.text import reverse, task_check, training
from grpo_course.text.countdown import Countdown
from grpo_course.text.environment import Environment, sample_rows, what_is_lost
from grpo_course.text.gsm8k import GSM8K, RUN_SPLITS, demonstration
from grpo_course.text.models import load_tokenizer, save_model, turn_ends
from grpo_course.text.prompts import (
    as_rollout,
    decode_responses,
    encode_prompts,
    prompt_text,
)
from grpo_course.text.responses import CHAT_TEMPLATE, TAGS, completion_texts
from grpo_course.text.stories import make_problems
from grpo_course.text.tasks import (
    TASKS,
    Problem,
    columns,
    find_task,
    pay,
    read_problems,
)
from grpo_course.text.tiny import make_tiny_model, make_tokenizer

EASY = {"operands": (1, 4), "operations": "+", "steps": (1,)}
MADE = make_problems("train", 100, seed=0, **EASY)
PROBLEMS = list({problem.question: problem for problem in MADE}.values())[:10]
ONE = [Problem("What?", "1")]


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


# What an epoch asks.


def test_what_is_asked_depends_on_seed_and_epoch_alone(environment, tokenizer):
    """Every problem once before any comes again, in rows as wide as they must be."""
    again, other = (
        Environment(PROBLEMS, tokenizer, GSM8K.rewards, num_prompts=4, seed=seed)
        for seed in (1, 2)
    )
    late_first = [environment.chosen(epoch) for epoch in reversed(range(10))]
    in_order = [again.chosen(epoch) for epoch in range(10)]
    assert late_first[::-1] == in_order
    assert any(in_order[e] != other.chosen(e) for e in range(3))
    places = [place for epoch in in_order for place in epoch]
    turns = [places[i : i + 10] for i in range(0, 40, 10)]
    assert all(sorted(turn) == list(range(10)) for turn in turns)
    assert len({tuple(turn) for turn in turns}) == 4
    for epoch in range(5):
        questions = [PROBLEMS[i].question for i in in_order[epoch]]
        expected = encode_prompts(tokenizer, questions)
        assert torch.equal(environment.prompts(epoch), expected)
    few = Environment(PROBLEMS[:3], tokenizer, GSM8K.rewards, num_prompts=7).chosen(0)
    assert len(few) == 7 and {few.count(place) for place in range(3)} == {2, 3}


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
    rewards = training.weigh(
        GSM8K.rewards, {"length_reward": 0.5, "accuracy": 0.0, "format": 3}
    )
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


@pytest.mark.parametrize("gold", [{"x": 1, "y": [2]}, (1,), None, "text"])
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
    pytest.importorskip("trl", reason="TRL is the optional extra `scale`")
    from grpo_course.text.trl import chat_dataset

    problems = [
        Graph("Is 3 odd?", "yes", "3 = 2 + 1", (3, 1), (1, "a")),
        Graph("Is 4 odd?", "no", "4 = 2 + 2", (4,), (2, "b")),
    ]
    calls = []

    def noted(completions, **columns):
        calls.append(columns)
        return [float(text == "yes") for text in completion_texts(completions)]

    system, rewards = "Yes or no.", {"noted": (noted, 1.0)}
    environment = Environment(problems, tokenizer, rewards, opening=system)
    prompts = environment.ask([0, 1])
    paid = environment.reward(answered(environment, prompts, [["yes"], ["no"]]))
    assert paid.tolist() == [[1], [0]]
    (ours,) = calls
    assert ours.pop("mixed") == [[1, "a"], [2, "b"]]  # which no table holds
    rows = chat_dataset(problems, system)
    assert ours.pop("prompts") == list(rows["prompt"])
    assert ours == {name: list(rows[name]) for name in ours}
    assert ours["edges"] == [[3, 1], [4]]
    assert {*rows.column_names} == {"prompt", *ours}


def returns(value):
    return {"mine": (lambda **_: value, 1.0)}


@pytest.mark.parametrize(
    ("returned", "what", "place"),
    [
        (None, "a NoneType", 0),
        ("11", "a str", 0),
        (torch.ones(2), "a Tensor", 0),
        ([1.0], "1 values", 1),
        ([1.0] * 3, "3 values", 1),
        (["1", 1.0], "'1'", 0),
        ([1.0, [1.0]], "[1.0]", 1),
        ([1.0, math.nan], "nan", 1),
        ([1.0, 1e39], "1e+39", 1),  # infinite in float32
    ],
)
def test_what_a_reward_may_not_return_is_shown_with_its_completion(
    returned, what, place
):
    written = ["a" * 500, "b" * 500]
    with pytest.raises(ValueError, match="Return a list of floats") as refused:
        pay(returns(returned), ONE * 2, written)
    told = str(refused.value)
    assert told.startswith(f"rewards['mine'] returned {what} for 2 completions.")
    assert told.endswith(f"Completion {place}: '{written[place][:120]}...'.")


def test_what_a_reward_function_may_return(tokenizer):
    for returned in ((1, 0), [True, False], list(numpy.eye(2)[0])):
        environment = Environment(ONE, tokenizer, returns(returned))
        rollout = answered(environment, environment.ask([0]), [["a", "b"]])
        assert environment.reward(rollout).tolist() == [[1.0, 0.0]]


def no_kwargs(completions, answer):
    return said(completions, answer)


RIGHT = {"said": (said, 1.0)}
NOT_REWARDS = [None, {}, [said], {"a": said}, {"a": (1.0, said)}]
NOT_REWARDS += [{"a": (said, math.nan)}, {"a": (said, -1)}]


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


def test_one_question_has_one_answer_compared_as_a_value(environment, tokenizer):
    def asked(*answers):
        problems = [Problem("How many?", answer) for answer in answers]
        return Environment(problems, tokenizer, GSM8K.rewards).asked

    assert asked("72", "72")
    for answers in (("72", "73"), ("six", "seven")):
        with pytest.raises(ValueError, match="Two problems ask"):
            asked(*answers)
    twice = Problem(PROBLEMS[0].question, PROBLEMS[0].answer)
    more = Environment([*PROBLEMS, twice], tokenizer, GSM8K.rewards)
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
        ("mine:Mine", "Mine must be a subclass of TextTask in "),
        ("other/mine.py:Reverse", "There is no file "),
        ("typo.py:Mine", "typo.py cannot be loaded, line 2: SyntaxError"),
        ("name.py:Mine", "name.py cannot be loaded, line 3: NameError: name 'rando'"),
        ("mine", "is not known. Choose one of: 'gsm8k', 'countdown'"),
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
LINE = SOURCE.partition(IS_RIGHT)[0].count("\n") + 1
DRAWN = 'rng = random.Random(f"{split} {seed}")'
KEPT = "if split_of(word) == split:"
ASKED = 'Problem(f"Reverse {word}.", word[::-1])'
GOLD = 'return in_template(" ".join(problem.answer), problem.answer)'
CHAT, BREAKS = "cannot read a chat", "return extract_answer(text)[0] == word"
LUCK = """def luck(completions, **kwargs):
    return [random.random() for _ in completions]


@settings()"""
ANYWHERE = SOURCE.replace(IS_RIGHT, "return word in text")
# What was written in the place of which piece, and the words of the hint.
PLANTED = [
    (DRAWN, "rng = random", "Equal arguments give other problems"),
    (KEPT, "if True:", "memory would pass for learning"),
    (", **kwargs):", "):", "take those that you need"),
    (GRADED, GRADED + "[:-1]", "63 values for 64 completions"),
    ("1.0)}", '1.0), "luck": (luck, 0.1)}', "differently the second time"),
    (GRADED, "return [float(is_reversed(*x)) for x in zip(completions, answer)]", CHAT),
    (IS_RIGHT, BREAKS, f"mine.py, line {LINE}, `{BREAKS}"),
    ("return list(words.values())", "return []", "one at least"),
    (ASKED, '(f"Reverse {word}.", word)', "a list of Problem(question, answ"),
    (GOLD, "in_template('', '')", "gold returns None, and"),
    (GRADED, "return [0.5] * len(completions)", "gold response 0.5, not 1"),
    (GRADED, "return [1] * len(completions)", "Nothing earns 100%"),
    (GOLD, "return problem.answer", "gives the gold response 0"),
    (IS_RIGHT, "return extract_answer(text) is not None", "The question again earns"),
    (ASKED, 'Problem(f"Reverse {word}.", "yes")', "The commonest answer earns 100%"),
    (IS_RIGHT, "return word in text", "and the right one earns 100%"),
    (ASKED, 'Problem(f"How does {word} begin?", word[:2])', "memory passes for lear"),
    ('max_new_tokens": 20', 'max_new_tokens": 9', "can never be rewar"),
]


@pytest.fixture
def load(folder):
    """The task in some source, with a run of few problems."""

    def loaded(source):
        (folder / "mine.py").write_text(source)
        name = "mine.py:Reverse"
        few = {"num_problems": 512, "eval_problems": 128}
        return find_task(name)(), replace(training.presets_of(name)["words"], **few)

    return loaded


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "hint"), PLANTED)
def test_a_mistake_gets_its_own_words(old, new, hint, load):
    assert old in SOURCE
    planted = SOURCE.replace(old, new).replace("@settings()", LUCK)
    assert hint in task_check.find_fault(*load(planted))


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


@pytest.mark.slow
@pytest.mark.parametrize("source", [SOURCE, PROMPTED, A_DICT, YES_OR_NO])
def test_right_tasks_pass_also_when_they_print_and_ask_for_prompts(source, load):
    assert task_check.find_fault(*load(source)) == ""


@pytest.mark.parametrize(
    ("least", "most", "first", "found"),
    [(100, 200, 250, 125), (100, 120, 250, 109), (100, 120, 80, 100), (9, 9, 40, None)],
)
def test_a_start_is_sought_from_which_groups_are_mixed(
    monkeypatch, capsys, least, most, first, found
):
    """Below `least` steps all is wrong, from `most` on all is right."""

    def looked(run, problems, count):
        right, wrong = run.warm_start_steps >= most, run.warm_start_steps < least
        look = {"accuracy": right, "tied_right": right, "tied_wrong": wrong}
        return Series(look | {"mixed": not (right or wrong)}, dtype=float)

    monkeypatch.setattr(task_check, "look_at_start", looked)
    config = replace(training.presets_of("reverse")["words"], warm_start_steps=first)
    assert task_check.check_start(replace(config, num_problems=8)) == found
    said = capsys.readouterr().out
    assert ("nothing is left to learn" in said) == (first >= most)
    assert ("nothing is to be found" in said) == (first < least)
    assert (f"--warm-start-steps {found}" in said) == (found is not None)


def test_a_given_model_is_asked_how_many_groups_it_leaves_mixed(
    tmp_path, capsys, small_run
):
    """One of random weights writes nothing that is right: every group is tied."""
    config = replace(training.from_values(small_run), num_prompts=32)
    save_model(
        *training.make_start(config, training.load_problems(config)), tmp_path / "model"
    )
    given = replace(config, model=str(tmp_path / "model"), reward_weights={"format": 0})
    assert task_check.check_model(given) == 0
    printed = capsys.readouterr().out
    assert "An update would learn from about 0 of 32 groups." in printed
    assert "[!] Most groups teach nothing: easier problems" in printed
    assert "all wrong" in printed and str(tmp_path) in printed


LINES = (
    '{"question": "1, 2?", "answer": 3, "split": "train"}\n\n'
    '{"question": "b?", "answer": "x", "split": "test"}'
)
CSV = "\n".join(["question,answer,split", '"1, 2?",3,train', "b?,x,test", ",,", ""])


def as_list(lines, **how):
    rows = [json.loads(line) for line in lines.splitlines() if line]
    return json.dumps(rows, ensure_ascii=False, **how)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", CSV.replace("\n", "\r\n").encode("utf-8-sig") + b"\0"),
        ("a.csv", CSV.encode("utf-16")),
        ("a.csv", CSV.replace(",", ";").encode()),
        ("a.tsv", CSV.replace(",", "\t").encode()),
        ("a.csv", CSV.replace('",3,', '", 3, ').replace('\n"', '\n "').encode()),
        ("a.csv", CSV.replace("train", " Train").encode()),
        ("a.txt", LINES.replace("\n", "\r\n").replace('"q', '"Q').encode()),
        ("a.json", as_list(LINES).encode()),
    ],
)
@pytest.mark.parametrize("mark", ["", "\u2028"])
def test_problems_from_a_file(tmp_path, name, data, mark):
    """Scraped texts hold marks at which Python's splitlines would cut them."""
    wide = "utf-16" if data.startswith(b"\xff\xfe") else "utf-8"
    data = data.decode(wide).replace("b?", f"b{mark}?").encode(wide)
    (tmp_path / name).write_bytes(data)
    (problem,) = read_problems(tmp_path / name, "train")
    assert problem.question[:1] == "1" and str(problem.answer) == "3"
    found = read_problems(tmp_path / name, "test", 5)
    assert found == [Problem(f"b{mark}?", "x")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no problem for the split 'train'. Its rows by split: none"),
        (CSV.replace("train", "test"), "no problem for the split 'train'.*'test' 2"),
        (CSV.replace('"', ""), "row 2 has more columns than the first line"),
        ('{"question": "a?"', "line 1 is not JSON"),
        ('{"question": "a?", "split": "train"}', "row 1 has no answer; it has"),
        ('{"question": [{"role": "user"}], "answer": "1"}', "a.csv cannot be read: "),
        ('[{"question": "a?", "answer": "1"}, 2]', "cannot be read: 'int'"),
        ("x,y\n1,2\n", "row 2 has no question and no answer"),
        (CSV.encode("utf-16-le").decode(), "is not in UTF-8 .it holds NULs"),
    ],
)
def test_a_file_that_is_not_what_was_meant_says_so(tmp_path, text, told):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    with pytest.raises(ValueError, match=told):
        read_problems(tmp_path / "a.csv", "train")


def test_problems_of_a_file_without_splits(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("question,answer\n" + "".join(f"{i}?,{i}\n" for i in range(99)))
    splits = [read_problems(path, s) for s in ("train", "test", "validation")]
    assert sum(map(len, splits)) == 99 and min(map(len, splits)) > 0
    assert len(read_problems(path, "train", 7)) == 7


def paid_for(name, values):
    """The task with one more reward, which pays that for some completions."""
    own = LUCK.replace("luck", name)
    own = own.replace("[random.random() for _ in completions]", values)
    return {"@settings()": own, "1.0)}": f'1.0), "{name}": ({name}, 0.3)}}'}


IN_WORDS = {
    GOLD: "return f'It is {problem.answer}.'",
    IS_RIGHT: "return text.strip().rstrip('.').endswith(word)",
}
MEANT = IN_WORDS | {"@settings()": "accuracy.meaning = str.lower\n@settings()"}
NO_MORE = "is paid for, and pays gold no more than anything else"
DOUBTED = [  # what is written in the place of which pieces, and the words; "" for none
    ({}, ""),
    (IN_WORDS, "accuracy.meaning = "),
    (MEANT, ""),
    (paid_for("bonus", "[0.0 for _ in completions]"), f"rewards['bonus'] {NO_MORE}"),
    (paid_for("brief", "[-len(each) / 99 for each in completions]"), ""),
    # for long texts alone; for all alike
    (paid_for("brief", "[-max(len(each) - 500, 0) / 99 for each in completions]"), ""),
    (paid_for("brief", "[-1.0 for _ in completions]"), f"rewards['brief'] {NO_MORE}"),
]


@pytest.mark.parametrize(("changes", "words"), DOUBTED)
def test_what_is_allowed_and_mostly_not_meant_is_said(changes, words, load):
    source = SOURCE
    for old, new in changes.items():
        assert old in source
        source = source.replace(old, new)
    said = [*task_check.doubts(*load(source))]
    assert len(said) == bool(words) and words in "".join(said)


def test_every_task_of_the_course_says_what_a_vote_counts(tmp_path):
    row = {"question": "What is 7 + 5?", "answer": "7+5=<<7+5=12>>12\n#### 12"}
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(20 * (json.dumps(row) + "\n"))
    for name in TASKS:
        config = next(iter(training.presets_of(name).values()))
        if (
            training.make_task(config).splits == RUN_SPLITS
        ):  # real rows, which lie elsewhere
            config = replace(config, task_settings={"data": str(tmp_path)})
        assert [*task_check.doubts(training.make_task(config), config)] == [], name


@pytest.mark.slow
def test_what_is_printed_of_a_wrong_task_and_of_the_courses_own(load, capsys):
    task, config = load(ANYWHERE)
    assert not task_check.check_task(task, config)
    assert capsys.readouterr().out.startswith("[x] 20 answers and the right one")
    earned = task_check.attack(task)
    assert list(earned.columns) == ["accuracy", "total"] and len(earned) == 8
    assert earned.loc["the right response", "total"] == 1
    assert earned.loc["20 answers and the right one", "accuracy"] == 1
    assert earned.loc["nothing", "total"] == 0
    assert task_check.check_task(Countdown())
    assert capsys.readouterr().out.startswith("[v] Nothing wrong was found.")
    config = training.find_preset("gsm8k", None)
    few = replace(config, num_problems=256, eval_problems=64)
    assert task_check.find_fault(GSM8K(**config.task_settings), few) == ""
    right = task_check.attack(Countdown())
    assert right.loc["the right response", "total"] == pytest.approx(1.2)
    assert right.loc["the question again"].tolist() == pytest.approx([0, 1, 0.2])


# What tokenizers and templates of other models do: the gold response comes back


def chatty(template=None, **special):
    """A tokenizer with the words of the problems and another template or marks."""
    made = make_tokenizer(f"{p.question}\n{demonstration(p)}" for p in MADE)
    for name, token in special.items():
        made.add_special_tokens({name: token})
    if template is not None:
        made.chat_template = template
    return made


def sentencepiece():
    """As Mistral's: a space before the first word, bytes for what it does not know."""
    known = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    bpe = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    bpe.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    parts = decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()
    bpe.decoder = decoders.Sequence([*parts, decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(special_tokens=known, show_progress=False)
    bpe.train_from_iterator([demonstration(p) for p in MADE], trainer)
    state = json.loads(bpe.to_str())
    state["added_tokens"] = state["added_tokens"][:3]  # bytes are no special ones
    bpe = Tokenizer.from_str(json.dumps(state))
    marks = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}
    made = PreTrainedTokenizerFast(tokenizer_object=bpe, unk_token="<unk>", **marks)
    return begins_with(made, "<s>")


def begins_with(tokenizer, prefix, suffix=""):
    """The tokenizer, which now adds marks to each text by itself."""
    marks = [(m, tokenizer.convert_tokens_to_ids(m)) for m in (prefix, suffix) if m]
    how = {"single": f"{prefix} $A {suffix}".strip(), "special_tokens": marks}
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(**how)
    return tokenizer


def opening(text):
    return CHAT_TEMPLATE.replace("assistant\n{% endif", f"assistant\n{text}{{% endif")


REFUSES = "{% if messages[0].role == 'system' %}{{ raise_exception('No!') }}{% endif %}"
LEAVES_OUT = CHAT_TEMPLATE.replace(
    "{% for message in messages %}",
    "{% for message in messages if message.role != 'system' %}",
)
ENDS = CHAT_TEMPLATE.replace(
    "}}<|im_end|>", "}}{{ '<end>' if message.role == 'assistant' else '<|im_end|>' }}"
)


def with_end(tokenizer):
    tokenizer.add_tokens(["<end>"])
    return tokenizer


def cleaned(tokenizer):
    tokenizer.clean_up_tokenization_spaces = True
    return tokenizer


TOKENIZERS = {
    "as ours": chatty,
    "tags are special": lambda: chatty(additional_special_tokens=[*TAGS]),
    "no template, BOS and EOS added": lambda: begins_with(
        chatty("", bos_token="<s>"), "<s>", "<|im_end|>"
    ),
    "no pad token of its own": lambda: chatty(pad_token="<|im_end|>"),
    "thinking is opened": lambda: chatty(opening("<think>\n")),
    "thinking is opened and closed": lambda: chatty(opening("<think>\n\n</think>\n\n")),
    "refuses a system role": lambda: chatty(REFUSES + CHAT_TEMPLATE),
    "leaves the system prompt out": lambda: chatty(LEAVES_OUT),
    "another end of a turn": lambda: chatty(ENDS, additional_special_tokens=["<end>"]),
    "an end that is no special token": lambda: with_end(chatty(ENDS)),
    "words begin with a space": sentencepiece,
    "cleans up spaces": lambda: cleaned(chatty()),
}


SPACED = "<think>It 's 3 , no : 4 . Isn 't it ?</think><answer>7 . 5</answer>"


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_the_gold_response_comes_back_from_any_tokenizer(kind):
    tokenizer, system = TOKENIZERS[kind](), "Be  brief: think."
    rewards = GSM8K.rewards
    environment = Environment(PROBLEMS, tokenizer, rewards, opening=system)
    golds, given = [demonstration(p) for p in PROBLEMS], [p.question for p in PROBLEMS]
    for prompt, problem in zip(environment.tokens, PROBLEMS, strict=True):
        read = tokenizer.decode(prompt)
        assert problem.question in read and system in read
    rollout = as_rollout(tokenizer, given, golds, system)
    assert rollout.finished.all() and rollout.mask.any(dim=-1).all()
    paid = pay(rewards, PROBLEMS, golds, system)
    graded = environment.grade(rollout)
    assert {name: column[:, 0].tolist() for name, column in graded.items()} == paid
    ends = turn_ends(None, tokenizer)
    assert next(what_is_lost(environment, golds, ends, 200), "") == ""
    (back,), *_ = decode_responses(tokenizer, as_rollout(tokenizer, ["?"], [SPACED]))
    assert back.endswith(SPACED.removeprefix("<think>"))
    # What a model says is a demonstration as well.
    texts = [text for (text,) in decode_responses(tokenizer, rollout)]
    again = as_rollout(tokenizer, given, texts, system)
    assert torch.equal(again.responses, rollout.responses)


def test_what_the_prompt_opens_is_written_once():
    tokenizer = opens_the_answer(chatty())
    rollout = as_rollout(tokenizer, ["3+4?"], ["<answer>7</answer>"])
    assert tokenizer.decode(rollout.responses[0, 0]) == "7</answer><|im_end|>"
    assert decode_responses(tokenizer, rollout) == [["<answer>7</answer>"]]
    tokenizer = TOKENIZERS["thinking is opened"]()
    rollout = as_rollout(tokenizer, ["3+4?"], ["<think>3+4=7</think>"])
    assert tokenizer.decode(rollout.responses[0, 0]) == "3+4=7</think><|im_end|>"
    assert decode_responses(tokenizer, rollout) == [["<think>\n3+4=7</think>"]]
    for name in ("another end of a turn", "an end that is no special token"):
        tokenizer = TOKENIZERS[name]()
        rollout = as_rollout(tokenizer, ["3+4?"], ["7"])
        assert tokenizer.decode(rollout.responses[0, 0]) == "7<end>"
        assert decode_responses(tokenizer, rollout) == [["7"]]


def test_a_base_model_reads_its_bos_once_and_no_other_model_gets_one(tmp_path):
    bare = TOKENIZERS["no template, BOS and EOS added"]()
    model = make_tiny_model(bare, hidden_size=16, num_layers=1, num_heads=2)
    save_model(model, bare, tmp_path)
    for tokenizer in (bare, load_tokenizer(tmp_path)):
        (row,) = encode_prompts(tokenizer, ["3+4?"]).tolist()
        assert row == bare("3+4?\n\n").input_ids[:-1]
        assert row.count(tokenizer.bos_token_id) == 1
    bare.chat_template = CHAT_TEMPLATE
    adds_none = chatty("", bos_token="<s>")  # though it has one
    for tokenizer in (bare, adds_none):
        assert tokenizer.bos_token_id not in encode_prompts(tokenizer, ["3+4?"])


def test_a_prompt_is_the_same_on_any_day_and_a_template_that_cannot_ask_is_refused():
    """As Llama's template asks for the date."""
    today = (
        "{% if not date_string is defined %}{% set date_string = "
        "strftime_now('%d %b %Y') %}{% endif %}{{ date_string }}"
    )
    assert prompt_text(chatty(today + CHAT_TEMPLATE), "?", None).startswith("26 Jul")
    for template in ("<|im_start|>assistant\n", "{{ raise_exception('Not you') }}"):
        with pytest.raises(ValueError, match=r"cannot ask '3\+4\?' \(.*another model"):
            prompt_text(chatty(template), "3+4?", "Think.")


def unknown_words(tokenizer):
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("9", "8")
    return tokenizer


def opens_the_answer(tokenizer):
    tokenizer.chat_template = opening("<answer>")
    return tokenizer


def unspoiled(tokenizer):
    return tokenizer


def unread_questions(tokenizer):
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("N", "?")
    return tokenizer


THINK_END = chatty().convert_tokens_to_ids(["</think>"])


@pytest.mark.parametrize(
    ("spoil", "ends", "most", "words"),
    [
        (
            unknown_words,
            [1],
            50,
            r"comes back as .*rewards\['accuracy'\] pays 0 and",
        ),
        (opens_the_answer, [1], 50, r"rewards\['format'\] pays 0.6 and not 1"),
        (unspoiled, THINK_END, 50, "holds '</think>', which ends a response"),
        (unspoiled, [1], 5, "tokens with its end, and max_new_tokens=5 cuts"),
        (unread_questions, [1], 50, "the question 'Nine ' is read as"),
    ],
)
def test_what_does_not_come_back_is_said_in_one_line(spoil, ends, most, words):
    tokenizer = spoil(chatty())
    environment = Environment([Problem("Nine ", "9")], tokenizer, GSM8K.rewards)
    gold = "<think>9</think><answer>9</answer>"
    told = next(what_is_lost(environment, [gold], ends, most), "")
    assert re.search(words, told) and "\n" not in told


@pytest.mark.slow
def test_a_given_model_is_checked_by_hand_and_as_a_run_begins(tmp_path, capsys):
    tokenizer = chatty()
    model = make_tiny_model(tokenizer, hidden_size=16, num_layers=1, num_heads=2)
    save_model(model, tokenizer, tmp_path)
    config = replace(
        training.presets_of("gsm8k")["sums"], model=str(tmp_path), device="cpu"
    )
    assert training.find_lost_text(config, MADE[:9]) == ""
    model.generation_config.eos_token_id = [2, tokenizer("</think>").input_ids[0]]
    save_model(model, tokenizer, tmp_path)
    assert training.find_lost_text(config, MADE[:9])
    training.make_start(replace(config, num_problems=9), MADE[:9], show=False)
    training.load_trained(config, tmp_path, "train")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all("holds '</think>', which ends a response" in line for line in lines)
    assert "which ends a response" in task_check.find_fault(GSM8K(), config)
