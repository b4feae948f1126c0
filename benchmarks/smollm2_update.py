"""How long an update of SmolLM2 takes, and how much memory: ours, and TRL's trainer.

python benchmarks/smollm2_update.py [updates]      # after: python -m grpo_course fetch

Each in a process of its own, on all cores, with the preset of the task: 8 prompts, 64
responses of at most 32 tokens, an update from the untrained model. Seconds are those on
the clock, so the machine must be idle; the first update is not counted.
"""

import itertools
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from grpo_course.text.training import (
    GRPOConfig,
    load_problems,
    make_environment,
    make_model,
    presets_of,
    train_policy,
)

PRESET = presets_of("smollm2")["smollm2"]
ARMS = {
    "ours, float32": {},
    "ours, bfloat16": {"dtype": "bfloat16"},
    "TRL, float32": {},
}


def ours(config: GRPOConfig, clock: list[float]) -> None:
    problems = load_problems(config)
    model, tokenizer = make_model(config, problems)
    environment = make_environment(config, problems, tokenizer)
    clock.append(time.time())
    parts = config, model, tokenizer, environment
    train_policy(*parts, watch=lambda history: clock.append(time.time()))


def trl(config: GRPOConfig, clock: list[float]) -> None:
    from transformers import TrainerCallback

    from grpo_course.text.trl import make_trainer, to_trl_config, trl_settings

    class Tick(TrainerCallback):
        def on_step_end(self, *given: object, **more: object) -> None:
            clock.append(time.time())

    with tempfile.TemporaryDirectory() as out:
        told = trl_settings(config, Path(out), 1) | {"save_strategy": "no"}
        args = to_trl_config(config, **told)
        trainer = make_trainer(config, args, config.model, load_problems(config))
        trainer.add_callback(Tick())
        clock.append(time.time())
        trainer.train()


def one(arm: str, updates: int) -> None:
    """Run one arm, and print its seconds an update and the most memory it took."""
    config = replace(PRESET, num_epochs=updates, **ARMS[arm])
    clock: list[float] = []
    (trl if arm.startswith("TRL") else ours)(config, clock)
    each = [after - before for before, after in itertools.pairwise(clock[1:])]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # bytes, on Linux
    print(f"{arm:16s}{median(each):6.1f} s an update{most / 1e9:6.1f} GB", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]))
    else:
        for arm in ARMS:
            updates = sys.argv[1] if sys.argv[1:] else "4"
            subprocess.run(
                [sys.executable, __file__, "--one", arm, updates], check=True
            )
