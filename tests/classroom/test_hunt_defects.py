"""Every defect is one, runs, and gives nothing away."""

import inspect
import linecache
import re
import traceback

import pytest
import torch

from grpo_course.classroom.hunt.broken import (
    HEALTHY,
    broken,
    draw,
    drawn_numbers,
    source_with,
)
from grpo_course.classroom.hunt.defects import CAUSES, DEFECTS, HIDING, number_of
from grpo_course.classroom.hunt.script import Trainer

each_number = pytest.mark.parametrize("number", DEFECTS)


def weights_after(make_trainer, steps, **settings):
    """All that was learned, and what was logged."""
    trainer = make_trainer(**({"num_steps": 4} | settings))
    for _ in range(steps):
        trainer.step()
    return torch.cat([w.detach().flatten() for w in trainer.model.up.values()])


@each_number
def test_each_edit_fits_the_script_once(number):
    for old, new in DEFECTS[number].edits:
        assert HEALTHY.count(old) == 1
        assert not new or new not in HEALTHY.replace(old, "")
    assert source_with(number) != HEALTHY


@each_number
def test_a_defect_changes_what_is_learned(number):
    settings = {"learning_rate": 0.01} | DEFECTS[number].settings
    theirs = weights_after(broken(number).Trainer, 3, **settings)
    ours = weights_after(Trainer, 3, **settings)
    assert (theirs - ours).abs().max() > 1e-4


@pytest.mark.slow
@each_number
def test_a_defect_crashes_nothing_in_forty_updates(number):
    for settings in ({}, DEFECTS[number].settings):
        known = {"num_steps": 10, "seed": number % 5} | settings
        trainer = broken(number).Trainer(**known)
        while len(trainer.log) * trainer.settings.num_inner_steps < 40:
            trainer.step()
        weights = torch.cat([w.flatten() for w in trainer.model.parameters()])
        assert weights.isfinite().all()


@each_number
def test_nothing_in_the_source_gives_the_defect_away(number):
    text, defect = source_with(number), DEFECTS[number]
    module = broken(number)
    assert inspect.getsource(module.Trainer) in text
    assert text.count("#") == HEALTHY.count("#") and '"""GRPO' in text
    told = f"{module.__name__} {module.Trainer!r} {module.Trainer()!r}"
    words = set(re.findall(r"[a-z]{5,}", told.lower())) - {"trainer", "object"}
    assert not words & set(re.findall(r"[a-z]{5,}", defect.cause.lower()))
    assert str(number) not in told.split("trainer_")[0]


def test_a_traceback_shows_the_line_of_the_variant():
    module = broken(number_of("ratio of log-probabilities"))
    trainer = module.Trainer(num_prompts=1)
    batch = trainer.collect()
    with pytest.raises(RuntimeError) as stopped:
        trainer.token_losses(torch.zeros(3, 1000), batch)
    told = "".join(traceback.format_exception(stopped.value))
    assert "ratio = log_probs / batch.old_log_probs" in told
    linecache.checkcache()
    assert "batch.old_log_probs" in inspect.getsource(module.Trainer.token_losses)


def test_numbers_say_nothing_about_the_stage():
    assert len(DEFECTS) >= 24 and sorted(DEFECTS) == list(range(1, len(DEFECTS) + 1))
    assert len(set(CAUSES)) == len(CAUSES) == len(DEFECTS)
    losses = sorted(n for n, d in DEFECTS.items() if "ratio = " in d.edits[0][0])
    assert losses != list(range(losses[0], losses[0] + len(losses)))


def test_one_and_two_are_drawn_by_seed():
    assert draw(3) is broken(*drawn_numbers(3))
    assert len({drawn_numbers(seed) for seed in range(40)}) > 15
    pairs = [drawn_numbers(seed, 2) for seed in range(40)]
    assert all(len(set(pair)) == 2 for pair in pairs)
    assert all(source_with(*pair) == source_with(*pair[::-1]) for pair in pairs)


def test_two_defects_of_one_line_are_refused():
    pair = number_of("k1 as a loss"), number_of("ratio of log-probabilities")
    assert broken(*pair).Trainer
    same = number_of("KL computed and not used"), number_of("KL with the wrong sign")
    with pytest.raises(ValueError, match="same lines"):
        broken(*same)
    with pytest.raises(ValueError, match="1 to"):
        broken(99)


def test_a_cause_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="none of the causes"):
        number_of("bad luck")


def test_threads_name_a_project_and_a_place():
    assert all(re.match(r"[\w.-]+/[\w.-]+[ ,]", d.thread) for d in DEFECTS.values())
    assert len({d.thread for d in DEFECTS.values()}) >= 24


@pytest.mark.parametrize("pair", HIDING)
def test_a_hidden_defect_shows_once_the_other_is_repaired(pair):
    """With both, the weights are those of the first alone."""
    hiding, hidden = (number_of(cause) for cause in pair)
    both, first, second, none = (
        weights_after(make, 3, learning_rate=0.01)
        for make in (
            broken(hiding, hidden).Trainer,
            broken(hiding).Trainer,
            broken(hidden).Trainer,
            Trainer,
        )
    )
    assert torch.equal(both, first)
    assert not torch.allclose(second, none, atol=1e-4)
