"""It asks by seed and epoch alone, finds answers by tokens, and checks rewards."""

import math

import numpy
import pytest
import torch

from grpo_course.gsm8k import GSM8K, demonstration
from grpo_course.loop import History, Rollout
from grpo_course.sampling import response_mask
from grpo_course.tasks import (
    Environment,
    Problem,
    encode_prompts,
    encode_responses,
    sample_rows,
)
from grpo_course.training import weigh

REWARDS = GSM8K.rewards


@pytest.fixture
def problems(easy_problems):
    return list({p.question: p for p in easy_problems}.values())[:10]


@pytest.fixture
def environment(problems, tokenizer):
    return Environment(problems, tokenizer, REWARDS, num_prompts=4, seed=1)


def rollout_of(environment, prompts, groups):
    """Prompts with given texts as responses, [batch trial]."""
    flat = encode_responses(
        environment.tokenizer, [text for group in groups for text in group]
    )
    tokens = flat.view(len(groups), -1, flat.shape[-1])
    return Rollout(
        prompts, tokens, response_mask(tokens, environment.tokenizer.eos_token_id)
    )


def test_what_is_asked_depends_on_seed_and_epoch_alone(
    environment, problems, tokenizer
):
    late_first = [environment.prompts(epoch) for epoch in (7, 2, 0)]
    again = Environment(problems, tokenizer, REWARDS, num_prompts=4, seed=1)
    in_order = [again.prompts(epoch) for epoch in range(8)]
    for asked, epoch in zip(late_first, (7, 2, 0), strict=True):
        assert torch.equal(asked, in_order[epoch])
    other = Environment(problems, tokenizer, REWARDS, num_prompts=4, seed=2)
    assert any(environment.chosen(e) != other.chosen(e) for e in range(3))


def test_every_problem_is_asked_once_before_any_comes_again(environment):
    places = [place for epoch in range(10) for place in environment.chosen(epoch)]
    turns = [places[i : i + 10] for i in range(0, 40, 10)]
    assert all(sorted(turn) == list(range(10)) for turn in turns)
    assert len({tuple(turn) for turn in turns}) == 4


def test_more_prompts_than_problems(problems, tokenizer):
    chosen = Environment(problems[:3], tokenizer, REWARDS, num_prompts=7).chosen(0)
    assert len(chosen) == 7
    assert {chosen.count(place) for place in range(3)} == {2, 3}


def test_prompts_are_no_wider_than_they_must_be(environment, problems, tokenizer):
    for epoch in range(5):
        chosen = environment.chosen(epoch)
        expected = encode_prompts(tokenizer, [problems[i].question for i in chosen])
        assert torch.equal(environment.prompts(epoch), expected)


def test_rewards_of_texts(environment, problems):
    first = problems[0]
    wrong = demonstration(first).replace(
        f"<answer>{first.answer}", f"<answer>{first.answer}9"
    )
    texts = [demonstration(first), wrong, demonstration(first, "no_tags"), "?"]
    rollout = rollout_of(environment, environment.ask([0]), [texts])
    expected = {
        "accuracy": [1.0, 0.0, 0.0, 0.0],
        "lenient_accuracy": [1.0, 0.0, 1.0, 0.0],
        "format": [1.0, 1.0, 0.0, 0.0],
        "length_reward": [0.0, 0.0, 0.0, 0.0],
    }
    graded = environment.grade(rollout)
    assert {name: column.tolist()[0] for name, column in graded.items()} == expected
    assert environment.reward(rollout)[0].tolist() == pytest.approx(
        [1.2, 0.2, 0.0, 0.0]
    )
    means = {"accuracy": 0.25, "lenient_accuracy": 0.5, "format": 0.5}
    means |= {"length_reward": 0.0, "tied_right": 0.0, "tied_wrong": 0.0}
    assert environment.latest == pytest.approx(means)


def test_weights(problems, tokenizer):
    rewards = weigh(REWARDS, {"accuracy": 0.0, "format": 3.0})
    environment = Environment(problems, tokenizer, rewards)
    rollout = rollout_of(
        environment, environment.ask([1]), [[demonstration(problems[1])]]
    )
    assert environment.reward(rollout).tolist() == [[3.0]]


