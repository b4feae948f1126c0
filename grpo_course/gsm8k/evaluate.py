"""python -m grpo_course.gsm8k.evaluate --model DIR [--data PATH] ...

Measure a model on problems that it was not trained on.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from grpo_course.gsm8k.command import run_command


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
    add("--split", help="default: unseen_problems, or test")
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
    from grpo_course.gsm8k.evaluation import greedy_scores, sampled_scores
    from grpo_course.gsm8k.evaluation_table import (
        evaluation_table,
        name_measures,
        summary_rows,
    )

    options = parser().parse_args(arguments)
    config, split = settle(options)
    policy, task = load(options, config, split)
    print(f"{options.model} on {config.data}, split {split}")
    size = {"batch_size": options.batch}
    greedy = greedy_scores(policy, task, **size)
    heat = config.eval_temperature
    how = {"temperature": heat, "seed": options.seed} | size
    sampled = sampled_scores(policy, task, config.eval_samples, **how)
    measured = {"model": name_measures(greedy, sampled)}
    print(evaluation_table(measured, options.seed))
    print(f"Samples at temperature {heat}; 95 % intervals over problems.")
    show(task, greedy, options.show)
    if options.out:
        rows = summary_rows(measured, options.seed)
        Path(options.out).write_text(json.dumps(rows, indent=2) + "\n", "utf-8")
    return 0


def settle(options: argparse.Namespace):
    """The settings, from the run that made the model, the config and the options."""
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


def load(options: argparse.Namespace, config, split: str):
    """The policy and the problems it is measured on."""
    from grpo_course.gsm8k.pretrained import load_model, load_tokenizer
    from grpo_course.gsm8k.run_folder import find_model
    from grpo_course.gsm8k.setting_up import (
        find_device,
        load_problems,
        make_policy,
        make_task,
        use_threads,
    )

    use_threads(config)
    path = find_model(options.model)
    problems = load_problems(config, split, config.eval_problems)
    tokenizer = load_tokenizer(path)
    model = load_model(path, find_device(config.device))
    # Nothing is trained here, so nothing needs to be made again.
    config = replace(config, gradient_checkpointing=False)
    policy = make_policy(config, model, tokenizer)
    return policy, make_task(config, problems, tokenizer)


def show(task, greedy, count: int) -> None:
    """Print some problems with the greedy response."""
    for problem, texts in list(zip(task.problems, greedy.texts, strict=True))[:count]:
        print(f"\n{problem.question}\n-> {texts[0]}\n   right: {problem.answer}")


if __name__ == "__main__":
    sys.exit(run_command(main))
