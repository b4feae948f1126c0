"""An update that skips the groups without any delta, against one that reads them all.

Half of the groups are tied, and there is no KL. The gradient is the same; what is
spared is the forward and the backward pass of the tied half.

python benchmarks/bench_tied_groups.py
"""

from collections.abc import Callable
from functools import partial

import torch
from bench_generation import PROMPTS, TRIALS, make_setting, report, rounds

from grpo_course.loop import Rollout, TrainConfig, Trainer
from grpo_course.text.lm import CausalPolicy


def half_tied(rollout: Rollout) -> torch.Tensor:
    """Rewards that are the same in every second group. -> [batch trial]"""
    rewards = torch.rand(rollout.responses.shape[:2])
    rewards[::2] = 0.5
    return rewards


def updates() -> dict[str, Callable[[], dict]]:
    """One step on a batch, with and without its tied groups. The rate is 0."""
    model, prompts, sampler = make_setting()
    policy = CausalPolicy(model, sampler)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    how = {"num_steps_per_epoch": 1, "num_responses": TRIALS}
    ways = {}
    for name, skips in {"tied groups skipped": True, "all groups": False}.items():
        torch.manual_seed(0)
        config = TrainConfig(skip_tied_groups=skips, **how)
        chosen = Trainer
        trainer = chosen(policy, prompts, half_tied, optimizer, config)
        ways[name] = partial(trainer.improve, trainer.collect(prompts))
    return ways


def main() -> None:
    torch.set_num_threads(1)
    ways = updates()
    norms = [way()["gradient_norm"] for way in ways.values()]
    assert torch.allclose(*norms, rtol=1e-4) and norms[0] > 0, norms
    seconds = rounds(ways, 3)
    report("update, half of the groups tied", seconds, PROMPTS * TRIALS, "completions")


if __name__ == "__main__":
    main()