def test_a_long_response_costs_what_its_weight_says(problems, tokenizer):
    """1200 characters lie half-way between 800, which cost nothing, and 1600."""
    rewards = weigh(REWARDS, {"length_reward": 0.5})
    environment = Environment(problems, tokenizer, rewards)
    rollout = rollout_of(
        environment, environment.ask([1]), [["a" * 800, "a" * 1200, "a" * 1700]]
    )
    assert environment.reward(rollout).tolist() == [[0.0, -0.25, -0.5]]


def test_answers_are_found_in_any_order_under_any_padding(environment, problems):
    groups = [[demonstration(problems[i])] for i in (3, 0, 9)]
    prompts = torch.nn.functional.pad(
        environment.ask([3, 0, 9]), (5, 0), value=environment.tokenizer.pad_token_id
    )
    assert environment.grade(rollout_of(environment, prompts, groups))["accuracy"].all()
    shifted = groups[1:] + groups[:1]
    right = [
        [float(problems[i].answer == problems[j].answer)]
        for i, j in ((3, 0), (0, 9), (9, 3))
    ]
    graded = environment.grade(rollout_of(environment, prompts, shifted))
    assert graded["accuracy"].tolist() == right


def test_what_stands_after_the_end_does_not_count(environment, problems, tokenizer):
    text = demonstration(problems[0])
    more = tokenizer("<answer>99</answer>").input_ids
    ended = [*tokenizer(text).input_ids, tokenizer.eos_token_id]
    tokens = torch.tensor([[ended + more]])
    mask = response_mask(tokens, tokenizer.eos_token_id)
    assert environment.reward(
        Rollout(environment.ask([0]), tokens, mask)
    ).item() == pytest.approx(1.2)


def test_a_prompt_of_somebody_else(environment):
    with pytest.raises(ValueError, match=r"prompts\[0\] is none of these 10"):
        environment.answers_to(environment.ask([0])[:, 1:])


def test_problems_that_cannot_be_asked(problems, tokenizer):
    with pytest.raises(ValueError, match="problems is empty"):
        Environment([], tokenizer, REWARDS)
    with pytest.raises(ValueError, match="num_prompts=0"):
        Environment(problems, tokenizer, REWARDS, num_prompts=0)
    twice = Problem(problems[0].question, problems[0].answer)
    assert len(Environment([*problems, twice], tokenizer, REWARDS).answers) == 10
    other = Problem(problems[0].question, "12345")
    with pytest.raises(ValueError, match=r"Two problems ask .* '12345'"):
        Environment([*problems, other], tokenizer, REWARDS)


def test_notes_join_the_first_record_of_the_latest_epoch(environment):
    environment.latest = {"accuracy": 0.5}
    places = [(0, 0), (0, 1), (1, 0), (1, 1)]
    history = History([{"epoch": e, "step": s} for e, s in places])
    environment.note(history)
    assert ["accuracy" in record for record in history.records] == [0, 0, 1, 0]
    assert history.epochs("accuracy").tolist() == [0.5]


def test_an_unknown_weight_is_named():
    with pytest.raises(
        ValueError, match=r"reward_weights: 'form' is not known.*'format'"
    ):
        weigh(REWARDS, {"form": 1.0})


def answered(completions, answer, **_):
    """Whether the right answer, whatever it is made of, is said."""
    return [
        float(str(right) in text)
        for text, right in zip(completions, answer, strict=True)
    ]


