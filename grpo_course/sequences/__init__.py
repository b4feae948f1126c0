"""World 2: a tiny language model that writes one token after another."""
