"""Thirteen broken pieces of GRPO code, each with its probe and its repair."""
