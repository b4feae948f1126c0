"""The splits of a run: settings are chosen on problems that are neither end's."""

import pytest

from grpo_course.gsm8k.config import GRPOConfig
from grpo_course.gsm8k.data import load_gsm8k, load_run_split, save_gsm8k
from grpo_course.gsm8k.problems import make_problems
from grpo_course.gsm8k.setting_up import known_splits, load_problems


@pytest.fixture
def folder(tmp_path):
    def filled(rows):
        save_gsm8k(make_problems("train", rows, seed=0), tmp_path / "train.jsonl")
        save_gsm8k(make_problems("train", 7, seed=1), tmp_path / "test.jsonl")
        return tmp_path

    return filled


@pytest.mark.parametrize(("rows", "last"), [(3000, 256), (40, 4), (9, 0)])
def test_validation_is_the_end_of_train(folder, rows, last):
    path = folder(rows)
    whole = load_gsm8k("train", path)
    kept, held = load_run_split("train", path), load_run_split("validation", path)
    assert len(whole) == rows and len(held) == last
    assert kept + held == whole
    assert load_run_split("test", path) == load_gsm8k("test", path)


def test_a_run_knows_them(folder):
    config = GRPOConfig(data=str(folder(40)))
    assert known_splits(config) == ("test", "validation", "train")
    sizes = [len(load_problems(config, split)) for split in known_splits(config)]
    assert sizes == [7, 4, 36]
    assert len(load_problems(config, "validation", 3)) == 3
    with pytest.raises(ValueError, match=r"split='unseen'.*'validation'"):
        load_problems(config, "unseen")
