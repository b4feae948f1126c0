"""What the notebooks claim about learning, and whether it holds: see README.md."""
