"""What `check` says of any kind of answer, and what it leaves alone."""

import inspect
import sys
import textwrap
from typing import Any

import einops
import pytest
import torch

from grpo_course import compute_kl_penalty, compute_loss
from grpo_course.classroom import check as checking
from grpo_course.classroom.check import (
    Exercise,
    case,
    check,
    diagnose,
    find,
    progress,
    report,
    same_code,
)
from grpo_course.sort import compute_reward, generate_responses, sort_distance_reward


@pytest.fixture
def judge(capsys, monkeypatch):
    """judge(name, function) -> what check printed, and what it returned."""
    monkeypatch.setattr(checking, "_session", {})

    def judge_answer(name, function):
        function.__name__ = name
        returned = check(function)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= checking.WIDTH
        return " ".join(" ".join(lines).split()), returned

    return judge_answer


def fail(error):
    raise error


def in_place(x, y):
    result = k3(x, y)
    x += 1
    return result


def k3(x, y):
    return (y - x).expm1() - (y - x)


K3, KL = "k3_estimate", "exact_kl_of"
SAID = [
    (K3, k3, "[v] 5.2 k3_estimate is right."),
    (K3, lambda x, y: k3(x.double(), y.double()), "[v]"),
    (K3, lambda x, y: fail(NotImplementedError), "[ ] 5.2 k3_estimate: not attempted"),
    # torch raises it as well, for what a dtype cannot do: that is no stub.
    (K3, lambda x, y: fail(NotImplementedError("addmm")), "NotImplementedError: addmm"),
    (K3, lambda x, y: None, "is the `return` missing?"),
    (
        K3,
        lambda x, y: k3(x, y) if x.max() > -0.3 else None,
        "is there a branch without",
    ),
    (K3, in_place, "changes its input `log_probs` in place"),
    (K3, lambda x, y: k3(x, y).tolist(), "must be a tensor, but is a list"),
    (K3, lambda x, y: k3(x, y)[..., None], "an axis of size 1 is left: squeeze(-1)"),
    (K3, lambda x, y: k3(x, y).sum((0, 2)), "wrong shape: an axis too few"),
    (K3, lambda x, y: k3(x, y).int(), "dtype must be float32, not int32"),
    (K3, lambda x, y: 3 * k3(x, y), "Always 3 times the expected"),
    (K3, lambda x, y: k3(x.detach(), y), "no gradient reaches `log_probs`"),
    (K3, lambda x, y: k3(x, y) + x - x.detach(), "the gradient of `log_probs` is not"),
    (K3, lambda x, y: sys.exit(), "SystemExit"),
    (K3, lambda x, y: missing_name, "NameError: name 'missing_name'"),  # noqa: F821
    (K3, lambda x, y: missing_name, "your line: (K3, lambda x, y: miss"),  # noqa: F821
    (KL, lambda x: x, "Keep the stub's signature"),
    (KL, lambda x, y: float(x) * y, "leave the tensor a tensor"),
    (KL, lambda x, y: x.sum(-1).backward(), "is a mean missing?"),
    (KL, lambda x, y: x.softmax(), "softmax() received an invalid combination"),
    (KL, lambda x, y: x.max(-1)[:, None], "take .values or .indices"),
    (KL, lambda x, y: x if x > y else y, "ask for .all() or .any()"),
    (KL, lambda x, y: x.gather(1, y.long()[None]), "gather does not broadcast"),
    (KL, lambda x, y: torch.min(x, 1.2), "bounds as clamp(max=...)"),
    (KL, lambda x, y: torch.minimum(x, 1.2), "bounds as clamp(max=...)"),
    (KL, lambda x, y: "7".rindex("<answer>"), "find gives -1 there"),
    (KL, lambda x, y: x / 0, "the wrong shape"),
    (KL, lambda x, y: x.sum(-1) / 0, "NaN or infinity came out"),
    (KL, lambda x, y: einops.rearrange(x, "b t v -> b t"), "Identifiers only on one"),
    # The package's own error, to its end.
    (KL, lambda x, y: compute_loss(x, y, "cliped"), "'cispo', 'sapo'."),
    (KL, lambda x, y: (y.exp() * (y - x)).sum(1), "the other direction"),
    (KL, lambda x, y: (x - y).abs().sum(1), "yours: [1.792, 4.143]"),
    (
        "inner_step_loss",
        lambda new, old, ref, d, beta: beta * compute_kl_penalty(ref, new),
        "Are two arguments exchanged?",
    ),
    (
        "one_update",
        lambda model, optimizer, x, size, generator: compute_reward(
            generate_responses(x, model, size, generator), x, sort_distance_reward
        ),
        "or are two exchanged?",
    ),
    (
        "leave_one_out",
        lambda rewards: rewards - (rewards.sum(1, True) - rewards) / 3,
        "right where the length of trial is 4",
    ),
    ("turn_mask", lambda n, width: torch.zeros(len(n), width), "dtype must be bool"),
    ("k3_estimat", k3, "No exercise is called k3_estimat. Did you mean k3_estimate"),
]


