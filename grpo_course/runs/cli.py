"""What the commands share: settings come from a preset or a file, then from flags.

Every setting of a run and of its task is a flag; its help is the comment beside it.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from grpo_course.checks import choices
from grpo_course.extras import MissingExtra
from grpo_course.runs.checkpoint import CheckpointError
from grpo_course.runs.folder import find_model
from grpo_course.tasks import TextTask, find_task
from grpo_course.training import (
    GRPOConfig,
    load_config,
    make_task,
    presets_of,
    spelled_out,
)

STOPPED = 130  # the exit status of a program that Ctrl-C ended


def run_command(work: Callable[[list[str]], int], arguments: list[str]) -> int:
    """Run a command. -> the exit status

    What a person can cure is one line on stderr; a bug keeps its traceback.
    """
    sys.path.insert(0, os.getcwd())  # where a task of the learner's own lies
    try:
        return work(arguments)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return STOPPED
    except (ValueError, OSError, CheckpointError, MissingExtra) as error:
        print(f"\nerror: {error}", file=sys.stderr)
        return 1


def training_parser(
    command: str, description: str, out: str
) -> argparse.ArgumentParser:
    """What every command that trains takes beside the settings themselves."""
    made = argparse.ArgumentParser(
        f"python3 -m grpo_course {command}",
        description=description,
        epilog="Every setting is a flag too: --settings lists them.",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--task", help="a name, or FILE.py:NAME (default: gsm8k)")
    add("--config", help="one of the task's presets, or a JSON file (default: laptop)")
    add("--out", default=out, help="folder of the run (default: %(default)s)")
    add("--settings", action="store_true", help="list every setting with its help")
    return made


def choose_config(name: str | None, task: str | None) -> GRPOConfig:
    """A preset of the task, or a file. Raises ValueError for a name that is neither."""
    if name is not None and Path(name).is_file():
        return load_config(name, task)
    presets, chosen = presets_of(task or "gsm8k"), name or "laptop"
    if chosen not in presets:
        raise ValueError(f"config={chosen!r} {choices(presets)} Or name a JSON file.")
    return presets[chosen]


def with_flags(
    config: GRPOConfig, flags: list[str], options: argparse.Namespace, prog: str
) -> GRPOConfig:
    """The config with what the command line says of it and of its task.

    `options` are the command's own. For a model that is the folder of a run, its newest
    checkpoint is taken. Ends the program for a flag that is not known.
    """
    kind, config = find_task(config.task), spelled_out(config)
    require_free_names(kind, options)
    task, rest = parse(
        kind, make_task(config), flags, prog, return_unknown_args=True, add_help=False
    )
    config = parse(GRPOConfig, replace(config, task_settings={}), rest, prog)
    config = replace(config, task_settings=asdict(task))
    if config.model is None:
        return config
    return replace(config, model=find_model(config.model))


def parse(kind: type, default: Any, flags: list[str], prog: str, **more: Any) -> Any:
    """Settings of some kind, each a flag with a value: --gradient-checkpointing True"""
    import tyro  # only commands need it

    how = (tyro.conf.FlagConversionOff,)
    with warnings.catch_warnings():  # of a task that does not say TextTask[Problem]
        warnings.simplefilter("ignore", UserWarning)
        return tyro.cli(
            kind, default=default, args=flags, prog=prog, config=how, **more
        )


def require_free_names(kind: type[TextTask], options: argparse.Namespace) -> None:
    """Check that no flag of a task's own is one of the command's or of the run's."""
    taken = {*vars(options), *(field.name for field in fields(GRPOConfig))}
    for field in fields(kind):
        if field.name in taken:
            raise ValueError(
                f"{kind.__name__} has a setting {field.name!r}, but --{field.name} is "
                "a flag of every run. Give it another name."
            )


def print_settings(config: GRPOConfig, prog: str) -> None:
    """Every setting with its help: those of the task, then those of the run."""
    config = spelled_out(config)
    plain = replace(config, task_settings={})
    for kind, default in (
        (find_task(config.task), make_task(config)),
        (GRPOConfig, plain),
    ):
        with suppress(SystemExit):
            parse(kind, default, ["--help"], prog)
