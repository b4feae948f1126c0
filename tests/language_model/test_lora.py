"""An adapter learns in place of the weights; the reference is the model without it."""

import copy
import shutil
import sys
from importlib.util import find_spec

import pytest
import torch

from grpo_course.lm import MODELS, has_adapter, load_model, make_tiny_model, save_model
from grpo_course.runs import Run, begin
from grpo_course.training import (
    from_values,
    load_trained,
    make_optimizer,
    make_policy,
    make_start,
)

SETTINGS = {
    "base": "laptop",
    "lora_rank": 4,
    "num_epochs": 4,
    "num_prompts": 3,
    "num_responses": 4,
    "num_problems": 40,
    "max_new_tokens": 8,
    "learning_rate": 3e-2,
    "save_every": 2,
    "held_out_every": 2,
    "eval_problems": 5,
    "device": "cpu",
}
needs_peft = pytest.mark.skipif(
    find_spec("peft") is None, reason="peft is the optional extra `lora`"
)


@pytest.fixture(params=MODELS)
def base(request, tokenizer, tmp_path):
    """The folder of a small random model."""
    sizes = {"hidden_size": 16, "num_layers": 2, "num_heads": 2}
    model = make_tiny_model(tokenizer, request.param, **sizes)
    save_model(model, tokenizer, tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture
def begun(base, tmp_path):
    """A run with an adapter at its start."""

    def begin_it(**changes):
        values = SETTINGS | {"model": str(base)} | changes
        begin(from_values(values), tmp_path / "run")
        return Run(tmp_path / "run", show=False)

    return begin_it


@needs_peft
@pytest.mark.parametrize("recompute", [False, True])
def test_a_run_resumes_bit_for_bit(begun, base, tmp_path, recompute):
    run = begun(gradient_checkpointing=recompute)
    assert run.go().epochs("kl")[-1] > 0
    last = tmp_path / "run" / "checkpoints" / "000004"
    names = ("metrics.jsonl", "checkpoints/000004/adapter_model.safetensors")
    whole = [(tmp_path / "run" / name).read_bytes() for name in names]
    assert has_adapter(last) and not (last / "model.safetensors").exists()
    shutil.rmtree(last)
    Run(tmp_path / "run", show=False).go()
    assert [(tmp_path / "run" / name).read_bytes() for name in names] == whole


@needs_peft
def test_only_the_adapter_learns_and_the_reference_is_the_base(begun, base):
    run = begun()
    run.go()
    learned = {n for n, w in run.policy.model.named_parameters() if w.requires_grad}
    assert learned and all("lora_" in name for name in learned)
    rollout = run.policy.sample(run.environment.prompts(0), 2)
    plain = make_policy(
        from_values(SETTINGS | {"lora_rank": 0}), load_model(base), run.tokenizer
    )
    with torch.no_grad():
        before, own = plain.log_probs(rollout), run.policy.log_probs(rollout)
        reference = copy.deepcopy(run.policy)
        assert torch.allclose(reference.log_probs(rollout), before, atol=1e-5)
        assert not torch.allclose(own, before, atol=1e-3)
        assert torch.equal(run.policy.log_probs(rollout), own)  # on again
    again, _ = load_trained(run.config, run.newest(), "validation")
    with torch.no_grad():
        assert torch.allclose(again.log_probs(rollout), own, atol=1e-5)
    numbers = [
        w
        for g in make_optimizer(run.config, run.policy).param_groups
        for w in g["params"]
    ]
    assert len(numbers) == len(learned)


@needs_peft
def test_an_adapter_is_no_model_to_begin_with(begun, tmp_path):
    run = begun()
    config = from_values(SETTINGS | {"model": str(run.newest()), "lora_rank": 0})
    with pytest.raises(ValueError, match="merge the two"):
        make_start(config, run.problems)


def test_without_peft_the_cure_is_named(begun, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ImportError, match=r"needs the package peft.*\[lora\]"):
        begun()


def test_a_model_from_nothing_takes_no_adapter(begun):
    with pytest.raises(ValueError, match="lora_rank=4 needs a model"):
        begun(model=None)