@pytest.mark.parametrize(("name", "answer", "words"), SAID)
def test_what_is_said_of_an_answer(judge, name, answer, words):
    text, returned = judge(name, answer)
    assert words in text
    right = text.startswith(("[v]", "[!]"))
    assert (returned is answer) == right


def hints(solution, *cases, **more):
    """What is said of a wrong answer to an exercise: hint(answer)."""
    task = Exercise("99.1", solution, cases=list(cases), **more)
    return lambda answer: diagnose(task, answer).hint


def test_a_gradient_that_leaks_is_named():
    one = case("one", x=torch.zeros(2, 3), old=torch.zeros(2, 3))
    hint = hints(lambda x, old: (x - old.detach()).exp(), one, gradient="x old")
    assert "flows into `old`, where none may" in hint(lambda x, old: (x - old).exp())


def test_a_verdict_shows_what_was_given_what_came_out_and_what_is_expected():
    def next_beta(beta, kl, target, gain):
        return beta * (1 + gain * (kl / target - 1))

    def without_error(beta, kl, target, gain):
        return beta * kl

    given = case("one", beta=0.1, kl=[0.2, 0.21, 0.19], target=0.2, gain=0.5)
    task = Exercise("99.2", next_beta, cases=[given])
    lines = report(task, without_error, diagnose(task, without_error))
    assert lines[-4:] == [
        "    yours:    [0.02, 0.021, 0.019]",
        "    expected: [0.1, 0.1025, 0.0975]",
        "    given kl: [0.2, 0.21, 0.19]",
        "    given beta: 0.1, target: 0.2, gain: 0.5",
    ]


