"""The recipes are complete, and each failure differs in what its name says."""

from dataclasses import fields

from grpo_course.gsm8k.recipes import FAILURES, FINALE, GAP

NO_KL = {"kl_penalty", "skip_tied_groups"}  # the second changes nothing but the time
CHANGED = {
    "rate too high": {"learning_rate"},
    "no KL": NO_KL,
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
    assert changes(GAP) == {"num_epochs", "learning_rate"} | NO_KL
