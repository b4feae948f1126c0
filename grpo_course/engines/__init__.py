"""The bridge to the production trainers: names, losses and runs of TRL.

In the order in which they are best read:

    mapping     the table of names: here, in TRL, in verl
    translate   what one knob of this course is in TRL
    trl_loss    TRL's own loss, on tensors of yours
    trl_run     a text task on TRL's GRPOTrainer
    trl         python -m grpo_course.engines.trl: that run as a command
    scale       what a trainer holds at scale
    waiting     who waits for whom: writers, a queue and a learner, simulated
    require     TRL is optional: load it, or say how to get it
"""
