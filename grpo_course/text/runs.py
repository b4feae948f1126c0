"""A run is a folder that can be killed at any moment and goes on bit for bit.

    grpo_config.json     every setting; beside it task.py, a copy of a task of one's own
    metrics.jsonl        a line an epoch: rewards, KL, gradient, held-out accuracy
    samples.jsonl        a line a response: what was asked, written and earned
    checkpoints/000050/  the model, as `from_pretrained` reads it, and training.pt: all
                         else that the next epoch depends on

Every run, a new one too, goes on from a checkpoint on the disk. It is written under
another name and renamed, so it is there whole or not at all. It notes how long the two
journals are: what came later is cut off when the run is resumed, and written again, on
the same machine the same to the last bit.

Left out: several machines, saving in the background, repair. A damaged checkpoint is
named; once it is removed, the run goes on from the one before.
"""

import copy
import os
import pickle
import random
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from math import isfinite, nan
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.files import PARSING, json_lines, write_atomically
from grpo_course.long_work import num_cores, progress_bar, use_threads, watched
from grpo_course.loop import PLACE, History
from grpo_course.text.config import load_config
from grpo_course.text.environment import fingerprint, sample_rows
from grpo_course.text.lm import CausalPolicy, probe_line
from grpo_course.text.models import find_device, load_model, load_tokenizer, save_model
from grpo_course.text.run_folder import (
    CONFIG,
    METRICS,
    SAMPLES,
    STATE,
    TASK,
    alone_in,
    checkpoint_path,
    differences,
    going_on,
    read_lines,
    saved_config,
    saved_epochs,
)

# How a run begins is a part of this story, too: notebooks take it from here.
from grpo_course.text.run_folder import LOCK as LOCK
from grpo_course.text.run_folder import begin as begin
from grpo_course.text.tasks import own_source
from grpo_course.text.trackers import Log
from grpo_course.text.training import (
    HeldOutProbe,
    first_words,
    load_problems,
    make_environment,
    make_policy,
    make_start,
    make_trainer,
    naming_epoch,
    watched_problems,
)

# SIGTERM comes from `kill` and from job queues, SIGHUP when a terminal closes.
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
SHOWN = {"reward": "mean_reward", "accuracy": "accuracy", "kl": "kl"}


# Signals


