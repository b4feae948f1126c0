"""Runs on disk, of any text task: begun, stopped, gone on with, measured.

train       python3 -m grpo_course train
evaluate    python3 -m grpo_course evaluate
cli         what the commands share: settings from a preset, a file and flags
run         a run in a folder, begun and gone on with
folder      what lies in the folder, and where
checkpoint  checkpoints that are whole or not there
state       what a run must remember beside its model
metrics     one line of JSON for each epoch
interrupt   Ctrl-C asks a run to stop
memory      how much memory a run needs
"""
