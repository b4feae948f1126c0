"""A run in a folder: begun, gone on with, and never half saved.

Every run, a new one too, goes on from a checkpoint on the disk. So a run that is
killed and resumed does what it would have done, bit for bit on the same machine.
"""

from pathlib import Path

import torch
from torch import Generator
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.algorithm.history import History
from grpo_course.algorithm.train import trainer_class
from grpo_course.language_model.build import (
    load_problems,
    make_environment,
    make_optimizer,
    make_policy,
    make_schedule,
    make_start,
    use_threads,
)
from grpo_course.language_model.config import load_config
from grpo_course.language_model.pretrained import (
    find_device,
    load_model,
    load_tokenizer,
    save_model,
)
from grpo_course.runs.checkpoint import (
    CheckpointError,
    checkpoint_path,
    newest_good,
    remove_old,
    require_whole,
    write_checkpoint,
)
from grpo_course.runs.folder import (
    CHECKPOINTS,
    CONFIG,
    METRICS,
    differences,
    require_same_task,
    saved_config,
)
from grpo_course.runs.interrupt import Interrupt
from grpo_course.runs.metrics import MetricsFile, epoch_line
from grpo_course.runs.state import load_state, save_state

SHOWN = {"reward": "mean_reward", "accuracy": "accuracy", "kl": "kl"}


class Run:
    """A run at its newest checkpoint, ready to go on. A new one makes its first."""

    def __init__(self, out: str | Path, show: bool = True):
        self.out, self.show = Path(out), show
        self.config = saved_config(self.out)
        require_same_task(self.config, self.out)
        self.folder = self.out / CHECKPOINTS
        use_threads(self.config)
        self.metrics = MetricsFile(self.out / METRICS)
        self.problems = load_problems(self.config)
        epoch = newest_good(self.folder, tqdm.write)
        if epoch is None:
            self.set_up(*make_start(self.config, self.problems, show))
            self.metrics.cut(0)
            self.save()
            epoch = 0
        self.restore(epoch)

    def set_up(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
    ) -> None:
        """What learns: trainer and learning rates."""
        config, self.tokenizer = self.config, tokenizer
        self.environment = make_environment(config, self.problems, tokenizer)
        self.policy = make_policy(config, model, tokenizer)
        optimizer = make_optimizer(config, self.policy)
        self.schedule = make_schedule(config, optimizer)
        asked, rewarded = self.environment.prompts, self.environment.reward
        chosen = trainer_class(config)
        self.trainer = chosen(self.policy, asked, rewarded, optimizer, config)

    def restore(self, epoch: int) -> None:
        """Take everything from a checkpoint, and forget what was measured after it."""
        path = checkpoint_path(self.folder, epoch)
        self.require_own(path)
        self.set_up(self.load(epoch), load_tokenizer(path))
        size = load_state(path, self.trainer, self.generator(), self.schedule)
        self.metrics.cut(size)
        self.trainer.history = self.metrics.history()
        self.tidy()  # a run that was killed may not have come to it
        reference = self.reference_epoch()
        if reference < epoch:  # else the loop copies the policy itself
            require_whole(self.folder, reference, "the reference policy")
            model = self.load(reference)
            self.trainer.ref_policy = make_policy(self.config, model, self.tokenizer)

    def require_own(self, path: Path) -> None:
        """Check that a checkpoint is of this run: of its seed, sizes and the rest."""
        differing = differences(load_config(path / CONFIG), self.config)
        if differing:
            raise CheckpointError(
                f"{path} is the checkpoint of another run: {differing}. Remove it, "
                "and the run goes on from the one before."
            )

    def load(self, epoch: int) -> PreTrainedModel:
        """The model of a checkpoint."""
        path = checkpoint_path(self.folder, epoch)
        return load_model(path, find_device(self.config.device))

    def generator(self) -> Generator:
        """The random numbers of the samples."""
        return self.policy.generator or torch.default_generator

    def reference_epoch(self) -> int:
        """When the policy was, or will at once be, copied as the reference."""
        epoch, period = self.trainer.epoch, self.config.compute_ref_model_period
        return epoch // period * period if self.config.kl_penalty else epoch

    def save(self) -> None:
        """Write a checkpoint, then remove those that are no longer needed."""

        def fill(path: Path) -> None:
            save_model(self.policy.model, self.tokenizer, path)
            size = self.metrics.size()
            save_state(path, self.trainer, self.generator(), self.schedule, size)
            self.config.save(path / CONFIG)

        write_checkpoint(self.folder, self.trainer.epoch, fill)
        self.tidy()

    def tidy(self) -> None:
        """Remove older checkpoints, but for the start and the reference."""
        epoch, needed = self.trainer.epoch, {0, self.reference_epoch()}
        remove_old(self.folder, epoch, self.config.keep_checkpoints, needed)

    def must_save(self) -> bool:
        """Whether this epoch ends with a checkpoint; a new reference needs one."""
        epoch, config = self.trainer.epoch, self.config
        reference = config.kl_penalty and epoch == self.reference_epoch()
        return bool(epoch % config.save_every == 0 or reference or self.finished())

    def newest(self) -> Path:
        """Where the model lies after the last checkpoint."""
        return checkpoint_path(self.folder, self.trainer.epoch)

    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.trainer.epoch >= self.config.num_epochs

    def go(self) -> History:
        """Train to the end. The history has one record an epoch for resumed ones.

        Ctrl-C saves at the end of the epoch and raises KeyboardInterrupt.
        """
        with self.bar() as bar, Interrupt(tqdm.write) as interrupt:

            def watch(history: History) -> None:
                self.after_epoch(history, bar)
                if interrupt.asked and not self.finished():
                    self.save()
                    raise KeyboardInterrupt

            self.trainer.watch = watch
            return self.trainer.train()

    def after_epoch(self, history: History, bar: tqdm) -> None:
        """Note what was measured, set the next learning rate, save if it is time."""
        self.environment.note(history)
        line = epoch_line(history)
        line["learning_rate"] = float(self.schedule.get_last_lr()[0])
        self.schedule.step()
        self.metrics.append(line)
        bar.set_postfix(shown(line), refresh=False)
        bar.update()
        if self.must_save():
            self.save()

    def bar(self) -> tqdm:
        """The progress bar."""
        return tqdm(
            total=self.config.num_epochs,
            initial=self.trainer.epoch,
            desc="GRPO",
            unit="epoch",
            disable=not self.show,
        )


def shown(line: dict[str, float]) -> dict[str, str]:
    """The numbers beside the progress bar."""
    return {k: f"{line[name]:.3f}" for k, name in SHOWN.items() if name in line}
