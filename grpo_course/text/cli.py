"""The commands of a run: `train`, `show`, `evaluate`, `new-task`, `check-task`.

    python3 -m grpo_course train --config sums --out runs/sums
    python3 -m grpo_course train --resume --out runs/sums
    python3 -m grpo_course train --task my_task.py:Reverse --learning-rate 1e-4
    python3 -m grpo_course show runs/sums runs/other --out both.png
    python3 -m grpo_course evaluate --model runs/sums --baselines

Settings come from a preset or a file, then from flags: every setting of a run and of
its task is one, and its help is the comment beside it.
"""

import argparse
import errno
import inspect
import io
import json
import os
import shlex
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict, fields, replace
from difflib import get_close_matches
from functools import partial, wraps
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO, cast

from pandas import DataFrame, Series, concat
from transformers import PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from grpo_course import install
from grpo_course.checks import MissingExtra, own_line, require_extra, unknown_name
from grpo_course.files import write_atomically
from grpo_course.long_work import is_log, use_threads, watched
from grpo_course.text import reverse, task_check
from grpo_course.text.evaluation import (
    evaluation_table,
    greedy_scores,
    name_measures,
    sampled_scores,
    summary,
    ways_to_answer,
)
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.memory import print_estimate
from grpo_course.text.models import (
    FOR_LORA,
    MERGED,
    find_device,
    has_adapter,
    load_model,
    merging,
)
from grpo_course.text.runs import (
    CHECKPOINTS,
    CONFIG,
    METRICS,
    SAMPLES,
    Run,
    alone_in,
    begin,
    checkpoint_path,
    differences,
    here,
    of_rewards,
    on_interrupt,
    read_lines,
    saved_config,
    saved_epochs,
)
from grpo_course.text.tasks import TextTask, find_task
from grpo_course.text.training import (
    GRPOConfig,
    find_preset,
    load_config,
    load_problems,
    load_trained,
    make_policy,
    make_start,
    make_task,
    spelled_out,
)

STOPPED = 130  # the exit status of a program that Ctrl-C ended


class Output:
    """stdout or stderr, which ends no work: what nobody takes is dropped.

    A pager was closed, a terminal hung up, the disk of a log is full, or there is no
    such stream at all. `problem` is why, except where a reader simply left. A character
    that a code page lacks, as "→" on Windows, becomes a question mark.
    """

    def __init__(self, stream: Any):
        self.problem: OSError | None = None
        self.stream = stream or io.StringIO()
        if isinstance(stream, io.TextIOWrapper):
            line_by_line = partial(stream.reconfigure, line_buffering=True)
            self.attempt(partial(line_by_line, errors="replace"))
        if hasattr(os, "set_blocking"):  # a slow reader is waited for
            with suppress(OSError):
                os.set_blocking(self.stream.fileno(), True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """As that of a file; none of its errors."""
        self.attempt(partial(self.stream.write, text))
        return len(text)

    def flush(self) -> None:
        """As that of a file; none of its errors."""
        self.attempt(self.stream.flush)

    def attempt(self, act: Callable[[], Any]) -> None:
        """Do it; after the first error, the rest goes nowhere."""
        try:
            act()
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.EINVAL):  # Windows has the other
                self.problem = error
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())


def run_command(work: Callable[[list[str]], int], arguments: list[str]) -> int:
    """Run a command. -> the exit status

    What a person can cure is one line on stderr; a bug keeps its traceback.
    """
    sys.path.insert(0, os.getcwd())  # where a task of the learner's own lies
    out, err = Output(sys.stdout), Output(sys.stderr)
    if is_log(err):  # whose lines nobody can overwrite
        disable_progress_bar()  # of transformers and the hub
    with (
        redirect_stdout(cast(TextIO, out)),
        redirect_stderr(cast(TextIO, err)),
        watched(),
    ):
        try:
            status = work(arguments)
        except KeyboardInterrupt:
            print("\nStopped.", file=sys.stderr)
            status = STOPPED
        except Exception as error:
            own = own_line(error)
            if not (own or isinstance(error, ValueError | OSError | MissingExtra)):
                raise
            notes = getattr(error, "__notes__", [])
            print("\nerror:", own or error, *notes, file=sys.stderr)
            status = 1
        finally:
            out.flush()
            err.flush()
        if out.problem:
            print(f"\nSome output is lost: {out.problem}", file=sys.stderr)
    return status or int(out.problem is not None)


