"""The cells of notebook 12 with RUN = "gpu": a given model, given data, no warm start.

The model is small and random, of the architecture that the preset names; all else is
the preset's: bfloat16 products, gradient checkpointing, the long system prompt.
"""

from dataclasses import replace
from pathlib import Path

import matplotlib
import nbformat
import pytest

from grpo_course.gsm8k.data import save_gsm8k
from grpo_course.gsm8k.presets import PRESETS
from grpo_course.gsm8k.prompts import conversation_text
from grpo_course.gsm8k.tiny import make_tiny_model
from grpo_course.gsm8k.tokenizer import make_tokenizer

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "12_gsm8k_grpo.ipynb"
END = "## The gap between"  # the sections after it are about the tiny model
SMALL = {"num_epochs": 12, "num_prompts": 2, "max_new_tokens": 6, "eval_problems": 5}


@pytest.fixture
def given(tmp_path, easy_problems):
    """A model folder and a folder of data in GSM8K's own format."""
    config = PRESETS["gpu"]
    texts = [conversation_text(p, config.system_prompt) for p in easy_problems]
    tokenizer = make_tokenizer(texts)
    sizes = {"hidden_size": 16, "num_heads": 2, "context_length": 512}
    model = make_tiny_model(tokenizer, "qwen2", **sizes)
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "model")
    for split in ("train", "test"):
        save_gsm8k(easy_problems, tmp_path / f"{split}.jsonl")
    model, data = str(tmp_path / "model"), str(tmp_path)
    return replace(config, model=model, data=data, **SMALL)


def test_the_same_cells_take_a_pretrained_model(given, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.setitem(PRESETS, "gpu", given)
    names = {"__name__": "__main__"}
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if cell.source.startswith(END):
            break
        if cell.cell_type == "code":
            exec(cell.source.replace('RUN = "laptop"', 'RUN = "gpu"'), names)
    assert names["RUN"] == "gpu" and len(names["history"].records) == 12
    assert len(names["unseen"]) == 5 and names["before"].keys() == names["after"].keys()
