"""A trainer in one file, its defects, and what finds them.

Modules
    script      the trainer, healthy, as public code looks
    base        what it downloads: tokenizer, base model, adapter
    rewrites    the same trainer by other hands
    defects     what can be wrong with it, what that costs, and the script with it
    probes      the course's own probes, and the judge of anybody's
    cases       a complaint, a log, samples; then a cause, a score, a repair
"""