def quoted(*words: str | Path) -> str:
    """Words as a person can paste them into a shell: names may have spaces."""
    join = subprocess.list2cmdline if os.name == "nt" else shlex.join
    return join(list(map(str, words)))


def pasted(command: str, *words: str | Path) -> str:
    """A command of the course, to be pasted."""
    return f"{install.call(command)} {quoted(*words)}"


def command(work: Callable[[list[str]], int]) -> Callable[..., int]:
    """A command as `grpo_course.__main__` calls it: with the folder of the course."""

    @wraps(work)
    def run(arguments: list[str], root: Path | None = None) -> int:
        return run_command(work, arguments)

    return run


# Settings


def training_parser(prog: str, description: str, out: str) -> argparse.ArgumentParser:
    """What every command that trains takes beside the settings themselves."""
    made = argparse.ArgumentParser(
        prog,
        description=description,
        epilog="Every setting is a flag too: --settings lists them.",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--task", help="a name, or FILE.py:NAME (default: gsm8k)")
    add("--config", help="a preset of the task (default: its first), or a JSON file")
    add("--out", default=out, help="folder of the run (default: %(default)s)")
    add("--settings", action="store_true", help="list every setting with its help")
    return made


def choose_config(name: str | None, task: str | None) -> GRPOConfig:
    """A preset of the task, or a file. Raises ValueError for a name that is neither."""
    if name is not None and Path(name).is_file():
        return load_config(name, task)
    task = task or "gsm8k"
    find_task(task)  # whose own error needs no advice on presets
    try:
        return find_preset(task, name)
    except ValueError as error:
        raise ValueError(f"{error} Or name a JSON file.") from None


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
    own, others = ([f.name for f in fields(each)] for each in (kind, GRPOConfig))
    for flag in rest:  # of the task's flags, the parser of the run's knows nothing
        name = flag.removeprefix("--").replace("-", "_")
        near = next(iter(get_close_matches(name, [*own, *others])), "")
        if flag.startswith("--") and near in own:
            meant = near.replace("_", "-")
            raise ValueError(f"There is no flag {flag}. Did you mean --{meant}?")
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
    plain = replace(config, task_settings={})
    kinds: dict[type, TextTask | GRPOConfig] = {
        find_task(config.task): make_task(config),
        GRPOConfig: plain,
    }
    for kind, default in kinds.items():
        with suppress(SystemExit):
            parse(kind, default, ["--help"], prog)


def find_model(path: str) -> str:
    """Where to load a model from: in the folder of a run, the newest checkpoint."""
    if not Path(path, CHECKPOINTS).is_dir():
        return path
    if there := saved_epochs(Path(path)):
        return str(checkpoint_path(Path(path), there[-1]))
    raise FileNotFoundError(
        f"The run in {path} has no checkpoint yet. Wait for its first, or pass the "
        "folder of another model."
    )


# train


@command
def train(arguments: list[str]) -> int:
    """Begin a run of GRPO, or go on with one."""
    prog = install.call("train")
    made = training_parser(prog, "Train a causal LM with GRPO.", out="runs/grpo")
    made.add_argument("--resume", action="store_true", help="go on with the run")
    options, flags = made.parse_known_args(arguments)
    out, named = Path(options.out), options.config or options.task
    if options.settings:
        print_settings(choose_config(options.config, options.task), prog)
        return 0
    saved = saved_config(out) if options.resume else None
    config = saved
    if config is None or named:
        config = choose_config(options.config, options.task)
    config = with_flags(config, flags, options, prog)
    # On another machine a run goes on with the device and the cores that are there.
    if saved and (changes := differences(here(saved, config), config)):
        raise ValueError(
            f"The run in {out} has other settings: {changes}. Resume it without them: "
            f"{pasted('train', '--resume', '--out', out)}. {with_other_settings(out)}"
        )
    if config.lora_rank:  # asked for before anything is loaded
        require_extra("peft", *FOR_LORA)
    held = config
    if saved and config.model and saved_epochs(out) and not config.lora_rank:
        held = replace(config, model=find_model(str(out)))  # its start may be gone
    print_estimate(held)
    try:
        with alone_in(out), on_interrupt(stop_at_once):
            if not saved:
                begin(config, out)
            elif here(saved, config) != saved:
                config.save(out / CONFIG)
            run = Run(out)
            if config.model is not None and not saved:
                print(run.agreement)
            try:
                run.go()
            except Exception as error:
                error.add_note(how_to_go_on(out, error))
                raise
    except KeyboardInterrupt:
        lost = "" if saved_epochs(out) else "Nothing was saved yet: it begins again. "
        how = f"{lost}To go on: {pasted('train', '--resume', '--out', out)}"
        print(f"\nStopped. {how}", file=sys.stderr)
        return STOPPED
    print(f"Trained for {run.trainer.epoch} epochs. The model is in {run.newest()}.")
    print(f"Measure it: {pasted('evaluate', '--model', out)}")
    return 0


def how_to_go_on(out: Path, error: Exception) -> str:
    """What to do once it is mended: with the settings of the run, or with others."""
    if isinstance(error, OSError) or of_rewards(error) or own_line(error):
        again = pasted("train", "--resume", "--out", out)
        return f"Mend it; then go on from epoch {saved_epochs(out)[-1]}: {again}"
    return with_other_settings(out)


def with_other_settings(out: Path) -> str:
    """How a new run begins with the newest model of one, or anew without one."""
    if not saved_epochs(out):
        anew = pasted("train", "--config", out / CONFIG, "--out", out)
        return f"Nothing was saved yet. Begin anew: {anew}, and what is to be other."
    model, first = out, ""
    if has_adapter(newest := find_model(str(out))):
        model, first = Path(MERGED), f"{merging(newest)} and then "
    return (
        "To go on with other settings, begin a new run with its newest model: "
        f"{first}{pasted('train', '--config', out / CONFIG, '--model', model)} --out "
        "DIR, and what is to be other."
    )


def stop_at_once() -> None:
    """What ends a program does so, where there is no epoch to wait for."""
    raise KeyboardInterrupt


# evaluate


def evaluate_parser(prog: str) -> argparse.ArgumentParser:
    """The arguments of `evaluate`; each setting of a run is a flag beside them."""
    made = argparse.ArgumentParser(
        prog,
        description="Greedy and sampled accuracy, pass@k and format, with intervals.",
        epilog="Settings are flags, as of train: --eval-samples 4 --eval-temperature 1",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--model", required=True, help="folder of a run or a model, or a hub name")
    add("--task", help="name or FILE.py:NAME (default: that of the run)")
    add("--config", help="preset or JSON file (default: that of the run or the task)")
    add("--split", help="default: the first of the task's")
    add("--seed", type=int, default=0, help="of samples and intervals")
    add("--batch", type=int, default=32, help="problems at once")
    add("--show", type=int, default=2, help="print the greedy response to so many")
    add(
        "--baselines",
        action="store_true",
        help="compare with the start, and with a longer one where it was a warm start",
    )
    add("--out", help="also write the measures to this JSON file")
    return made


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
        config = replace(trained, task=options.task, task_settings={})
    config = replace(with_flags(config, flags, options, prog), model=None)
    if trained and trained.task != config.task:
        trained = None  # its demonstrations are of another task
    return config, trained


def policies_to_compare(
    path: Path,
    config: GRPOConfig,
    trained: GRPOConfig | None,
    policy: CausalPolicy,
    tokenizer: PreTrainedTokenizerBase,
) -> dict[str, CausalPolicy]:
    """The start of a run, its model, and a longer imitation after a warm start.

    Raises FileNotFoundError where the start was not kept.
    """
    starts = [f for f in (checkpoint_path(path, 0), path / "../start") if f.is_dir()]
    if not starts:
        raise FileNotFoundError(
            f"{path} has no model from before the training to compare with. Pass "
            "the folder of a run: --model runs/grpo."
        )
    start = load_model(starts[0], find_device(config.device))
    policies = {"start": make_policy(config, start, tokenizer), "model": policy}
    if trained and trained.model is None and trained.warm_start_steps:
        steps = trained.warm_start_steps
        steps += trained.num_epochs * trained.num_steps_per_epoch
        print(f"Longer imitation: a warm start of {steps} steps, without GRPO")
        longer = replace(trained, warm_start_steps=steps, device=config.device)
        imitator, _ = make_start(longer, load_problems(longer))
        policies["longer imitation"] = make_policy(config, imitator, tokenizer)
    return policies


@command
def evaluate(arguments: list[str]) -> int:
    """Measure a model on problems that it was not trained on."""
    prog = install.call("evaluate")
    parser = evaluate_parser(prog)
    options, flags = parser.parse_known_args(arguments)
    if not 0 <= options.seed < 2**63:
        parser.error("--seed must be a whole number from 0 to 2**63-1.")
    out = Path(options.out or "")
    if options.out and (out.is_dir() or not os.access(out.parent, os.W_OK)):
        raise ValueError(
            f"--out {out} cannot be written. Name a file in a folder that is there and "
            "that you may write to."
        )
    config, trained = configs_to_evaluate(options, flags, prog)
    splits = make_task(config).splits
    split = options.split or splits[0]
    if split not in (*splits, "train"):
        raise unknown_name("split", split, (*splits, "train"))
    use_threads(config.num_threads)
    policy, environment = load_trained(config, find_model(options.model), split)
    print(f"{options.model} on {config.task}, split {split}")
    number = len(environment.problems)
    print(f"{number} problems: greedily, then {config.eval_samples} samples of each")
    sampling: dict[str, Any] = {
        "seed": options.seed,
        "batch_size": options.batch,
        "num_samples": config.eval_samples,
        "temperature": config.eval_temperature,
    }
    greedy = greedy_scores(policy, environment, options.batch)
    sampled = sampled_scores(policy, environment, **sampling)
    measured = {"model": name_measures(greedy, sampled)}
    rows = summary(measured, options.seed)
    if options.out:  # what was measured is kept before it is shown
        write_atomically(out, rows.to_json(orient="records", indent=2))
    print(evaluation_table(measured, options.seed).to_string())
    print(
        f"Samples at temperature {config.eval_temperature}; "
        "95 % intervals over problems."
    )
    if options.baselines:
        policies = policies_to_compare(
            Path(options.model), config, trained, policy, environment.tokenizer
        )
        compared = {
            name: ways_to_answer(each, environment, **sampling)
            for name, each in policies.items()
        }
        rows = concat([rows, summary(compared, options.seed)])
        if options.out:
            write_atomically(out, rows.to_json(orient="records", indent=2))
        print(f"\nAccuracy\n{evaluation_table(compared, options.seed).to_string()}")
    answered = zip(environment.problems, greedy.texts, strict=True)
    for problem, texts in list(answered)[: options.show]:
        print(f"\n{problem.question}\n-> {texts[0]}\n   right: {problem.answer}")
    return 0


# show

PICTURE, BOTH = "run.png", "runs.png"
ENDS = 10  # epochs at each end of a run that are averaged
# title of a small plot -> its columns, and their names; the second is dashed
PANELS: dict[str, dict[str, str]] = {
    "mean reward": {"mean_reward": ""},
    "accuracy": {"accuracy": "training", "held_out": "held-out"},
    "tied groups (share)": {"tied_right": "all right", "tied_wrong": "all wrong"},
    "KL to the reference (nats)": {"kl": ""},
    "gradient norm": {"gradient_norm": ""},
    "entropy (nats a token)": {"sampled_entropy": ""},
    "length (tokens)": {"mean_length": ""},
    "learning rate": {"learning_rate": ""},
}


@command
def show(arguments: list[str]) -> int:
    """Print and draw what a run has measured so far, also while it goes on, or two."""
    made = argparse.ArgumentParser(
        install.call("show"),
        description="Print and draw what a run has measured so far, or two of them.",
        allow_abbrev=False,
    )
    made.add_argument("runs", nargs="+", help="the folder of a run, or of two")
    out_help = (
        f"the picture (default: {PICTURE} in the run's folder, of two {BOTH} here)"
    )
    made.add_argument("--out", help=out_help)
    made.add_argument("--samples", type=int, default=2, help="print so many responses")
    options = made.parse_args(arguments)
    if len(options.runs) > 2 or len({*options.runs}) < len(options.runs):
        made.error("name one run, or two different ones.")
    configs = [saved_config(Path(run)) for run in options.runs]
    frames = {run: DataFrame(read_lines(Path(run, METRICS))) for run in options.runs}
    beside = Path(options.runs[0], PICTURE) if len(frames) == 1 else Path(BOTH)
    out = Path(options.out or beside)
    write_atomically(out, draw(frames))
    table = DataFrame({run: measured_ends(frame) for run, frame in frames.items()})
    whole = zip(frames.values(), configs, strict=True)
    done = [f"{f.get('mean_reward', f).count()} of {c.num_epochs}" for f, c in whole]
    table.loc["epochs"] = done
    print(table.rename_axis(index=f"first {ENDS} → last {ENDS}").to_string())
    for run in options.runs:
        print(f"\n{run}")
        samples = read_lines(Path(run, SAMPLES))
        newest = samples[-options.samples :] if options.samples > 0 else []
        for question, rows in groupby(newest, itemgetter("question")):
            print(question)
            for row in rows:
                earned = f"epoch {row['epoch']}, reward {row['reward']:.2f}"
                print(f"-> {row['completion']}  ({earned})")
    if len(configs) == 2:
        print(f"\nThey differ in: {differences(*configs) or 'nothing'}")
    print(f"\nThe picture is {out}.")
    return 0


def measured_ends(metrics: DataFrame) -> dict[str, str]:
    """How each measure began and where it is: means of the first and last epochs.

    Held-out accuracy is what the first and the last look saw.
    """
    ends = {}
    drawn = [name for columns in PANELS.values() for name in columns]
    for name in (*drawn, "truncated"):
        values = metrics.get(name, Series(dtype=float))
        few = 1 if name == "held_out" else ENDS
        values = values.dropna()
        first, last = values.head(few).mean(), values.tail(few).mean()
        ends[name] = f"{first:.3g} → {last:.3g}" if values.count() else "-"
    return ends


def draw(runs: dict[str, DataFrame]) -> bytes:
    """A PNG with a small plot for each of PANELS, a colour for each run's metrics."""
    from matplotlib.figure import Figure  # only this command needs it
    from matplotlib.style import library

    colours = library["tableau-colorblind10"]["axes.prop_cycle"].by_key()["color"]
    figure = Figure(figsize=(12, 5.4), layout="constrained")
    panels = zip(figure.subplots(2, 4).flat, PANELS.items(), strict=True)
    for ax, (title, columns) in panels:
        for metrics, colour in zip(runs.values(), colours, strict=False):
            for name, style in zip(columns, ("-", "--"), strict=False):
                if name not in metrics:
                    continue
                there = metrics.dropna(subset=name)
                look = {"color": colour, "ls": style, "lw": 1.2}
                if name == "held_out":  # measured now and then: each look is a point
                    look |= {"marker": "o", "markersize": 3.5}
                ax.plot(there["epoch"], there[name], label=columns[name], **look)
        ax.set_title(title, fontsize=10)
        ax.tick_params(labelsize=8)
        ax.grid(alpha=0.3)
        if len(columns) > 1:
            ax.legend(handles=ax.lines[: len(columns)], fontsize=7, labelcolor="0.2")
    for place, (run, colour) in enumerate(zip(runs, colours, strict=False)):
        where = (place + 0.5) / len(runs)
        figure.text(where, 1.0, run, color=colour, ha="center", va="bottom")
    figure.supxlabel("epoch", fontsize=10)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100, bbox_inches="tight")
    return out.getvalue()


# new-task, check-task


@command
def new_task(arguments: list[str]) -> int:
    """Write a task to begin with, which reverses words."""
    prog = install.call("new-task")
    made = argparse.ArgumentParser(prog, description=new_task.__doc__)
    made.add_argument("file", type=Path, help="a new file, my_task.py")
    path = made.parse_args(arguments).file
    if path.suffix != ".py" or path.exists() or not path.parent.is_dir():
        raise ValueError(
            f"{path} cannot be written. Name a new file that ends with .py, in a "
            "folder that is there: my_task.py."
        )
    # As a shell takes it, and inside a text of Python, where "\\u" begins a letter.
    shown = json.dumps(quoted(path.as_posix()), ensure_ascii=False)[1:-1]
    source = inspect.getsource(reverse).replace("my_task.py", shown)
    write_atomically(path, source)
    print(f"{path} holds a task that reverses words. Change it, then:")
    print(pasted("check-task", f"{path}:Reverse"))
    return 0


@command
def check_task(arguments: list[str]) -> int:
    """Find what is wrong with a task before it is trained."""
    prog = install.call("check-task")
    made = argparse.ArgumentParser(
        prog,
        description="Find what is wrong with a task before it is trained.",
        epilog="Settings are flags, as of train: --max-new-tokens 40",
        allow_abbrev=False,
    )
    made.add_argument("task", help="my_task.py:MyTask, or a name")
    made.add_argument("--config", help="as of train (default: the first preset)")
    quick = "do not try warm starts, which takes minutes"
    made.add_argument("--quick", action="store_true", help=quick)
    options, flags = made.parse_known_args(arguments)
    config = choose_config(options.config, options.task)
    own = argparse.Namespace(config=None, quick=False)
    config = with_flags(config, flags, own, prog)
    if not task_check.check_task(make_task(config), config):
        return 1
    if config.model is None and not options.quick:
        task_check.check_start(config)
    return 0
