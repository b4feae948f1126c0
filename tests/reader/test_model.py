"""The model that the course ships: small, loadable, as good as its card says."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_course.reader import MODEL, Stories, load_reader, measure_greedy
from tools.reader.card import CARD, FIGURES, MEANING, card_text
from tools.reader.pretrain import PretrainConfig

MEGABYTE = 1_000_000
FIGURES_READ = json.loads((MODEL / FIGURES).read_text("utf-8"))
BY_SPLIT = {row["split"]: row for row in FIGURES_READ["splits"]}
BARS = {  # of right answers, greedy and form ignored
    "unseen_problems": 0.85,
    "distractor": 0.8,
    "two_digit": 0.8,
    "three_step": 0.8,
    "out_of_order": 0.85,
    "unseen_frames": 0.6,
    "handwritten": 0.4,
}


def test_it_is_small_and_loads_as_any_model_does():
    assert (MODEL / "model.safetensors").stat().st_size <= 4 * MEGABYTE
    model = AutoModelForCausalLM.from_pretrained(str(MODEL), dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(str(MODEL))
    count = sum(weight.numel() for weight in model.parameters())
    assert count == FIGURES_READ["weights"] <= 2 * MEGABYTE
    assert model.config.model_type == "qwen2"
    assert len(tokenizer) == model.config.vocab_size
    assert all(torch.isfinite(weight).all() for weight in model.parameters())


def test_the_card_has_the_stored_figures():
    assert (MODEL / CARD).read_text("utf-8") == card_text(FIGURES_READ)
    assert set(BY_SPLIT) == {*Stories().splits, "train"} == set(MEANING)
    assert PretrainConfig(**FIGURES_READ["config"]) == PretrainConfig()
    for split, row in BY_SPLIT.items():
        assert row["low"] <= row["lenient"] <= row["high"]
        assert row["lenient"] >= BARS.get(split, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("split", "least"),
    [("unseen_problems", 30), ("unseen_frames", 24), ("out_of_order", 30)],
)
def test_it_solves_fixed_problems(split, least):
    """Far more than a model that guesses, and a few less than it was measured to."""
    row = measure_greedy(*load_reader(), Stories().problems(split, 40, 0))
    assert row["lenient"] * 40 >= least
