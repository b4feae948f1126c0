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
    head, *seeds, change = recorded_table(rows, "s").splitlines()
    assert head.split()[:3] == ["strict", "lenient", "pass@8"]
    assert [line.split()[:5] for line in seeds] == [
        ["seed", "0", "0.25", ">", "0.50"],
        ["seed", "1", "0.25", ">", "0.75"],
    ]
    # Changes of 1/4 and 1/2: their standard deviation is 1/4 / sqrt(2).
    assert change.split()[:3] == ["change", "+0.38", "\u00b10.12"]


def test_intervals_of_each_seed():
    both = {"before_intervals": ends(0.2, 0.3), "after_intervals": ends(0.42, 0.58)}
    head, line = recorded_intervals([row(4, 0.25, 0.5, **both)], "s").splitlines()
    heads = "strict before", "strict after", "lenient before", "lenient after"
    assert head.split() == " ".join(heads).split()
    shown = [part.strip() for part in line.split("[")]
    assert shown == ["seed 4", *["0.20, 0.30]", "0.42, 0.58]"] * 2]
    assert max(len(head), len(line)) <= 75


def test_a_record_without_intervals_says_how_to_get_them():
    with pytest.raises(ValueError, match=r"seed 4 .* benchmarks/finale_seeds.py 4"):
        recorded_intervals([row(4, 0.25, 0.5)], "s")


def test_what_is_recorded_has_five_seeds_and_fits_the_page():
    rows = read_finale()
    for split in {row["split"] for row in rows}:
        assert [r["seed"] for r in rows if r["split"] == split] == list(range(5))
        assert max(map(len, recorded_table(rows, split).splitlines())) <= 75
