"""The commands of a run: `train`, `evaluate`, `ask`, `show`, `new-task`, `check-task`.

    python3 -m grpo_course train --config sums --out runs/sums
    python3 -m grpo_course train --resume --out runs/sums
    python3 -m grpo_course train --task my_task.py:Reverse --learning-rate 1e-4
    python3 -m grpo_course show runs/sums runs/other --out both.png
    python3 -m grpo_course evaluate --model runs/sums --baselines
    python3 -m grpo_course ask --model runs/sums --question "How many are 3 and 4?"

Settings come from a preset or a file, then from flags: every setting of a run and of
its task is one, and its help is the comment beside it.
"""

import argparse
import inspect
import io
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import wraps
from pathlib import Path
from typing import Any

from grpo_course import install
from grpo_course.checks import require_known
from grpo_course.files import write_atomically
from grpo_course.long_work import is_log, watched
from grpo_course.text import reverse
from grpo_course.text.config import (
    GRPOConfig,
    find_preset,
    load_config,
    make_task,
    spelled_out,
)
from grpo_course.text.errors import (
    STOPPED,
    MissingExtra,
    own_line,
    pasted,
    require_peft,
)
from grpo_course.text.run_folder import (
    CONFIG,
    PICTURE,
    PICTURES,
    SEED,
    differences,
    find_model,
    first_of_seeds,
    going_on,
    require_no_run,
    saved_config,
)
from grpo_course.text.tasks import find_task
from grpo_course.text.trackers import LOGGERS, NO_LOGGER, require_logger


def run_command(work: Callable[[list[str]], int], arguments: list[str]) -> int:
    """Run a command. -> the exit status

    What a person can cure is one line on stderr; a bug keeps its traceback.
    """
    sys.path.insert(0, os.getcwd())  # where a task of the learner's own lies
    if isinstance(sys.stdout, io.TextIOWrapper):  # a log is read while the work goes on
        sys.stdout.reconfigure(line_buffering=True, errors="replace")
    if is_log(sys.stderr):  # whose lines nobody can overwrite
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        with watched():
            return work(arguments)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:  # its reader has seen enough
        raise
    except Exception as error:
        own = own_line(error)
        if not (own or isinstance(error, ValueError | OSError | MissingExtra)):
            raise
        notes = getattr(error, "__notes__", [])
        print("\nerror:", own or error, *notes, file=sys.stderr)
        return 1


def command(work: Callable[[list[str]], int]) -> Callable[..., int]:
    """A command as `grpo_course.__main__` calls it: with the folder of the course."""

    @wraps(work)
    def run(arguments: list[str], root: Path | None = None) -> int:
        return run_command(work, arguments)

    return run


# Settings


def training_parser(prog: str, description: str, out: str) -> argparse.ArgumentParser:
    """What every command that trains takes beside the settings themselves."""
    parser = argparse.ArgumentParser(
        prog,
        description=description,
        epilog="Every setting is a flag too: --settings lists them.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--task", help="a name, or FILE.py:NAME (default: gsm8k)")
    add("--config", help="a preset of the task (default: its first), or a JSON file")
    add("--out", default=out, help="folder of the run (default: %(default)s)")
    add("--settings", action="store_true", help="list every setting with its help")
    return parser


def choose_config(name: str | None, task: str | None) -> GRPOConfig:
    """A preset of the task, or a file. Raises ValueError for a name that is neither."""
    if name is not None and Path(name).is_file():
        return load_config(name, task)
    return find_preset(task or "gsm8k", name)


def with_flags(
    config: GRPOConfig, flags: list[str], options: argparse.Namespace, prog: str
) -> GRPOConfig:
    """The config with what the command line says of it and of its task.

    `options` are the command's own. For a model that is the folder of a run, its newest
    checkpoint is taken. Ends the program for a flag that is not known.
    """
    kind, config = find_task(config.task), spelled_out(config)
    taken = {*vars(options), *(field.name for field in fields(GRPOConfig))}
    for field in fields(kind):
        if field.name in taken:
            raise ValueError(
                f"{kind.__name__} has a setting {field.name!r}, but --{field.name} is "
                "a flag of every run. Give it another name."
            )
    task, rest = parse(
        kind, make_task(config), flags, prog, return_unknown_args=True, add_help=False
    )
    config = parse(GRPOConfig, replace(config, task_settings={}), rest, prog)
    config = replace(config, task_settings=asdict(task))
    return replace(config, model=config.model and find_model(config.model))


def parse(kind: type, default: Any, flags: list[str], prog: str, **more: Any) -> Any:
    """Settings of some kind, each a flag with a value: --gradient-checkpointing True"""
    import tyro  # only commands need it

    how = (tyro.conf.FlagConversionOff,)
    with warnings.catch_warnings():  # of a task that does not say TextTask[Problem]
        warnings.simplefilter("ignore", UserWarning)
        return tyro.cli(
            kind, default=default, args=flags, prog=prog, config=how, **more
        )


