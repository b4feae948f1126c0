"""The runs of notebook 15: settings, and the task to copy over several seeds.

The latter as `benchmarks/own_task_seeds.py` recorded it.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pandas import DataFrame

from grpo_course.loop import mean_and_error
from grpo_course.training import presets_of

# A model that is trained seven times in about a minute: smaller numbers than the
# laptop's and a third of its warm start leave it with sums that are looser still.
LAPTOP = presets_of("gsm8k")["laptop"]
TINY = replace(
    LAPTOP,
    task_settings=LAPTOP.task_settings | {"operands": (1, 6)},
    num_problems=4096,
    warm_start_steps=400,
    num_epochs=50,
    num_prompts=12,
    learning_rate=5e-4,
)

# Without a KL a tied group has no gradient, and skipping it saves time.
WITHOUT_KL = replace(TINY, kl_penalty=0.0, skip_tied_groups=True)

# Give each the warm-started model of TINY. "no KL" is here because it is said to fail:
# at this rate and length it does not. Its weight is too small to pull, and above zero,
# so that the log still says how far the policy has gone.
FAILURES = {
    "rate too high": replace(TINY, num_epochs=30, learning_rate=3e-3),
    "no KL": replace(TINY, num_epochs=30, kl_penalty=1e-9),
    "format alone": replace(TINY, num_epochs=48, reward_weights={"accuracy": 0.0}),
    "too hard": replace(
        TINY,
        num_epochs=10,
        task_settings=TINY.task_settings | {"operands": (60, 99), "steps": (3,)},
        reward_weights={"format": 0.0},
    ),
}

PATH = Path(__file__).parent / "own_task_seeds.json"


def read_own_task() -> list[dict]:
    """A row for each seed: `seed`, and for each model a way to answer -> accuracy."""
    return json.loads(PATH.read_text("utf-8"))


def own_task_table(rows: Sequence[dict]) -> DataFrame:
    """A row for each way to answer, a column for each model: mean and error of seeds"""
    models = [name for name in rows[0] if name != "seed"]
    table = {
        model: {
            way: "{:.2f} ±{:.2f}".format(
                *mean_and_error([row[model][way] for row in rows])
            )
            for way in rows[0][model]
        }
        for model in models
    }
    return DataFrame(table).rename_axis(index=f"{len(rows)} seeds")
