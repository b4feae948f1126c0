"""What a training run leaves behind: one flat record for each optimizer step."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from grpo_course.algorithm.validation import unknown_name


@dataclass
class History:
    """The records of a run; a value is a tensor, [seed] where seeds train together."""

    records: list[dict] = field(default_factory=list)

    def curve(self, name: str) -> Tensor:
        """All values of one column in order, on the CPU. -> [step] or [step seed]"""
        values = [record[name] for record in self.records if name in record]
        if not values:
            known = sorted({key for record in self.records for key in record})
            raise unknown_name("name", name, known)
        return torch.stack([torch.as_tensor(value).cpu() for value in values])

    def epochs(self, name: str) -> Tensor:
        """One column at the first step of each epoch, and of the last look after
        training, if there is one. -> [epoch] or [epoch + 1], then [seed] if any
        """
        return History([r for r in self.records if r.get("step", 0) == 0]).curve(name)

    def final(self, name: str) -> Tensor:
        """The last value of one column. -> [] or [seed]"""
        return self.curve(name)[-1]

    def table(self, names: Sequence[str], every: int = 1) -> str:
        """Lines of text: one record in `every`, each column a mean over the seeds."""
        lines = ["epoch  step  " + "  ".join(f"{name:>12s}" for name in names)]
        for record in [r for r in self.records if "step" in r][::every]:
            means = [torch.as_tensor(record[name]).float().mean() for name in names]
            numbers = "  ".join(
                f"{m:{max(12, len(n))}.3f}" for n, m in zip(names, means, strict=True)
            )
            lines.append(f"{record['epoch']:5d}  {record['step']:4d}  {numbers}")
        return "\n".join(lines)
