"""The course's probes do their work, and weaker ones are told so."""

import matplotlib.pyplot as plt
import pytest
import torch
from torch.nn.functional import pad

from grpo_course.classroom.hunt import probes
from grpo_course.classroom.hunt.defects import CAUSES, DEFECTS
from grpo_course.classroom.hunt.judge import (
    FIRES,
    SILENT,
    VARIANTS,
    ask,
    faults,
    judge_probe,
    run_probe,
)
from grpo_course.classroom.hunt.probes_of_learning import token_with
from grpo_course.classroom.hunt.properties import COURSE_PROBES, PROPERTIES
from grpo_course.classroom.hunt.script import Trainer
from grpo_course.classroom.plots.probe_matrix import plot_matrix

each_property = pytest.mark.parametrize("name", PROPERTIES)


def judged(probe, name):
    """The faults of a probe, asked where its property is broken and a little more."""
    variants = {key: VARIANTS[key] for key in ("as it is", "seed 1", "two prompts")}
    row = run_probe(probe, sorted(PROPERTIES[name].must_find()), variants)
    return [fault for fault in faults(row, PROPERTIES[name]) if "One call" not in fault]


@pytest.mark.slow
@each_property
def test_a_course_probe_passes_the_judge_whole(name):
    row = run_probe(COURSE_PROBES[name])
    assert not [x for x in faults(row, PROPERTIES[name]) if "One call" not in x]
    assert len(row.healthy) >= 8 and len(row.broken) == len(DEFECTS)


@each_property
def test_a_course_probe_finds_its_own_defects(name):
    assert judged(COURSE_PROBES[name], name) == []


def test_every_defect_breaks_the_property_of_its_probe():
    for number, defect in DEFECTS.items():
        assert number in PROPERTIES[defect.probe].must_find()
    for asked in PROPERTIES.values():
        assert {*asked.broken_by, *asked.open_to} <= set(CAUSES)
        assert not asked.must_find() & asked.must_not()


def update_of(trainer, batch):
    return trainer.update(batch)[0][3]


def mean_of_own_words(make):
    batch = make(temperature=0.01).collect()
    return batch.old_log_probs[batch.mask].mean() > -100


def surprise_loosely(make):
    return make().collect().old_log_probs.mean().abs() < 100


def padding_with_attention_of_its_own(make):
    trainer = make()
    batch = trainer.collect()
    before = trainer.score(batch)
    batch.tokens, batch.attention = (
        pad(batch.tokens, (0, 3)),
        pad(batch.attention, (0, 3)),
    )
    return torch.allclose(trainer.score(batch)[:, :-3], before)


def mask_by_its_largest_length(make):
    batch = make().collect()
    return batch.mask.sum(1).max() <= 14


def first_response_only(make):
    trainer = make()
    batch = trainer.collect()
    return batch.tokens.shape[1] > 0 and batch.rewards[0] >= 0


def rewards_on_average(make):
    return make().collect().rewards.mean() >= 0


def generous_limit(make):
    trainer = make(max_new_tokens=40)
    batch = trainer.collect()
    ended = (batch.tokens == trainer.tokenizer.eos).any(dim=1)
    return not batch.rewards[~ended].any()


def the_same_answer_twice(make):
    return make().reward([3, 1], "= 1 3") > 0.5


def right_answer_as_text(make):
    return make().reward([3, 1], "= 1 3") > 0.5


def tied_at_one_half(make):
    trainer = make()
    tied = torch.full((trainer.settings.num_responses,), 0.5)
    return trainer.compute_deltas(tied).abs().max() < 0.01


def bonus_for_all(make):
    trainer = make()
    rewards = torch.rand(2 * trainer.settings.num_responses)
    plain, paid = trainer.compute_deltas(rewards), trainer.compute_deltas(rewards + 1)
    return torch.allclose(plain, paid, atol=1e-3)


def ratios_by_scoring_alone(make):
    trainer = make()
    batch = trainer.collect()
    return (trainer.score(batch) - batch.old_log_probs).abs().max() < 1e-3


def ratios_loosely(make):
    trainer = make()
    return (update_of(trainer, trainer.collect()) - 1).abs().mean() < 0.5


def first_step_again(make):
    trainer = make()
    return (update_of(trainer, trainer.collect()) - 1).abs().max() < 10


def gains_with_many_inner_steps(make):
    trainer = make(beta=0.0)
    batch = trainer.collect()
    before = trainer.score(batch).detach()
    trainer.update(batch)
    gain = (trainer.score(batch) - before) * batch.deltas[:, None]
    return gain[batch.mask].mean() > 1e-4


def pull_at_ratio_two_alone(make):
    new = torch.tensor([[-2.0]], requires_grad=True)
    token = token_with(old_log_probs=-3.0, ref_log_probs=-2.0, deltas=-1.0)
    make(beta=0.0).token_losses(new, token)[0].sum().backward()
    return new.grad.item() > 0


def kl_above_the_reference_alone(make):
    new = torch.tensor([[-2.0]], requires_grad=True)
    token = token_with(old_log_probs=-2.0, ref_log_probs=-3.0, deltas=0.0)
    make(beta=1.0).token_losses(new, token)[0].sum().backward()
    return new.grad.item() > 0


