"""The room of language models: tasks, policies, training, commands."""
