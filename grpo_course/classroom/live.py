"""What to look at while a run trains: pass a `LiveCurve` as `watch`.

Its output grows, so a cell that uses one is tagged `nbval-ignore-output` and a
later cell asserts what was to be seen.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from grpo_course.classroom.plots import axes_row, plot_bands
from grpo_course.long_work import watched
from grpo_course.loop import History

REDRAW_EVERY = 5  # epochs


class LiveCurve:
    """A curve that is drawn again as the run goes on; mean and band over the seeds."""

    def __init__(
        self,
        num_epochs: int,
        name: str = "mean_reward",
        unit: str = "epoch",
    ):
        self.num_epochs, self.name = num_epochs, name
        self.unit, self.handle = unit, None
        self.line = None  # of text, below the curve

    def __call__(self, history: History) -> None:
        """Redraw every few epochs, and after the last."""
        epoch = history.records[-1]["epoch"] + 1
        if epoch % REDRAW_EVERY and epoch != self.num_epochs:
            return
        curve = history.epochs(self.name)
        self.show({self.name: curve.reshape(len(curve), -1)}, epoch)

    def show(self, curves: dict, epoch: int = 0) -> None:
        """Draw, in place of what was drawn before; epoch 0: nothing is done yet."""
        import matplotlib.pyplot as plt
        from IPython.display import display

        axes, steps = axes_row(height=2.6), range(1, self.num_epochs + 1)
        ax = plot_bands(curves, self.name, self.unit, x=steps, ax=axes[0])
        ax.set_xlim(0, self.num_epochs)
        if len(curves) == 1 and epoch:  # a legend of several stands there
            ax.set_title(f"{self.unit} {epoch} of {self.num_epochs}")
        if self.handle is None:
            self.handle = display(ax.figure, display_id=True)
        else:
            self.handle.update(ax.figure)
        plt.close()  # or the kernel shows it a second time

    def say(self, text: str) -> None:
        """Write a line below the curve, in place of what stood there before."""
        from IPython.display import Pretty, display

        if self.line is None:
            self.line = display(Pretty(text), display_id=True)
        else:
            self.line.update(Pretty(text))

    @contextmanager
    def telling(self, what: str) -> Iterator[None]:
        """Inside the block, the line says how far it is: "update 1, learning: 3/8"."""
        self.say(f"{what} begins")

        def show(items: Iterable, desc: str, unit: str) -> TextBar:
            return TextBar(self.say, items, desc=f"{what}, {desc}", unit=unit)

        with watched(show):
            yield
        self.say(f"{what} is over")


class TextBar(tqdm):
    """tqdm's state as a text, for a function that shows it at most once a second."""

    def __init__(self, say: Callable[[str], None], items: Iterable, **how: Any):
        self.say = say
        form = "{desc}: {n_fmt} of {total_fmt} {unit}s, {remaining} left"
        how |= {"bar_format": form, "file": io.StringIO(), "leave": False}
        super().__init__(items, miniters=1, mininterval=1.0, **how)

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Called by tqdm when there is something new; with an empty text at the end."""
        if msg is None:
            self.say(str(self))
