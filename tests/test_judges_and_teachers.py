"""Judges whose errors are known, panels; teachers and their students."""

import pytest
import torch

from grpo_course.lessons import judges, teachers
from grpo_course.lessons.judges import checked, draw_judges, of_panel, try_panel
from grpo_course.lessons.preferences import (
    EVERY,
    by_record,
    climb,
    climb_each,
    draw_pairs,
    judged_by,
    path_of,
    true_rewards,
    warm_start,
    what_moved,
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


def test_what_moved_is_averaged_over_the_right_choices():
    worth = true_rewards()  # [batch all]
    right = torch.stack([worth.argmax(-1), worth.argmin(-1)], dim=-1)  # [batch 2]
    tied = right[:, :1].expand_as(right)
    pairs = torch.stack([right, right.flip(-1), right, tied], dim=1)[None]
    chosen, rejected = what_moved(worth[None], pairs)
    torch.testing.assert_close(chosen, worth.amax(-1).mean()[None])
    torch.testing.assert_close(rejected, worth.amin(-1).mean()[None])


def test_a_path_begins_at_its_start_and_ends_where_the_loop_says():
    start = warm_start(SEEDS)
    marks = {"a rule": true_rewards().expand(3, 3, 125)}
    climbed = climb_each(start, marks, num_epochs=3)["a rule"]
    before = all_log_probs(start.model, SORT_PROMPTS).detach()
    kl, gain = path_of(torch.stack([before, climbed.chances.log()]))
    torch.testing.assert_close(kl, climbed.kl[[0, -1]])
    torch.testing.assert_close(gain[1], climbed.gain)
    assert (gain[0] == 0).all()


def test_who_climbs_side_by_side_climbs_as_alone():
    start = warm_start(SEEDS, num_epochs=2)
    marks = {"up": true_rewards().expand(3, 3, 125)}
    marks["down"] = -marks["up"]
    both = climb_each(start, marks, num_epochs=3)
    for name in marks:
        alone = climb(marks[name], warm_start(SEEDS, num_epochs=2), num_epochs=3)
        torch.testing.assert_close(both[name].true, alone.epochs("true"))
    assert (both["up"].gain > both["down"].gain).all()


def test_ways_side_by_side_teach_as_each_alone():
    start, teacher = warm_start(SEEDS), teachers.make_teacher(14, SEEDS)

    def distil(own, theirs):
        return theirs - own

    ways = {"opinion": lambda own, theirs: theirs.sum(-1), "distillation": distil}
    taught = teachers.study_each(start, teacher, ways, num_epochs=2)
    teachers.study(start, teacher, distil, num_epochs=2)
    torch.testing.assert_close(chances(taught["distillation"]), chances(start))


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


def chances(policy):
    """What a policy may write, exactly: [seed batch all]."""
    return all_log_probs(policy.model, SORT_PROMPTS).exp().detach()


def test_a_teacher_learns_with_time_and_is_another_policy_than_its_student():
    teachers_of = [teachers.make_teacher(epochs, SEEDS) for epochs in (7, 14)]
    worse, better = ((chances(t) * true_rewards()).sum(-1).mean() for t in teachers_of)
    assert worse < better < 3
    assert not torch.allclose(
        chances(teachers_of[1]), chances(warm_start(SEEDS, num_epochs=14))
    )


def test_who_distils_comes_close_to_the_teacher():
    student, teacher = warm_start(SEEDS), teachers.make_teacher(14, SEEDS)
    far = (chances(student) - chances(teacher)).abs().sum()
    teachers.study(student, teacher, lambda own, theirs: theirs - own, num_epochs=30)
    assert (chances(student) - chances(teacher)).abs().sum() < far / 3


@pytest.mark.parametrize("teacher_writes", [True, False])
def test_deltas_are_made_of_what_its_writer_wrote(teacher_writes):
    student, teacher, seen = warm_start(SEEDS), teachers.make_teacher(14, SEEDS), []

    def deltas_of(own, theirs):
        seen.append((own, theirs))
        return torch.ones_like(own)

    how = {"teacher_writes": teacher_writes, "num_epochs": 1}
    teachers.study(student, teacher, deltas_of, **how)
    again = warm_start(SEEDS), teachers.make_teacher(14, SEEDS)
    rollout = again[teacher_writes].sample(SORT_PROMPTS, 10)
    torch.testing.assert_close(seen[0], tuple(p.log_probs(rollout) for p in again))
    assert not seen[0][0].requires_grad
