"""A trainer in one file, its defects, and what finds them.

The trainer
    script              healthy, as public code looks
    base                what it downloads: tokenizer, base model, adapter
    defect              what can be wrong with it, as data
    defects             all of them, by number
    defects_of_tokens   what is written, masked and scored
    defects_of_rewards  what is paid
    defects_of_losses   a token's loss
    defects_of_updates  sums, gradients, steps
    broken              the script with one defect, or with two

Probes
    properties          what is to be asked, and what breaks it
    probes              the course's own, of what comes before a loss
    probes_of_learning  the course's own, of the loss and of the update
    judge               runs a probe on healthy variants and on every defect

Cases
    cases               a complaint, a log, samples; probes, a cause, a score
    roles               which defect the notebook uses for what
    debrief             what is told afterwards
    repair              compares a repaired trainer with the healthy one

What it costs
    sleeping            how wrong the first update is, as a setting moves
    costs               the command that records runs, costs and probes
    recorded            what it recorded
    findings            how to read it
    table               first look, probe, line: made of what it recorded
"""
