"""What a person would get wrong is refused: the argument, what was given, the cure."""

import math

import pytest
import torch

from grpo_course.sampling import Sampler
from grpo_course.sequences import (
    SequencePolicy,
    TinyLM,
    all_sort_prompts,
    draw_prompts,
    response_logits,
    sample_sequences,
    token_share,
    train_share,
    train_sort,
)

PROMPTS = torch.tensor([[1, 2], [3, 4]])
TOKENS = torch.zeros(2, 3, 4, dtype=torch.long)


def sample(prompts=PROMPTS, num_responses=2, sampler=None, generator=None):
    sampler = Sampler(3) if sampler is None else sampler
    return sample_sequences(TinyLM(5), prompts, num_responses, sampler, generator)


CALLS = {
    "no hidden state": (lambda: TinyLM(5, hidden_size=0), "hidden_size=0.*at least 1"),
    "half a state": (lambda: TinyLM(5, hidden_size=1.5), "hidden_size=1.5.*a whole n"),
    "no vocabulary": (lambda: TinyLM(0), "vocab_size=0.*at least 1"),
    "no context": (
        lambda: TinyLM(5, context_length=None),
        "context_length=None.*whole",
    ),
    "a negative seed": (lambda: TinyLM(5, seeds=(-1,)), r"seeds\[0\]=-1.*at least 0"),
    "a seed": (lambda: TinyLM(5, seeds=3), r"seeds=3.*one at least: seeds=\(0,\)"),
    "prompts in a list": (lambda: sample([[1, 2]]), "prompts is a list, not a tensor"),
    "one prompt": (lambda: sample(PROMPTS[0]), "prompts has shape .2.*batch pos"),
    "prompts of floats": (lambda: sample(PROMPTS.float()), "float32.*whole numbers"),
    "prompts of booleans": (lambda: sample(PROMPTS > 2), "torch.bool.*whole numbers"),
    "no responses": (lambda: sample(num_responses=0), "num_responses=0.*at least 1"),
    "a response of text": (lambda: sample(num_responses="2"), "num_responses='2'.*who"),
    "a number for a sampler": (
        lambda: sample(sampler=3),
        "sampler=3 is no Sampler. Pa",
    ),
    "a policy without one": (
        lambda: SequencePolicy(TinyLM(5), None).sample(PROMPTS, 2),
        "sampler=None is no Sampler",
    ),
    "a seed for a generator": (lambda: sample(generator=3), "generator=3.*torch.Gener"),
    "responses in a list": (
        lambda: response_logits(TinyLM(5), PROMPTS, TOKENS.tolist()),
        "responses is a list, not a tensor",
    ),
    "other prompts": (
        lambda: response_logits(TinyLM(5), PROMPTS[:1], TOKENS),
        "prompts has shape .1, 2.*agree in batch",
    ),
    "a share of a list": (lambda: token_share([[1]], None, 1), "responses is a list"),
    "a share of another mask": (
        lambda: token_share(TOKENS, TOKENS[:1] > 0, 1),
        "mask has shape .1, 3, 4",
    ),
    "a list of prompts": (
        lambda: draw_prompts(PROMPTS.tolist(), 1, 0),
        "prompts is a list, not a tensor",
    ),
    "half a prompt": (lambda: draw_prompts(PROMPTS, 0.5, 0), "count=0.5.*a whole num"),
    "no seeds": (lambda: train_sort(seeds=None), r"seeds=\(\).*list one at least"),
    "a learning rate of text": (
        lambda: train_share(learning_rate="1e-3"),
        "learning_rate='1e-3'.*not a number",
    ),
    "no learning rate": (
        lambda: train_sort(learning_rate=math.nan),
        "learning_rate=nan.*at least 0",
    ),
    "too many prompts": (
        lambda: train_sort(num_prompts=len(all_sort_prompts()) + 1),
        "count=217, but there are 216",
    ),
    "an unknown knob": (lambda: train_sort(epoch=3), "epoch"),
    "a reward of None": (
        lambda: train_sort(lambda rollout: None, num_epochs=1),
        "in epoch 0, reward_fn returned a NoneType",
    ),
    "a wrap of None": (
        lambda: train_sort(wrap=lambda policy: None),
        "policy is a NoneType without sample",
    ),
}


@pytest.mark.parametrize(("call", "says"), CALLS.values(), ids=CALLS)
def test_a_call_is_refused(call, says):
    with pytest.raises((TypeError, ValueError), match=says):
        call()