@pytest.mark.parametrize("gold", [[3, 4], {"x": 1, "y": [2]}, (1,), None, 7.5, "text"])
def test_gold_of_any_type_reaches_the_reward_unchanged(tokenizer, gold):
    seen = []

    def noted(completions, answer, **_):
        seen.extend(answer)
        return answered(completions, answer)

    problems = [Problem("What?", gold), Problem("How?", gold)]
    environment = Environment(problems, tokenizer, {"said": (noted, 2.0)})
    groups = [[f"It is {gold}.", "no"], ["no", "no"]]
    rewards = environment.reward(
        rollout_of(environment, environment.ask([1, 0]), groups)
    )
    assert rewards.tolist() == [[2.0, 0.0], [0.0, 0.0]]
    assert seen == [gold] * 4


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (None, r"rewards\['mine'\] returned a NoneType for 2 completions"),
        (1.0, "returned a float for 2"),
        ("11", "returned a str for 2"),
        (torch.ones(2), "returned a Tensor for 2"),
        ([1.0], "returned 1 values for 2"),
        ([], "returned 0 values for 2"),
        ([1.0] * 3, "returned 3 values for 2"),
        ([1.0, None], "returned None for a completion"),
        ([1.0, "1"], "returned '1' for a completion"),
        ([1.0, [1.0]], r"returned \[1.0\] for a completion"),
        ([1.0, math.nan], "returned nan for a completion"),
        ([1.0, -math.inf], "returned -inf for a completion"),
    ],
)
def test_what_a_reward_function_may_not_return(tokenizer, returned, says):
    rewards = {"mine": (lambda *_, **__: returned, 1.0)}
    environment = Environment([Problem("What?", 1)], tokenizer, rewards)
    rollout = rollout_of(environment, environment.ask([0]), [["a", "b"]])
    with pytest.raises(ValueError, match=says + ".*Return"):
        environment.reward(rollout)


@pytest.mark.parametrize(
    "returned", [[1, 0], (1.0, 0.0), [True, False], numpy.eye(2)[0]]
)
def test_what_a_reward_function_may_return(tokenizer, returned):
    rewards = {"mine": (lambda *_, **__: list(returned), 0.5)}
    environment = Environment([Problem("What?", 1)], tokenizer, rewards)
    rollout = rollout_of(environment, environment.ask([0]), [["a", "b"]])
    assert environment.reward(rollout).tolist() == [[0.5, 0.0]]


@pytest.mark.parametrize(
    "rewards",
    [None, {}, [answered], {"a": answered}, {"a": (answered,)}, {"a": (1.0, answered)},
     {"a": (answered, "1")}, {"a": (answered, math.nan)}, {"a": (answered, -1)}],
)  # fmt: skip
def test_rewards_are_functions_with_weights(tokenizer, rewards):
    with pytest.raises(ValueError, match=r"rewards=.*\(my_reward, 1\.0\)"):
        Environment([Problem("What?", 1)], tokenizer, rewards)


def test_a_measure_that_is_no_reward(tokenizer):
    rewards = {"a": (answered, 1.0)}
    with pytest.raises(ValueError, match=r"measures='b' is not known.*'a'"):
        Environment([Problem("What?", 1)], tokenizer, rewards, measures=("b",))


def test_a_row_for_each_response_to_the_first_prompts(tokenizer):
    def says(texts, answer):
        return [float(a in text) for text, a in zip(texts, answer, strict=True)]

    problems = [Problem("2 + 2?", "4"), Problem("2 + 3?", "5"), Problem("3 + 3?", "6")]
    lengths = (lambda texts, **_: [float(len(text)) for text in texts], 0.1)
    rewards = {"accuracy": (says, 2.0), "length": lengths}
    environment = Environment(problems, tokenizer, rewards)
    assert sample_rows(environment, 2) == []
    groups = [["4", "5 or 4"], ["5", "6"], ["6", "66"]]
    environment.reward(rollout_of(environment, environment.ask([0, 1, 2]), groups))
    rows = sample_rows(environment, 2)
    assert [row["completion"] for row in rows] == ["4", "5 or 4", "5", "6"]
    assert [row["question"] for row in rows] == ["2 + 2?"] * 2 + ["2 + 3?"] * 2
    assert [row["answer"] for row in rows] == ["4", "4", "5", "5"]
    assert [row["accuracy"] for row in rows] == [1, 1, 1, 0]
    assert [row["reward"] for row in rows] == pytest.approx([2.1, 2.6, 2.1, 0.1])
