"""The record of the task to copy shows, seed by seed, what notebook 15 says of it."""

import json
from importlib.resources import files

RECORDED = files("grpo_course.lessons") / "own_task_seeds.json"
ROWS = json.loads(RECORDED.read_text("utf-8"))


def test_each_seed_shows_what_the_notebook_says():
    assert [row["seed"] for row in ROWS] == list(range(5))
    for row in ROWS:
        start, _, cold, vote = (row["the start"], *row["the start"].values())[:4]
        assert cold > vote
        for model in ("after GRPO", "imitation, 400 steps"):
            assert all(row[model][way] > start[way] for way in start), (model, row)


def test_one_seed_makes_the_gap_between_imitation_and_grpo():
    gaps = {
        row["seed"]: row["imitation, 400 steps"]["greedy"] - row["after GRPO"]["greedy"]
        for row in ROWS
    }
    assert gaps.pop(4) > 0.4
    assert abs(sum(gaps.values()) / len(gaps)) < 0.02
