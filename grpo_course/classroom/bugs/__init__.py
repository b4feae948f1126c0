"""Thirteen broken pieces of GRPO code, each with its probe and its repair.

What a bug is
    bug           its symptom, probe, cause and repair, as data
    sheet         all of them, in the order of the hunt
    runs          puts a piece, broken or repaired, into a training run
    silent_runs   five runs whose loss says next to nothing, for notebook 07

The bugs
    loss_bugs     in the ratio, the clip, the KL and dropout
    reward_bugs   in rewards, in deltas, in what a step remembers
    token_bugs    in which token, which row, which count
"""
