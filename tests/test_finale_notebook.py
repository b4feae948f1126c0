"""The cells of notebook 12 with RUN = "gpu": a given model, given data, no warm start.

The model is small and random, of the architecture that the preset names; all else is
the preset's: bfloat16 products, gradient checkpointing, the long system prompt.
"""

from dataclasses import asdict, replace
from pathlib import Path

import matplotlib
import nbformat
import pytest

from grpo_course.files import json_lines
from grpo_course.gsm8k import PRESETS, demonstration, make_problems
from grpo_course.lm import make_tiny_model, make_tokenizer
from grpo_course.tasks import conversation_text
from grpo_course.training import presets_of

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "12_gsm8k_grpo.ipynb"
END = "## What did GRPO buy?"  # what comes after it is about the recorded runs
SMALL = {"num_epochs": 12, "num_prompts": 2, "max_new_tokens": 6, "eval_problems": 5}
ARCHITECTURES = {"gpu": "qwen2", "gpu-smollm2": "llama"}


@pytest.fixture(params=ARCHITECTURES)
def preset(request, tmp_path, monkeypatch):
    """The name of a preset that was given a small model and these rows."""
    problems = make_problems("train", 300, 0, operands=(1, 4), steps=(1,))
    config = presets_of("gsm8k")[request.param]
    system = config.system_prompt
    texts = [conversation_text(p.question, demonstration(p), system) for p in problems]
    tokenizer = make_tokenizer(texts)
    sizes = {"hidden_size": 16, "num_heads": 2, "context_length": 1024}
    model = make_tiny_model(tokenizer, ARCHITECTURES[request.param], **sizes)
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "model")
    rows = [{"question": p.question, "answer": p.solution} for p in problems]
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(json_lines(rows), encoding="utf-8")
    settings = {"model": str(tmp_path / "model"), **SMALL}
    small = replace(config, task_settings={"data": str(tmp_path)}, **settings)
    monkeypatch.setitem(PRESETS, request.param, asdict(small))
    return request.param


def cells_to_run():
    """The source of each code cell before END."""
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if cell.source.startswith(END):
            return
        if cell.cell_type == "code":
            yield cell.source


@pytest.mark.slow
def test_the_same_cells_take_a_pretrained_model(preset, capsys):
    matplotlib.use("Agg")
    names = {"__name__": "__main__", "display": print}  # IPython brings one along
    for source in cells_to_run():
        exec(source.replace('RUN = "laptop"', f'RUN = "{preset}"'), names)
    assert names["RUN"] == preset and len(names["history"].records) == 12
    assert names["model"].config.model_type == ARCHITECTURES[preset]
    assert len(names["unseen"]) == 5 and names["before"].keys() == names["after"].keys()
    assert "differences to what the sampler noted" in capsys.readouterr().out
    # No cell stopped, though a random model learns nothing in twelve epochs.
    assert names["after"]["greedy strict accuracy"].mean() < 0.5
