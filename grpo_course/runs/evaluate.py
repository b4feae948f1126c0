"""`python3 -m grpo_course evaluate --model DIR`: problems it was not trained on."""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from pandas import concat
from transformers import PreTrainedTokenizerBase

from grpo_course.checks import unknown_name
from grpo_course.evaluation import (
    Scores,
    evaluation_table,
    greedy_scores,
    name_measures,
    sampled_scores,
    summary,
    ways_to_answer,
)
from grpo_course.files import write_atomically
from grpo_course.lm import CausalPolicy, find_device, load_model
from grpo_course.runs.cli import choose_config, run_command, with_flags
from grpo_course.runs.folder import config_of, find_model, find_start
from grpo_course.tasks import Environment
from grpo_course.training import (
    GRPOConfig,
    load_trained,
    make_policy,
    make_task,
    use_threads,
)

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
    add("--task", help="name or FILE.py:NAME (default: that of the run)")
    add("--config", help="preset or JSON file (default: that of the run, else gpu)")
    add("--split", help="default: the first of the task's")
    add("--seed", type=seed, default=0, help="of samples and intervals")
    add("--batch", type=int, default=32, help="problems at once")
    add("--show", type=int, default=2, help="print the greedy response to so many")
    help_text = "compare with the start: as it is, cooled, by majority, greedy"
    add("--baselines", action="store_true", help=help_text)
    add("--out", help="also write the measures to this JSON file")
    return made


def seed(text: str) -> int:
    """A seed that a generator takes. Raises ArgumentTypeError for another."""
    if not (text.isascii() and text.isdigit() and int(text) < 2**63):
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 0 to 2**63-1")
    return int(text)


def main(arguments: list[str], root: Path) -> int:
    """The command of `python3 -m grpo_course`. -> the exit status"""
    return run_command(work, arguments)


def work(arguments: list[str]) -> int:
    """Load, measure, print. -> the exit status"""
    options, flags = parser().parse_known_args(arguments)
    require_place(options.out)
    config, split = settle(options, flags)
    use_threads(config)
    policy, environment = load_trained(config, find_model(options.model), split)
    print(f"{options.model} on {config.task}, split {split}")
    how = sampling(config, options)
    greedy = greedy_scores(policy, environment, options.batch)
    sampled = sampled_scores(policy, environment, **how)
    measured = {"model": name_measures(greedy, sampled)}
    print(evaluation_table(measured, options.seed).to_string())
    print(f"Samples at temperature {how['temperature']}; 95 % intervals over problems.")
    show(environment, greedy, options.show)
    rows = summary(measured, options.seed)
    if options.baselines:
        before = start_of(options.model, config, environment.tokenizer)
        both = {"start": before, "model": policy}
        beside = {k: ways_to_answer(v, environment, **how) for k, v in both.items()}
        print(f"\nAccuracy\n{evaluation_table(beside, options.seed).to_string()}")
        rows = concat([rows, summary(beside, options.seed)])
    if options.out:
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


def sampling(config: GRPOConfig, options: argparse.Namespace) -> dict[str, Any]:
    """How samples are drawn, of every model that is measured."""
    return {
        "num_samples": config.eval_samples,
        "temperature": config.eval_temperature,
        "seed": options.seed,
        "batch_size": options.batch,
    }


def start_of(
    model: str, config: GRPOConfig, tokenizer: PreTrainedTokenizerBase
) -> CausalPolicy:
    """What a model was before its training."""
    start = load_model(find_start(model), find_device(config.device))
    return make_policy(config, start, tokenizer)


def show(environment: Environment, greedy: Scores, count: int) -> None:
    """Print some problems with the greedy response."""
    pairs = zip(environment.problems, greedy.texts, strict=True)
    for problem, texts in list(pairs)[:count]:
        print(f"\n{problem.question}\n-> {texts[0]}\n   right: {problem.answer}")
