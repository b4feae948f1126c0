"""The states of an exercise, and what check says about any kind of wrong answer."""

import sys

import einops
import pytest
import torch

from grpo_course.classroom import check as checking
from grpo_course.classroom.check import check, progress
from grpo_course.classroom.check.diagnosis import diagnose
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake
from grpo_course.classroom.exercises import EXERCISES

every_exercise = pytest.mark.parametrize(
    "exercise", EXERCISES, ids=lambda exercise: exercise.name
)


@every_exercise
def test_an_untouched_stub_is_not_attempted(judge, exercise):
    def stub(*_):
        """shapes"""
        raise NotImplementedError  # 2 lines

    verdict = judge(exercise.name, stub)
    assert verdict.text.startswith(f"[ ] {exercise.key} {exercise.name}: not attempted")
    assert verdict.returned is exercise.solution


@every_exercise
def test_an_exception_becomes_advice_with_the_learners_line(judge, exercise):
    def misspelt(*_):
        first = 1
        return first + missing_name  # noqa: F821

    verdict = judge(exercise.name, misspelt)
    assert verdict.text.startswith(f"[x] {exercise.key} ")
    assert "your line: return first + missing_name" in verdict.text
    assert "NameError: name 'missing_name' is not defined" in verdict.text
    assert "Traceback" not in verdict.text and ".py" not in verdict.text
    assert verdict.returned is exercise.solution


@every_exercise
def test_none_names_the_missing_return(judge, exercise):
    def forgetful(*_):
        x = 1  # noqa: F841

    assert "is the `return` missing?" in judge(exercise.name, forgetful).text


def test_none_in_some_cases_asks_for_each_branch(judge):
    text = judge("count_matches", lambda p, r: p[0] if len(set(p)) == 1 else None).text
    assert "does each branch end" in text and "missing?" not in text


def can_change(value):
    """A list, or a tensor to which a number can be added in place."""
    is_tensor = isinstance(value, torch.Tensor)
    return isinstance(value, list) or (is_tensor and value.dtype != torch.bool)


@every_exercise
def test_a_changed_input_is_named(judge, exercise):
    # The last list or tensor is changed; what comes back is right nevertheless.
    places = [i for i, v in enumerate(exercise.cases[0].args.values()) if can_change(v)]
    if not places:
        pytest.skip("nothing that this exercise is given can be changed in place")

    def changing(*arguments):
        answer = exercise.solution(*arguments)  # computed before the change
        given = arguments[places[-1]]
        given += [0] if isinstance(given, list) else 1
        return answer

    name = list(exercise.cases[0].args)[places[-1]]
    assert f"changes its input `{name}` in place" in judge(exercise.name, changing).text


def test_sorting_the_prompt_in_place_is_named(judge):
    def sorting(prompt, response):
        prompt.sort()
        return sum(x == y for x, y in zip(prompt, response, strict=True))

    assert "changes its input `prompt` in place" in judge("count_matches", sorting).text


def fail(error):
    raise error


# name of the exercise, what a learner writes, words of what check must print
FORMS = [
    ("center_by_group", lambda r: r.tolist(), "must be a tensor, but is a list"),
    ("naive_loss", lambda x, d: 0.5, "must be a tensor, but is a float"),
    ("count_matches", lambda p, r: [1.0, 2.0], "must be one number, but is a list"),
    (
        "count_matches",
        lambda p, r: torch.ones(2),
        "must be one number, but is a Tensor",
    ),
    ("center_by_group", lambda r: r.mean(1), "the wrong shape"),
    (
        "center_by_group",
        lambda r: r.mean(1),
        "expected [batch trial]: shape [2, 4]",
    ),
    (
        "center_by_group",
        lambda r: (r - r.mean(1, keepdim=True)).int(),
        "dtype must be float32, not int32",
    ),
    (
        "leave_one_out",
        lambda r: (r.mean(1, keepdim=True) - r) * r.shape[1] / (r.shape[1] - 1),
        "wrong way round",
    ),
    (
        "center_by_group",
        lambda r: 3 * (r - r.mean(1, keepdim=True)),
        "Always 3 times the expected",
    ),
    (
        "center_by_group",
        lambda r: r - r.mean(1, keepdim=True) + 2,
        "Always 2 too large",
    ),
    ("expected_reward", lambda p, r: r[:, 0] / 0, "NaN or infinity came out"),
    (
        "center_by_group",
        lambda r: einops.rearrange(r, "b t x -> b t"),
        "EinopsError: Error while processing",
    ),
    ("center_by_group", lambda r: r - r.mean(1)[:, None, None, :], "keepdim"),
    ("center_by_group", lambda r: sys.exit(), "SystemExit"),
    # torch raises it as well, for what a dtype cannot do: that is no stub.
    (
        "center_by_group",
        lambda r: fail(NotImplementedError("addmm for Half")),
        "NotImplementedError: addmm for Half",
    ),
]


