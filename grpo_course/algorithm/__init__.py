"""GRPO itself: torch and einops, no task, no text, no plot.

The formulas
    deltas       how much each response of a group counts, and with which sign
    ratio        how much likelier a token is now, and how far that may go
    losses       naive, unclipped, clipped
    kl           how far from the reference: exact, estimated, as a penalty
    aggregation  from a number a token to one number
    masks        which tokens count

What flows
    rollout      responses, the batch they become, and what a policy must do
    buffer       batches handed out in minibatches
    sampler      how a policy writes: the settings that sampling and scoring share
    history      a record for each optimizer step

The loop
    config       the knobs, a line each
    loop         from a rollout to the optimizer step on one page: Trainer
    train        the trainer that a config asks for
    gradient     its norm, its limit, the step
    variants/    what later parts add: each replaces one method of the trainer

Beneath
    settings     settings that check themselves
    validation   errors that name the argument and the cure
    seeds        several models side by side, and what they reach on average
"""
