"""A pretrained model: what is read of its answers, and what it is shown."""

import random
from dataclasses import replace

import pytest

from grpo_course.files import json_lines
from grpo_course.lessons import finale
from grpo_course.text.environment import Environment
from grpo_course.text.prompts import prompt_text
from grpo_course.text.responses import chat_messages
from grpo_course.text.smollm2 import ShortAnswers, accuracy, form, stated
from grpo_course.text.stories import make_problems
from grpo_course.text.tiny import make_tiny_model, make_tokenizer
from grpo_course.text.training import presets_of
from tools import record


@pytest.mark.parametrize(
    "text, number",
    [
        ("28 - 16 = 12. Answer: 12", 12),
        ("28 - 16 = 12.\nAnswer: 12.\n", 12),
        ("So many? Answer: $1,200", 1200),
        ("Answer: 3. Answer: 12", None),
        ("Answer: 12\nQuestion: What is next?", None),
        ("Answer: 12 and 13", None),
        ("The answer is 12.", None),
        ("Answer:", None),
        ("12", None),
    ],
)
def test_the_number_behind_the_one_mark_is_the_answer(text, number):
    assert stated(text) == number
    assert form([text]) == [float(number is not None)]
    assert accuracy([text], ["12"]) == [float(number == 12)]


@pytest.mark.parametrize("steps", [(1,), (2,)])
def test_gold_earns_every_reward(steps):
    task = ShortAnswers(steps=steps, operations="+-*", operands=(1, 9))
    for problem in task.problems("train", 20, 0):
        said = task.gold(problem)
        assert accuracy([said], [problem.answer]) == form([said]) == [1.0], said


def test_worked_examples_are_right_and_stand_before_every_question():
    (config,) = presets_of("smollm2").values()
    said = [answered for _, answered in ShortAnswers.examples]
    assert accuracy(said, ["12"] * len(said)) == [1.0] * len(said)
    task = ShortAnswers()
    opening = task.opening(config.system_prompt)
    messages = chat_messages("How many?", opening)
    roles = [message["role"] for message in messages]
    assert roles == ["system", *2 * ["user", "assistant"], "user"]
    assert chat_messages("How many?", opening[:1]) == chat_messages(
        "How many?", config.system_prompt
    )
    tokenizer = make_tokenizer([m["content"] for m in messages], 290)
    text = prompt_text(tokenizer, "How many?", opening)
    places = [text.index(message["content"]) for message in messages]
    assert places == sorted(places)
    problems = task.problems("train", 2, 0)
    environment = Environment(problems, tokenizer, task.rewards, opening=opening)
    read = tokenizer.decode(environment.prompts(0)[0])
    assert said[-1] in read and task.demonstration(problems[0], random.Random(0))


@pytest.mark.slow
def test_a_recorded_run_is_read_back(tmp_path, monkeypatch):
    """One update of a random model, measured on a few problems, is written and read."""
    task, rows = ShortAnswers(), make_problems("train", 20, 0, steps=(1, 2))
    told = [p.question + task.gold(p) for p in task.problems("train", 50, 0)]
    tokenizer = make_tokenizer(told)
    model = make_tiny_model(tokenizer, "llama", hidden_size=16, context_length=1024)
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "model")
    each = [{"question": p.question, "answer": p.solution} for p in rows]
    (tmp_path / "train.jsonl").write_text(json_lines(each), encoding="utf-8")
    monkeypatch.setenv("GSM8K_DIR", str(tmp_path))
    page = tmp_path / "page.md"
    page.write_text("A model answers each question several times.", encoding="utf-8")
    for module in (record, finale):
        monkeypatch.setattr(module, "PATH", tmp_path / "record.json")
    small = {"GREEDY": 12, "DEEP": 4, "MANY": 2, "FEW": 1, "PAGE": page}
    for name, value in small.items():
        monkeypatch.setattr(record, name, value)
    arms = "GRPO", "GRPO, three times the rate", finale.CALLS
    for arm in arms:
        few = replace(record.ARMS[arm], num_problems=16)
        monkeypatch.setitem(record.ARMS, arm, few)
        record.record(arm, 3, str(tmp_path / "model"), 1)
    seen = finale.read_record()
    assert [(run["arm"], run["seed"]) for run in seen] == [(arm, 3) for arm in arms]
    assert finale.curves(seen).shape == (1, 1)
    asked = finale.held_out(seen, stops=(0,))
    assert len(asked) == record.GREEDY
    for arm in arms:
        for at in (0, -1):
            assert finale.shares(seen, arm, at).shape == (1, record.GREEDY)
    easy = finale.shares(seen, "GRPO", -1, "GSM8K, easy rows")
    assert 0 < easy.shape[-1] <= len(rows)
    assert finale.shares(seen, "GRPO", 0, way="sampled").shape == (1, 4)
    asked = task.problems("unseen_problems", 4, 1003)
    assert [p.question for p in asked] == [
        t["question"] for t in finale.written(seen, 0, 3)
    ]
    (votes,) = finale.votes(seen)
    assert votes["gold"] == [p.answer for p in asked] and len(votes["answers"][0]) == 2
