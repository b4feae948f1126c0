"""Any causal language model as a policy, for any text task.

In the order in which they are best read:

The task
    text_task    what a task must say: problems, rewards, settings
    find_task    a task by its name, or by the path of its file
    task_check   what is wrong with a task, and what cheap policies earn
    template     the form of a response: tags, conversation, format reward
    environment  problems as the loop wants them: prompts in, rewards out

Text and tokens
    tokenizer    a small tokenizer, made from the texts
    encoding     questions to tokens, and tokens back to text

The model
    tiny_model   a causal LM small enough for a laptop
    pretrained   load and save a causal LM and its tokenizer
    prefill      read each prompt once for all its responses
    cache        keys and values in memory that has room for all of them
    generation   sample groups of responses
    log_probs    score responses, with a gradient
    policy       a causal LM as the policy of the loop
    lora         small matrices that learn beside a model that does not

Learning and measuring
    config       all settings of a run, a line each
    build        from a config to problems, model, policy and optimizer
    warm_start   supervised training on demonstrations
    imitation    training on one's own right answers, to compare with
    training     GRPO in memory
    samples      the texts of a rollout, and why groups are tied
    probe        whether scores agree with what the sampler noted
    held_out     the problems that a model is measured on
    evaluation   accuracy and pass@k, with intervals
    tables       the measures as tables
"""
