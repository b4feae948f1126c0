"""World 1: sorting a few numbers, small enough to enumerate every response."""
