"""load_gsm8k on what it cannot use: each error says where, and the cure."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from grpo_course.gsm8k import load_gsm8k

ROW = {"question": "How many?", "answer": "3+4=<<3+4=7>>7\n#### 7"}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_row_without_the_mark_is_named_by_number(tmp_path: Path) -> None:
    bad = {"question": "How many?", "answer": "It is 7."}
    file = write(tmp_path / "train.jsonl", ROW, ROW, bad)
    with pytest.raises(ValueError, match=r"Row 3 has no final answer.*#### and a"):
        load_gsm8k("train", file)
    write(file, ROW, {**bad, "answer": "7 ####  "})
    with pytest.raises(ValueError, match="Row 2 has no final answer"):
        load_gsm8k("train", file)


@pytest.mark.parametrize(
    "bad, found",
    [
        ({"question": None, "answer": "#### 4"}, "'question': 'NoneType'"),
        ({"question": "How many?", "answer": 4}, "'answer': 'int'"),
        ({"text": "How many?"}, "{'text': 'str'}"),
        ({}, "types: {}"),
        ([ROW], "'the row itself': 'list'"),
    ],
)
def test_a_row_without_two_texts_is_named(
    tmp_path: Path, bad: object, found: str
) -> None:
    file = write(tmp_path / "train.jsonl", ROW, bad)
    with pytest.raises(ValueError, match="Row 2 needs the texts") as caught:
        load_gsm8k("train", file)
    assert found in str(caught.value)


@pytest.mark.parametrize("final", ["four", "3 or 4", "4 million", "1,20", "2+2"])
def test_a_final_answer_must_be_a_number(tmp_path: Path, final: str) -> None:
    bad = {"question": "How many?", "answer": f"2+2=4\n#### {final}"}
    with pytest.raises(ValueError, match="Row 1 has no final answer") as caught:
        load_gsm8k("train", write(tmp_path / "train.jsonl", bad))
    assert f"#### {final}" in str(caught.value)


@pytest.mark.parametrize(
    "bad, error",
    [
        ("{}", "Row 4 needs"),
        ('{"answer": ', "line 4 is not JSON"),
        ("[" * 100_000, "line 4 is not JSON"),
        ("9" * 5000, "line 4 is not JSON"),
    ],
)
def test_blank_lines_are_counted(tmp_path: Path, bad: str, error: str) -> None:
    file = tmp_path / "train.jsonl"
    file.write_text(f"\n{json.dumps(ROW)}\n\n{bad}\n")
    with pytest.raises(ValueError, match=error):
        load_gsm8k("train", file)


def test_rows_of_the_hub_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GSM8K_DIR", raising=False)
    monkeypatch.setattr("datasets.load_dataset", lambda *_, **__: [ROW, {}])
    with pytest.raises(ValueError, match="Row 2 needs"):
        load_gsm8k("train")


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("latin-1"),
        lambda text: text.encode("utf-16"),
        lambda text: gzip.compress(text.encode()),
    ],
)
def test_a_file_that_is_no_utf_8_is_named_with_the_cure(
    tmp_path: Path, encode: Callable[[str], bytes]
) -> None:
    file = tmp_path / "train.jsonl"
    cafe = {**ROW, "question": "How many caf\u00e9s?"}
    file.write_bytes(encode(json.dumps(cafe, ensure_ascii=False)))
    with pytest.raises(ValueError, match=r"train\.jsonl is not text in") as caught:
        load_gsm8k("train", file)
    assert "unpack it" in str(caught.value) and "save it as UTF-8" in str(caught.value)


def test_other_broken_files(tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    with pytest.raises(FileNotFoundError, match=r"There is no .*train\.jsonl.*path="):
        load_gsm8k("train", tmp_path)
    file.write_text("\n\n")
    with pytest.raises(ValueError, match="the split 'train' holds no row"):
        load_gsm8k("train", tmp_path)
    file.write_text(json.dumps(ROW) + "\n{'question': 1}\n")
    with pytest.raises(ValueError, match="line 2 is not JSON"):
        load_gsm8k("train", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"The folder holds: train\.jsonl"):
        load_gsm8k("test", tmp_path)
    with pytest.raises(ValueError, match="split='dev' is not known"):
        load_gsm8k("dev", tmp_path)
