"""World 3: word problems, real GSM8K and generated ones in its format."""
