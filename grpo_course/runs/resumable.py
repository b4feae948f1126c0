"""A run in a folder that can be stopped at any moment, and gone on with."""

from tqdm import tqdm

from grpo_course.loop import History, as_json
from grpo_course.runs.folder import alone_in, require_newest
from grpo_course.runs.interrupt import Interrupt
from grpo_course.runs.journal import epoch_line
from grpo_course.runs.saved_run import SavedRun
from grpo_course.tasks import sample_rows

SHOWN = {"reward": "mean_reward", "accuracy": "accuracy", "kl": "kl"}


class Run(SavedRun):
    """A run at its newest checkpoint, ready to go on. A new one makes its first.

    With `show` it has a progress bar, and draws itself at each checkpoint.
    """

    def must_save(self) -> bool:
        """Whether this epoch ends with a checkpoint; a new reference needs one."""
        epoch, config = self.trainer.epoch, self.config
        copied = self.has_copies and epoch % config.compute_ref_model_period == 0
        return epoch % config.save_every == 0 or copied or self.finished()

    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.trainer.epoch >= self.config.num_epochs

    def go(self) -> History:
        """Train to the end. The history has one record an epoch for resumed ones.

        Ctrl-C saves at the end of the epoch and raises KeyboardInterrupt. Raises
        OSError where another process trains in the folder, or has gone on with the run.
        """
        with alone_in(self.out):
            require_newest(self.out, self.trainer.epoch)
            return self.train()

    def train(self) -> History:
        """Train in a folder that is this process's own."""
        with self.bar() as bar, Interrupt(tqdm.write) as interrupt:

            def watch(history: History) -> None:
                self.after_epoch(history, bar)
                if interrupt.asked and not self.finished():
                    self.save()
                    raise KeyboardInterrupt

            self.trainer.watch = watch
            self.stopwatch.restart()
            return self.trainer.train()

    def after_epoch(self, history: History, bar: tqdm) -> None:
        """Note what was measured, set the next learning rate, save if it is time."""
        self.environment.note(history)
        line = epoch_line(history)
        line["learning_rate"] = float(self.schedule.get_last_lr()[0])
        self.schedule.step()
        samples = sample_rows(self.environment, self.config.keep_samples)
        self.journal.add(line, samples, self.stopwatch.lap())
        if self.finished() and self.probe:
            self.last_look(history)
        bar.set_postfix(shown(line), refresh=False)
        bar.update()
        if self.must_save():
            self.save()

    def last_look(self, history: History) -> None:
        """What the trained model does on held-out problems, in a line of its own."""
        assert self.probe is not None
        history.add(self.trainer.epoch, 0, self.probe.look(self.policy))
        last = as_json(history.records[-1])
        self.journal.add({name: last[name] for name in ("epoch", "held_out")})

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
