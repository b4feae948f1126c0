"""World 3: word problems, real GSM8K and generated ones in its format.

In the order in which they are best read:

    task       what a run should know of them: problems, rewards, settings
    data       GSM8K itself, from the hub or from files
    problems   problems in its format, made by rule
    phrasings  the words of those stories
    prompts    what the model is told, what a good response looks like, and slips
    grading    what a completion answers, and whether it is right
    rewards    rewards with the signature that TRL calls
    presets    settings of whole runs: what learns, and what goes wrong
"""
