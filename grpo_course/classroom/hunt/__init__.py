"""A trainer in one file, its defects, and what finds them.

The trainer
    script              healthy, as public code looks
    base                what it downloads: tokenizer, base model, adapter
    defect, defects     what can be wrong with it, as data: defects_of_...
    broken              the script with one defect, or with two

Probes
    properties          what is to be asked, and what breaks it
    probes              the course's own; those of the loss in probes_of_learning
    judge               runs a probe on healthy variants and on every defect

Cases
    cases               a complaint, a log, samples; probes, a cause, a score
    debrief             what is told afterwards
    repair              compares a repaired trainer with the healthy one

What it costs
    sleeping            how wrong the first update is, as a setting moves: slider
    costs               the command that records runs, costs and probes
    recorded, findings  what it recorded, and how to read it
    table               first look, probe, line: made of what it recorded
"""