def print_settings(config: GRPOConfig, prog: str) -> None:
    """Every setting with its help: those of the task, then those of the run."""
    config = spelled_out(config)
    with suppress(SystemExit):
        parse(find_task(config.task), make_task(config), ["--help"], prog)
    with suppress(SystemExit):
        parse(GRPOConfig, replace(config, task_settings={}), ["--help"], prog)


# train


@command
def train(arguments: list[str]) -> int:
    """Begin a run of GRPO, or go on with one; or with one for each of some seeds."""
    prog = install.call("train")
    parser = training_parser(prog, "Train a causal LM with GRPO.", out="runs/grpo")
    parser.add_argument("--resume", action="store_true", help="go on with the run")
    seeds = "so many runs, one after the other, with seeds and folders of their own"
    parser.add_argument("--seeds", type=int, help=seeds)
    loggers = "a logger for the metrics, beside the run's own file (default: none)"
    names = (NO_LOGGER, *LOGGERS)
    parser.add_argument("--report-to", choices=names, default=NO_LOGGER, help=loggers)
    options, flags = parser.parse_known_args(arguments)
    if options.seeds is not None and options.seeds < 1:
        parser.error("--seeds must be at least 1.")
    if options.settings:
        print_settings(choose_config(options.config, options.task), prog)
        return 0
    out, saved = Path(options.out), None
    if options.resume:
        saved = saved_config(first_of_seeds(out) if options.seeds else out)
    config = saved
    if config is None or options.config or options.task:
        config = choose_config(options.config, options.task)
    config = with_flags(config, flags, options, prog)
    runs = {out: config}
    if options.seeds:
        numbers = range(config.seed, config.seed + options.seeds)
        runs = {out / f"{SEED}{seed}": replace(config, seed=seed) for seed in numbers}
    how_many = ["--seeds", str(options.seeds)] if options.seeds else []
    again = pasted("train", "--resume", *how_many, "--out", out)
    begun = {}
    for folder, wanted in runs.items():
        if not options.resume:
            require_no_run(folder)
        elif folder == out or (folder / CONFIG).is_file():
            begun[folder] = saved_config(folder)
            require_same_settings(folder, begun[folder], wanted)
    if config.lora_rank:  # asked for before anything is loaded
        require_peft()
    require_logger(options.report_to)
    from grpo_course.text.commands import train_in  # loads transformers

    for folder, wanted in runs.items():
        if options.seeds:
            print(f"\n{folder}")
        status = train_in(folder, wanted, begun.get(folder), again, options.report_to)
        if status:
            return status
    if options.seeds:
        print(f"\nCompare them: {pasted('show', out)}")
    return 0


def require_same_settings(out: Path, saved: GRPOConfig, config: GRPOConfig) -> None:
    """Check that a run goes on as it began, but for its machine and its length."""
    if changes := differences(going_on(saved, config), config):
        from grpo_course.text.commands import with_other_settings

        raise ValueError(
            f"The run in {out} has other settings: {changes}. Resume it without them: "
            f"{pasted('train', '--resume', '--out', out)}. {with_other_settings(out)}"
        )


# evaluate