@contextmanager
def on_interrupt(handler: Callable[..., None]) -> Iterator[None]:
    """Inside the block Ctrl-C, SIGTERM and SIGHUP call `handler`.

    A signal that is ignored stays so: nohup and job queues have a reason.
    """
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in numbers}
    before = {n: old for n, old in before.items() if old is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


# Files


def settle(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    if path.is_dir() and os.name == "nt":
        return  # Windows opens no folder
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def append(path: Path, rows: Sequence[Mapping]) -> None:
    """Write further lines of JSON, for readers to see at once. Raises OSError."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json_lines(rows))


def as_json(record: dict) -> dict[str, Any]:
    """A record as JSON has it: numbers, null for what is not finite."""
    numbers = {name: torch.as_tensor(value).item() for name, value in record.items()}
    return {k: value if isfinite(value) else None for k, value in numbers.items()}


def from_json(line: dict[str, Any]) -> dict[str, Any]:
    """The record that `as_json` was given: counts, and tensors; null becomes NaN."""
    counts = {name: int(line[name]) for name in PLACE if name in line}
    known = {name: nan if value is None else value for name, value in line.items()}
    return {name: torch.tensor(value) for name, value in known.items()} | counts


# The run


class Run:
    """A run at its newest checkpoint, ready to go on; a new one makes its first.

    With `show` it has a progress bar. Raises OSError where another process trains
    there, ValueError for a checkpoint, a task's file or problems that are not this
    run's.
    """

    def __init__(self, out: str | Path, show: bool = True):
        self.out, self.show = Path(out), show
        self.log: Log | None = None  # a logger of the learner's, as in `trackers`
        self.config = config = saved_config(self.out)
        kept, source = self.out / TASK, own_source(config.task)
        if source and not kept.exists():  # the learner changed the task, and means it
            write_atomically(kept, source)
        if source and kept.read_bytes() != source:
            raise ValueError(
                f"The file of {config.task} has changed since the run in {out} began; "
                f"{kept} is as it was then. Put that back, or delete it to go on with "
                "the task as it is now, or begin a new run: --out DIR."
            )
        self.problems, self.watched = load_problems(config), watched_problems(config)
        kinds = {"training": self.problems, "held-out": self.watched}
        self.data = {kind: fingerprint(each) for kind, each in kinds.items()}
        with alone_in(self.out):
            if not saved_epochs(self.out):
                use_threads(config.num_threads)
                self.set_up(*make_start(config, self.problems, show))
                self.save()
            self.restore(saved_epochs(self.out)[-1])
        # How well sampler and scorer agree; nothing is trained where they do not.
        pretrained, asked = config.model is not None, self.environment.tokens
        self.agreement = probe_line(self.policy, asked) if pretrained else ""

    def set_up(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
    ) -> None:
        """What learns and what watches: trainer, learning rates, held-out problems."""
        config, self.tokenizer = self.config, tokenizer
        self.environment = make_environment(config, self.problems, tokenizer)
        self.policy = make_policy(config, model, tokenizer)
        self.generator = self.policy.generator or torch.default_generator
        self.probe = None
        if self.watched:
            others = make_environment(config, self.watched, tokenizer)
            self.probe = HeldOutProbe(others, config.held_out_every)
        self.trainer, self.schedule = make_trainer(
            config, self.policy, self.environment, self.probe
        )

    def save(self) -> None:
        """Write a checkpoint, then remove those that are no longer needed.

        Raises OSError where it cannot be written; those before stay.
        """
        trainer, reference = self.trainer, None
        if isinstance(trainer.ref_policy, CausalPolicy):  # else: the adapter off
            reference = trainer.ref_policy.model.state_dict()
        target = self.newest()
        half = target.with_name(f".{target.name}.writing")
        for left in target.parent.glob(".*.writing"):  # by a run that was killed
            shutil.rmtree(left, ignore_errors=True)
        try:
            half.mkdir(parents=True)
            self.config.save(half / CONFIG)
            save_model(self.policy.model, self.tokenizer, half)
            journals = [self.out / name for name in (METRICS, SAMPLES)]
            journals = [path for path in journals if path.exists()]
            for path in journals:
                settle(path)
            state = {
                "epoch": trainer.epoch,
                "data": self.data,
                "lines": {path.name: path.stat().st_size for path in journals},
                "beta": trainer.beta,
                "reference": reference,
                "optimizer": trainer.optimizer.state_dict(),
                "schedule": self.schedule.state_dict(),
                "shuffle": trainer.shuffle.get_state(),
                "generator": self.generator.get_state(),
                "torch": torch.get_rng_state(),
                "cuda": torch.cuda.get_rng_state_all(),
                "python": random.getstate(),
                "threads": torch.get_num_threads(),
            }
            torch.save(state, half / STATE)
            for path in (*half.iterdir(), half):
                settle(path)
            half.rename(target)
            settle(target.parent)
        except Exception as error:  # torch and safetensors raise errors of their own
            shutil.rmtree(half, ignore_errors=True)
            raise OSError(
                f"{target} could not be written ({type(error).__name__}: {error}). The "
                "checkpoints before it are kept."
            ) from error
        there = [epoch for epoch in saved_epochs(self.out) if epoch <= trainer.epoch]
        for epoch in there[1 : -self.config.keep_checkpoints]:  # the first is the start
            shutil.rmtree(checkpoint_path(self.out, epoch), ignore_errors=True)

    def saved_state(self, epoch: int) -> dict[str, Any]:
        """What `save` wrote beside the model. Raises ValueError if this run did not."""
        path, config = checkpoint_path(self.out, epoch), self.config
        if changes := differences(going_on(load_config(path / CONFIG), config), config):
            raise ValueError(
                f"{path} is the checkpoint of another run, or {self.out / CONFIG} was "
                f"changed: {changes}. Put back the settings: {path} holds a copy."
            )
        try:  # random states must stay on the CPU; the optimizer moves its own
            saved = torch.load(path / STATE, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, EOFError, RuntimeError, *PARSING) as error:
            raise ValueError(
                f"{path / STATE} is damaged, or of another program: it is not loaded, "
                f"and code in it is not run. Remove {path}, and the run goes on from "
                "the one before."
            ) from error
        for kind, now in self.data.items():
            if saved["data"][kind] != now:
                raise ValueError(
                    f"{path} was made with other {kind} problems, "
                    f"{saved['data'][kind]}; the run finds {now} now. Put the data "
                    "back, or begin a new run: --out DIR."
                )
        for name, size in saved["lines"].items():
            file = self.out / name
            there = file.read_bytes() if file.exists() else b""
            if len(there) < size or there[size - 1 : size] not in (b"", b"\n"):
                raise ValueError(
                    f"{file} was changed: its first {size} bytes, when {path} was "
                    "written, were whole lines. Put it back, or begin a new run: "
                    "--out DIR."
                )
        return saved

    def restore(self, epoch: int) -> None:
        """Take everything from a checkpoint, and forget what was written after it.

        All is looked at before anything on the disk is changed.
        """
        path, config = checkpoint_path(self.out, epoch), self.config
        saved = self.saved_state(epoch)
        use_threads(config.num_threads or min(saved.get("threads", 1), num_cores()))
        model = load_model(path, find_device(config.device))
        self.set_up(model, load_tokenizer(path))
        trainer = self.trainer
        trainer.epoch, trainer.beta = epoch, saved["beta"]
        trainer.optimizer.load_state_dict(saved["optimizer"])
        self.schedule.load_state_dict(saved["schedule"])
        trainer.shuffle.set_state(saved["shuffle"])
        torch.set_rng_state(saved["torch"])
        random.setstate(saved["python"])
        if len(saved["cuda"]) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all(saved["cuda"])
        try:
            self.generator.set_state(saved["generator"])
        except RuntimeError:  # those of a CPU and of a GPU have other sizes
            tqdm.write(f"{path} is of another device: samples get new random numbers.")
            self.generator.manual_seed(config.seed + epoch)
        if epoch and config.kl_penalty:
            trainer.ref_policy = copy.deepcopy(self.policy)
            if isinstance(trainer.ref_policy, CausalPolicy):
                trainer.ref_policy.model.load_state_dict(saved["reference"])
        if self.probe:
            self.probe.calls = epoch
        for file in (self.out / METRICS, self.out / SAMPLES):
            if file.exists():
                os.truncate(file, saved["lines"].get(file.name, 0))
        rows = read_lines(self.out / METRICS)
        trainer.history = History(
            [from_json(row) | {"epoch": int(row["epoch"]), "step": 0} for row in rows]
        )

    def newest(self) -> Path:
        """Where the model lies after the last checkpoint."""
        return checkpoint_path(self.out, self.trainer.epoch)

    def go(self) -> History:
        """Train to the end. The history has one record an epoch for resumed ones.

        Ctrl-C saves at the end of the epoch and raises KeyboardInterrupt; a second one
        stops at once. What goes wrong is raised with the epoch as a note. Raises
        OSError where another process trains in the folder.
        """
        asked = False

        def note(*_: object) -> None:
            nonlocal asked
            if asked:
                raise KeyboardInterrupt
            asked = True
            with suppress(OSError):  # of a terminal that was closed
                tqdm.write("\nStopping after this epoch. Ctrl-C again stops at once.")

        def watch(history: History) -> None:
            line, epochs_done = self.write_down(history), self.trainer.epoch
            measured = {label: line.get(name) for label, name in SHOWN.items()}
            shown = {k: f"{v:.3f}" for k, v in measured.items() if v is not None}
            bar.set_postfix(shown, refresh=False)
            bar.update()
            finished = epochs_done >= self.config.num_epochs
            if asked or finished or epochs_done % self.config.save_every == 0:
                self.save()
            if asked and not finished:
                raise KeyboardInterrupt

        self.trainer.watch = watch
        whole, done = self.config.num_epochs, self.trainer.epoch
        hidden = not self.show
        with (
            alone_in(self.out),
            progress_bar(
                total=whole, initial=done, desc="GRPO", unit="epoch", disable=hidden
            ) as bar,
            watched() if self.show else nullcontext(),
            on_interrupt(note),
            naming_epoch(self.trainer),
        ):
            return self.trainer.train()

    def write_down(self, history: History) -> dict[str, Any]:
        """Note an epoch, and set the next learning rate. -> its line in the metrics

        The line holds the epoch's last step, and what only its first has. At the end
        the held-out problems are looked at once more, in a line of its own.
        """
        self.environment.note(history)
        epoch = history.records[-1]["epoch"]
        first = self.show and not epoch
        if first and (hint := first_words(self.config, self.environment)):
            tqdm.write(f"[!] {hint}")
        steps = [r for r in reversed(history.records) if r["epoch"] == epoch]
        line = as_json(steps[-1] | steps[0])
        line["learning_rate"] = float(self.schedule.get_last_lr()[0])
        self.schedule.step()
        if samples := sample_rows(self.environment, self.config.keep_samples):
            append(self.out / SAMPLES, [{"epoch": epoch} | row for row in samples])
        append(self.out / METRICS, [line])
        if self.log:
            self.log(line, epoch)
        if self.trainer.epoch >= self.config.num_epochs and self.probe:
            history.add(self.trainer.epoch, 0, self.probe.look(self.policy))
            record = as_json(history.records[-1])
            last = {name: record[name] for name in ("epoch", "held_out")}
            append(self.out / METRICS, [last])
            if self.log:
                self.log(last, last["epoch"])
        return line
