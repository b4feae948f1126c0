"""What notebook 13 says of TRL and verl: its map, its table, its variants."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from grpo_course import off_policy as lengths
from grpo_course.loop import TrainConfig
from grpo_course.trl import NAMES, to_trl_arguments

HERE = Path(__file__).parent
LESSON = HERE.parents[1] / "notebooks" / "13_beyond_grpo.ipynb"
SHORT = {"actor": "actor_rollout_ref.actor", "rollout": "actor_rollout_ref.rollout"}
NOT_NAMES = {"with", "for", "the", "sampler's", "counts", "prompts", "1", "False"}
NOT_NAMES |= {"is", "clamped", "at", "10", "no", "r", "beta"}


def verl_settings():
    """What verl 0.9.1 can be told. key -> the values that it names, mostly none"""
    lines = (HERE / "verl_keys.txt").read_text().splitlines()
    pairs = (line.partition(": ") for line in lines if not line.startswith("#"))
    return {key: values.split() for key, _, values in pairs}


KEYS = verl_settings()
VALUES = {value for values in KEYS.values() for value in values}
LAST = {part for key in KEYS for part in key.split(".")}


def fits(setting, chosen):
    """Whether `setting: chosen` can be said to verl."""
    below = any(f".{setting}.{chosen}" in f".{key}" for key in KEYS)
    named = any(
        chosen in values
        for key, values in KEYS.items()
        if key.rpartition(".")[-1] == setting
    )
    return chosen in NOT_NAMES or below or named


def wrong_words(text):
    """What verl does not know of `setting: value`, of a key's end, of a value."""
    words = re.findall(r"[\w'-]+", text)
    unknown = [w for w in words if w not in LAST | VALUES | NOT_NAMES]
    pairs = re.findall(r"([\w-]+): (?=([\w-]+))", text)
    return unknown + [pair for pair in pairs if not fits(*pair)]


def test_wrong_words_are_found():
    assert wrong_words("kl_loss_coeff") == ["kl_loss_coeff"]
    assert wrong_words("loss_mode: token-mean") == [("loss_mode", "token-mean")]
    assert not wrong_words("rollout_correction: rollout_is: token")


@pytest.mark.parametrize("name", NAMES, ids=[name.ours for name in NAMES])
def test_the_table_names_settings_of_verl(name):
    key, _, note = name.verl.partition(" (")
    first, _, rest = key.partition(".")
    assert key == "-" or f"{SHORT.get(first, first)}.{rest}" in KEYS
    assert not wrong_words(note)


def cells():
    return ["".join(c["source"]) for c in json.loads(LESSON.read_text())["cells"]]


def mapped():
    """The rows of the map. -> what is written as code under TRL and under verl"""
    tables = [text for text in cells() if "| here | TRL | verl |" in text]
    rows = [line.split("|") for text in tables for line in text.splitlines()]
    rows = [row for row in rows if len(row) == 6 and "`" in row[2]]
    return [[re.findall(r"`([^`]+)`", row[at]) for at in (3, 4)] for row in rows]


def test_the_map_names_settings_of_verl():
    said = [text for _, verl in mapped() for text in verl]
    assert len(said) > 10
    assert {text: wrong_words(text) for text in said if wrong_words(text)} == {}


def test_the_map_names_what_trl_has():
    trl = pytest.importorskip("trl", reason="TRL is the optional extra `scale`")
    from trl import rewards

    known = {f.name for f in fields(trl.GRPOConfig)} | {*dir(trl), *dir(rewards)}
    said = [text.partition("=")[0] for found, _ in mapped() for text in found]
    assert len(said) > 10 and not set(said) - known


def variants():
    """The variants that notebook 13 trains, without what is no knob of the loop."""
    source = next(text for text in cells() if "VARIANTS = {" in text)
    given = {"limit": None, "ended_reward": print, "limits": lengths}
    exec(source, given)  # it only names them: its functions are called later
    known = {f.name for f in fields(TrainConfig)}
    found = {}
    for name, changes in given["VARIANTS"].items():
        assert changes.keys() <= known | {"reward_fn", "wrap"}
        found[name] = {k: v for k, v in changes.items() if k in known}
    return found


REFUSED = {  # variant: why TRL's GRPOTrainer cannot do it
    "Dr. GRPO": "aggregation='constant' needs max_length",
    "RLOO": "deltas_mode='leave_one_out' is not known",
    "REINFORCE++ baseline": "deltas_mode='whitened_rewards' is not known",
    "DAPO": "nothing like num_resamples=3",
    "DAPO, no penalty": "nothing like num_resamples=3",
    "KL in the reward": "nothing like kl_place='reward'",
}


def test_each_refusal_is_of_a_variant():
    assert REFUSED.keys() <= variants().keys()


@pytest.mark.parametrize("name", variants())
def test_a_variant_is_translated_or_refused_for_its_reason(name):
    knobs = variants()[name]
    if name in REFUSED:
        with pytest.raises(ValueError, match=re.escape(REFUSED[name])):
            to_trl_arguments(TrainConfig(**knobs))
    else:
        told = to_trl_arguments(TrainConfig(**knobs))
        assert not knobs or told != to_trl_arguments(TrainConfig())


def test_what_dr_grpo_lacks_is_its_length():
    config = TrainConfig(**variants()["Dr. GRPO"], max_length=6)
    told = to_trl_arguments(config)
    assert told["loss_type"] == "dr_grpo" and told["max_completion_length"] == 6
