"""The panel: what to look at while the loss says nothing."""

from grpo_course.algorithm.history import History
from grpo_course.classroom.plots import axes_row, plot_bands

PANEL = {
    "mean_reward": "mean reward",
    "gradient_norm": "gradient norm",
    "tied_groups": "tied groups",
    "kl": "KL to the reference",
    "clip_fraction": "clipped tokens",
    "sampled_entropy": "entropy (nats)",
    "mean_length": "mean length",
    "loss": "loss",
}


def panel_curves(runs: dict[str, History], name: str) -> dict:
    """One measure of each run that has it, epoch by epoch. -> label: [epoch seed]"""
    return {label: measure(run, name) for label, run in runs.items() if has(run, name)}


def measure(run: History, name: str):
    """A column at the last inner step of each epoch, where clipping has happened."""
    last = max(record.get("step", 0) for record in run.records)
    steps = History([r for r in run.records if r.get("step") == last])
    if name == "clip_fraction":
        curve = steps.curve("clip_fraction_low") + steps.curve("clip_fraction_high")
    else:
        curve = steps.curve(name)
    return curve.reshape(len(curve), -1)


def has(run: History, name: str) -> bool:
    """Whether a run recorded a measure."""
    column = "clip_fraction_low" if name == "clip_fraction" else name
    return any(column in record for record in run.records)


def plot_panel(runs: dict[str, History], names: tuple[str, ...] = tuple(PANEL)) -> list:
    """A small plot for each measure, each run a line with its band over the seeds."""
    shown = [name for name in names if any(has(run, name) for run in runs.values())]
    drawn = []
    for start in range(0, len(shown), 4):
        row = shown[start : start + 4]
        axes = axes_row(4, width=11.0, height=2.4)
        for ax, name in zip(axes, row, strict=False):
            plot_bands(panel_curves(runs, name), "", title=PANEL[name], ax=ax)
            if name != shown[0]:
                ax.get_legend().remove()
        for ax in axes[len(row) :]:
            ax.set_visible(False)
        drawn += axes[: len(row)]
    return drawn
