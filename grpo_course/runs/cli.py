"""What the commands share: settings come from a preset or a file, then from flags.

Every setting of a run and of its task is a flag; its help is the comment beside it.
"""

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from grpo_course.language_model.build import make_task
from grpo_course.language_model.config import GRPOConfig, choose_preset, load_config
from grpo_course.language_model.task import find_task
from grpo_course.runs.checkpoint import CheckpointError
from grpo_course.runs.folder import find_model

STOPPED = 130  # the exit status of a program that Ctrl-C ended


def run_command(work: Callable[[list[str]], int], arguments: list[str]) -> int:
    """Run a command. -> the exit status

    What a person can cure is one line on stderr; a bug keeps its traceback.
    """
    try:
        return work(arguments)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return STOPPED
    except (ValueError, OSError, CheckpointError) as error:
        print(f"\nerror: {error}", file=sys.stderr)
        return 1


def training_parser(command: str, description: str, out: str) -> argparse.ArgumentParser:
    """What every command that trains takes beside the settings themselves."""
    made = argparse.ArgumentParser(
        f"python3 -m grpo_course {command}",
        description=description,
        epilog="Every setting is a flag too: --settings lists them.",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--task", help="gsm8k, countdown, or module:name (default: gsm8k)")
    add("--config", help="one of the task's presets, or a JSON file (default: laptop)")
    add("--out", default=out, help="folder of the run (default: %(default)s)")
    add("--settings", action="store_true", help="list every setting with its help")
    return made


def choose_config(name: str | None, task: str | None) -> GRPOConfig:
    """A preset of the task, or a file. Raises ValueError for a name that is neither."""
    if name is not None and Path(name).is_file():
        config = load_config(name)
        return config if task is None else replace(config, task=task)
    presets = find_task(task or "gsm8k").presets
    if not presets and name is None:
        return GRPOConfig(task=task)
    preset = choose_preset("config", name or "laptop", presets)
    # A task of a learner's own is known by the name it was asked for.
    return replace(preset, task=task or preset.task)


def with_flags(config: GRPOConfig, flags: list[str], prog: str) -> GRPOConfig:
    """The config with what the command line says of it and of its task.

    For a model that is the folder of a run, its newest checkpoint is taken. Ends the
    program for a flag that is not known.
    """
    import tyro

    how = {"prog": prog, "config": (tyro.conf.FlagConversionOff,)}
    task, rest = tyro.cli(
        find_task(config.task),
        default=make_task(config),
        args=flags,
        return_unknown_args=True,
        add_help=False,
        **how,
    )
    config = tyro.cli(GRPOConfig, default=config, args=rest, **how)
    config = replace(config, task_settings=asdict(task))
    if config.model is None:
        return config
    return replace(config, model=find_model(config.model))


def print_settings(config: GRPOConfig, prog: str) -> None:
    """Every setting with its help: those of the task, then those of the run."""
    import tyro

    for kind, default in (
        (find_task(config.task), make_task(config)),
        (GRPOConfig, config),
    ):
        with suppress(SystemExit):
            tyro.cli(kind, prog=prog, default=default, args=["--help"])
