"""`python3 -m grpo_course evaluate --model DIR`: problems it was not trained on."""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from grpo_course.algorithm.validation import unknown_name
from grpo_course.files import write_atomically
from grpo_course.language_model.build import load_trained, make_task, use_threads
from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.environment import Environment
from grpo_course.language_model.evaluation import Scores, greedy_scores, sampled_scores
from grpo_course.language_model.policy import CausalPolicy
from grpo_course.language_model.tables import (
    Measures,
    evaluation_table,
    name_measures,
    summary,
)
from grpo_course.runs.cli import choose_config, run_command, with_flags
from grpo_course.runs.folder import config_of, find_model

PROG = "python3 -m grpo_course evaluate"


def parser() -> argparse.ArgumentParser:
    """What the command takes beside the settings of `train`."""
    made = argparse.ArgumentParser(
        prog=PROG,
        description="Greedy and sampled accuracy, pass@k and format, with intervals.",
        epilog="Settings are flags, as of train: --eval-samples 4 --eval-temperature 1",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--model", required=True, help="folder of a run or a model, or a hub name")
    add("--task", help="one of the tasks, or module:name (default: that of the run)")
    add("--config", help="preset or JSON file (default: that of the run, else gpu)")
    add("--split", help="default: the first of the task's")
    add("--seed", type=int, default=0, help="of samples and intervals")
    add("--batch", type=int, default=32, help="problems at once")
    add("--show", type=int, default=2, help="print the greedy response to so many")
    add("--out", help="also write the measures to this JSON file")
    return made


def main(arguments: list[str], root: Path) -> int:
    """The command of `python3 -m grpo_course`. -> the exit status"""
    sys.path.insert(0, os.getcwd())  # where a task of the learner's own lies
    return run_command(work, arguments)


def work(arguments: list[str]) -> int:
    """Load, measure, print. -> the exit status"""
    options, flags = parser().parse_known_args(arguments)
    require_place(options.out)
    config, split = settle(options, flags)
    use_threads(config)
    policy, environment = load_trained(config, find_model(options.model), split)
    print(f"{options.model} on {config.task}, split {split}")
    greedy, measures = measure(policy, environment, config, options)
    measured = {"model": measures}
    print(evaluation_table(measured, options.seed).to_string())
    heat = config.eval_temperature
    print(f"Samples at temperature {heat}; 95 % intervals over problems.")
    show(environment, greedy, options.show)
    if options.out:
        rows = summary(measured, options.seed)
        write_atomically(Path(options.out), rows.to_json(orient="records", indent=2))
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


def settle(options: argparse.Namespace, flags: list[str]) -> tuple[GRPOConfig, str]:
    """The settings, from the model's run, the config and the flags; the split."""
    config = None if options.config else config_of(options.model)
    if config is None:
        config = choose_config(options.config or "gpu", options.task)
    elif options.task not in (None, config.task):
        config = replace(config, task=options.task, task_settings={})
    config = replace(with_flags(config, flags, options, PROG), model=None)
    splits = make_task(config).splits
    if options.split and options.split not in (*splits, "train"):
        raise unknown_name("split", options.split, (*splits, "train"))
    return config, options.split or splits[0]


def measure(
    policy: CausalPolicy,
    environment: Environment,
    config: GRPOConfig,
    options: argparse.Namespace,
) -> tuple[Scores, Measures]:
    """The greedy responses with what they earned, and every measure."""
    greedy = greedy_scores(policy, environment, options.batch)
    sampled = sampled_scores(
        policy,
        environment,
        config.eval_samples,
        temperature=config.eval_temperature,
        seed=options.seed,
        batch_size=options.batch,
    )
    return greedy, name_measures(greedy, sampled)


def show(environment: Environment, greedy: Scores, count: int) -> None:
    """Print some problems with the greedy response."""
    pairs = zip(environment.problems, greedy.texts, strict=True)
    for problem, texts in list(pairs)[:count]:
        print(f"\n{problem.question}\n-> {texts[0]}\n   right: {problem.answer}")
