"""`python3 -m grpo_course show runs/x [runs/y]`: print and draw a run, or two.

python3 -m grpo_course show runs/laptop
python3 -m grpo_course show runs/laptop runs/other --out both.png
python3 -m grpo_course show runs/laptop --tensorboard
"""

import argparse
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import fmean

from pandas import DataFrame

from grpo_course.files import write_atomically
from grpo_course.runs.cli import run_command
from grpo_course.runs.events import FOLDER, follow, require_tensorboard
from grpo_course.runs.folder import is_taken
from grpo_course.runs.identity import differing
from grpo_course.runs.picture import PANELS, PICTURE, TIME, draw
from grpo_course.runs.record import Record, read_record, series

BOTH = "runs.png"
ENDS = 10  # epochs at each end of a run that are averaged


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(
        "python3 -m grpo_course show",
        description="Print and draw what a run has measured so far, or two of them.",
        allow_abbrev=False,
    )
    made.add_argument("runs", nargs="+", help="the folder of a run, or of two")
    made.add_argument("--out", help=f"the picture (default: {PICTURE} in the run's)")
    made.add_argument("--samples", type=int, default=2, help="print so many responses")
    help_text = f"write event files into {FOLDER}/ in the run's, until the run ends"
    made.add_argument("--tensorboard", action="store_true", help=help_text)
    return made


def main(arguments: list[str], root: Path) -> int:
    """The command of `python3 -m grpo_course`. -> the exit status"""
    return run_command(work, arguments)


def work(arguments: list[str]) -> int:
    """Read, print, draw. -> the exit status"""
    made = parser()
    options = made.parse_args(arguments)
    if len(options.runs) > 2 or len({*options.runs}) < len(options.runs):
        made.error("name one run, or two different ones.")
    if options.tensorboard:
        require_tensorboard()
    records = [read_record(Path(run)) for run in options.runs]
    print(table(records).to_string())
    for record in records:
        print(f"\n{record.name}: {time_spent(record)}")
        print_samples(record, options.samples)
    if len(records) == 2:
        print(f"\nThey differ in: {settings_beside(*records)}")
    beside = Path(options.runs[0]) / PICTURE if len(records) == 1 else Path(BOTH)
    out = Path(options.out or beside)
    write_atomically(out, draw(records))
    print(f"\nThe picture is {out}.")
    if options.tensorboard:
        write_events([Path(run) for run in options.runs])
    return 0


def write_events(runs: Sequence[Path]) -> None:
    """Write event files, and say where they are."""
    folders = " and ".join(str(run / FOLDER) for run in runs)
    print(f"TensorBoard's files are in {folders}.", flush=True)
    if any(map(is_taken, runs)):
        print("They grow until the run ends; Ctrl-C stops this alone.", flush=True)
    follow(runs)


def settings_beside(one: Record, other: Record) -> str:
    """The settings in which two runs differ."""
    pairs = differing(one.config, other.config).items()
    return "; ".join(f"{name} {a!r} | {b!r}" for name, (a, b) in pairs) or "nothing"


def table(records: Sequence[Record]) -> DataFrame:
    """A row a measure, a column a run: the mean of its first and of its last epochs.

    Held-out accuracy is what the first and the last look saw.
    """
    names = [name for title, each in PANELS.items() if title != TIME for name in each]
    cells = {record.name: [ends(record, name) for name in names] for record in records}
    frame = DataFrame(cells, index=names)
    frame.loc["epochs"] = [progress(record) for record in records]
    return frame.rename_axis(index=f"first {ENDS} → last {ENDS}")


def ends(record: Record, name: str) -> str:
    """How a measure began and where it is."""
    _, values = series(record.metrics, name)
    if not values:
        return "-"
    few = 1 if name == "held_out" else ENDS
    return f"{fmean(values[:few]):.3f} → {fmean(values[-few:]):.3f}"


def progress(record: Record) -> str:
    """How far a run is."""
    done = len(series(record.metrics, "mean_reward")[0])
    return f"{done} of {record.config.num_epochs}"


def time_spent(record: Record) -> str:
    """The time of a run, and the share of each part."""
    names = [name for name in (record.times or [{}])[0] if name != "epoch"]
    sums = {name: sum(series(record.times, name)[1]) for name in names}
    whole = sum(sums.values())
    if not whole:
        return "no time was measured"
    shares = (f"{name} {100 * seconds / whole:.0f} %" for name, seconds in sums.items())
    return f"{whole / 60:.1f} minutes: {', '.join(shares)}"


def print_samples(record: Record, count: int) -> None:
    """The newest responses that were kept, each question once."""
    newest = record.samples[-count:] if count > 0 else []
    for question, rows in groupby(newest, itemgetter("question")):
        print(question)
        for row in rows:
            told = f"epoch {row['epoch']}, reward {row['reward']:.2f}"
            print(f"-> {row['completion']}  ({told})")
