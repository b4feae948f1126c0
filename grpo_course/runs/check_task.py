"""`python3 -m grpo_course check-task my_task.py:MyTask`: what is wrong with a task.

Beside the checks of `task_check` it asks for the problems in another process: there
hash() and the order of a set are others, as after a run was stopped and resumed.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from grpo_course.runs.cli import choose_config, run_command, with_flags
from grpo_course.task_check import Look, check_task
from grpo_course.training import GRPOConfig, make_task

CHILD = (
    "import json, sys; sys.path.insert(0, ''); "
    "from grpo_course.training import from_values; "
    "from grpo_course.runs.check_task import digest; "
    "print(digest(from_values(json.loads(sys.argv[1]))))"
)


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
    if not check_task(make_task(config), config):
        return 1
    if digest(config) != digest_elsewhere(config):
        raise ValueError(
            "In another process, equal arguments give other problems, so a resumed run "
            "would not go on with its own. The order of a set of texts changes from "
            "process to process: sorted(...) makes a list of it in one order."
        )
    return 0


def digest(config: GRPOConfig) -> str:
    """The problems of a run in a few letters."""
    problems = Look(make_task(config), config).problems
    return hashlib.sha256(repr(problems).encode()).hexdigest()


def digest_elsewhere(config: GRPOConfig) -> str:
    """The same from another process, with other hashes of texts."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(asdict(config))],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": "1"},
    )
    if done.returncode:
        raise ValueError(f"In another process the task breaks: {done.stderr[-300:]}")
    return done.stdout.strip()
