"""Every bug breaks what it says it breaks, and its repair mends exactly that."""

import inspect
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
import torch

from grpo_course.algorithm.deltas import normalize
from grpo_course.algorithm.losses import LOSS_MODES, clipped_loss
from grpo_course.classroom.bugs import loss_bugs, reward_bugs, runs, token_bugs
from grpo_course.classroom.bugs.sheet import BUGS
from grpo_course.classroom.exercises.nb10_bug_hunt import RUNS, diagnosis

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "10_bug_hunt.ipynb"
each_bug = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)


@each_bug
def test_the_probe_finds_the_bug_and_passes_the_repair(bug):
    assert not bug.healthy(bug.broken)
    assert bug.healthy(bug.repaired)


@each_bug
def test_the_repaired_line_is_what_the_broken_piece_lacks(bug):
    def one_line(source):
        return " ".join(source.split())

    line = one_line(bug.repaired_line)
    assert line in one_line(inspect.getsource(inspect.getmodule(bug.repaired)))
    assert line not in one_line(inspect.getsource(bug.broken))


def test_there_are_thirteen_and_no_two_share_a_name():
    assert len({bug.name for bug in BUGS}) == len(BUGS) == 13
    assert len({bug.broken.__name__ for bug in BUGS}) == len(BUGS)


def test_the_notebook_holds_the_sheet_as_the_bugs_say_it():
    rows = [("symptom", "probe", "cause"), ("---", "---", "---")]
    rows += [(bug.symptom, bug.probe, f"{bug.name}: {bug.cause}") for bug in BUGS]
    sheet = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    sources = [cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells]
    assert any(sheet in source for source in sources)


def test_the_notebook_lists_every_suspect():
    sources = [cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells]
    (question,) = [s for s in sources if "**Exercise 10.0**" in s]
    names = sorted(bug.name for bug in BUGS)
    assert ", ".join(f"`{name}`" for name in names) in question


def test_no_run_is_explained_before_the_diagnosis():
    sources = [cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells]
    asked = next(i for i, s in enumerate(sources) if "**Exercise 10.0**" in s)
    before = " ".join(sources[1:asked])
    assert "show(" not in before
    assert not [bug.name for bug, _ in RUNS.values() if bug.name in before]


@pytest.mark.parametrize("run", RUNS)
def test_a_wrong_diagnosis_does_not_tell_the_right_name(judge, run):
    def one_wrong(asked):
        return "mean of means" if asked == run else diagnosis(asked)

    right, seen = RUNS[run]
    text = judge("diagnosis", one_wrong).text
    assert "'mean of means' shows otherwise" in text and seen in text
    assert right.name not in text


# Right answers written in another way also go through all later cells.


def learners_answers():
    """The right answers that no two learners write alike."""
    planted = Path(__file__).parent / "planted" / "nb10_bug_hunt.py"
    answers = {
        name: dict(answers())["is right"]
        for name, answers in runpy.run_path(str(planted)).items()
        if inspect.isgeneratorfunction(answers)
    }
    assert len(answers) == len(BUGS) + 1  # and the diagnosis
    return answers


def test_the_cells_after_an_exercise_take_any_right_answer(monkeypatch):
    def one_epoch(*args, **knobs):
        return trained(**(knobs | {"num_epochs": 1, "seeds": range(2)}))

    def check(stub):
        return answers[stub.__name__]

    trained, answers = runs.run_policy_gradient, learners_answers()
    monkeypatch.setattr(runs, "run_policy_gradient", one_epoch)
    names = {"__name__": "__main__"}
    for index, cell in enumerate(nbformat.read(NOTEBOOK, as_version=4).cells):
        if cell.cell_type != "code" or "colab" in cell.metadata.get("tags", []):
            continue
        # optimize=1 drops the assertions: one epoch teaches nothing.
        exec(compile(cell.source, f"<cell {index}>", "exec", optimize=1), names)
        names |= {"check": check, "run_policy_gradient": one_epoch}
        plt.close("all")
    unhealthy = [
        bug.name
        for bug, repaired in zip(BUGS, names["YOURS"], strict=True)
        if not bug.healthy(repaired)
    ]
    assert not unhealthy


# What puts a piece into a training run.


