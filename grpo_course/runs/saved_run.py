"""A run on the disk: brought back from its newest checkpoint, and saved into one.

Every run, a new one too, goes on from a checkpoint on the disk. So a run that is
killed and resumed does what it would have done, bit for bit on the same machine.
"""

import copy
from pathlib import Path

import torch
from torch import Generator
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.lm import (
    CausalPolicy,
    find_device,
    load_model,
    load_tokenizer,
    save_model,
)
from grpo_course.loop import Trainer
from grpo_course.runs.checkpoint import (
    checkpoint_path,
    newest_good,
    remove_old,
    require_whole,
    write_checkpoint,
)
from grpo_course.runs.folder import (
    CHECKPOINTS,
    alone_in,
    require_same_task,
    saved_config,
)
from grpo_course.runs.identity import (
    CONFIG,
    data_digest,
    require_own,
    require_same_data,
)
from grpo_course.runs.journal import Journal
from grpo_course.runs.picture import redraw
from grpo_course.runs.state import put_back, read_state, save_state
from grpo_course.runs.stopwatch import Stopwatch
from grpo_course.training import (
    HeldOutProbe,
    load_problems,
    make_environment,
    make_optimizer,
    make_policy,
    make_schedule,
    make_start,
    use_threads,
    watched_problems,
)


class SavedRun:
    """A run at its newest checkpoint. A new one makes its first."""

    def __init__(self, out: str | Path, show: bool = True):
        self.out, self.show = Path(out), show
        self.config = saved_config(self.out)
        require_same_task(self.config, self.out)
        self.folder = self.out / CHECKPOINTS
        use_threads(self.config)
        self.journal, self.stopwatch = Journal(self.out), Stopwatch()
        self.problems = load_problems(self.config)
        self.watched = watched_problems(self.config)
        self.data = {
            "training": data_digest(self.problems),
            "held-out": data_digest(self.watched),
        }
        with alone_in(self.out):
            self.come_back()

    def come_back(self) -> None:
        """Go to the newest checkpoint; a new run makes its first."""
        epoch = newest_good(self.folder, tqdm.write)
        if epoch is None:
            self.journal.require_empty()
            self.set_up(*make_start(self.config, self.problems, self.show))
            self.save()
            epoch = 0
        self.restore(epoch)

    def set_up(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
    ) -> None:
        """What learns and what watches: trainer, learning rates, held-out problems."""
        config, self.tokenizer = self.config, tokenizer
        self.environment = make_environment(config, self.problems, tokenizer)
        self.policy = make_policy(config, model, tokenizer)
        optimizer = make_optimizer(config, self.policy)
        self.schedule = make_schedule(config, optimizer)
        self.probe = None
        if self.watched:
            others = make_environment(config, self.watched, tokenizer)
            self.probe = HeldOutProbe(others, config.held_out_every)
        asked, rewarded = self.environment.prompts, self.environment.reward
        chosen, parts = Trainer, (self.policy, asked, rewarded, optimizer)
        self.trainer = chosen(*parts, config, observe=self.probe)
        self.stopwatch.attach(self.trainer)

    def restore(self, epoch: int) -> None:
        """Take everything from a checkpoint, and forget what was written after it.

        All is looked at before anything is changed. Raises CheckpointError or
        ValueError for what is not this run's.
        """
        path = checkpoint_path(self.folder, epoch)
        require_own(path, self.config)
        saved = read_state(path)
        require_same_data(path, saved["data"], self.data)
        self.set_up(self.load(epoch), load_tokenizer(path))
        self.restore_reference(epoch, saved["reference"])
        put_back(saved, self.trainer, self.generator(), self.schedule)
        self.journal.cut_back(saved["lines"])
        self.trainer.history = self.journal.history()
        if self.probe:
            self.probe.calls = epoch
        self.tidy()  # a run that was killed may not have come to it

    def restore_reference(self, epoch: int, mixed: dict | None) -> None:
        """The reference policy, unless the loop will copy it from the policy itself."""
        origin = self.reference_epoch(epoch)
        if self.config.lora_rank and epoch and self.config.kl_penalty:
            self.trainer.ref_policy = copy.deepcopy(self.policy)  # the adapter off
        elif mixed is not None:
            self.trainer.ref_policy = self.policy_of(epoch)
            self.trainer.ref_policy.model.load_state_dict(mixed)
        elif origin < epoch:
            require_whole(self.folder, origin, "the reference policy")
            self.trainer.ref_policy = self.policy_of(origin)

    def policy_of(self, epoch: int) -> CausalPolicy:
        """A policy of its own with the model of a checkpoint."""
        return make_policy(self.config, self.load(epoch), self.tokenizer)

    def load(self, epoch: int) -> PreTrainedModel:
        """The model of a checkpoint."""
        path = checkpoint_path(self.folder, epoch)
        return load_model(path, find_device(self.config.device))

    def generator(self) -> Generator:
        """The random numbers of the samples."""
        return self.policy.generator or torch.default_generator

    def reference_epoch(self, epoch: int) -> int:
        """Whose checkpoint holds the reference of an epoch; its own where none does."""
        return epoch - epoch % self.config.compute_ref_model_period * self.has_copies

    @property
    def has_copies(self) -> bool:
        """Whether the reference is the policy of an earlier epoch.

        It may be a mixture, which is kept with the state, or the policy's own model.
        """
        config = self.config
        return bool(
            config.kl_penalty and config.ref_mixture == 1 and not config.lora_rank
        )

    def save(self) -> None:
        """Write a checkpoint, then remove those that are no longer needed."""

        def fill(path: Path) -> None:
            save_model(self.policy.model, self.tokenizer, path)
            more = {"lines": self.journal.marks(), "data": self.data}
            save_state(path, self.trainer, self.generator(), self.schedule, **more)
            self.config.save(path / CONFIG)

        write_checkpoint(self.folder, self.trainer.epoch, fill)
        self.tidy()
        if self.show:
            redraw(self.out, tqdm.write)

    def tidy(self) -> None:
        """Remove older checkpoints, but for the start and references of those kept."""
        keep = self.config.keep_checkpoints
        at = self.trainer.epoch
        remove_old(self.folder, at, keep, lambda epoch: {self.reference_epoch(epoch)})

    def newest(self) -> Path:
        """Where the model lies after the last checkpoint."""
        return checkpoint_path(self.folder, self.trainer.epoch)