def model_parser(prog: str, description: str, flags: str) -> argparse.ArgumentParser:
    """What every command that asks a model takes beside the settings, as `flags`."""
    parser = argparse.ArgumentParser(
        prog,
        description=description,
        epilog=f"Settings are flags, as of train: {flags}",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--model", required=True, help="folder of a run or a model, or a hub name")
    add("--task", help="name or FILE.py:NAME (default: that of the run)")
    add("--config", help="preset or JSON file (default: that of the run or the task)")
    return parser


def configs_to_evaluate(
    options: argparse.Namespace, flags: list[str], prog: str
) -> tuple[GRPOConfig, GRPOConfig | None]:
    """The settings to measure with, and those of the training on the same task, if any.

    A model may lie in a run, in one of its checkpoints, or beside what TRL kept.
    """
    path = Path(options.model)
    near = (path, *path.resolve().parents[:2]) if path.is_dir() else ()
    known = [folder / CONFIG for folder in near if (folder / CONFIG).is_file()]
    trained = load_config(known[0]) if known else None
    if options.config or not trained:
        usual = "gpu" if options.task in (None, "gsm8k") else None  # real problems
        config = choose_config(options.config or usual, options.task)
    elif options.task in (None, trained.task):
        config = trained
    else:
        config = replace(
            trained, task=options.task, task_settings={}, reward_weights={}
        )
    config = replace(with_flags(config, flags, options, prog), model=None)
    if trained and trained.task != config.task:
        trained = None  # its demonstrations are of another task
    return config, trained


@command
def evaluate(arguments: list[str]) -> int:
    """Measure a model on problems that it was not trained on."""
    prog = install.call("evaluate")
    what = "Greedy and sampled accuracy, pass@k and format, with intervals."
    parser = model_parser(prog, what, "--eval-samples 4 --eval-temperature 1")
    add = parser.add_argument
    add("--split", help="default: the first of the task's")
    add("--seed", type=int, default=0, help="of samples and intervals")
    add("--batch", type=int, default=32, help="problems at once")
    add("--show", type=int, default=2, help="print the greedy response to so many")
    longer = "compare with the start, and with a longer one where it was a warm start"
    add("--baselines", action="store_true", help=longer)
    add("--out", help="also write the measures to this JSON file")
    options, flags = parser.parse_known_args(arguments)
    if options.out and not Path(options.out).parent.is_dir():
        raise ValueError(f"--out {options.out}: its folder is not there.")
    config, trained = configs_to_evaluate(options, flags, prog)
    splits = make_task(config).splits
    split = options.split or splits[0]
    require_known("split", split, (*splits, "train"))
    from grpo_course.text.commands import measure  # loads transformers

    return measure(options, config, trained, split)


# ask


@command
def ask(arguments: list[str]) -> int:
    """Talk to a model, and see what each reward says of what it answers."""
    prog = install.call("ask")
    what = (
        "Ask a model. Without a question, it reads them line by line; an empty line "
        "asks a problem of the task."
    )
    parser = model_parser(prog, what, "--temperature 0.7 --max-new-tokens 99")
    add = parser.add_argument
    add("--question", help="what to ask, in quotes")
    add("--answer", help="the right one, for the rewards; JSON where it is no text")
    add("--samples", type=int, default=0, help="so many samples, not the likeliest")
    add("--plain", action="store_true", help="without the task's prompt and examples")
    options, flags = parser.parse_known_args(arguments)
    config, _ = configs_to_evaluate(options, flags, prog)
    from grpo_course.text.commands import converse  # loads transformers

    return converse(options, config)


# show


@command
def show(arguments: list[str]) -> int:
    """Print and draw what runs have measured so far, also while they go on."""
    parser = argparse.ArgumentParser(
        install.call("show"),
        description="Print and draw what runs have measured so far. Those that differ "
        "in their seed alone are one: their mean, with its 95 %% interval.",
        allow_abbrev=False,
    )
    parser.add_argument("runs", nargs="+", help="folders of runs, or of their seeds")
    out_help = (
        f"the picture (default: {PICTURE} in a run's folder, of several {PICTURES})"
    )
    parser.add_argument("--out", help=out_help)
    parser.add_argument(
        "--samples", type=int, default=2, help="print so many responses"
    )
    options = parser.parse_args(arguments)
    from grpo_course.text.report import print_runs  # loads pandas

    return print_runs(options.runs, options.out, options.samples)


# new-task, check-task


@command
def new_task(arguments: list[str]) -> int:
    """Write a task to begin with, which reverses words."""
    prog = install.call("new-task")
    parser = argparse.ArgumentParser(prog, description=new_task.__doc__)
    parser.add_argument("file", type=Path, help="a new file, my_task.py")
    path = parser.parse_args(arguments).file
    if path.suffix != ".py" or path.exists() or not path.parent.is_dir():
        what = "is there already" if path.exists() else "cannot be written"
        raise ValueError(
            f"{path} {what}. Name a new file that ends with .py, in a folder that is "
            "there: my_task.py."
        )
    shown = install.quoted(path.as_posix())  # as a shell takes it
    write_atomically(path, inspect.getsource(reverse).replace("my_task.py", shown))
    print(f"{path} holds a task that reverses words. Change it, then:")
    print(pasted("check-task", f"{path}:Reverse"))
    return 0


@command
def check_task(arguments: list[str]) -> int:
    """Find what is wrong with a task before it is trained."""
    prog = install.call("check-task")
    parser = argparse.ArgumentParser(
        prog,
        description="Find what is wrong with a task before it is trained.",
        epilog="Settings are flags, as of train: --max-new-tokens 40",
        allow_abbrev=False,
    )
    parser.add_argument("task", help="my_task.py:MyTask, or a name")
    parser.add_argument("--config", help="as of train (default: the first preset)")
    quick = "do not sample from the model, or from some warm starts: that takes minutes"
    parser.add_argument("--quick", action="store_true", help=quick)
    options, flags = parser.parse_known_args(arguments)
    config = choose_config(options.config, options.task)
    config = with_flags(config, flags, options, prog)
    from grpo_course.text import task_check  # loads transformers

    print(
        f"Asking for {config.num_problems or 'all'} problems. If nothing follows, a "
        "loop in `problems` waits for more than there are.",
        flush=True,
    )
    if not task_check.check_task(make_task(config), config):
        return 1
    if not options.quick:
        look = task_check.check_model if config.model else task_check.check_start
        look(config)
    return 0
