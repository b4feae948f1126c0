"""What is said of the runs that learners design, and whether good designs pass."""

import pytest
import torch

from grpo_course import run_policy_gradient, sort_distance_reward
from grpo_course.classroom.designs import judge_kl, judge_run

GOAL = {"budget": 120, "max_steps": 200, "goal": 2.3}
REACHED = "The goal of 2.3 is reached"


def words_for(capsys, num_epochs, num_responses, num_steps, rate, **knobs):
    fixed = {"reward_fn": sort_distance_reward, "init_scale": 0.1, "seeds": range(16)}
    modes = {"deltas_mode": "normalized_rewards", "loss_mode": "clipped"}
    own = {"num_responses": num_responses, "learning_rate": rate}
    run = run_policy_gradient(num_epochs, num_steps, **own, **fixed, **modes, **knobs)
    judge_run(run, num_responses, **GOAL)
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "design", [(5, 8, 10, 0.01), (4, 10, 20, 0.01), (5, 8, 4, 0.01)]
)
def test_several_designs_reach_the_goal(capsys, design):
    words = words_for(capsys, *design)
    assert "120 of 120 responses" in words and REACHED in words


@pytest.mark.parametrize(
    ("design", "wanted"),
    [
        ((2, 20, 1, 0.001), "it moved too little"),
        ((10, 4, 20, 0.02), "it went too far on the first groups"),
        ((2, 20, 20, 0.01), "Spread the responses over more rollouts"),
        ((10, 8, 4, 0.01), "Over budget by 120 responses"),
        ((1, 8, 201, 0.01), "1 steps too many"),
    ],
)
def test_another_design_hears_what_was_wrong(capsys, design, wanted):
    words = words_for(capsys, *design)
    assert wanted in words and REACHED not in words


def test_a_narrow_range_is_said_to_hold_the_run_back(capsys):
    assert "or widen the range" in words_for(capsys, 5, 8, 10, 0.01, epsilon=0.01)


@pytest.mark.parametrize(
    ("kl", "reward", "wanted", "unwanted"),
    [
        (0.6, 2.0, "Both goals are reached", "falls short"),
        (0.8, 2.0, "0.10 nats a token too far", "falls short"),
        (0.2, 1.2, "0.30 nats a token short of 0.5", "reached"),
        (0.2, 1.2, "The reward falls short of 1.8", "reached"),
        (0.6, 1.81, "two standard errors below its mean, 1.73 are left", "reached"),
    ],
)
def test_a_kl_hears_which_side_it_missed(capsys, kl, reward, wanted, unwanted):
    around = torch.tensor([-0.1, 0.1] * 4)
    judge_kl(kl + around / 10, reward + around, band=(0.5, 0.7), goal=1.8)
    words = " ".join(capsys.readouterr().out.split())
    assert wanted in words and unwanted not in words
