"""The GRPO algorithm, free of any task: deltas, losses, KL, aggregation, loop."""
