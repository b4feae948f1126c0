"""A GSM8K run in a folder: begun, gone on with, and never half saved.

Every run, a new one too, goes on from a checkpoint on the disk. So a run that is
killed and resumed does what it would have done, bit for bit on the same machine.
"""

from pathlib import Path

from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.algorithm.history import History
from grpo_course.algorithm.loop import LoopState, train
from grpo_course.gsm8k.checkpoint import (
    checkpoint_path,
    newest_good,
    remove_old,
    require_whole,
    write_checkpoint,
)
from grpo_course.gsm8k.interrupt import Interrupt
from grpo_course.gsm8k.metrics import MetricsFile, epoch_line
from grpo_course.gsm8k.pretrained import load_model, load_tokenizer, save_model
from grpo_course.gsm8k.run_folder import CHECKPOINTS, METRICS, saved_config
from grpo_course.gsm8k.saved_state import load_state, save_state
from grpo_course.gsm8k.setting_up import (
    find_device,
    load_problems,
    make_optimizer,
    make_policy,
    make_schedule,
    make_start,
    make_task,
    use_threads,
)

SHOWN = {"reward": "mean_reward", "accuracy": "accuracy", "kl": "kl"}


class Run:
    """A run at its newest checkpoint, ready to go on. A new one makes its first."""

    def __init__(self, out: str | Path, show: bool = True):
        self.out, self.show = Path(out), show
        self.config = saved_config(self.out)
        self.folder = self.out / CHECKPOINTS
        use_threads(self.config)
        self.metrics = MetricsFile(self.out / METRICS)
        problems = load_problems(self.config)
        epoch = newest_good(self.folder, tqdm.write)
        if epoch is None:
            self.set_up(*make_start(self.config, problems, show))
            self.state = LoopState()
            self.metrics.cut(0)
            self.save()
            epoch = 0
        self.restore(epoch)
        self.task = make_task(self.config, problems, self.tokenizer)

    def set_up(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
    ) -> None:
        """What learns: policy, optimizer, learning rates."""
        config, self.tokenizer = self.config, tokenizer
        self.policy = make_policy(config, model, tokenizer)
        self.optimizer = make_optimizer(config, self.policy)
        self.schedule = make_schedule(config, self.optimizer)

    def restore(self, epoch: int) -> None:
        """Take everything from a checkpoint, and forget what was measured after it."""
        path = checkpoint_path(self.folder, epoch)
        self.set_up(self.load(epoch), load_tokenizer(path))
        self.state, size = load_state(path, self.policy, self.optimizer, self.schedule)
        self.metrics.cut(size)
        self.state.history = self.metrics.history()
        self.tidy()  # a run that was killed may not have come to it
        reference = self.reference_epoch()
        if reference < epoch:  # else the loop copies the policy itself
            require_whole(self.folder, reference, "the reference policy")
            model = self.load(reference)
            self.state.ref_policy = make_policy(self.config, model, self.tokenizer)

    def load(self, epoch: int) -> PreTrainedModel:
        """The model of a checkpoint."""
        path = checkpoint_path(self.folder, epoch)
        return load_model(path, find_device(self.config.device))

    def reference_epoch(self) -> int:
        """When the policy was, or will at once be, copied as the reference."""
        if not self.config.kl_penalty:
            return self.state.epoch
        period = self.config.compute_ref_model_period
        return self.state.epoch // period * period

    def save(self) -> None:
        """Write a checkpoint, then remove those that are no longer needed."""

        def fill(path: Path) -> None:
            save_model(self.policy.model, self.tokenizer, path)
            parts = (self.state, self.policy, self.optimizer, self.schedule)
            save_state(path, *parts, self.metrics.size())

        write_checkpoint(self.folder, self.state.epoch, fill)
        self.tidy()

    def tidy(self) -> None:
        """Remove older checkpoints, but for the start and the reference."""
        epoch, needed = self.state.epoch, {0, self.reference_epoch()}
        remove_old(self.folder, epoch, self.config.keep_checkpoints, needed)

    def must_save(self) -> bool:
        """Whether this epoch ends with a checkpoint; a new reference needs one."""
        epoch, config = self.state.epoch, self.config
        reference = config.kl_penalty and epoch == self.reference_epoch()
        return bool(epoch % config.save_every == 0 or reference or self.finished())

    def newest(self) -> Path:
        """Where the model lies after the last checkpoint."""
        return checkpoint_path(self.folder, self.state.epoch)

    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.state.epoch >= self.config.num_epochs

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

            return train(
                self.policy,
                self.task.prompts,
                self.task.reward,
                self.optimizer,
                self.config,
                watch=watch,
                state=self.state,
            )

    def after_epoch(self, history: History, bar: tqdm) -> None:
        """Note what was measured, set the next learning rate, save if it is time."""
        self.task.note(history)
        line = epoch_line(history)
        line["learning_rate"] = self.schedule.get_last_lr()[0]
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
            initial=self.state.epoch,
            desc="GRPO",
            unit="epoch",
            disable=not self.show,
        )


def shown(line: dict[str, float]) -> dict[str, str]:
    """The numbers beside the progress bar."""
    return {k: f"{line[name]:.3f}" for k, name in SHOWN.items() if name in line}
