"""`python3 -m grpo_course train`: GRPO on a text task, in a folder.

python3 -m grpo_course train --config laptop --out runs/laptop
python3 -m grpo_course train --resume --out runs/laptop
python3 -m grpo_course train --task countdown --learning-rate 1e-4
python3 -m grpo_course train --task my_task.py:MyTask
"""

import os
import sys
from argparse import Namespace
from pathlib import Path

from grpo_course.language_model.config import GRPOConfig
from grpo_course.runs.cli import (
    STOPPED,
    choose_config,
    print_settings,
    run_command,
    training_parser,
    with_flags,
)
from grpo_course.runs.folder import alone_in, begin, require_same, saved_config
from grpo_course.runs.memory import print_estimate
from grpo_course.runs.resumable import Run


def main(arguments: list[str], root: Path) -> int:
    """The command of `python3 -m grpo_course`. -> the exit status"""
    sys.path.insert(0, os.getcwd())  # where a task of the learner's own lies
    return run_command(work, arguments)


def work(arguments: list[str]) -> int:
    """Begin a run or go on with one. -> the exit status"""
    made = training_parser("train", "Train a causal LM with GRPO.", out="runs/grpo")
    made.add_argument("--resume", action="store_true", help="go on with the run")
    options, flags = made.parse_known_args(arguments)
    if options.settings:
        print_settings(choose_config(options.config, options.task), made.prog)
        return 0
    out = Path(options.out)
    config = config_of_run(out, options, flags, made.prog)
    print_estimate(config)
    try:
        with alone_in(out):
            if not options.resume:
                begin(config, out)
            run = Run(out)
            run.go()
    except KeyboardInterrupt:
        again = f"python3 -m grpo_course train --resume --out {out}"
        print(f"\nStopped. To go on: {again}", file=sys.stderr)
        return STOPPED
    print(f"Trained for {run.trainer.epoch} epochs. The model is in {run.newest()}.")
    print(f"Measure it: python3 -m grpo_course evaluate --model {out}")
    return 0


def config_of_run(
    out: Path, options: Namespace, flags: list[str], prog: str
) -> GRPOConfig:
    """The settings of a new run, or those of a resumed one, checked to be the same."""
    if not options.resume:
        config = choose_config(options.config, options.task)
        return with_flags(config, flags, options, prog)
    saved = saved_config(out)
    named = options.config or options.task
    given = choose_config(options.config, options.task) if named else saved
    require_same(with_flags(given, flags, options, prog), saved, out)
    return saved
