"""What is wrong with a task, found before anything is trained: a mistake, its cure.

    attack    what policies that know nothing earn
    look      a task under examination
    source    names that a task's source must not use
    data      what is wrong with its problems
    rewards   what is wrong with its grading
    length    whether the right response fits

Each check takes a `Look` and returns words, or "" where nothing is wrong. It takes for
granted that the checks before it have found nothing.
"""

import traceback
from textwrap import wrap

from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.task_check import data
from grpo_course.language_model.task_check.attack import attack
from grpo_course.language_model.task_check.length import length_fault
from grpo_course.language_model.task_check.look import Look
from grpo_course.language_model.task_check.rewards import REWARD_CHECKS
from grpo_course.language_model.task_check.source import source_fault
from grpo_course.language_model.text_task import TextTask

WIDTH = 79
CHECKS = (
    source_fault,
    data.count_fault,
    data.answer_fault,
    data.repeat_fault,
    data.split_fault,
    data.leak_fault,
    *REWARD_CHECKS,
    length_fault,
    data.table_fault,
)

__all__ = ["attack", "check_task", "find_fault"]


def check_task(task: TextTask, config: GRPOConfig | None = None) -> bool:
    """Print the first mistake, or that there is none and what cheap policies earn.

    -> whether none was found. `config` as in `find_fault`.
    """
    if words := find_fault(task, config):
        print("\n".join(wrap(f"[x] {words}", WIDTH, subsequent_indent="    ")))
        return False
    print(f"[v] {len(CHECKS)} checks found nothing wrong. What earns how much:")
    print(attack(task).to_string(float_format="{:.2f}".format))
    return True


def find_fault(task: TextTask, config: GRPOConfig | None = None) -> str:
    """The first mistake in a task, in words with its cure; "" where none is found.

    `config` says how many problems a run takes and how long a response may be; None:
    the first of the task's presets.
    """
    look = Look(task, config)
    for check in CHECKS:
        try:
            words = check(look)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            kind = type(error).__name__
            return f"{where.name} (line {where.lineno}) ends in {kind}: {error}"
        if words:
            return words
    return ""
