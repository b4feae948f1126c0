"""`python3 -m grpo_course new-task my_task.py`: a task to begin with, in a new file."""

import argparse
import inspect
from pathlib import Path

from grpo_course import reverse
from grpo_course.files import write_atomically
from grpo_course.runs.cli import run_command

COMMAND = "python3 -m grpo_course"


def main(arguments: list[str], root: Path) -> int:
    """The command of `python3 -m grpo_course`. -> the exit status"""
    return run_command(work, arguments)


def work(arguments: list[str]) -> int:
    """Copy the task that reverses words. -> the exit status"""
    made = argparse.ArgumentParser(
        f"{COMMAND} new-task", description="Write a task to begin with."
    )
    made.add_argument("file", type=Path, help="a new file, my_task.py")
    path = made.parse_args(arguments).file
    if path.suffix != ".py" or path.exists() or not path.parent.is_dir():
        raise ValueError(
            f"{path} cannot be written. Name a new file that ends with .py, in a "
            "folder that is there: my_task.py."
        )
    source = inspect.getsource(reverse).replace("my_task.py", str(path))
    write_atomically(path, source)
    print(f"{path} holds a task that reverses words. Change it, then:")
    print(f"{COMMAND} check-task {path}:Reverse")
    return 0
