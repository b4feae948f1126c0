"""python -m grpo_course.gsm8k.evaluate --model DIR [--data PATH] ...

Measure a model on problems that it was not trained on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_course.gsm8k.command import run_command

if TYPE_CHECKING:  # they load torch, which may not be installed
    from grpo_course.gsm8k.config import GRPOConfig
    from grpo_course.gsm8k.evaluation import Scores
    from grpo_course.gsm8k.evaluation_table import Measures
    from grpo_course.gsm8k.policy import CausalPolicy
    from grpo_course.gsm8k.task import Task


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(
        prog="python -m grpo_course.gsm8k.evaluate",
        description="Greedy and sampled accuracy, pass@k and format, with intervals.",
    )
    add = made.add_argument
    add("--model", required=True, help="folder of a run or a model, or a hub name")
    add("--config", help="preset or JSON file (default: that of the run, else gpu)")
    add("--data", help='"generated", "gsm8k", or a folder with test.jsonl')
    add("--split", help="default: unseen_problems, or test for GSM8K")
    add("--problems", type=int, help="how many")
    add("--samples", type=int, help="responses to each problem")
    add("--temperature", type=float, help="of the samples")
    add("--seed", type=int, default=0, help="of samples and intervals")
    add("--batch", type=int, default=32, help="problems at once")
    add("--show", type=int, default=2, help="print the greedy response to so many")
    add("--out", help="also write the measures to this JSON file")
    return made


def main(arguments: list[str]) -> int:
    """Load, measure, print. -> the exit status"""
    from grpo_course.gsm8k.evaluation_table import evaluation_table, summary_rows
    from grpo_course.gsm8k.run_folder import find_model
    from grpo_course.gsm8k.setting_up import load_trained, use_threads

    options = parser().parse_args(arguments)
    require_place(options.out)
    config, split = settle(options)
    use_threads(config)
    policy, task = load_trained(config, find_model(options.model), split)
    print(f"{options.model} on {config.data}, split {split}")
    greedy, measures = measure(policy, task, config, options)
    measured = {"model": measures}
    print(evaluation_table(measured, options.seed))
    drawn = "calculations" if config.data == "generated" else "problems"
    heat = config.eval_temperature
    print(f"Samples at temperature {heat}; 95 % intervals over {drawn}.")
    show(task, greedy, options.show)
    if options.out:
        rows = summary_rows(measured, options.seed)
        Path(options.out).write_text(json.dumps(rows, indent=2) + "\n", "utf-8")
    return 0


def require_place(out: str | None) -> None:
    """Check before anything is measured that the measures can be kept."""
    if out is None:
        return
    folder = Path(out).parent
    if Path(out).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(
            f"--out {out} cannot be written. Name a file in a folder that is there "
            "and that you may write to."
        )


def settle(options: argparse.Namespace) -> tuple[GRPOConfig, str]:
    """The settings, from the model's run, the config and the options; the split."""
    from grpo_course.algorithm.validation import unknown_name
    from grpo_course.gsm8k.presets import GPU, choose_config
    from grpo_course.gsm8k.run_folder import config_of
    from grpo_course.gsm8k.setting_up import known_splits

    default = config_of(options.model) or GPU
    named = {
        "data": options.data,
        "eval_problems": options.problems,
        "eval_samples": options.samples,
        "eval_temperature": options.temperature,
    }
    config = choose_config(options.config, named, default)
    splits = known_splits(config)
    if options.split and options.split not in splits:
        raise unknown_name("split", options.split, splits)
    return config, options.split or splits[0]


def measure(
    policy: CausalPolicy, task: Task, config: GRPOConfig, options: argparse.Namespace
) -> tuple[Scores, Measures]:
    """The greedy responses with their scores, and every measure."""
    from grpo_course.gsm8k.evaluation import greedy_scores, sampled_scores
    from grpo_course.gsm8k.evaluation_table import name_measures

    greedy = greedy_scores(policy, task, options.batch)
    sampled = sampled_scores(
        policy,
        task,
        config.eval_samples,
        temperature=config.eval_temperature,
        seed=options.seed,
        batch_size=options.batch,
    )
    return greedy, name_measures(greedy, sampled)


def show(task: Task, greedy: Scores, count: int) -> None:
    """Print some problems with the greedy response."""
    for problem, texts in list(zip(task.problems, greedy.texts, strict=True))[:count]:
        print(f"\n{problem.question}\n-> {texts[0]}\n   right: {problem.answer}")


if __name__ == "__main__":
    sys.exit(run_command(main))
