"""What a policy does after its warm start; each architecture is trained once."""

import pytest
import torch

from grpo_course.gsm8k import GSM8K
from grpo_course.lm import MODELS, CausalPolicy, make_tiny_model
from grpo_course.sampling import Sampler
from grpo_course.tasks import encode_prompts
from grpo_course.training import GRPOConfig, warm_start

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=MODELS)
def trained(request, tokenizer, easy_problems):
    """A policy that writes what the demonstrations showed it, in a few seconds."""
    sampler = Sampler(24, tokenizer.eos_token_id, tokenizer.pad_token_id)
    made = make_tiny_model(tokenizer, request.param, hidden_size=48, seed=1)
    policy = CausalPolicy(made, sampler, torch.Generator().manual_seed(0))
    config = GRPOConfig(warm_start_steps=100, warm_start_learning_rate=5e-3)
    show = GSM8K().demonstration
    losses = warm_start(policy, tokenizer, easy_problems, show, config)
    return policy, losses


def test_demonstrations_are_learned(trained):
    _, losses = trained
    assert sum(losses[-10:]) / 10 < 0.25 * losses[0]


def test_greedy_is_what_transformers_generates(trained, tokenizer, easy_problems):
    policy, _ = trained
    eos, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    questions = [p.question for p in easy_problems[:24]]
    prompts = encode_prompts(tokenizer, questions)
    assert (prompts == pad).any()
    ours = policy.answer(prompts)
    theirs = policy.model.generate(
        input_ids=prompts,
        attention_mask=(prompts != pad).long(),
        do_sample=False,
        max_new_tokens=24,
        eos_token_id=eos,
        pad_token_id=pad,
    )[:, prompts.shape[-1] :]
    width = theirs.shape[-1]
    assert torch.equal(ours[:, :width], theirs)
    assert (ours[:, width:] == pad).all()
    assert (ours == eos).sum() > 12 and len(ours.unique(dim=0)) > 2


def test_rows_that_ended_leave_the_batch(
    trained, rows_seen_by, tokenizer, easy_problems
):
    policy, _ = trained
    prompts = encode_prompts(tokenizer, [p.question for p in easy_problems[:5]])
    head = policy.model.get_output_embeddings()
    seen = rows_seen_by(head, lambda: policy.sample(prompts, 16))
    sizes = [shape[0] for shape in seen]
    assert sizes[0] == 80 and sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 40
