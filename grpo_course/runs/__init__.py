"""Runs in folders: `train`, `evaluate`, `show`, and what they keep.

The commands
    train        begin a run, or go on with one
    evaluate     measure a model on other problems
    show         print and draw a run, or two side by side
    new_task     write a task to begin with
    check_task   find what is wrong with a task
    cli          settings from a preset or a file, then from flags

Memory
    shape        the shape of a model, without its weights
    memory       an estimate of what a run will need
    fits         whether the machine has it, and what to change

A run
    resumable    a run in a folder that can be stopped at any moment
    saved_run    from its newest checkpoint, and into one
    folder       what lies in that folder
    interrupt    Ctrl-C lets the epoch end first

What it keeps
    checkpoint   checkpoints that are there whole or not at all
    state        what a run must remember beside its model
    identity     the settings and the data that a checkpoint belongs to
    journal      metrics, responses and times in lines of JSON
    stopwatch    where the time of an epoch goes
    record       those lines, for people who look at them
    picture      one picture of a run, or of two
    events       the event files of TensorBoard, while a run goes on
"""