@pytest.mark.parametrize(("name", "answer", "words"), FORMS)
def test_general_advice(judge, name, answer, words):
    verdict = judge(name, answer)
    assert verdict.text.startswith("[x]") and words in verdict.advice, verdict.text


def test_the_report_shows_input_output_and_the_expected(capsys):
    def center_by_group(rewards):
        return rewards - 1

    check(center_by_group)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[x] 3.1 center_by_group is not right yet: two groups"
    assert lines[1:4] == [
        "    given rewards [batch trial]: [[0, 1, 3, 4], [5, 5, 5, 9]]",
        "    yours:    [[-1, 0, 2, 3], [4, 4, 4, 8]]",
        "    expected: [[-2, -1, 1, 2], [-1, -1, -1, 3]]",
    ]


def test_a_large_result_shows_one_place_by_its_axes(judge):
    text = judge("gather_log_probs", lambda x, ids: ids.float()).text
    assert "at batch 0, trial 1, pos 0: yours 2, expected -2.632" in text


def centered(rewards):
    return rewards - rewards.mean(1, keepdim=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_any_width_of_float_is_right(judge, dtype):
    verdict = judge("center_by_group", lambda r: centered(r.to(dtype)))
    assert verdict.text.startswith("[v]")


@pytest.mark.parametrize("epsilon", [0, 1e-4])
def test_normalizing_with_or_without_epsilon_is_right(judge, epsilon):
    def normalized(rewards):
        gap = centered(rewards)
        gap[(rewards == rewards[:, :1]).all(1)] = 0
        std = rewards.std(1, keepdim=True) + epsilon
        return torch.where(gap == 0, 0, gap / std)

    assert judge("normalize_by_group", normalized).text.startswith("[v]")


def test_an_unknown_name_lists_those_like_it(judge):
    verdict = judge("centre_by_group", centered)
    assert verdict.text.startswith("[!] No exercise is called centre_by_group.")
    assert "Did you mean center_by_group" in verdict.text
    assert "Keep the name that the notebook gave" in verdict.text
    assert verdict.returned is centered


def test_a_result_instead_of_a_function(capsys):
    assert check(3.0) == 3.0
    assert "without calling it" in capsys.readouterr().out


def test_the_course_s_own_function_is_recognised(capsys):
    solution = EXERCISES[0].solution
    assert check(solution) is solution
    assert "the course's own here" in capsys.readouterr().out


def test_a_keyboard_interrupt_passes(judge):
    with pytest.raises(KeyboardInterrupt):
        judge("center_by_group", lambda r: fail(KeyboardInterrupt))


def test_a_broken_check_says_so_and_raises_nothing(judge, monkeypatch):
    def broken(*_):
        raise RuntimeError("no luck")

    monkeypatch.setattr(checking, "diagnose", broken)
    verdict = judge("center_by_group", centered)
    assert "The check itself broke (RuntimeError: no luck)" in verdict.text
    assert verdict.returned is not centered


def test_progress_before_any_exercise(capsys, monkeypatch):
    monkeypatch.setattr(checking, "_session", {})
    progress()
    assert "No exercise has been checked" in capsys.readouterr().out


def test_progress_lists_the_notebook_s_exercises(judge, capsys, monkeypatch):
    some = [e for e in EXERCISES if e.key in ("2.1", "3.1", "3.2", "3.3", "3.4", "4.1")]
    monkeypatch.setattr(checking, "_exercises", lambda: some)
    judge("center_by_group", centered)
    judge("leave_one_out", lambda rewards: rewards)
    judge("normalize_by_group", lambda rewards: fail(NotImplementedError))
    progress()
    assert capsys.readouterr().out.splitlines() == [
        "3.1  center_by_group        [v] right",
        "3.2  leave_one_out          [x] not right yet",
        "3.3  normalize_by_group     [ ] not attempted yet",
        "3.4  softmax_minus_uniform  [ ] not attempted yet",
        "1 of 4 right.",
    ]


def test_an_example_leaves_no_trace_in_the_progress(capsys, monkeypatch):
    monkeypatch.setattr(checking, "_session", {})

    def center_by_group(rewards):
        return rewards

    assert check(center_by_group, keep=False) is not center_by_group
    assert "[x] 3.1" in capsys.readouterr().out
    progress()
    assert "No exercise has been checked" in capsys.readouterr().out


def _ratio(log_probs, old_log_probs):
    return (log_probs - old_log_probs.detach()).exp()


RATIO = Exercise(
    key="99.1",
    name="ratio",
    solution=_ratio,
    cases=(
        Case(
            "equal policies",
            {"log_probs": torch.zeros(1, 2, 3), "old_log_probs": torch.zeros(1, 2, 3)},
        ),
    ),
    mistakes=(
        Mistake(lambda new, old: (new - new.detach()).exp() + 0 * old, "new over new"),
    ),
    insight="",
    gradient_to=("log_probs", "old_log_probs"),
)

GRADIENTS = [
    (lambda new, old: (new.detach() - old).exp(), "no gradient reaches"),
    (lambda new, old: (new - old).exp(), "flows into `old_log_probs`"),
    (
        lambda new, old: (2 * new - new.detach() - old.detach()).exp(),
        "gradient of",
    ),
    (lambda new, old: new / old, "You divide logarithms"),
    (lambda new, old: 1 + new.flip(-1) - new.detach().flip(-1), "gradient of"),
]


@pytest.mark.parametrize(("answer", "words"), GRADIENTS)
def test_gradients_are_compared_once_values_agree(answer, words):
    assert diagnose(RATIO, _ratio) is None
    assert words in diagnose(RATIO, answer).hint


def test_a_mistake_in_the_gradient_alone_is_found_in_the_catalogue():
    doubled = Mistake(
        lambda new, old: (2 * new - new.detach() - old.detach()).exp(), "twice"
    )
    exercise = Exercise(**{**vars(RATIO), "mistakes": (doubled,)})

    def learner(new, old):
        return (new - old.detach() + new - new.detach()).exp()

    assert diagnose(exercise, learner).hint == "twice"


def doubled(number):
    return number * 2


def increased(number):
    return sum([n + 1 for n in [number]])


DRAFTED = Exercise(
    key="99.3",
    name="doubled",
    solution=doubled,
    draft=increased,
    use=lambda function, number: function(number) > number + 1,
    cases=(Case("three", {"number": 3}), Case("five", {"number": 5})),
    insight="",
)


def the_draft_as_it_stands(number):
    return sum([n + 1 for n in [number]])


def the_draft_with_another_number(number):
    return sum([n + 0.5 for n in [number]])


def test_a_draft_in_the_stub_is_untouched_until_a_step_of_it_changes():
    assert diagnose(DRAFTED, the_draft_as_it_stands).kind == "untouched"
    assert diagnose(DRAFTED, the_draft_with_another_number).kind == "values"


def test_an_answer_may_be_judged_by_what_it_is_good_for():
    assert diagnose(DRAFTED, lambda number: number**2) is None
    assert diagnose(DRAFTED, lambda number: -number).kind == "values"
