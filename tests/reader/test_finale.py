"""The record of the finale: its tables, from rows that are made by hand."""

import pytest
import torch

from grpo_course.reader.finale import gain, read_finale, shares


def row(model, seed, right, split="s", **more):
    return {"model": model, "seed": seed, "split": split, "right": right} | more


ROWS = [
    row("start", 0, "1000", cooled=[8, 4, 0, 2], many=[64, 32, 0, 16]),
    row("start", 1, "1100", cooled=[8, 8, 0, 0], many=[0, 0, 0, 0]),
    row("GRPO", 0, "1010"),
    row("GRPO", 1, "1111"),
    row("GRPO", 0, "0000", split="t"),
]


def test_shares_of_each_problem():
    assert shares(ROWS, "GRPO", "s").tolist() == [[1, 0, 1, 0], [1, 1, 1, 1]]
    cooled, many = (shares(ROWS, "start", "s", name) for name in ("cooled", "many"))
    assert cooled[0].tolist() == many[0].tolist() == [1, 0.5, 0, 0.25]


def test_a_problem_that_all_seeds_answer_counts_once():
    """Ten seeds that agree know no more than one of them."""
    one = [{**row, "split": "handwritten"} for row in ROWS if row["split"] == "s"]
    many = [{**row, "seed": seed} for seed in range(10) for row in one]
    assert gain(many, "GRPO", "handwritten") == gain(one, "GRPO", "handwritten")


def test_a_gain_is_counted_pair_by_pair():
    mean, low, high = gain(ROWS, "GRPO", "s")
    assert mean == 3 / 8 and low < mean < high
    # Against itself nothing is gained, however the problems are drawn.
    assert gain(ROWS, "GRPO", "s", over=("GRPO", "right")) == (0, 0, 0)
    assert gain(ROWS, "start", "s", over=("start", "cooled"))[0] == (3 - 3.75) / 8


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("PPO", "s"), r"model='PPO' is not known.*'GRPO'"),
        (("GRPO", "u"), r"split='u' is not known.*'s'"),
        (("GRPO", "s", "cooled"), r"name='cooled' is not known.*'right'"),
    ],
)
def test_what_was_not_recorded_is_said(given, told):
    with pytest.raises(ValueError, match=told):
        shares(ROWS, *given)


def test_what_is_recorded_has_five_seeds_and_one_length_a_split():
    rows = read_finale()
    for model in ("start", "GRPO"):
        for split in {r["split"] for r in rows if r["model"] == model}:
            found = shares(rows, model, split)
            assert len(found) == 5 and torch.isin(found, torch.tensor([0.0, 1.0])).all()
