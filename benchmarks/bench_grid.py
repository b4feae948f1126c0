"""The delta x loss grid: 7 x 3 settings, 8 seeds, 100 epochs x 10 steps, one core.

Seeds trained side by side against the same seeds trained one after the other.
"""

import time

import torch

from grpo_course import run_policy_gradient
from grpo_course.formulas import LOSS_MODES
from grpo_course.sort import sort_distance_reward

DELTAS = (
    "rewards",
    "centered_rewards",
    "normalized_rewards",
    "max_rewards",
    "centered_max_rewards",
    "softmax_rewards",
    "centered_softmax_rewards",
)
SEEDS = tuple(range(8))


def seconds(deltas_mode: str, loss_mode: str, seeds: tuple[int, ...]) -> float:
    """CPU seconds of one setting: another program on the machine does not count."""
    start = time.process_time()
    run_policy_gradient(
        deltas_mode=deltas_mode,
        loss_mode=loss_mode,
        reward_fn=sort_distance_reward,
        seeds=seeds,
        init_scale=0.1,
    )
    return time.process_time() - start


def main() -> None:
    torch.set_num_threads(1)
    grid = [(d, m) for d in DELTAS for m in ("naive", "unclipped", "clipped")]
    assert all(m in LOSS_MODES for _, m in grid)
    seconds(*grid[0], SEEDS)  # warm up
    together = {cell: seconds(*cell, SEEDS) for cell in grid}
    print(f"grid of {len(grid)} settings, {len(SEEDS)} seeds side by side:", end=" ")
    print(f"{sum(together.values()):.1f} CPU seconds")
    for cell in (("centered_rewards", "naive"), ("normalized_rewards", "clipped")):
        apart = sum(seconds(*cell, (seed,)) for seed in SEEDS)
        ratio = apart / together[cell]
        print(
            f"{' '.join(cell):28s} one seed after another takes {ratio:.1f} x as long"
        )


if __name__ == "__main__":
    main()