def test_the_hint_comes_first_and_few_lines_of_what_was_given_last(capsys):
    def inner_step_loss(log_probs, old_log_probs, ref_log_probs, deltas, beta):
        ratio, each = (log_probs - old_log_probs).exp(), deltas[..., None]
        return -torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each).mean()

    check(inner_step_loss, keep=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("    The KL is missing.")
    labels = [line.split()[0] for line in lines[1:] if line.startswith("    ")]
    assert labels.index("yours:") < labels.index("expected:") < labels.index("given")
    assert len(lines) - 1 - labels.index("given") <= checking.FEW + 2


def test_of_a_long_result_the_worst_place_is_shown():
    def double(x):
        """float [batch trial] -> float [batch trial]"""
        return 2 * x

    task = Exercise("99.2", double, cases=[case("long", x=torch.ones(10, 20))])
    wrong = double(torch.ones(10, 20))
    wrong[3, 7] = 5
    lines = report(task, double, diagnose(task, lambda x: wrong))
    assert "    at batch 3, trial 7: yours 5, expected 2" in lines


def test_an_edit_must_fit_the_solution():
    task = Exercise("99.3", k3, mistakes="expm2() => exp() | wrong")
    with pytest.raises(ValueError, match=r"'expm2\(\)' must stand there once"):
        task.slips  # noqa: B018


def test_a_draft_is_untouched_until_a_step_of_it_changes():
    task = Exercise("99.4", abs, draft=lambda x: x + 1, cases=[case("one", x=-3)])
    assert diagnose(task, lambda x: x + 1).kind == "untouched"
    assert diagnose(task, lambda x: x + 2).kind == "values"


def test_a_draft_is_untouched_where_its_own_cell_does_not_import_torch():
    def draft(x):
        for _ in range(2):
            x = torch.sum(x)
        return x

    cell: dict[str, Any] = {}
    exec(textwrap.dedent(inspect.getsource(draft)), cell)
    assert same_code(cell["draft"], draft)


def test_the_course_s_own_function_and_a_result_are_recognised(capsys):
    solution = find(k3_named()).solution
    assert check(solution) is solution
    assert check(3.0) == 3.0
    printed = " ".join(capsys.readouterr().out.split())
    assert "the course's own here" in printed and "without calling it" in printed


def k3_named():
    def k3_estimate(): ...

    return k3_estimate


def test_a_broken_check_says_so_and_raises_nothing(judge, monkeypatch):
    monkeypatch.setattr(checking, "diagnose", lambda *_: fail(RuntimeError("no luck")))
    text, returned = judge(K3, k3)
    assert "The check itself broke (RuntimeError: no luck)" in text
    assert returned is not k3


def test_a_keyboard_interrupt_passes(judge):
    with pytest.raises(KeyboardInterrupt):
        judge(K3, lambda x, y: fail(KeyboardInterrupt))


def test_progress_lists_the_notebook_s_exercises(judge, capsys):
    progress()
    assert "No exercise has been checked" in capsys.readouterr().out
    judge(K3, lambda x, y: k3(x, y))
    judge(KL, lambda x, y: x)
    progress()
    assert capsys.readouterr().out.splitlines() == [
        "5.1  exact_kl_of   [x] not right yet",
        "5.2  k3_estimate   [v] right",
        "5.3  corrected_k3  [ ] not attempted yet",
        "1 of 3 right.",
    ]


@pytest.mark.parametrize("key", ["2.2", "5.1", "5.3"])
def test_a_thousandth_is_not_equal_and_a_rounding_error_is(key):
    (task,) = (x for x in checking.lesson(key) if x.key == key)
    assert diagnose(task, lambda *given: task.solution(*given) * (1 + 3e-7)) is None
    assert diagnose(task, lambda *given: task.solution(*given) * (1 + 5e-5))


def test_slips_that_are_made_everywhere_are_found_in_any_exercise():
    def mean_gap(new, old, scale):
        """float [batch pos], float [batch pos], number -> float [batch]"""
        return scale * (new - old).abs().clamp(0.1, 2.0).mean(dim=-1)

    cases = [
        case(f"a scale of {scale}", new=new, old=torch.zeros(shape), scale=scale)
        for scale, shape, new in (
            (0.5, (2, 3), [[1.0, -2.0, 3.0], [0.5, 0.0, 1.0]]),
            (0.5, (1, 2), [[1.5, -2.0]]),
            (3.0, (2, 2), [[1.0, 2.5], [-0.5, 0.25]]),
        )
    ]
    hint = hints(mean_gap, *cases)

    def size(new, old):
        return (new - old).abs().clamp(0.1, 2)

    assert "`sum` in place of `mean`" in hint(lambda n, o, s: s * size(n, o).sum(-1))
    assert "with dim=0 in place of" in hint(lambda n, o, s: s * size(n, o).mean(0))
    assert "axes [pos], and [batch] are" in hint(lambda n, o, s: n[0])
    assert "`0.5` in place of `scale`" in hint(lambda n, o, s: size(n, o).mean(1) / 2)
    assert "1 in place" not in hint(lambda n, o, s: s * size(n, o).mean(1) + s)
    assert hint(lambda n, o, s: s * size(n, o).mean(1) + 2).startswith("Always 2 more")
    assert hint(lambda n, o, s: s * size(n, o).mean(1) - 2).startswith("Always 2 less")
    assert "length of pos is 3, and" in hint(lambda n, o, s: s * size(n, o).sum(1) / 3)
    assert "without `clamp`" in hint(lambda n, o, s: s * (n - o).abs().mean(1))
    assert "a min alone" in hint(lambda n, o, s: s * (n - o).abs().clamp(0.1).mean(1))
    assert "`new` in place of `old`" in hint(lambda n, o, s: s * size(n, n).mean(1))
    assert "Close, but" in hint(
        lambda n, o, s: s * size(n, o).mean(1).mul(98).round() / 98
    )
    assert "torch.tensor makes one" in hint(lambda n, o, s: [1.0, 2.0])
    assert "no gradient" in hint(lambda n, o, s: (s * size(n, o).mean(1)).numpy())


def test_a_sum_for_a_mean_is_found_by_the_length_of_an_axis():
    def penalty(gap):
        """float [batch pos] -> float []"""
        return 1 - gap.square().mean()

    hint = hints(
        penalty,
        case("short", gap=[[1.0, 2.0], [0.5, 3.0], [1.5, 0.0]]),
        case("long", gap=[[1.0, 0.5, -1.0, 2.0], [0.0, 1.0, 2.0, -2.0]]),
    )
    summed = "You sum over pos where a mean is asked for."
    assert hint(lambda gap: (1 - gap.square()).sum(-1).mean()) == summed
    fewer = "You average over batch where a sum is asked for."
    assert hint(lambda gap: (1 - gap.square().mean()) / len(gap)) == fewer


def test_arguments_of_another_kind_are_no_slip_and_lengths_of_texts_no_reason():
    def share(tokens, mask, token, padded):
        """int [pos], bool [pos], int, bool -> float []"""
        return ((tokens == token) & mask).sum() / (padded + mask.sum())

    task = Exercise("99.7", share)
    task.cases = [
        case("one", tokens=[1, 2, 2], mask=[True] * 3, token=2, padded=True),
        case("two", tokens=[3, 1], mask=[True, False], token=3, padded=False),
    ]
    assert task.like["tokens"] == task.like["mask"] == task.like["token"] == []
    always = diagnose(task, lambda x, m, t, _: ((x == t) & m).sum() / (1 + m.sum()))
    assert always.hint == (
        "This comes out of a right answer with `True` in place of `padded`."
    )


def test_the_axis_that_is_gone_is_named_and_where_values_are_right_no_inputs_stand():
    def gap(new, old):
        """float [... batch pos] twice -> float [... batch pos]"""
        return (new - old).exp() * (new - old)

    task = Exercise("99.9", gap, gradient="new")
    task.cases = [
        case(f"{rows} rows", new=torch.rand(rows, 3), old=torch.rand(rows, 3))
        for rows in (2, 4)
    ]

    def lines(answer):
        told = " ".join(report(task, answer, diagnose(task, answer)))
        return " ".join(told.split())

    assert "The axis pos is gone" in lines(lambda n, o: gap(n, o).sum(-1))
    partly = lines(lambda n, o: (n - o).detach().exp() * (n - o))
    assert "only a part of the way" in partly and "given" not in partly


def test_a_plain_number_and_what_is_true_everywhere_are_named():
    def above(values, bound):
        """float [pos], number -> bool [pos]"""
        return values > bound

    hint = hints(
        above,
        case("one", values=[1.0, 3.0], bound=2.0),
        case("two", values=[0.5, 2.0, 1.0], bound=1.5),
    )
    assert hint(lambda v, b: v > b.clone()).startswith("This is a plain number here")
    assert hint(lambda v, b: v == v) == "Your result is True everywhere."


def spoken(capsys):
    """What was printed, without its line breaks."""
    return " ".join(capsys.readouterr().out.split())


def test_a_list_where_a_number_is_wanted_and_a_dictionary_with_its_keys(capsys):
    def duplicate_proof_reward(prompt, response):
        return [x in prompt for x in response]

    def log_line(rewards, log_probs, old_log_probs, mask):
        names = ["mean_reward", "tied_groups", "sampled_entropy", "ratio_min"]
        return dict.fromkeys([*names, "ratio_max"], 0.5)

    check(duplicate_proof_reward, keep=False)
    assert "put its entries together, with sum()" in spoken(capsys)
    check(log_line, keep=False)
    assert "yours: mean_reward: 0.5, sampled_entropy: 0.5" in spoken(capsys)
