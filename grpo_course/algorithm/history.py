"""What a training run leaves behind: one flat record for each optimizer step."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from grpo_course.algorithm.validation import unknown_name


@dataclass
class History:
    """The records of a run; a value is a tensor, [seed] where seeds train together."""

    records: list[dict] = field(default_factory=list)

    def curve(self, name: str) -> Tensor:
        """All values of one column in order. -> [step] or [step seed]"""
        values = [record[name] for record in self.records if name in record]
        if not values:
            known = sorted({key for record in self.records for key in record})
            raise unknown_name("name", name, known)
        return torch.stack([torch.as_tensor(value) for value in values])

    def final(self, name: str) -> Tensor:
        """The last value of one column. -> [] or [seed]"""
        return self.curve(name)[-1]
