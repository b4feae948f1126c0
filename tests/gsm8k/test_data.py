"""load_gsm8k: files and the hub, and every answer of the real data."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from grpo_course.gsm8k import (
    WordProblem,
    correctness_reward,
    gold_number,
    lenient_reward,
    load_gsm8k,
    make_problems,
    plain_thinking,
)
from grpo_course.tasks import format_reward, in_template

ROW = {"question": "How many?", "answer": "3*400 = <<3*400=1200>>1,200\n#### 1,200"}
FOLDER = os.environ.get("GSM8K_DIR", "")


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GSM8K_DIR", raising=False)


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_question_solution_and_answer_are_apart(tmp_path: Path) -> None:
    (problem,) = load_gsm8k("train", write(tmp_path / "train.jsonl", ROW))
    assert problem.question == ROW["question"]
    assert problem.solution == ROW["answer"]
    assert problem.answer == "1,200" and gold_number(problem.answer) == 1200
    assert problem.kind == "" and problem.facts == ()


def test_folder_file_and_variable_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "test.jsonl", ROW, ROW)
    by_file, by_folder = load_gsm8k("test", file), load_gsm8k("test", str(tmp_path))
    monkeypatch.setenv("GSM8K_DIR", str(tmp_path))
    assert by_file == by_folder == load_gsm8k("test")
    assert len(by_file) == 2


def test_path_goes_before_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GSM8K_DIR", str(tmp_path / "elsewhere"))
    assert load_gsm8k("train", write(tmp_path / "mine.jsonl", ROW))


def test_a_mark_before_the_first_character_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(ROW).encode())
    (problem,) = load_gsm8k("train", file)
    assert problem == WordProblem(ROW["question"], "1,200", ROW["answer"])


def test_generated_problems_go_through_the_same_format(
    tmp_path: Path, save_gsm8k: Callable
) -> None:
    problems = make_problems("train", 50, seed=0)
    save_gsm8k(problems, tmp_path / "train.jsonl")
    loaded = load_gsm8k("train", tmp_path)
    assert [(p.question, p.solution, p.answer) for p in loaded] == [
        (p.question, p.solution, p.answer) for p in problems
    ]


def test_the_hub_is_asked_without_path(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load_dataset(*args: object, **kwargs: object) -> list[dict]:
        asked.append((args, kwargs))
        return [ROW]

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    assert load_gsm8k("test")[0].answer == "1,200"
    assert asked == [(("openai/gsm8k", "main"), {"split": "test"})]


@pytest.mark.parametrize("error", [ConnectionError, FileNotFoundError, ValueError])
def test_offline_the_error_says_both_ways(
    error: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_dataset(*args: object, **kwargs: object) -> None:
        raise error("no network here")

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    with pytest.raises(ConnectionError) as caught:
        load_gsm8k("train")
    for part in ("no network here", "load_dataset(", "path=", "GSM8K_DIR="):
        assert part in str(caught.value)


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER, reason="GSM8K_DIR names no folder with real GSM8K")
def test_every_gold_answer_of_gsm8k_earns_full_reward_and_no_other_row_does() -> None:
    problems = load_gsm8k("train", FOLDER)
    assert len(problems) == 7473
    answers = [p.answer for p in problems]
    wrapped = [in_template(plain_thinking(p.solution), p.answer) for p in problems]
    assert correctness_reward(wrapped, answers) == [1.0] * 7473
    assert lenient_reward(wrapped, answers) == [1.0] * 7473
    assert lenient_reward([p.solution for p in problems], answers) == [1.0] * 7473
    assert format_reward(wrapped) == [1.0] * 7473
    for shift in (1, 2, 1000):
        others = answers[shift:] + answers[:shift]
        different = [
            (text, other)
            for text, own, other in zip(wrapped, answers, others, strict=True)
            if own != other
        ]
        assert len(different) > 7000
        texts, golds = zip(*different, strict=True)
        assert sum(correctness_reward(texts, golds)) == 0
