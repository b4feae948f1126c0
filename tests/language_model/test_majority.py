"""The vote of several samples, and the ways to answer that cost no training."""

import torch

from grpo_course.evaluation import Scores, majority, sampled_scores, ways_to_answer
from grpo_course.lm import CausalPolicy, make_tiny_model
from grpo_course.sampling import Sampler
from grpo_course.tasks import Environment


def scores(texts, right):
    """By hand: the texts of each problem, and which of them are right."""
    accuracy = torch.tensor(right, dtype=torch.float32)
    return Scores({"accuracy": accuracy}, texts, [str(i) for i in range(len(texts))])


def tagged(*answers):
    return [f"<think>?</think><answer>{answer}</answer>" for answer in answers]


def test_the_answer_that_most_give():
    texts = [tagged("7", "8", "7"), tagged("8", "7", "8"), tagged("1", "2", "2")]
    right = [[1, 0, 1], [0, 1, 0], [0, 1, 1]]
    assert majority(scores(texts, right)).tolist() == [1, 0, 1]


def test_of_equally_many_the_earliest_and_no_vote_without_an_answer():
    texts = [tagged("7", "8"), ["no tag", "no tag", *tagged("7")], ["a", "a"]]
    right = [[1, 0], [0, 0, 1], [0, 0]]
    found = [
        majority(scores([t], [r])).item() for t, r in zip(texts, right, strict=True)
    ]
    assert found == [1, 1, 0]
    both = scores([tagged("7"), ["nothing"]], [[1], [0]])
    assert majority(both).tolist() == [1, 0]


def test_where_nobody_writes_a_tag_the_whole_text_is_the_answer():
    assert majority(scores([["b", " a", "a "]], [[0, 1, 1]])).tolist() == [1]


def odd_length(completions, answer, **kwargs):
    return [len(text) % 2 for text in completions]


def test_the_ways_are_those_of_one_model(easy_problems, tokenizer):
    model = make_tiny_model(tokenizer, hidden_size=16, num_layers=1, num_heads=2)
    sampler = Sampler(6, tokenizer.eos_token_id, tokenizer.pad_token_id)
    policy = CausalPolicy(model, sampler, torch.Generator())
    asked = Environment(easy_problems[:9], tokenizer, {"odd": (odd_length, 1.0)})
    ways = ways_to_answer(policy, asked, 3, cooled=1e-6, seed=1)
    names = ["one sample, temperature 1", "one sample, temperature 1e-06"]
    assert list(ways) == [*names, "majority of 3", "greedy"]
    assert torch.equal(ways[names[1]], ways["greedy"])  # so cold that nothing is left
    assert len({tuple(values.tolist()) for values in ways.values()}) > 1
    again = sampled_scores(policy, asked, 3, seed=1)
    assert torch.equal(ways["majority of 3"], majority(again))
    assert torch.equal(ways[names[0]], again.accuracy.double().mean(-1))
