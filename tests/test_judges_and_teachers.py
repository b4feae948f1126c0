"""Judges whose errors are known, panels; teachers and their students."""

import pytest
import torch

from grpo_course.lessons import judges, teachers
from grpo_course.lessons.judges import checked, draw_judges, of_panel, try_panel
from grpo_course.lessons.preferences import (
    EVERY,
    by_choice,
    by_record,
    dpo,
    draw_pairs,
    judged_by,
    of_pairs,
    true_rewards,
    warm_start,
)
from grpo_course.loop import Rollout
from grpo_course.sort import SORT_PROMPTS, all_log_probs

SEEDS = range(3)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_judges_err_by_a_point_and_share_what_they_are_said_to(correlation):
    errors = judges.judge_errors(4, correlation, range(32)).flatten(1)  # [judge case]
    torch.testing.assert_close(errors.std(-1), torch.ones(4), atol=0.03, rtol=0)
    between = torch.corrcoef(errors)[~torch.eye(4).bool()]
    assert (between - correlation).abs().max() < 0.04
    mean_variance = errors.mean(0).var().item()
    assert mean_variance == pytest.approx((1 + 3 * correlation) / 4, abs=0.03)


def test_another_seed_meets_other_errors_and_the_same_seed_the_same():
    errors = judges.judge_errors(2, 0.5, range(2))
    assert not torch.equal(errors[:, 0], errors[:, 1])
    torch.testing.assert_close(judges.judge_errors(2, 0.5, [1])[:, 0], errors[:, 1])


def test_a_table_of_marks_pays_each_response_its_own():
    marks = torch.arange(2 * 3 * 125.0).view(2, 3, 125)
    responses = EVERY[[0, 7, 124]].expand(2, 3, 3, 3)
    paid = judged_by(marks)(Rollout(SORT_PROMPTS, responses))
    torch.testing.assert_close(paid, marks[..., [0, 7, 124]])


def test_pairs_are_drawn_from_those_that_have_a_chance():
    chances = torch.zeros(3, 3, 125)
    chances[..., [5, 9]] = 0.5
    pairs = draw_pairs(30, SEEDS, chances=chances)
    assert pairs.shape == (3, 3, 30, 2)
    assert (pairs.sort(-1).values == torch.tensor([5, 9])).all()  # never one twice


def test_rightly_and_wrongly_chosen_are_averaged_apart():
    worth = true_rewards()  # [batch all]
    right = torch.stack([worth.argmax(-1), worth.argmin(-1)], dim=-1)  # [batch 2]
    pairs = torch.stack([right, right.flip(-1), right], dim=1)[None]
    values = torch.tensor([1.0, 5.0, 3.0]).expand(1, 3, 3)
    assert by_choice(values, pairs) == {"rightly chosen": 2, "wrongly chosen": 5}
    assert [*by_choice(values[..., :1], pairs[..., :1, :])] == ["rightly chosen"]


def test_probability_is_divided_by_what_the_pairs_say():
    order = true_rewards().argsort(-1, descending=True)[None]  # [seed batch all]
    best, lucky, luckless = order[..., 0], order[..., 1], order[..., 2]
    pairs = torch.stack([lucky, luckless], dim=-1)[:, :, None]  # one pair a prompt
    chances = torch.zeros(1, 3, 125)
    for index, chance in ((best, 0.1), (lucky, 0.2), (luckless, 0.3)):
        chances.scatter_(-1, index[..., None], chance)
    chances.scatter_(-1, order[..., 3:4], 0.4)
    shares = torch.stack([*by_record(chances, pairs).values()])
    torch.testing.assert_close(shares[:, 0], torch.tensor([0.1, 0.2, 0.3, 0.4]))


def test_chosen_responses_that_are_held_up_end_likelier():
    pairs = draw_pairs(10, SEEDS)
    ends = []
    for hold in (0.0, 1.0):
        policy = warm_start(SEEDS, num_epochs=2)
        dpo(pairs, policy, num_steps=30, hold=hold)
        log_probs = all_log_probs(policy.model, SORT_PROMPTS).detach()
        ends.append(of_pairs(log_probs, pairs)[0].mean((-2, -1)))
    assert (ends[1] > ends[0]).all()


