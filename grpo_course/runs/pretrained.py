"""A pretraining in a folder: begun, gone on with, and never half saved.

As in a run of GRPO, everything goes on from a checkpoint on the disk, so a run that is
killed and resumed does what it would have done, bit for bit on the same machine.
"""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from grpo_course.files import PARSING, write_atomically
from grpo_course.language_model.pretrained import (
    load_model,
    load_tokenizer,
    save_model,
)
from grpo_course.runs.checkpoint import (
    STATE,
    CheckpointError,
    checkpoint_path,
    newest_good,
    remove_old,
    saved_epochs,
    write_checkpoint,
)
from grpo_course.runs.folder import CHECKPOINTS, alone_in, require_newest
from grpo_course.runs.identity import data_digest
from grpo_course.runs.interrupt import Interrupt
from grpo_course.runs.journal import CURE, METRICS, LinesFile
from grpo_course.runs.state import read_state
from grpo_course.stories.pretraining import (
    PretrainConfig,
    Pretraining,
    begin_pretraining,
)
from grpo_course.stories.problems import make_stories

CONFIG = "pretrain_config.json"
NEEDED = ("step", "parts", "seconds", "lines", "stories")
SAMPLE = 100  # stories that stand for all in a digest
KEEP = 2  # checkpoints beside those of the stages


def begin(config: PretrainConfig, out: Path) -> None:
    """Note the settings of a new run. Raises FileExistsError where one has begun."""
    if saved_epochs(out / CHECKPOINTS):
        raise FileExistsError(
            f"{out} holds a pretraining already. Go on with it: --resume. Or choose "
            "another folder: --out DIR."
        )
    losses_of(out).require_empty()
    save_config(config, out)


def losses_of(out: Path) -> LinesFile:
    """The file with the loss of each step."""
    return LinesFile(out / METRICS, counted="step")


def save_config(config: PretrainConfig, folder: Path) -> None:
    """Note the settings, in the folder of a run or in that of a checkpoint."""
    write_atomically(folder / CONFIG, json.dumps(asdict(config), indent=2) + "\n")


def saved_config(out: Path) -> PretrainConfig:
    """The settings of the run in a folder. Raises FileNotFoundError for none."""
    if not (out / CONFIG).is_file():
        raise FileNotFoundError(
            f"There is no pretraining in {out} to resume: it has no {CONFIG}. Leave "
            "out --resume to begin one, or pass its folder: --out DIR."
        )
    try:
        return PretrainConfig(**json.loads((out / CONFIG).read_text("utf-8")))
    except PARSING as problem:
        raise ValueError(f"{out / CONFIG}: {problem}. {CURE}") from None


def require_own(path: Path, config: PretrainConfig, out: Path) -> None:
    """Check that a checkpoint is of this run."""
    if saved_config(path) != config:
        raise CheckpointError(
            f"{path} has other settings than {out / CONFIG}: it is the checkpoint of "
            "another run, or the file was changed. The checkpoint holds a copy of its "
            "own. Put that back, or remove the checkpoint if it was brought here."
        )


def sample_of_stories() -> dict[str, Any]:
    """A digest of what this version of the course would tell."""
    return data_digest(make_stories("train", SAMPLE, "digest"))


class PretrainRun:
    """A pretraining at its newest checkpoint. A new one makes its first."""

    def __init__(self, out: Path, show: bool = True) -> None:
        self.out, self.show = out, show
        self.config = saved_config(out)
        self.folder = out / CHECKPOINTS
        self.stories = sample_of_stories()
        self.metrics = losses_of(out)
        self.seconds = 0.0  # of the processor, over all parts of the run
        torch.set_num_threads(self.config.num_threads)
        with alone_in(out):
            self.come_back()

    def come_back(self) -> None:
        """Go to the newest checkpoint; a new run makes its first."""
        step = newest_good(self.folder, tqdm.write)
        if step is None:
            self.metrics.require_empty()
            self.pretraining = begin_pretraining(self.config)
            self.save()
            step = 0
        self.restore(step)

    def restore(self, step: int) -> None:
        """Take everything from a checkpoint, and forget the metrics after it.

        Raises CheckpointError or ValueError for what is not this run's.
        """
        path = checkpoint_path(self.folder, step)
        require_own(path, self.config, self.out)
        saved = read_state(path, NEEDED)
        if saved["stories"] != self.stories:
            raise CheckpointError(
                f"{path} was taught other stories than this version of the course "
                "tells. Go on with the version that it was begun with, or begin anew: "
                "--out DIR."
            )
        self.metrics.check(saved["lines"])
        model, tokenizer = load_model(path), load_tokenizer(path)
        self.pretraining = Pretraining(self.config, model, tokenizer)
        self.pretraining.load_state(saved)
        self.seconds = saved["seconds"]
        self.metrics.cut(saved["lines"])

    def save(self) -> None:
        """Write a checkpoint, then remove those that are no longer needed."""
        made = self.pretraining

        def fill(path: Path) -> None:
            save_model(made.model, made.tokenizer, path)
            save_config(self.config, path)
            more = {"seconds": self.seconds, "lines": self.metrics.mark()}
            more |= {"stories": self.stories}
            torch.save(made.state() | more, path / STATE)

        write_checkpoint(self.folder, made.step, fill)
        remove_old(self.folder, made.step, KEEP, lambda _: self.config.stages())

    def newest(self) -> Path:
        """Where the model lies after the last checkpoint, in float32."""
        return checkpoint_path(self.folder, self.pretraining.step)

    def go(self) -> None:
        """Learn to the end. Ctrl-C saves, and raises KeyboardInterrupt.

        Raises OSError where another process trains in the folder, or has gone on.
        """
        with alone_in(self.out):
            require_newest(self.out, self.pretraining.step)
            self.learn()

    def learn(self) -> None:
        """Learn to the end in a folder that is this process's own."""
        total, made = self.config.num_steps, self.pretraining
        bar = tqdm(total=total, initial=made.step, unit="step", disable=not self.show)
        with bar, Interrupt(tell_of_stop) as interrupt:
            while made.step < total:
                before = time.process_time()
                loss = made.learn()
                self.seconds += time.process_time() - before
                self.metrics.append([{"step": made.step, "loss": loss}])
                bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
                bar.update()
                if self.config.saves_at(made.step) or interrupt.asked:
                    self.save()
                if interrupt.asked and made.step < total:
                    raise KeyboardInterrupt


def tell_of_stop(_: str) -> None:
    """What a person reads who asks for an end."""
    tqdm.write("\nStopping after this step. Press Ctrl-C again to stop at once.")
