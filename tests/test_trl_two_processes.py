"""TRL on two CPU processes: the gradient of one, and the command end to end.

Run by torchrun this file is the program under test; run by pytest it starts both and
looks at what they left.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from grpo_course.text import trl as bridge
from grpo_course.text.models import load_model, load_tokenizer, save_model
from grpo_course.text.stories import make_problems
from grpo_course.text.training import from_values, make_model

trl = pytest.importorskip("trl", reason="TRL is the optional extra `scale`")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
EASY = {"operands": [1, 4], "operations": "+", "steps": [1]}
CHANGES = {"num_epochs": 2, "num_prompts": 4, "task_settings": EASY, "hidden_size": 32}
CHANGES |= {"warmup_epochs": 0, "eval_problems": 4, "eval_samples": 2}
# A task of a learner's own, which also pays for length, so that groups differ.
OWN = """
from grpo_course.text.reverse import Reverse, accuracy, settings
from grpo_course.text.responses import completion_texts


def length(completions, answer, **kwargs):
    return [len(text) / 9 for text in completion_texts(completions)]


@settings()
class Mine(Reverse):
    rewards = {"accuracy": (accuracy, 1.0), "length": (length, 1.0)}
"""
# One step of SGD at rate 1 without a limit: the weights move by the gradient.
PLAIN = {"optim": "sgd", "learning_rate": 1.0, "max_grad_norm": 0.0, "max_steps": 1}
QUIET = {"disable_tqdm": True, "save_strategy": "no"}
LOSSES = {
    "sequence_mean": {},
    "token_mean": {"aggregation": "token_mean"},
    "two parts": {"aggregation": "token_mean", "micro_batch_size": 1},
    "batch spread": {"deltas_mode": "batch_normalized_rewards"},
}


def fixed_responses(prompt, count):
    """For one prompt always the same: ragged, with and without the right answer."""
    generator = torch.Generator().manual_seed(sum(prompt))
    lengths = torch.randint(1, 8, (count,), generator=generator).tolist()
    return [torch.randint(3, 280, (n,), generator=generator).tolist() for n in lengths]


def fixed_rewards(completions, **_):
    """Unequal within a group and between groups, whatever was written."""
    return [float(sum(map(ord, c[0]["content"])) % 7) for c in completions]


class Fixed(trl.GRPOTrainer):
    """Writes what it is told, and keeps what it was asked."""

    def _generate_single_turn(self, prompt_ids, *_, **__):
        counts, self.seen = Counter(map(tuple, prompt_ids)), prompt_ids
        made = {p: fixed_responses(list(p), n) for p, n in counts.items()}
        return [made[tuple(prompt)].pop(0) for prompt in prompt_ids], None


def gradients(small, start, out, world_size, rank):
    """What one step moves, and the prompts that this process saw, for each loss."""
    found = {}
    for name, knobs in LOSSES.items():
        config = from_values(small | {"kl_penalty": 0.0} | knobs)
        told = bridge.trl_settings(config, out, world_size) | PLAIN | QUIET
        args = bridge.to_trl_config(config, **told)
        with patch.object(trl, "GRPOTrainer", Fixed):
            problems = make_problems("train", 40, seed=0)
            trainer = bridge.make_trainer(config, args, start, problems)
        trainer.reward_funcs = [fixed_rewards] * len(trainer.reward_funcs)
        before = [w.detach().clone() for w in trainer.model.parameters()]
        trainer.train()
        after = trainer.accelerator.unwrap_model(trainer.model).parameters()
        moved = [a.detach() - b for a, b in zip(after, before, strict=True)]
        size = torch.distributed.get_world_size() if world_size > 1 else 1
        found[name] = {"moved": moved, "prompts": trainer.seen, "world_size": size}
    torch.save(found, out / f"gradients_{world_size}_{rank}.pt")
    return found


def python(*arguments):
    """Run another Python to its end. -> what it printed"""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """One process, this one, and two others. -> gradients of each, output, folder"""
    from tests.conftest import SMALL

    small, out = SMALL | CHANGES, tmp_path_factory.mktemp("two")
    start, config = out / "model", out / "config.json"
    problems = make_problems("train", 40, seed=0)
    save_model(*make_model(from_values(small), problems), start)
    (out / "my_task.py").write_text(OWN)
    (out / "small.json").write_text(json.dumps(small))
    task = {"task": f"{out / 'my_task.py'}:Mine", "task_settings": {"longest": 4}}
    config.write_text(json.dumps(small | task))
    two = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    printed = python(*two, __file__, start, config, out)
    one = gradients(small, start, out, 1, 0)
    ranks = [torch.load(out / f"gradients_2_{rank}.pt") for rank in range(2)]
    return one, ranks, printed, out / "run"


def distance(moved, other):
    """The largest difference of any weight."""
    pairs = zip(moved, other, strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


@pytest.mark.parametrize("name", LOSSES)
def test_two_processes_have_the_gradient_of_one(both, name):
    one, ranks, *_ = both
    first, second = (found[name] for found in ranks)
    assert first["world_size"] == second["world_size"] == 2
    asked = [*map(tuple, first["prompts"]), *map(tuple, second["prompts"])]
    assert Counter(asked) == Counter(map(tuple, one[name]["prompts"]))
    assert set(map(tuple, first["prompts"])).isdisjoint(map(tuple, second["prompts"]))
    assert max(x.abs().max().item() for x in one[name]["moved"]) > 1e-2
    assert distance(first["moved"], second["moved"]) == 0.0
    assert distance(first["moved"], one[name]["moved"]) < 1e-6
    if name in ("token_mean", "batch spread"):  # else one mean could pass for another
        assert distance(first["moved"], one["sequence_mean"]["moved"]) > 1e-3


def test_the_command_on_two_processes(both):
    """With a task in a file of one's own, by its path."""
    *_, printed, run = both
    assert "TRL on 2 process(es), cpu." in printed and "greedy length" in printed
    assert printed.count("greedy strict accuracy") == 1  # the first process alone
    before, after = load_model(run / "start"), load_model(run / "model")
    assert load_tokenizer(run / "model").chat_template
    assert distance([*before.parameters()], [*after.parameters()]) > 1e-4
    saved = json.loads((run / "model" / "grpo_config.json").read_text())
    assert saved["task"].endswith("my_task.py:Mine")


if __name__ == "__main__":  # in each of two processes
    start, config, out = map(Path, sys.argv[1:])
    small, place = json.loads((out / "small.json").read_text()), os.environ
    gradients(small, start, out, int(place["WORLD_SIZE"]), int(place["RANK"]))
    given = ["--config", config, "--out", out / "run", "--trl", json.dumps(QUIET)]
    bridge.main([*map(str, given)])
