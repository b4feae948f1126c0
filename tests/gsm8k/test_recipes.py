"""The recipes are complete, and each failure differs in what its name says."""

from dataclasses import fields

from grpo_course.gsm8k.recipes import FAILURES, FINALE, GAP

CHANGED = {
    "rate too high": {"learning_rate"},
    "no KL": {"kl_penalty"},
    "format alone": {"correctness_weight"},
    "too hard": {"operands", "steps", "format_weight"},
}


def changes(config):
    names = [field.name for field in fields(FINALE)]
    return {n for n in names if getattr(config, n) != getattr(FINALE, n)}


def test_a_failure_changes_what_it_says_and_how_long_it_takes():
    assert CHANGED.keys() == FAILURES.keys()
    for name, config in FAILURES.items():
        assert changes(config) == CHANGED[name] | {"num_epochs"}
        assert config.num_epochs <= 100
    assert changes(GAP) == {"num_epochs", "learning_rate", "kl_penalty"}


def test_they_all_begin_at_one_warm_start():
    for config in (*FAILURES.values(), GAP):
        assert not {n for n in changes(config) if n.startswith("warm_start")}
