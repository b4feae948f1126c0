"""`python3 -m grpo_course pretrain`: the language model of the course, from nothing.

python3 -m grpo_course pretrain --out runs/pretrain
python3 -m grpo_course pretrain --resume --out runs/pretrain

The model then lies in runs/pretrain/model, with its figures and its README. The one
of the course, `grpo_course/stories/model`, is a copy of that folder.
"""

import argparse
import json
import platform
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers

from grpo_course.files import write_atomically
from grpo_course.language_model.pretrained import (
    load_model,
    load_tokenizer,
    save_model,
)
from grpo_course.runs.cli import STOPPED, parse, run_command
from grpo_course.runs.folder import alone_in
from grpo_course.runs.pretrained import PretrainRun, begin, saved_config
from grpo_course.stories.card import CARD, FIGURES, card_text
from grpo_course.stories.frames import all_frames, held_out_frames
from grpo_course.stories.measure import (
    PROBLEMS,
    SEED,
    load_reader,
    measure_all,
    measure_greedy,
)
from grpo_course.stories.overlap import shared
from grpo_course.stories.pretraining import PretrainConfig
from grpo_course.stories.problems import make_stories

PROG = "python3 -m grpo_course pretrain"
KNOWN = 20_000  # training stories that the other splits are compared with
ORIGIN = "origin.json"


def main(arguments: list[str], root: Path) -> int:
    """The command of `python3 -m grpo_course`. -> the exit status"""
    return run_command(lambda given: work(given, root), arguments)


def parser() -> argparse.ArgumentParser:
    """What the command takes beside the settings."""
    made = argparse.ArgumentParser(
        PROG,
        description="Train the small language model of the course from nothing.",
        epilog="Every setting is a flag too: --num-steps 1000 --seed 1",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--out", default="runs/pretrain", help="folder (default: %(default)s)")
    add("--resume", action="store_true", help="go on with the run")
    add("--problems", type=int, default=PROBLEMS, help="to measure on, a split")
    return made


def work(arguments: list[str], root: Path) -> int:
    """Begin or go on, then measure. -> the exit status"""
    options, flags = parser().parse_known_args(arguments)
    out = Path(options.out)
    saved = saved_config(out) if options.resume else PretrainConfig()
    config = parse(PretrainConfig, saved, flags, PROG)
    if options.resume and config != saved:
        raise ValueError(f"The run in {out} has other settings: use --resume alone.")
    try:
        with alone_in(out):
            if not options.resume:
                begin(config, out)
                write_atomically(out / ORIGIN, json.dumps(origin(root)) + "\n")
            run = PretrainRun(out)
            run.go()
            finish(run, options.problems)
    except KeyboardInterrupt:
        print(f"\nStopped. To go on: {PROG} --resume --out {out}", file=sys.stderr)
        return STOPPED
    print((out / "model" / CARD).read_text("utf-8"))
    return 0


def origin(root: Path) -> dict[str, Any]:
    """The commit that a run begins with, and the versions of what rounds."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    told = subprocess.run(command, cwd=root, capture_output=True, text=True)
    versions = {
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    return {"commit": told.stdout.strip() or "unknown", "versions": versions}


def finish(run: PretrainRun, count: int) -> None:
    """Write the model as float16, what it can do, and its README."""
    model_folder, newest = run.out / "model", run.newest()
    model = load_model(newest).half()
    save_model(model, load_tokenizer(newest), model_folder)
    print("Measuring ...", flush=True)
    new = make_stories("unseen_problems", count, SEED)
    figures = json.loads((run.out / ORIGIN).read_text("utf-8")) | {
        "config": asdict(run.config),
        "weights": sum(weight.numel() for weight in model.parameters()),
        "steps": run.config.num_steps,
        "problems": run.config.num_steps * run.config.batch_size,
        "seconds": run.seconds,
        "frames": len(all_frames()),
        "held_out": len(held_out_frames()),
        "known": KNOWN,
        "overlap": overlaps(count),
        "splits": measure_all(model_folder, count),
        "float32": measure_greedy(*load_reader(newest), new),
    }
    write_atomically(model_folder / FIGURES, json.dumps(figures, indent=1) + "\n")
    write_atomically(model_folder / CARD, card_text(figures))


def overlaps(count: int) -> dict[str, dict[str, float]]:
    """What the splits with unseen numbers, or frames, share with training stories."""
    known = make_stories("train", KNOWN, SEED)
    splits = ("unseen_problems", "unseen_frames", "unseen_both")
    return {split: shared(known, make_stories(split, count, SEED)) for split in splits}
