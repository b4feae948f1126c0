"""Measures against enumeration, and an evaluation that leaves the policy alone."""

import re
from dataclasses import replace
from itertools import combinations
from statistics import mean

import pytest
import torch

from grpo_course.loop import Rollout
from grpo_course.sampling import Sampler
from grpo_course.text import evaluation
from grpo_course.text.countdown import reaches_target
from grpo_course.text.environment import Environment
from grpo_course.text.evaluation import (
    Measures,
    Scores,
    bootstrap_interval,
    collect_scores,
    evaluate_policy,
    evaluation_table,
    greedy_scores,
    majority,
    name_measures,
    pass_at_k,
    sampled_scores,
    summary,
    ways_to_answer,
)
from grpo_course.text.grader import correctness_reward, last_number
from grpo_course.text.gsm8k import GSM8K, demonstration
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.prompts import as_rollout
from grpo_course.text.smollm2 import accuracy as shown
from grpo_course.text.tasks import Problem
from grpo_course.text.tiny import make_tiny_model

N = 6
MEASURES = GSM8K.measures


@pytest.fixture
def environment(easy_problems, tokenizer):
    return Environment(easy_problems[:7], tokenizer, GSM8K.rewards, measures=MEASURES)


@pytest.fixture
def policy(tokenizer):
    model = make_tiny_model(tokenizer, hidden_size=16, num_layers=1, num_heads=2)
    sampler = Sampler(6, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return CausalPolicy(model, sampler, torch.Generator().manual_seed(3))


def test_pass_at_k_is_the_mean_over_all_ways_to_pick_and_needs_enough_samples():
    rows = [[float(i < right) for i in range(N)] for right in range(N + 1)]
    for k in range(1, N + 1):
        expected = [mean(max(pick) for pick in combinations(row, k)) for row in rows]
        assert pass_at_k(torch.tensor(rows), k).tolist() == pytest.approx(expected)
    for k in (0, N + 1):
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


def test_two_groups_against_enumeration():
    """Drawn aa, ab, ba or bb: the means are 1, twice 1/4 and 0, each draw as likely."""
    values, names = torch.tensor([0.0, 1.0, 0.0, 0.0]), ["b", "a", "b", "b"]
    for level, expected in ((0.9, (0.0, 1.0)), (0.4, (0.25, 0.25))):
        found = bootstrap_interval(values, names, level=level)
        assert found == pytest.approx(expected)
    assert bootstrap_interval(values, ["a"] * 4) == (0.25, 0.25)


def answers(tokenizer, texts):
    """A policy that says one of some texts after the other."""
    left = list(texts)

    def answer(prompts):
        said, left[:] = left[: len(prompts)], left[len(prompts) :]
        return Rollout(prompts, as_rollout(tokenizer, said, said).responses)

    return answer


def test_the_intervals_of_a_table_go_by_calculation(environment, tokenizer):
    """Two calculations in three stories each, one of them never right.

    Drawn one by one, six problems are all wrong once in 64 times; two calculations
    are, one time in four.
    """
    known = environment.problems[0]
    other = next(p for p in environment.problems if p.group != known.group)
    stories = [
        replace(problem, question=f"{problem.question} {end}")
        for problem in (known, other)
        for end in ("", "Say it.", "Tell it.")
    ]
    said = [demonstration(known)] * 3 + ["no idea"] * 3
    asked = Environment(stories, tokenizer, GSM8K.rewards)
    scores = collect_scores(asked, answers(tokenizer, said), batch_size=6)
    row = summary({"m": name_measures(scores, scores)}).iloc[0]
    assert (row["mean"], row["low"], row["high"]) == (0.5, 0.0, 1.0)
    assert bootstrap_interval(scores.accuracy[:, 0])[0] > 0


def test_scores_stand_beside_their_problems(environment, tokenizer):
    """Gold for every problem but the third; in batches of three."""
    every = Environment(environment.problems, tokenizer, GSM8K.rewards)
    assert every.measures == tuple(GSM8K.rewards)  # unless the task says which
    assert set(environment.measures) < set(every.measures)
    texts = [demonstration(p) for p in environment.problems]
    texts[2] = "no idea"
    scores = collect_scores(environment, answers(tokenizer, texts), batch_size=3)
    expected = [[1.0], [1.0], [0.0], [1.0], [1.0], [1.0], [1.0]]
    assert scores.accuracy.tolist() == expected == scores.earned["format"].tolist()
    assert scores.texts == [[text] for text in texts]


def test_greedy_does_not_depend_on_the_batches_nor_samples_on_the_policy(
    policy, environment
):
    one, many = (greedy_scores(policy, environment, batch_size=n) for n in (1, 7))
    assert one.texts == many.texts
    before = policy.generator.get_state()
    first = sampled_scores(policy, environment, 4, seed=5)
    assert torch.equal(policy.generator.get_state(), before)
    policy.generator.manual_seed(99)
    assert sampled_scores(policy, environment, 4, seed=5).texts == first.texts
    assert sampled_scores(policy, environment, 4, seed=6).texts != first.texts
    assert first.accuracy.shape == (7, 4)
    assert [len(group) for group in first.texts] == [4] * 7
    cold = sampled_scores(policy, environment, 2, temperature=1e-4)
    assert cold.texts == [text * 2 for text in one.texts]
    assert policy.sampler.temperature == 1.0


def test_measures_of_one_problem_each():
    accuracy = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    earned = {"accuracy": accuracy, "format": 0.5 * torch.ones(2, 2)}
    sampled = Scores(earned, texts=[], groups=["1+2", "2+2"])
    greedy = Scores({"lenient_accuracy": torch.ones(2, 1)}, [], sampled.groups)
    found = name_measures(greedy, sampled)
    assert {name: values.tolist() for name, values in found.items()} == {
        "greedy lenient accuracy": [1.0, 1.0],
        "sampled strict accuracy": [0.5, 0.0],
        "sampled format": [0.5, 0.5],
        "sampled pass@1": [0.5, 0.0],
        "sampled pass@2": [1.0, 0.0],
    }


def test_the_table(policy, environment):
    """Of models that were measured on other problems, too."""
    measured = evaluate_policy(policy, environment, num_samples=3)
    assert all(values.shape == (7,) for values in measured.values())
    measured["greedy strict accuracy"] = torch.tensor([1.0] * 3 + [0.0] * 4)
    few = Measures({"greedy format": torch.ones(3)}, ["a", "b", "c"])
    table = evaluation_table({"seven": measured, "three": few})
    assert table.index.name == "3 or 7 problems"
    assert list(table.columns) == ["seven", "three"]
    assert list(table.index) == list(measured) and "sampled pass@3" in table.index
    mean, low, high = re.findall(
        r"[0-9.]+", table.loc["greedy strict accuracy", "seven"]
    )
    assert mean == "0.429" and float(low) < 0.429 < float(high)
    assert table.loc["greedy format", "three"] == "1.000 [1.000, 1.000]"
    assert table.loc["sampled format", "three"] == ""


# The vote of several samples, and the ways to answer that cost no training


def scores(texts, right):
    """By hand: the texts of each problem, and which of them are right."""
    accuracy = torch.tensor(right, dtype=torch.float32)
    return Scores({"accuracy": accuracy}, texts, [str(i) for i in range(len(texts))])


def tagged(*answers):
    return [f"<think>?</think><answer>{answer}</answer>" for answer in answers]


@pytest.mark.parametrize(
    ("texts", "right", "expected"),
    [
        (tagged("7", "8", "7"), [1, 0, 1], 1),
        (tagged("8", "7", "8"), [0, 1, 0], 0),
        (tagged("7", "8"), [1, 0], 1),  # of equally many, the earliest
        (["no tag", "no tag", *tagged("7")], [0, 0, 1], 1),
        (["b", " a", "a "], [0, 1, 1], 1),  # nobody writes a tag
    ],
)
def test_the_answer_that_most_give(texts, right, expected):
    assert majority(scores([texts], [right])).tolist() == [expected]
    both = scores([texts, ["nothing"] * len(texts)], [right, [0] * len(texts)])
    assert majority(both).tolist()[1] == 0


@pytest.mark.parametrize("told", [False, True])
def test_a_vote_on_texts_says_so(told, policy, easy_problems, tokenizer, capsys):
    """Only where the first reward does not say what a response answers."""

    def ends_well(completions, answer, **_):
        return [float(text[-1:].isdigit()) for text in completions]

    if told:
        ends_well.meaning = last_number
    asked = Environment(easy_problems[:2], tokenizer, {"a": (ends_well, 1.0)})
    ways_to_answer(policy, asked, 2)
    said = capsys.readouterr().out
    assert ("ends_well.meaning = " in said) == (not told)


def odd_length(completions, answer, **kwargs):
    return [len(text) % 2 for text in completions]


GOAL = {"numbers": [3, 4], "target": 7}


@pytest.mark.parametrize(
    ("reward", "answer", "said", "correct"),
    [  # the right answer has most votes only if its ways to be written are one
        (correctness_reward, "72", ["5", "72", "5", "72.0", "$72"], 1),
        (correctness_reward, "72", ["5 or 7", "5 or 7", "72"], 1),  # is no answer
        (correctness_reward, "72", ["5 or 7", "5 or 7"], 0),
        (reaches_target, GOAL, ["3+5", "3+4", "3+5", "4+3", "(4) + 3"], 1),
        (odd_length, "?", ["5", "72", "72.0"], 0),  # texts of another task are texts
        (shown, "12", ["13", "13", "12", "5 + 7 = 12", "12.", "<answer>1</answer>"], 1),
    ],
)
def test_a_vote_is_for_what_an_answer_means(
    reward, answer, said, correct, tokenizer, monkeypatch
):
    rewards, tags = {"a": (reward, 1)}, reward is not shown
    asked = Environment([Problem("How many?", answer)], tokenizer, rewards)
    texts = tagged(*said) if tags else [f"So. Answer: {each}" for each in said]
    monkeypatch.setattr(evaluation, "decode_responses", lambda *_: [texts])
    paid = torch.tensor([reward(texts, [answer] * len(texts))])
    monkeypatch.setattr(asked, "grade", lambda rollout: {"a": paid})
    found = collect_scores(asked, lambda prompts: None, 1)
    assert majority(found).tolist() == [correct]


def test_the_ways_are_those_of_one_model(policy, easy_problems, tokenizer):
    asked = Environment(easy_problems[:9], tokenizer, {"odd": (odd_length, 1.0)})
    ways = ways_to_answer(policy, asked, 3, cooled=1e-6, seed=1)
    names = ["one sample, temperature 1", "one sample, temperature 1e-06"]
    assert list(ways) == [*names, "majority of 3", "greedy"]
    assert torch.equal(ways[names[1]], ways["greedy"])  # so cold that nothing is left
    assert len({tuple(values.tolist()) for values in ways.values()}) > 1
    again = sampled_scores(policy, asked, 3, seed=1)
    assert torch.equal(ways["majority of 3"], majority(again))
    assert torch.equal(ways[names[0]], again.accuracy.double().mean(-1))
