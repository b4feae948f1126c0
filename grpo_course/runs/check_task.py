"""`python3 -m grpo_course check-task my_task.py:MyTask`: what is wrong with a task."""

import argparse
from pathlib import Path

from grpo_course.runs.cli import choose_config, run_command, with_flags
from grpo_course.task_check import check_task
from grpo_course.training import make_task


def main(arguments: list[str], root: Path) -> int:
    """The command of `python3 -m grpo_course`. -> the exit status"""
    return run_command(work, arguments)


def work(arguments: list[str]) -> int:
    """Check a task. -> the exit status, 1 where something is wrong"""
    made = argparse.ArgumentParser(
        "python3 -m grpo_course check-task",
        description="Find what is wrong with a task before it is trained.",
        epilog="Settings are flags, as of train: --max-new-tokens 40",
        allow_abbrev=False,
    )
    made.add_argument("task", help="my_task.py:MyTask, or a name")
    made.add_argument("--config", help="as of train (default: laptop)")
    options, flags = made.parse_known_args(arguments)
    config = choose_config(options.config, options.task)
    config = with_flags(config, flags, argparse.Namespace(config=None), made.prog)
    return 0 if check_task(make_task(config), config) else 1
