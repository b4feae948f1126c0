"""`python3 -m grpo_course train`: GRPO on a text task, in a folder.

python3 -m grpo_course train --config laptop --out runs/laptop
python3 -m grpo_course train --resume --out runs/laptop
python3 -m grpo_course train --task countdown --learning-rate 1e-4
python3 -m grpo_course train --task my_task.py:MyTask
"""

import sys
from argparse import Namespace
from pathlib import Path

from grpo_course.lm import probe_line
from grpo_course.runs.checkpoint import saved_epochs
from grpo_course.runs.cli import (
    STOPPED,
    choose_config,
    print_settings,
    run_command,
    training_parser,
    with_flags,
)
from grpo_course.runs.fits import require_memory
from grpo_course.runs.folder import (
    CHECKPOINTS,
    alone_in,
    begin,
    require_same,
    saved_config,
)
from grpo_course.runs.interrupt import Interrupt
from grpo_course.runs.resumable import Run
from grpo_course.training import GRPOConfig


def main(arguments: list[str], root: Path) -> int:
    """The command of `python3 -m grpo_course`. -> the exit status"""
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
    require_memory(config)
    try:
        with alone_in(out), Interrupt(at_once=True):
            if not options.resume:
                begin(config, out)
            run = Run(out)
            if config.model is not None and not options.resume:
                print(probe_line(run.policy, run.environment.ask(range(2))))
            run.go()
    except KeyboardInterrupt:
        print(f"\nStopped. {how_to_go_on(out)}", file=sys.stderr)
        return STOPPED
    print(f"Trained for {run.trainer.epoch} epochs. The model is in {run.newest()}.")
    print(f"Measure it: python3 -m grpo_course evaluate --model {out}")
    return 0


def how_to_go_on(out: Path) -> str:
    """What to do with a run that was stopped, and what is lost."""
    again = f"python3 -m grpo_course train --resume --out {out}"
    if saved_epochs(out / CHECKPOINTS):
        return f"To go on: {again}"
    return f"Nothing was saved yet. To begin again, with the warm start: {again}"


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
