"""Draw images/course.png, what one loop teaches three policies, for the first pages.

.venv/bin/python -m tools.course
"""

from pathlib import Path

import matplotlib.pyplot as plt

from grpo_course.classroom.plots import axes_row, plot_bands
from grpo_course.classroom.setup import setup
from grpo_course.lessons.finale import curves, read_record
from grpo_course.sequences import train_sort
from grpo_course.sort import run_policy_gradient, sort_distance_reward

PATH = Path(__file__).parents[1] / "images" / "course.png"


def main() -> None:
    setup()
    seeds, mode = range(5), "normalized_rewards"
    sorts = run_policy_gradient(
        60,
        seeds=seeds,
        deltas_mode=mode,
        loss_mode="clipped",
        reward_fn=sort_distance_reward,
        init_scale=0.1,
    )
    _, writes = train_sort(seeds=seeds, num_epochs=150, deltas_mode=mode)
    exact, sampled = sorts.epochs("sorted_probability"), writes.epochs("mean_reward")
    samples = curves(read_record()).unfold(0, 4, 1).mean(-1)  # of four updates each
    row = axes_row(3, width=11, height=3.4)
    for ax, title, unit, curve, first in (
        (row[0], "three numbers at once:\nP(sorted), exact", "epoch", exact, 0),
        (row[1], "one by one, sampled:\nnumbers in place", "epoch", sampled, 0),
        (row[2], "SmolLM2, sampled:\ntraining problems right", "update", samples, 4),
    ):
        steps, label = range(first, first + len(curve)), "share" if ax is row[0] else ""
        plot_bands({title: curve}, label, unit, title, x=steps, ax=ax).set_ylim(0, 1)
    plt.savefig(PATH, dpi=160, bbox_inches="tight")


if __name__ == "__main__":
    main()
