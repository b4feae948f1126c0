"""Runs in folders: `train`, `evaluate` and `pretrain`, and what they keep.

The commands
    train        begin a run, or go on with one
    evaluate     measure a model on other problems
    pretrain     the language model of the course, from nothing
    cli          settings from a preset or a file, then from flags
    memory       an estimate of what a run will need

A run
    resumable    a run in a folder that can be stopped at any moment
    folder       what lies in that folder
    checkpoint   checkpoints that are there whole or not at all
    state        what a run must remember beside its model
    metrics      one line of JSON for each epoch
    pretrained   a pretraining in a folder that can be stopped at any moment
    interrupt    Ctrl-C lets the epoch end first
"""