def test_seeds_are_folded_into_the_batch_and_come_back():
    rewards_of = torch.arange(24.0).view(2, 3, 4).square()
    shapes = []

    def piece(given, factor):
        shapes.append(tuple(given.shape))
        return factor * normalize(given)

    folded = runs.seeds_as_batch(piece)(rewards_of, 2.0)
    assert shapes == [(6, 4)]
    assert torch.equal(folded, 2.0 * normalize(rewards_of))


def test_as_loss_hands_over_by_position_with_one_delta_a_token():
    def piece(log_probs, deltas, old, high):
        assert log_probs.shape == deltas.shape == old.shape == (4, 3, 5)
        return (log_probs - old) * deltas + high

    new, old = torch.rand(2, 2, 3, 5), torch.rand(2, 2, 3, 5)
    deltas = torch.rand(2, 2, 3, 1)
    loss = runs.as_loss(piece, "epsilon_high")
    given = loss(new, deltas, old_log_probs=old, epsilon=0.1, epsilon_high=0.3)
    assert torch.allclose(given, (new - old) * deltas + 0.3)


def test_reread_shifts_only_with_the_broken_scores():
    log_probs = torch.tensor([[[0.9, 0.3, 0.6]]]).log()
    read = [runs.reread(s, log_probs).exp() for s in (BUGS[2].repaired, BUGS[2].broken)]
    assert torch.allclose(read[0], torch.tensor([[[0.9, 0.3, 0.6]]]))
    assert torch.allclose(read[1], torch.tensor([[[0.3, 0.6, 0.9]]]))


def test_rereading_loss_is_the_clipped_loss_for_right_scores():
    new, old = -1 - torch.rand(2, 2, 3, 5), -1 - torch.rand(2, 2, 3, 5)
    deltas, clip = torch.randn(2, 2, 3, 1), {"epsilon": 0.2, "epsilon_high": 0.2}
    pieces = [runs.rereading_loss(BUGS[2].repaired), clipped_loss]
    right, expected = (p(new, deltas, old_log_probs=old, **clip) for p in pieces)
    assert torch.allclose(right, expected, atol=1e-5)


def test_deltas_from_rows_mix_prompts_only_in_the_broken_order():
    rewards_of = torch.tensor([[[1.0, 2.0], [10.0, 30.0]]])  # [seed batch trial]
    right, mixed = (
        runs.deltas_from_rows(rows)(rewards_of)
        for rows in (token_bugs.repaired_rows, token_bugs.shuffled_rows)
    )
    assert torch.equal(right, normalize(rewards_of))
    # Cut after two rows, a list of 1, 10, 2, 30 has the groups (1, 10) and (2, 30).
    assert mixed.sign().tolist() == [[[-1.0, -1.0], [1.0, 1.0]]]


# What each broken piece does, as a number worked out by hand.


@pytest.mark.parametrize(
    ("loss", "ratio", "delta", "expected"),
    [
        # d(-lp / old * delta) at old = -3: the wrong sign, a third as large
        (loss_bugs.quotient_loss, 1.0, 1.0, -1 / 3),
        (loss_bugs.quotient_loss, 1.0, -1.0, 1 / 3),
        (loss_bugs.wrong_side_loss, 0.5, -1.0, -0.5),
        (loss_bugs.wrong_side_loss, 2.0, -1.0, 0.0),
        (loss_bugs.wrong_side_loss, 2.0, 1.0, 0.0),
        (clipped_loss, 0.5, -1.0, 0.0),
        (clipped_loss, 2.0, -1.0, -2.0),
    ],
)
def test_pull(loss, ratio, delta, expected):
    assert loss_bugs.pull(loss, ratio, delta) == pytest.approx(expected, abs=1e-5)


def test_the_quotient_trains_backwards_and_leaves_its_value_at_the_start():
    old = torch.tensor([[[-1.0, -3.0]]])
    value = loss_bugs.quotient_loss(old, torch.ones(1, 1, 1), old_log_probs=old)
    assert torch.equal(value, -torch.ones(1, 1, 2))
    run = runs.run_with(
        LOSS_MODES,
        "loss_mode",
        loss_bugs.quotient_loss,
        num_epochs=20,
        num_steps_per_epoch=4,
        seeds=range(4),
    )
    assert "under test" not in LOSS_MODES
    curve = run.curve("expected_reward")
    assert (curve[-1] < curve[0]).all()


