"""Move the larger model's weights without a reward, and ask it GSM8K's rows.

.venv/bin/python -m tools.moved signs --model models/qwen --seed 0
.venv/bin/python -m tools.moved signs --model models/qwen --seed 0 --size 4e-4
.venv/bin/python -m tools.moved imitation --model models/qwen --seed 0

Notebook 18 asks whether any change of the weights as small as a run's wins the same
rows. The first moves every weight up or down by lot, as far as eight updates of a run
can move one at most. The second imitates GSM8K's solutions for as many steps, at the
rate of a run. Both then answer the 192 rows that chose nothing, greedily, in float32.
In grpo_course/lessons/rows.json, under "moved". `--out` keeps the model, for
`tools.rows --test`. (For those that are kept, a script did the same, and read the
opening that all prompts share once: its answers before the change came out as the runs
had them.)
"""

import argparse
import random
from dataclasses import replace
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from grpo_course.lessons.finale import FIRST_ROWS
from grpo_course.text import qwen
from grpo_course.text.config import GRPOConfig
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.models import load_model, load_tokenizer
from grpo_course.text.prompts import as_rollout
from grpo_course.text.training import (
    imitation_step,
    load_problems,
    make_environment,
    make_optimizer,
    make_policy,
    make_task,
)
from tools.rows import CONFIG, PLANNED, SOLUTIONS, answers, keep

STEPS = 8  # as many updates as a run has
SIZE = STEPS * CONFIG.learning_rate  # as far as Adam moves a weight in them at most


def scatter(policy: CausalPolicy, seed: int, size: float) -> None:
    """Move every weight by `size`, up or down by lot."""
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in policy.model.parameters():
            weight += size * (torch.randint(2, weight.shape, generator=noise) * 2 - 1)


def imitate(
    policy: CausalPolicy,
    tokenizer: PreTrainedTokenizerBase,
    config: GRPOConfig,
    seed: int,
) -> None:
    """STEPS steps on SOLUTIONS written solutions each, at the rate of a run."""
    task, noise = make_task(config), random.Random(seed)
    opening, problems = task.opening(config.system_prompt), load_problems(config)
    optimizer = make_optimizer(config, policy)
    for step in range(STEPS):
        parts = [  # one by one, for the memory
            as_rollout(
                tokenizer, [one.question], [task.demonstration(one, noise)], opening
            )
            for one in noise.sample(problems, SOLUTIONS)
        ]
        imitation_step(policy, parts, optimizer, f"step {step}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("how", choices=("signs", "imitation"))
    parser.add_argument("--model", default=CONFIG.model)
    parser.add_argument("--data", default="gsm8k")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a folder for the moved model")
    parser.add_argument("--size", type=float, default=SIZE, help="of the signs")
    options = parser.parse_args()
    settings = {"data": options.data}
    config = replace(CONFIG, task_settings=settings, dtype="float32")
    model, tokenizer = load_model(options.model), load_tokenizer(options.model)
    problems = load_problems(config, "validation", PLANNED)[FIRST_ROWS:]
    policy = make_policy(config, model, tokenizer)
    environment = make_environment(config, problems, tokenizer)
    _, before = answers(policy, environment, qwen.MARK)
    if options.how == "signs":
        name = f"random signs, {options.size:g}"
        scatter(policy, options.seed, options.size)
    else:
        name = "imitation"
        imitate(policy, tokenizer, config, options.seed)
    if options.out:
        model.save_pretrained(options.out)
        tokenizer.save_pretrained(options.out)
    found, after = answers(policy, environment, qwen.MARK)
    others = sum(old != new for old, new in zip(before, after, strict=True))
    end = found | {"other_texts": others}
    keep("moved", {"name": name, "seed": options.seed, "end": end})


if __name__ == "__main__":
    main()
