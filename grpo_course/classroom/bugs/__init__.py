"""Thirteen broken pieces of GRPO code, each with its probe and its repair.

What a bug is
    bug       its symptom, probe, cause and repair, as data
    sheet     all of them, in the order of the hunt
    runs      puts a piece, broken or repaired, into a training run

The bugs
    losses    in the ratio, the clip, the KL and dropout
    rewards   in rewards, in deltas, in what a step remembers
    tokens    in which token, which row, which count
"""
