"""World 3: word problems, real GSM8K and generated ones in its format.

In the order in which they are best read:

Problems
    data          GSM8K itself, from the hub or from files
    problems      problems in its format, made by rule
    phrasings     the words of those stories

Text
    prompts       what the model is told, and what a good response looks like
    slips         demonstrations with a careless mistake
    tokenizer     a small tokenizer, made from the texts
    encoding      problems to tokens, and tokens back to text

Rewards
    grading       what a completion answers, and whether it is right
    rewards       rewards with the signature that TRL calls
    task          problems as the loop wants them: prompts in, rewards out

Model
    tiny          a causal LM small enough for a laptop
    pretrained    load and save a causal LM and its tokenizer
    reading       read each prompt once for all its responses
    generation    sample groups of responses
    scoring       log-probs of responses, with a gradient
    policy        a causal LM as the policy of the loop

Learning
    config        all settings of a run
    recipes       the finale, and what goes wrong next to it
    presets       settings by name
    setting_up    from a config to problems, model, policy and optimizer
    warm_start    supervised training on demonstrations
    training      GRPO in memory
    memory        how much memory a run needs

A run on disk
    run           a run in a folder, begun and gone on with
    run_folder    what lies in the folder, and where
    checkpoint    checkpoints that are whole or not there
    saved_state   what a run must remember beside its model
    metrics       one line of JSON for each epoch
    interrupt     Ctrl-C asks a run to stop

Measures
    evaluation        accuracy and pass@k, with intervals
    evaluation_table  the measures as text and as data
    recorded          the finale with other seeds

Commands
    command       what the commands share
    train         python -m grpo_course.gsm8k.train
    evaluate      python -m grpo_course.gsm8k.evaluate
"""
