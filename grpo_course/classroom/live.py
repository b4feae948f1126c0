"""What to look at while a run trains: pass one of these as `watch`.

Their output grows, so a cell that uses one is tagged `nbval-ignore-output` and a
later cell asserts what was to be seen.
"""

import sys

from tqdm import tqdm

from grpo_course.classroom.plots import axes_row, plot_bands
from grpo_course.loop import History


class ProgressBar:
    """A line of text that fills, with the latest value of one measure beside it."""

    def __init__(self, num_epochs: int, name: str = "mean_reward"):
        self.name = name
        # No times: they would differ in every stored output.
        form = "{bar:30} {n_fmt}/{total_fmt} {desc}"
        self.bar = tqdm(total=num_epochs, file=sys.stdout, bar_format=form, ascii=" #")

    def __call__(self, history: History) -> None:
        """Take one step with the latest value of a history."""
        self.show(history.final(self.name).mean().item())

    def show(self, value: float) -> None:
        """Take one step; the bar closes itself after the last."""
        self.bar.set_description_str(f"{self.name} {value:.2f}", refresh=False)
        self.bar.update()
        if self.bar.n == self.bar.total:
            self.bar.close()


class LiveCurve:
    """A curve that is drawn again as the run goes on; mean and band over the seeds."""

    def __init__(
        self,
        num_epochs: int,
        name: str = "mean_reward",
        redraw_every: int = 5,
        unit: str = "epoch",
    ):
        self.num_epochs, self.name, self.redraw_every = num_epochs, name, redraw_every
        self.unit, self.handle = unit, None

    def __call__(self, history: History) -> None:
        """Redraw every few epochs, and after the last."""
        epoch = history.records[-1]["epoch"] + 1
        if epoch % self.redraw_every and epoch != self.num_epochs:
            return
        curve = history.epochs(self.name)
        self.show({self.name: curve.reshape(len(curve), -1)}, epoch)

    def show(self, curves: dict, epoch: int) -> None:
        """Draw, in place of what was drawn before."""
        import matplotlib.pyplot as plt
        from IPython.display import display

        axes, steps = axes_row(height=2.6), range(1, self.num_epochs + 1)
        ax = plot_bands(curves, self.name, self.unit, x=steps, ax=axes[0])
        ax.set_xlim(0, self.num_epochs)
        if len(curves) == 1:  # a legend of several stands there
            ax.set_title(f"{self.unit} {epoch} of {self.num_epochs}")
        if self.handle is None:
            self.handle = display(ax.figure, display_id=True)
        else:
            self.handle.update(ax.figure)
        plt.close()  # or the kernel shows it a second time
