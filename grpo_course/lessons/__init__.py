"""What belongs to one notebook each.

exercises        tasks, cases, and mistakes with their hints
pictures         what is drawn in that notebook alone; `shared` in several
hunt             the trainer of notebook 10, its defects, probes and cases
one_prompt       00, 02: one policy learns one prompt
suspects         02, 16: why policies are stuck
baselines        03: where a baseline costs
four_kinds       04: which kind of token does the harm
silent_runs      07: runs whose loss says nothing
finale           12, 18: the records of their runs
solutions        11: word problems and their solutions as tokens, to imitate
answer_tree      14: a world of text that can be enumerated
lost_prompts     14: eight policies, and exact steps that lose some of their prompts
own_task         15: what three recorded seeds of its task say of training
look_ups         16: a tool's chain of look-ups, so short that all are listed
word_order       15: a task for a model that others trained
real_texts       11, 15: what that model wrote, recorded
preferences      17: a reward learned from pairs, and DPO
judges           17: judges that err, and panels
teachers         17: students that learn from a better model
"""
