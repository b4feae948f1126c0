"""What a learner touches: setup, shown source, exercises, plots."""
