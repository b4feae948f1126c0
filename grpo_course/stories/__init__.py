"""World 4: stories that must be read, and a language model that was made for them.

In the order in which they are best read:

    problems     stories and bare sums as problems, in splits
    plans        what a story is about: its numbers and the steps that solve it
    questions    how a story may end, and whole plans
    composing    from the sentences of a story to its text
    telling      from an event to a sentence
    cast         who and what one story is about
    scenes       where stories are set; `wording/` holds their sentences, in parts
    frames       the sentences put together, and which of them training never has
    words        names, things and places
    verbs        the past, and "I have" beside "she has"
    handwritten  problems that a person wrote
    overlap      what the splits share
    reading      whether a response read its story right, whatever its sums
    task         what a run should know of them
    batches      what pretraining reads
    pretraining  a language model from nothing
    measure      what that model can do
    card         what its README says
    recorded     what GRPO made of it, and what else would have, with five seeds

`model/` is the model of the course, written by `python3 -m grpo_course pretrain`.
"""
