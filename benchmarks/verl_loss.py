"""Our losses and gradients are those of verl's own code, in float64.

Largest differences from verl 0.9.1: 4e-9, as verl adds 1e-8 to a number of tokens; of
sapo 4e-8, as it keeps a factor in float32.

verl brings vLLM and Ray; its losses need neither. So this file reads two of its own:
unpack its wheel and name the folder.

    pip download --no-deps verl==0.9.1 && unzip -q verl-0.9.1-*.whl -d verl091
    VERL_DIR=verl091 python -m pytest benchmarks/verl_loss.py
"""

import ast
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from grpo_course.formulas import compute_loss

BATCH, TRIAL, POS = 3, 3, 7
LOSSES = {  # (loss_mode, ratio_level): verl's loss_mode, what it must be told
    ("dual_clipped", "token"): ("vanilla", {"clip_ratio_c": 1.6}),
    ("clipped", "token"): ("vanilla", {"clip_ratio_c": 1e9}),
    ("clipped", "sequence"): ("gspo", {}),
    ("cispo", "token"): ("cispo", {"clip_ratio_low": 1.0}),
    ("sapo", "token"): ("sapo", {}),
}
MEANS = {
    "sequence_mean": "seq-mean-token-mean",
    "token_mean": "token-mean",
    "constant": "seq-mean-token-sum-norm",
    "sequence_sum": "seq-mean-token-sum",
}
# verl divides by the tokens of a response plus 1e-8, and takes SAPO's 1.05 in float32.
TOLERANCE = dict.fromkeys((mode for mode, _ in LOSSES), 1e-8) | {"sapo": 1e-7}
KNOBS = {"epsilon": 0.1, "epsilon_high": 0.4, "dual_clip": 1.6, "max_length": 11}


class Settings(SimpleNamespace):
    """What of verl's ActorConfig its losses read."""

    def get(self, name, default=None):
        return getattr(self, name, default)


def functions_of(path, prefix):
    """The functions of a file whose names begin so, without the rest of the file."""
    parts = ast.parse(path.read_text()).body
    parts = [p for p in parts if isinstance(p, ast.FunctionDef)]
    chosen = [part for part in parts if part.name.startswith(prefix)]
    found = {"torch": torch}
    exec(compile(ast.Module(chosen, []), str(path), "exec"), found)
    return found


def module(name, **content):
    made = ModuleType(name)
    vars(made).update(content)
    return made


@pytest.fixture
def losses(monkeypatch):
    """The functions of verl/trainer/ppo/core_algos.py, its imports made of nothing."""
    if "VERL_DIR" not in os.environ:
        pytest.skip("VERL_DIR names no folder with verl's source")
    root = Path(os.environ["VERL_DIR"]) / "verl"
    functional = functions_of(root / "utils" / "torch_functional.py", "masked_")
    imports = {
        "omegaconf": {"DictConfig": dict},
        "verl": {},
        "verl.utils": {"as_torch_index": None, "group_mean_std": None},
        "verl.utils.torch_functional": functional,
        "verl.utils.import_utils": {"deprecated": lambda _: lambda function: function},
        "verl.trainer": {},
        "verl.trainer.config": {"AlgoConfig": type("AlgoConfig", (), {})},
        "verl.workers": {},
        "verl.workers.config": {"ActorConfig": Settings},
    }
    for name, content in imports.items():
        monkeypatch.setitem(sys.modules, name, module(name, **content))
    path, found = root / "trainer" / "ppo" / "core_algos.py", {"__name__": "verl"}
    exec(compile(path.read_text(), str(path), "exec"), found)
    return found["POLICY_LOSS_REGISTRY"]


def errors(losses, names, mean, number):
    """The largest difference from verl: in the loss, in its gradient."""
    (mode, level), (theirs, told) = names, LOSSES[names]
    generator = torch.Generator().manual_seed(number)
    draw = {"generator": generator, "dtype": torch.float64}
    new = (-3 - torch.rand((BATCH, TRIAL, POS), **draw) * 3).requires_grad_()
    old = new.detach() + torch.randn(new.shape, **draw) * 0.7
    deltas = torch.randn((BATCH, TRIAL), **draw)
    lengths = torch.randint(1, POS + 1, (BATCH, TRIAL), generator=generator)
    mask = torch.arange(POS) < lengths[..., None]  # verl leaves empty responses out
    given = {"aggregation": mean, "ratio_level": level, "mask": mask}
    ours = compute_loss(new, deltas, mode, old, **given, **KNOBS)
    settings = Settings(
        **{"clip_ratio": 0.1, "clip_ratio_low": 0.1, "clip_ratio_high": 0.4} | told,
        tau_pos=1.0,
        tau_neg=1.05,
        global_batch_info={"loss_scale_factor": KNOBS["max_length"]},
    )
    wide = deltas[..., None].expand_as(new)
    rows = [part.flatten(0, 1) for part in (old, new, wide, mask.double())]
    loss, _ = losses[theirs](*rows, MEANS[mean], settings)
    gap = torch.autograd.grad(ours, new)[0] - torch.autograd.grad(loss, new)[0]
    return (ours - loss).abs().item(), gap.abs().max().item()


@pytest.mark.parametrize("names", LOSSES, ids="-".join)
def test_loss_and_gradient(losses, names):
    for mean in ["sequence_mean"] if names[0] == "sapo" else MEANS:  # verl's only one
        for number in range(4):
            assert max(errors(losses, names, mean, number)) < TOLERANCE[names[0]], mean


def test_another_loss_is_told_apart(losses):
    named = {theirs for theirs, _ in LOSSES.values()}
    for ours, (theirs, _) in LOSSES.items():
        for other in named - {theirs}:
            planted = losses | {theirs: losses[other]}
            assert max(errors(planted, ours, "sequence_mean", 0)) > 1e-3
