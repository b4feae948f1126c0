"""The commands of `python3 -m grpo_course`, and the rules the notebooks keep."""
