"""CPU time: of the parts of a program, and of matrix products alone."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel


class Stopwatch:
    """CPU seconds of this process by part, from `start` on.

    CPU time: what other programs use does not count. A part inside another one counts
    for itself, not for the outer one.
    """

    def __init__(self) -> None:
        self.seconds, self.began = defaultdict(float), None

    def __deepcopy__(self, memo: dict) -> "Stopwatch":
        """A copied policy reports to the same watch."""
        return self

    def start(self) -> None:
        """From now on, everything counts."""
        self.began = time.process_time()

    def stop(self, rest: str) -> dict[str, float]:
        """The parts; what belongs to none of them is the `rest`."""
        total = time.process_time() - self.began
        return {**self.seconds, rest: total - sum(self.seconds.values())}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What the block takes belongs to one part."""
        began, inside = time.process_time(), sum(self.seconds.values())
        yield
        if self.began is not None:
            inside = sum(self.seconds.values()) - inside
            self.seconds[name] += time.process_time() - began - inside


@torch.no_grad()
def product_seconds(weight: Tensor, rows: int, least: float = 0.02) -> float:
    """CPU seconds of one matrix product, rows times a weight [out in], and no more.

    The best of three, each a mean over at least so many seconds.
    """
    given, out = torch.randn(rows, weight.shape[1]), torch.empty(rows, len(weight))
    means = []
    for _ in range(3):
        began, count = time.process_time(), 0
        while (taken := time.process_time() - began) < least:
            torch.mm(given, weight.T, out=out)
            count += 1
        means.append(taken / count)
    return min(means)


def products_of_text(model: PreTrainedModel, rows: int, scored: int) -> float:
    """CPU seconds of the products of a forward pass: tokens read, tokens scored.

    Attention's own products are left out: they are few where texts are short.
    """
    head = model.get_output_embeddings().weight
    layers = [m.weight for m in model.base_model.modules() if isinstance(m, nn.Linear)]
    inside = sum(product_seconds(weight, rows) for weight in layers)
    return inside + (product_seconds(head, scored) if scored else 0.0)
