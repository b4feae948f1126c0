"""GSM8K's own rows for a model of half a billion weights: what is asked and paid."""

import json
import random
from dataclasses import replace

import pytest

from grpo_course.text.qwen import MARK, Rows
from grpo_course.text.responses import chat_messages
from grpo_course.text.tasks import TASKS, find_task
from grpo_course.text.tiny import make_tiny_model, make_tokenizer
from grpo_course.text.training import (
    load_problems,
    make_environment,
    make_policy,
    presets_of,
)

QUESTION = "Two pens cost 6 dollars. How much do five pens cost?"
SOLUTION = "A pen is 6/2=$<<6/2=3>>3.\nFive are 5*3=$<<5*3=15>>15.\n#### 15"


@pytest.fixture
def rows(tmp_path):
    """A folder with rows in GSM8K's format."""
    each = [{"question": f"{i}. {QUESTION}", "answer": SOLUTION} for i in range(40)]
    text = "\n".join(map(json.dumps, each))
    (tmp_path / "train.jsonl").write_text(text, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "text, right, in_form, lenient",
    [
        ("5 * 3 = 15\n#### 15", 1, 1, 1),
        ("5 * 3 = 15\n#### $15.00", 1, 1, 1),
        ("5 * 3 = 15\n#### 16", 0, 1, 0),
        ("5 * 3 = 15", 0, 0, 1),
        ("5 * 3 = 15\nAnswer: 15", 0, 0, 1),
        ("#### 15\nNow another one.", 0, 0, 1),
        ("#### 14\n#### 15", 0, 0, 1),
    ],
)
def test_what_an_answer_earns(rows, text, right, in_form, lenient):
    problem = Rows(data=str(rows)).problems("train", 1, 0)[0]
    earned = [
        reward([text], answer=[problem.answer])[0]
        for reward, _ in (Rows.rewards[name] for name in Rows.measures)
    ]
    assert earned == [right, lenient, in_form]


def test_its_gold_is_the_rows_own_solution_in_the_form_of_its_examples(rows):
    task = Rows(data=str(rows))
    problem = task.problems("train", 1, 0)[0]
    assert task.gold(problem) == f"A pen is 6/2=$3.\nFive are 5*3=$15.\n{MARK} 15"
    for question, answer in task.examples:
        assert answer.partition(MARK)[2].strip().isdecimal() and question


@pytest.mark.parametrize("name", TASKS)
def test_what_a_model_imitates_at_first_is_in_the_form_that_the_task_pays(name, rows):
    settings = {"data": str(rows)} if name == "qwen" else {}
    task = find_task(name)(**settings)
    problem = task.problems("train", 1, 0)[0]
    shown = [task.demonstration(problem, random.Random(i)) for i in range(20)]
    if name != "gsm8k":  # which leaves tags out now and then, on purpose
        assert {*shown} == {task.gold(problem)}


def test_its_preset_asks_the_rows_and_shows_two_examples(rows):
    (config,) = presets_of("qwen").values()
    config = replace(config, model=None, task_settings={"data": str(rows)})
    problems = load_problems(config)
    opening = find_task("qwen")().opening(config.system_prompt)
    told = chat_messages(problems[0].question, opening)
    assert [m["role"] for m in told] == ["system", *["user", "assistant"] * 2, "user"]
    tokenizer = make_tokenizer([m["content"] for m in told])
    model = make_tiny_model(tokenizer, "qwen2", hidden_size=16, context_length=2048)
    policy = make_policy(config, model, tokenizer)
    environment = make_environment(config, problems, tokenizer)
    assert environment.prompts(0).shape[0] == config.num_prompts
    assert policy.autocast is not None and config.kl_penalty == 0
