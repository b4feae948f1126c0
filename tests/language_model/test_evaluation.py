"""Measures against enumeration, and an evaluation that leaves the policy alone."""

import copy
from dataclasses import replace
from itertools import combinations
from statistics import mean

import pytest
import torch

from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.sampler import Sampler
from grpo_course.gsm8k.encoding import encode_responses
from grpo_course.gsm8k.evaluation import (
    Scores,
    bootstrap_interval,
    collect_scores,
    greedy_scores,
    pass_at_k,
    per_problem,
    sampled_scores,
)
from grpo_course.gsm8k.evaluation_table import (
    evaluate_policy,
    evaluation_table,
    name_measures,
    summary_rows,
)
from grpo_course.gsm8k.policy import CausalPolicy
from grpo_course.gsm8k.prompts import demonstration
from grpo_course.gsm8k.task import Task
from grpo_course.gsm8k.tiny import make_tiny_model

N = 6


@pytest.fixture
def task(easy_problems, tokenizer):
    return Task(easy_problems[:7], tokenizer)


@pytest.fixture
def policy(tokenizer):
    model = make_tiny_model(tokenizer, hidden_size=16, num_layers=1, num_heads=2)
    sampler = Sampler(6, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return CausalPolicy(model, sampler, torch.Generator().manual_seed(3))


@pytest.mark.parametrize("k", range(1, N + 1))
def test_pass_at_k_is_the_mean_over_all_ways_to_pick(k):
    rows = [[float(i < right) for i in range(N)] for right in range(N + 1)]
    expected = [mean(max(pick) for pick in combinations(row, k)) for row in rows]
    assert pass_at_k(torch.tensor(rows), k).tolist() == pytest.approx(expected)


def test_pass_at_one_is_the_accuracy_and_large_numbers_do_no_harm():
    correct = torch.rand(5, 2000, generator=torch.Generator().manual_seed(0)) < 0.01
    assert torch.allclose(pass_at_k(correct, 1), correct.double().mean(-1))
    many = pass_at_k(correct, 1000)
    assert many.isfinite().all() and (many > 0.99).all()


@pytest.mark.parametrize("k", [0, N + 1])
def test_pass_at_k_needs_enough_samples(k):
    with pytest.raises(ValueError, match=f"k={k}, but there are {N}"):
        pass_at_k(torch.zeros(2, N), k)


def test_bootstrap_is_seeded_and_agrees_with_the_normal_interval():
    values = (torch.arange(500) % 4 == 0).double()
    low, high = bootstrap_interval(values, seed=1, num_draws=4000)
    assert bootstrap_interval(values, seed=1, num_draws=4000) == (low, high)
    uneven = torch.rand(40, generator=torch.Generator().manual_seed(0))
    assert bootstrap_interval(uneven, seed=1) != bootstrap_interval(uneven, seed=2)
    error = 1.96 * (0.25 * 0.75 / 500) ** 0.5
    assert (low, high) == pytest.approx((0.25 - error, 0.25 + error), abs=0.005)
    wide = bootstrap_interval(values, num_draws=4000, level=0.99)
    assert wide[0] < low and high < wide[1]
    assert bootstrap_interval(torch.full((9,), 0.5)) == (0.5, 0.5)


def test_problems_of_one_group_are_drawn_together():
    """Each problem told in five stories says no more than the problem told once."""
    once = torch.rand(30, generator=torch.Generator().manual_seed(0))
    stories, names = once.repeat_interleave(5), [str(i // 5) for i in range(150)]
    expected = bootstrap_interval(once, seed=3)
    assert bootstrap_interval(stories, names, seed=3) == pytest.approx(expected)
    low, high = bootstrap_interval(stories, seed=3)
    assert high - low < 0.6 * (expected[1] - expected[0])
    order = torch.randperm(150, generator=torch.Generator().manual_seed(1)).tolist()
    shuffled = stories[order], [names[i] for i in order]
    low, high = bootstrap_interval(*shuffled, num_draws=4000)
    assert (low, high) == pytest.approx(expected, abs=0.03)


def test_two_groups_against_enumeration():
    """Drawn aa, ab, ba or bb: the means are 1, twice 1/4 and 0, each draw as likely."""
    values, names = torch.tensor([0.0, 1.0, 0.0, 0.0]), ["b", "a", "b", "b"]
    for level, expected in ((0.9, (0.0, 1.0)), (0.4, (0.25, 0.25))):
        found = bootstrap_interval(values, names, level=level)
        assert found == pytest.approx(expected)
    assert bootstrap_interval(values, ["a"] * 4) == (0.25, 0.25)


def test_every_value_needs_its_group():
    with pytest.raises(ValueError, match="groups has 2 names for 3 values"):
        bootstrap_interval(torch.ones(3), ["a", "b"])


def test_the_intervals_of_a_table_go_by_calculation(task, tokenizer):
    """Two calculations in three stories each, one of them never right.

    Drawn one by one, six problems are all wrong once in 64 times; two calculations
    are, one time in four.
    """
    known = task.problems[0]
    other = next(p for p in task.problems if p.calculation != known.calculation)
    stories = [
        replace(problem, question=f"{problem.question} {end}")
        for problem in (known, other)
        for end in ("", "Say it.", "Tell it.")
    ]
    said = [demonstration(known)] * 3 + ["no idea"] * 3

    def answer(prompts):
        return Rollout(prompts, encode_responses(tokenizer, said)[:, None])

    scores = collect_scores(Task(stories, tokenizer), answer, batch_size=6)
    row = summary_rows({"m": name_measures(scores, scores)})[0]
    assert (row["mean"], row["low"], row["high"]) == (0.5, 0.0, 1.0)
    assert bootstrap_interval(scores.accuracy[:, 0])[0] > 0


def test_scores_stand_beside_their_problems(task, tokenizer):
    """Gold for every problem but the third; in batches of three."""
    texts = [demonstration(p) for p in task.problems]
    texts[2] = "no idea"
    left = list(texts)

    def answer(prompts):
        said, left[:] = left[: len(prompts)], left[len(prompts) :]
        return Rollout(prompts, encode_responses(tokenizer, said)[:, None])

    scores = collect_scores(task, answer, batch_size=3)
    expected = [[1.0], [1.0], [0.0], [1.0], [1.0], [1.0], [1.0]]
    assert scores.accuracy.tolist() == expected == scores.format.tolist()
    assert scores.texts == [[text] for text in texts]


def test_greedy_does_not_depend_on_the_batches_nor_samples_on_the_policy(policy, task):
    one, many = (greedy_scores(policy, task, batch_size=n) for n in (1, 7))
    assert one.texts == many.texts
    before = policy.generator.get_state()
    first = sampled_scores(policy, task, 4, seed=5)
    assert torch.equal(policy.generator.get_state(), before)
    policy.generator.manual_seed(99)
    assert sampled_scores(policy, task, 4, seed=5).texts == first.texts
    assert sampled_scores(policy, task, 4, seed=6).texts != first.texts
    assert first.accuracy.shape == (7, 4)
    assert [len(group) for group in first.texts] == [4] * 7


def test_temperature_is_the_evaluations_own(policy, task):
    cold = sampled_scores(policy, task, 2, temperature=1e-4)
    assert cold.texts == [text * 2 for text in greedy_scores(policy, task).texts]
    assert policy.sampler.temperature == 1.0


def test_measures_of_one_problem_each():
    accuracy = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    others = torch.ones(2, 2), 0.5 * torch.ones(2, 2)
    scores = Scores(accuracy, *others, texts=[], calculations=["1+2", "2+2"])
    found = {k: v.tolist() for k, v in per_problem(scores, ks=(1, 2)).items()}
    assert found == {
        "accuracy": [0.5, 0.0],
        "lenient_accuracy": [1.0, 1.0],
        "format": [0.5, 0.5],
        "pass@1": [0.5, 0.0],
        "pass@2": [1.0, 0.0],
    }


def test_the_table(policy, task):
    measured = evaluate_policy(policy, task, num_samples=3)
    assert all(values.shape == (7,) for values in measured.values())
    for models in (["before"], ["before", "after"], list("abcdef")):
        text = evaluation_table(dict.fromkeys(models, measured))
        lines = text.splitlines()
        assert max(map(len, lines)) <= 75
        assert lines[0].split() == ["7", "problems", *models]
        assert any(line.startswith("sampled pass@3") for line in lines)
    changed = copy.deepcopy(measured)
    changed["greedy strict accuracy"] = torch.tensor([1.0] * 3 + [0.0] * 4)
    line = evaluation_table({"m": changed}).splitlines()[1]
    assert line.split()[:4] == ["greedy", "strict", "accuracy", "0.429"]
