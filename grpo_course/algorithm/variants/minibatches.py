"""A step on a part of the batch instead of all of it."""

from collections.abc import Iterator

from grpo_course.algorithm.buffer import ExperienceBuffer
from grpo_course.algorithm.loop import Trainer
from grpo_course.algorithm.rollout import Batch


class Minibatches(Trainer):
    """Cut the batch mu times, shuffled anew each time: a step on every minibatch."""

    def inner_batches(self, batch: Batch) -> Iterator[Batch]:
        """Each response mu times. Raises ValueError for a size above the batch's."""
        buffer = ExperienceBuffer()
        buffer.add(batch)
        size = self.config.minibatch_size or len(buffer)
        for _ in range(self.config.num_steps_per_epoch):
            yield from buffer.minibatches(size, self.shuffle)
