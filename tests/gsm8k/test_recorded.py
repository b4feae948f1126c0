"""The record of the finale: its tables from rows that are made by hand."""

import pytest

from grpo_course.gsm8k.recorded import (
    SHOWN,
    read_finale,
    recorded_intervals,
    recorded_table,
)


def row(seed, before, after, **more):
    """A row in which every measure is the same."""
    means = {"before": before, "after": after}
    filled = {time: dict.fromkeys(SHOWN.values(), x) for time, x in means.items()}
    return {"seed": seed, "split": "s", "problems": 512} | filled | more


def ends(low, high):
    return {name: [low, high] for name in SHOWN.values()}


def test_means_and_their_change():
    rows = [row(0, 0.25, 0.5), row(1, 0.25, 0.75), row(2, 0.0, 0.0) | {"split": "t"}]
    table = recorded_table(rows, "s")
    assert list(table.columns)[:3] == ["strict", "lenient", "pass@8"]
    assert list(table.index) == ["seed 0", "seed 1", "change"]
    # Changes of 1/4 and 1/2: their standard deviation is 1/4 / sqrt(2).
    for column in table.columns:
        assert list(table[column]) == ["0.25 → 0.50", "0.25 → 0.75", "+0.38 ±0.12"]


def test_measures_stand_in_their_own_columns():
    measures = {name: i / 10 for i, name in enumerate(SHOWN.values())}
    table = recorded_table([row(0, 0, 0) | {"after": measures}] * 2, "s")
    assert [cell.split()[-1] for cell in table.loc["seed 0"].iloc[0]] == [
        f"0.{i}0" for i in range(len(SHOWN))
    ]


def test_intervals_of_each_seed():
    both = {"before_intervals": ends(0.2, 0.3), "after_intervals": ends(0.42, 0.58)}
    table = recorded_intervals([row(4, 0.25, 0.5, **both)], "s")
    heads = ["strict before", "strict after", "lenient before", "lenient after"]
    assert list(table.columns) == heads and list(table.index) == ["seed 4"]
    assert list(table.loc["seed 4"]) == ["[0.20, 0.30]", "[0.42, 0.58]"] * 2


def test_a_record_without_intervals_says_how_to_get_them():
    with pytest.raises(ValueError, match=r"seed 4 .* benchmarks/finale_seeds.py 4"):
        recorded_intervals([row(4, 0.25, 0.5)], "s")


def test_a_split_that_was_not_recorded():
    for table in (recorded_table, recorded_intervals):
        with pytest.raises(ValueError, match=r"split='test' is not known.*'s'"):
            table([row(4, 0.25, 0.5)], "test")


def test_what_is_recorded_has_five_seeds_and_fits_the_page():
    rows = read_finale()
    for split in {row["split"] for row in rows}:
        assert [r["seed"] for r in rows if r["split"] == split] == list(range(5))
        for table in (recorded_table(rows, split), recorded_intervals(rows, split)):
            assert max(map(len, table.to_string().splitlines())) <= 88