def kl_at_the_reference(make):
    new = torch.tensor([[-2.0]])
    token = token_with(old_log_probs=-2.0, ref_log_probs=-2.0, deltas=0.0)
    return make().token_losses(new, token)[1][1].abs().max() < 1e-6


def reference_before_any_update(make):
    batch = make().collect()
    return (batch.old_log_probs - batch.ref_log_probs).abs().max() > 1e-3


def parts_loosely(make):
    norms = []
    for size in (32, 1000):
        trainer = make(micro_batch_size=size)
        norms.append(trainer.update(trainer.collect())[1])
    return abs(norms[0] - norms[1]) < norms[1]


def rate_before_any_update(make):
    return make(num_steps=2).schedule.get_last_lr()[0] > 0


WEAKENED = [
    ("own_words_look_likely", mean_of_own_words),
    ("surprise_equals_entropy", surprise_loosely),
    ("padding_leaves_no_trace", padding_with_attention_of_its_own),
    ("mask_keeps_the_response", mask_by_its_largest_length),
    ("trained_on_what_was_sampled", first_response_only),
    ("groups_share_a_prompt", first_response_only),
    ("rewards_fit_their_prompts", rewards_on_average),
    ("cut_off_pays_nothing", generous_limit),
    ("one_answer_is_paid", the_same_answer_twice),
    ("right_answer_is_paid", right_answer_as_text),
    ("tied_groups_are_silent", tied_at_one_half),
    ("groups_stand_alone", bonus_for_all),
    ("ratios_start_at_one", ratios_by_scoring_alone),
    ("ratios_start_at_one", ratios_loosely),
    ("ratios_leave_one", first_step_again),
    ("better_responses_gain", gains_with_many_inner_steps),
    ("bad_tokens_are_pulled_back", pull_at_ratio_two_alone),
    ("kl_pulls_back", kl_above_the_reference_alone),
    ("kl_is_right_on_average", kl_at_the_reference),
    ("reference_stays_behind", reference_before_any_update),
    ("parts_make_no_difference", parts_loosely),
    ("rate_lasts_to_the_end", rate_before_any_update),
]


@pytest.mark.parametrize(
    ("name", "probe"), WEAKENED, ids=lambda x: getattr(x, "__name__", x)
)
def test_a_weakened_probe_is_told_what_it_misses(name, probe):
    assert judged(probe, name)
    assert {name for name, _ in WEAKENED} == {*PROPERTIES}


def always(answer):
    def probe(make_trainer):
        return answer

    return probe


@each_property
def test_no_probe_is_right_without_looking(name):
    assert any("stays silent" in fault for fault in judged(always(True), name))
    assert any("healthy trainers" in fault for fault in judged(always(False), name))


def test_a_probe_that_fires_elsewhere_too_is_told_so():
    def greedy(make_trainer):
        return probes.groups_share_a_prompt(
            make_trainer
        ) and probes.tied_groups_are_silent(make_trainer)

    row = run_probe(greedy, variants={"as it is": {}})
    (fault,) = faults(row, PROPERTIES["groups_share_a_prompt"])
    assert "where the property holds" in fault and "11" in fault


def test_errors_are_answers():
    def stumbles(make_trainer):
        return make_trainer().colect()

    assert "AttributeError" in ask(stumbles, Trainer)
    told = judged(stumbles, "kl_pulls_back")
    assert "error" in told[0] and "colect" in told[0]
    assert ask(always(torch.tensor(True)), Trainer) == SILENT
    assert ask(always(0), Trainer) == FIRES


def test_a_probe_leaves_random_numbers_as_they_were():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    ask(probes.groups_stand_alone, Trainer)
    assert torch.equal(torch.rand(3), expected)


def test_the_verdict_names_numbers_and_no_cause(capsys):
    variants = {"as it is": {}}
    assert judge_probe(
        probes.tied_groups_are_silent, "tied_groups_are_silent", variants=variants
    )
    said = capsys.readouterr().out
    assert said.startswith("[v] ") and "11" in said
    assert not [cause for cause in CAUSES if cause in said]
    label = plt.gcf().get_label()
    assert "tied_groups_are_silent fires for trainers 11, 31" in label
    plt.close("all")
    with pytest.raises(ValueError, match="property_name"):
        judge_probe(probes.tied_groups_are_silent, "ties")


def test_the_matrix_has_a_cell_for_each_answer():
    row = run_probe(always(True), [1, 2], {"as it is": {}})
    ax = plot_matrix({"one": row, "two": row})
    assert ax.images[0].get_array().tolist() == [[0, 0, 0], [0, 0, 0]]
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == ["1\nok", "1", "2"]
    assert [text.get_text() for text in ax.texts] == ["0", "0"]
    stages = {"late": {2: "two"}, "later": {1: "one"}}
    names = plot_matrix({"one": row}, stages).get_xticklabels()
    assert [each.get_text() for each in names] == ["1 healthy", "two", "one"]
    plt.close("all")
