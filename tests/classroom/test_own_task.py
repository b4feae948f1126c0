"""The record of the task to copy: what notebook 15 says of it, and its table."""

from grpo_course.classroom.own_task import own_task_table, read_own_task


def test_the_table_is_mean_and_error_over_seeds():
    rows = [
        {"seed": seed, "a": {"x": low, "y": 0.5}, "b": {"x": 1.0, "y": 0.0}}
        for seed, low in enumerate((0.25, 0.5))
    ]
    table = own_task_table(rows)
    # The standard deviation of 1/4 and 1/2 is 1/4 / sqrt(2); its error over 2, 1/8.
    assert table["a"].tolist() == ["0.38 ±0.12", "0.50 ±0.00"]
    assert table["b"].tolist() == ["1.00 ±0.00", "0.00 ±0.00"]
    assert list(table.index) == ["x", "y"] and table.index.name == "2 seeds"


def test_each_seed_shows_what_the_notebook_says():
    rows = read_own_task()
    assert [row["seed"] for row in rows] == list(range(5))
    for row in rows:
        start, _, cold, vote = (row["the start"], *row["the start"].values())[:4]
        assert cold > vote
        for model in ("after GRPO", "imitation, 400 steps"):
            assert all(row[model][way] > start[way] for way in start), (model, row)


def test_one_seed_makes_the_gap_between_imitation_and_grpo():
    gaps = {
        row["seed"]: row["imitation, 400 steps"]["greedy"] - row["after GRPO"]["greedy"]
        for row in read_own_task()
    }
    assert gaps.pop(4) > 0.4
    assert abs(sum(gaps.values()) / len(gaps)) < 0.02