def test_upside_down_k3_is_chi_square_minus_kl():
    p, q = torch.tensor(loss_bugs.PROBS), torch.tensor(loss_bugs.REF_PROBS)
    chi_square = (p * p / q).sum() - 1
    mean, kl = loss_bugs.mean_estimate(loss_bugs.upside_down_k3)
    assert mean == pytest.approx(chi_square.item() - kl, abs=1e-5)


def test_k1_has_no_gradient_where_the_kl_has_one():
    gradient, of_kl = loss_bugs.mean_gradient(loss_bugs.K1_AS_LOSS.broken)
    assert gradient.abs().max() < 1e-6 and of_kl.abs().max() > 0.1


def test_dropout_moves_the_ratio_of_unchanged_weights():
    low, high = loss_bugs.ratio_range(loss_bugs.dropout_in_between)
    assert low < 0.9 and high > 1.1


def test_unshifted_scores_read_the_forecast_of_the_next_token():
    ids = torch.tensor([[0, 1, 2]])
    logits = token_bugs.counting_logits(ids)
    likely, unlikely = (torch.tensor([x, 0, 0, 0, 0, 0.0]) for x in (2.0, -0.0))
    total = likely.logsumexp(0)
    right = (likely[0] - total).expand(1, 2)
    wrong = (unlikely[0] - total).expand(1, 2)
    assert torch.allclose(token_bugs.repaired_scores(logits, ids), right)
    assert torch.allclose(token_bugs.unshifted_scores(logits, ids), wrong)


def test_the_mask_is_wrong_only_where_padding_is_not_eos():
    assert token_bugs.mask_counts(token_bugs.padded_mask) == [6, 3]


def test_shuffled_rows_put_every_prompt_into_the_first_group():
    prompts = torch.tensor([[0, 0], [1, 1]])
    assert token_bugs.shuffled_rows(prompts, 2)[:2].tolist() == [[0, 0], [1, 1]]
    assert token_bugs.repaired_rows(prompts, 2)[:2].tolist() == [[0, 0], [0, 0]]


def test_mean_of_means_weighs_a_lonely_token_more():
    per_token, mask = torch.tensor([[4.0, 9.0], [1.0, 1.0]]), torch.ones(2, 2).bool()
    mask[0, 1] = False  # one token of 4; two of 1
    assert token_bugs.mean_of_means(per_token, mask, 1) == 2.5
    assert token_bugs.repaired_token_mean(per_token, mask, 1) == 2.0


def test_one_regex_pays_all_or_nothing():
    whole = "<think>a</think><answer>-5</answer>"
    without_a_tag = [whole.replace(tag, "") for tag in reward_bugs.TAGS]
    texts = [whole, "Hi " + whole, *without_a_tag]
    assert {reward_bugs.one_regex_reward(text) for text in texts} == {0.0, 0.5}
    # With a tag of the answer gone, the number is not between tags any more.
    paid = [reward_bugs.repaired_format_reward(text) for text in texts]
    assert paid == [0.5, 0.5, 0.4, 0.4, 0.3, 0.3]


def test_tiny_epsilon_makes_deltas_of_rounding():
    largest = reward_bugs.tiny_epsilon(torch.full((1, 8), 0.1)).abs().max()
    assert largest > 0.1


@pytest.mark.parametrize("size", [2, 4, 8])
def test_the_two_spreads_differ_by_one_factor(size):
    over_g = reward_bugs.mean_square(reward_bugs.population_normalize, size)
    over_g_minus_1 = reward_bugs.mean_square(reward_bugs.SPREAD.repaired, size)
    assert over_g == pytest.approx(1, abs=1e-3)
    assert over_g_minus_1 == pytest.approx((size - 1) / size, abs=1e-3)


def test_the_forgetful_step_fails_at_the_second_inner_step_only():
    assert reward_bugs.log_steps(reward_bugs.forgetful_step, 1) == [2.0, 3.0, 4.0, 5.0]
    assert reward_bugs.forgetful_step(torch.tensor([[3.0, 1.0]]), None) == 2.0
    with pytest.raises(UnboundLocalError):
        reward_bugs.forgetful_step(None, 2.0)
    logged = reward_bugs.log_steps(reward_bugs.remembering_step, 2)
    assert logged == [2.0, 2.0, 4.0, 4.0]