# The investigation

ALL = draw_judges()
ERRORS = checked(ALL)


def test_a_mixed_panel_closes_the_case_and_the_most_accurate_four_do_not(capsys):
    of_all, known = (e[of_panel("abci")].mean(0).std() for e in (ALL, ERRORS))
    assert abs(of_all - known) < 0.02  # the checked cases tell it
    assert try_panel(ERRORS, [*"abci"])
    assert "[v] the mean mark of abci errs by 0.46" in capsys.readouterr().out
    assert not try_panel(ERRORS, "aegk")
    told = capsys.readouterr().out
    assert told == "the mean mark of aegk errs by 0.73\n"  # nobody has chosen yet
    assert not try_panel(ERRORS, "abcd")
    assert "[x] the mean mark of abcd errs by 0.51" in capsys.readouterr().out


@pytest.mark.parametrize("panel", ["abcc", "abcz", "abc"])
def test_a_panel_is_four_different_judges(panel, capsys):
    assert not try_panel(ERRORS, panel)
    assert "name four different judges" in capsys.readouterr().out


# Teachers


def test_a_teacher_knows_what_it_was_shown_and_a_student_nothing():
    few = teachers.probability_right(teachers.make_teacher(SEEDS, num_steps=10))
    many = teachers.probability_right(teachers.make_teacher(SEEDS, num_steps=60))
    fresh = teachers.probability_right(teachers.make_student(SEEDS))
    assert (fresh < 0.05).all() and (many > few).all() and (many > 0.9).all()


def test_the_probability_right_is_the_share_of_right_samples():
    teacher = teachers.make_teacher(SEEDS, num_steps=25)
    rollout = teacher.sample(teachers.PROMPTS, 60)
    share = teachers.right(rollout).mean((-2, -1))
    exact = teachers.probability_right(teacher)
    torch.testing.assert_close(share, exact, atol=0.04, rtol=0)


def test_a_number_is_in_place_by_itself_and_right_are_all():
    prompts = torch.tensor([[3, 1, 2, 4]])
    rollout = Rollout(prompts, torch.tensor([[[1, 3, 3], [1, 2, 3]]]))
    assert teachers.in_place(rollout).tolist() == [[[1, 0, 1], [1, 1, 1]]]
    assert teachers.right(rollout).tolist() == [[0, 1]]


def test_responses_that_differ_are_counted_as_a_set_counts_them():
    student, again = (teachers.make_student(SEEDS) for _ in range(2))  # of five tokens
    groups = student.sample(teachers.PROMPTS, 8).responses.flatten(0, 1).tolist()
    counts = torch.tensor([len({*map(tuple, group)}) for group in groups])
    expected = counts.view(3, -1).float().mean(dim=-1)
    torch.testing.assert_close(teachers.num_different(again), expected)


def test_who_is_sure_writes_one_response_and_who_knows_nothing_many():
    sure = teachers.num_different(teachers.make_teacher(SEEDS, num_steps=80))
    fresh = teachers.num_different(teachers.make_student(SEEDS))
    assert sure.shape == (3,) and (sure >= 1).all() and (sure < 1.3).all()
    assert (fresh > 6).all() and (fresh <= 8).all()


@pytest.mark.slow
def test_a_writer_writes_and_deltas_are_what_they_are_said_to_be():
    teacher, seen = teachers.make_teacher(SEEDS, num_steps=60), []

    def deltas_of(rollout, rewards, log_probs):
        seen.append((rollout, rewards, log_probs.requires_grad))
        return torch.ones_like(log_probs)

    student = teachers.make_student(SEEDS)
    looks = teachers.study(student, 0.02, 4, deltas_of=deltas_of, writer=teacher)
    assert looks.shape == (5, 3) and (looks[-1] > looks[0]).all()
    rollout, rewards, has_gradient = seen[0]
    assert rewards.mean() > 0.8 and not has_gradient  # the teacher's own texts
    torch.testing.assert_close(rewards, teachers.right(rollout))
    teachers.study(student, 0.02, 1, deltas_of=deltas_of)
    assert seen[-1][1].mean() < 0.5
