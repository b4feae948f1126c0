"""The task asks by seed and epoch alone, and finds answers by a prompt's tokens."""

import pytest
import torch

from grpo_course.algorithm.history import History
from grpo_course.algorithm.masks import response_mask
from grpo_course.algorithm.rollout import Rollout
from grpo_course.gsm8k.encoding import encode_prompts, encode_responses
from grpo_course.gsm8k.problems import Problem
from grpo_course.gsm8k.prompts import demonstration
from grpo_course.gsm8k.task import Task


@pytest.fixture
def problems(easy_problems):
    return list({p.question: p for p in easy_problems}.values())[:10]


@pytest.fixture
def task(problems, tokenizer):
    return Task(problems, tokenizer, num_prompts=4, seed=1)


def rollout_of(task, prompts, groups):
    """Prompts with given texts as responses, [batch trial]."""
    flat = encode_responses(
        task.tokenizer, [text for group in groups for text in group]
    )
    tokens = flat.view(len(groups), -1, flat.shape[-1])
    return Rollout(prompts, tokens, response_mask(tokens, task.tokenizer.eos_token_id))


def test_what_is_asked_depends_on_seed_and_epoch_alone(task, problems, tokenizer):
    late_first = [task.prompts(epoch) for epoch in (7, 2, 0)]
    again = Task(problems, tokenizer, num_prompts=4, seed=1)
    in_order = [again.prompts(epoch) for epoch in range(8)]
    for asked, epoch in zip(late_first, (7, 2, 0), strict=True):
        assert torch.equal(asked, in_order[epoch])
    other = Task(problems, tokenizer, num_prompts=4, seed=2)
    assert any(task.chosen(e) != other.chosen(e) for e in range(3))


def test_every_problem_is_asked_once_before_any_comes_again(task):
    places = [place for epoch in range(10) for place in task.chosen(epoch)]
    turns = [places[i : i + 10] for i in range(0, 40, 10)]
    assert all(sorted(turn) == list(range(10)) for turn in turns)
    assert len({tuple(turn) for turn in turns}) == 4


def test_more_prompts_than_problems(problems, tokenizer):
    chosen = Task(problems[:3], tokenizer, num_prompts=7).chosen(0)
    assert len(chosen) == 7
    assert {chosen.count(place) for place in range(3)} == {2, 3}


def test_prompts_are_no_wider_than_they_must_be(task, problems, tokenizer):
    for epoch in range(5):
        chosen = task.chosen(epoch)
        expected = encode_prompts(tokenizer, [problems[i].question for i in chosen])
        assert torch.equal(task.prompts(epoch), expected)


def test_rewards_of_texts(task, problems):
    first = problems[0]
    wrong = demonstration(first).replace(
        f"<answer>{first.answer}", f"<answer>{first.answer}9"
    )
    texts = [demonstration(first), wrong, demonstration(first, "no_tags"), "?"]
    rollout = rollout_of(task, task.ask([0]), [texts])
    expected = {
        "accuracy": [1.0, 0.0, 0.0, 0.0],
        "lenient_accuracy": [1.0, 0.0, 1.0, 0.0],
        "format": [1.0, 1.0, 0.0, 0.0],
        "length_reward": [0.0, 0.0, 0.0, 0.0],
    }
    graded = task.grade(rollout)
    assert {name: column.tolist()[0] for name, column in graded.items()} == expected
    assert task.reward(rollout)[0].tolist() == pytest.approx([1.2, 0.2, 0.0, 0.0])
    means = {"accuracy": 0.25, "lenient_accuracy": 0.5, "format": 0.5}
    assert task.latest == pytest.approx(means | {"length_reward": 0.0})


def test_weights(problems, tokenizer):
    task = Task(problems, tokenizer, correctness_weight=0.0, format_weight=3.0)
    rollout = rollout_of(task, task.ask([1]), [[demonstration(problems[1])]])
    assert task.reward(rollout).tolist() == [[3.0]]


def test_a_long_response_costs_what_its_weight_says(problems, tokenizer):
    """1200 characters lie half-way between 800, which cost nothing, and 1600."""
    task = Task(problems, tokenizer, length_weight=0.5)
    rollout = rollout_of(task, task.ask([1]), [["a" * 800, "a" * 1200, "a" * 1700]])
    assert task.reward(rollout).tolist() == [[0.0, -0.25, -0.5]]


def test_answers_are_found_in_any_order_under_any_padding(task, problems):
    groups = [[demonstration(problems[i])] for i in (3, 0, 9)]
    prompts = torch.nn.functional.pad(
        task.ask([3, 0, 9]), (5, 0), value=task.tokenizer.pad_token_id
    )
    assert task.grade(rollout_of(task, prompts, groups))["accuracy"].all()
    shifted = groups[1:] + groups[:1]
    right = [
        [float(problems[i].answer == problems[j].answer)]
        for i, j in ((3, 0), (0, 9), (9, 3))
    ]
    graded = task.grade(rollout_of(task, prompts, shifted))
    assert graded["accuracy"].tolist() == right


def test_what_stands_after_the_end_does_not_count(task, problems, tokenizer):
    text = demonstration(problems[0])
    more = tokenizer("<answer>99</answer>").input_ids
    ended = [*tokenizer(text).input_ids, tokenizer.eos_token_id]
    tokens = torch.tensor([[ended + more]])
    mask = response_mask(tokens, tokenizer.eos_token_id)
    assert task.reward(Rollout(task.ask([0]), tokens, mask)).item() == pytest.approx(
        1.2
    )


def test_a_prompt_of_somebody_else(task):
    with pytest.raises(ValueError, match=r"prompts\[0\] is none of this task's 10"):
        task.answers_to(task.ask([0])[:, 1:])


def test_problems_that_cannot_be_asked(problems, tokenizer):
    with pytest.raises(ValueError, match="problems is empty"):
        Task([], tokenizer)
    with pytest.raises(ValueError, match="num_prompts=0"):
        Task(problems, tokenizer, num_prompts=0)
    twice = Problem(problems[0].question, "", problems[0].answer)
    assert len(Task([*problems, twice], tokenizer).answers) == 10
    other = Problem(problems[0].question, "", "12345")
    with pytest.raises(ValueError, match=r"Two problems ask .* '12345'"):
        Task([*problems, other], tokenizer)


def test_notes_join_the_first_record_of_the_latest_epoch(task):
    task.latest = {"accuracy": 0.5}
    places = [(0, 0), (0, 1), (1, 0), (1, 1)]
    history = History([{"epoch": e, "step": s} for e, s in places])
    task.note(history)
    assert ["accuracy" in record for record in history.records] == [0, 0, 1, 0]
    assert history.epochs("accuracy").tolist() == [0.5]
