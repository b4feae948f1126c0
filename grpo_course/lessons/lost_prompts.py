"""14: eight policies that sort every prompt of three numbers, and exact steps."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from grpo_course.sort import SortModel

PROMPTS = torch.cartesian_prod(*[torch.arange(5)] * 3)
SEEDS = range(8)


def solve_rates(model: nn.Module) -> Tensor:
    """The chance of each prompt's right answer. -> float64 [seed prompt]"""
    answers = PROMPTS.sort(-1).values.expand(len(SEEDS), -1, -1)[..., None]
    log_probs = model(PROMPTS).double().log_softmax(-1)
    return log_probs.gather(-1, answers).sum((-2, -1)).exp()


def climb(
    model: nn.Module,
    weigh: Callable[[Tensor], Tensor],
    optimizer: torch.optim.Optimizer,
    steps: int,
) -> Tensor:
    """Exact steps on solve rates, weighed by weigh(p). -> p, [step seed prompt]"""
    path = []
    for _ in range(steps):
        p = solve_rates(model)
        path.append(p.detach())
        optimizer.zero_grad()
        (-weigh(path[-1].clamp(1e-9, 1 - 1e-9)) * p).mean(-1).sum().backward()
        optimizer.step()
    return torch.stack([*path, solve_rates(model).detach()])


def start(steps: int = 30, init_scale: float = 0.3) -> SortModel:
    """Eight policies that have been shown right answers for some steps."""
    model = SortModel(5, 10, 3, 3, init_scale=init_scale, seeds=SEEDS)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    climb(model, torch.reciprocal, adam, steps)
    return model


class OwnLogits(nn.Module):
    """Each prompt has logits of its own, at first those of a model."""

    def __init__(self, model: SortModel):
        super().__init__()
        self.vocab_size = model.vocab_size
        self.logits = nn.Parameter(model(PROMPTS).detach())

    def forward(self, prompts: Tensor) -> Tensor:
        return self.logits[:, prompts @ torch.tensor([25, 5, 1])]
