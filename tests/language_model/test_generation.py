"""What generation notes is what a forward pass says; nothing is read twice."""

import copy

import pytest
import torch
from transformers.cache_utils import DynamicLayer

from grpo_course.lm import (
    RoomyLayer,
    generate,
    make_tiny_model,
    response_log_probs,
    takes_ready_masks,
)
from grpo_course.sampling import Sampler, pad_rows, response_mask

SETTINGS = [
    {},
    {"temperature": 0.7},
    {"top_k": 5},
    {"top_p": 0.7, "temperature": 1.5},
    {"top_k": 20, "top_p": 0.9},
]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("same_pad", [False, True])
def test_ragged_groups_end_at_eos_and_are_padded_after_it(
    model, rows, often, same_pad, tokenizer
):
    pad = often if same_pad else tokenizer.pad_token_id
    prompts = pad_rows(rows, pad)
    sampler = Sampler(12, eos=often, pad=pad)
    tokens, noted = generate(model, prompts, 8, sampler, generator())
    assert tokens.shape == noted.shape == (5, 8, 12)
    mask = response_mask(tokens, often)
    lengths = mask.sum(-1)
    assert (tokens[~mask] == pad).all() and (noted[~mask] == 0).all()
    assert (noted[mask] < 0).all()
    last = tokens.gather(-1, lengths[..., None] - 1).squeeze(-1)
    assert ((last == often) | (lengths == 12)).all()
    assert (last == often).any() and lengths.unique().numel() > 3


@pytest.mark.parametrize("settings", SETTINGS)
def test_noted_log_probs_are_those_of_each_text_alone(
    model, rows, often, settings, tokenizer, naive_log_probs
):
    pad = tokenizer.pad_token_id
    sampler = Sampler(10, eos=often, pad=pad, **settings)
    tokens, noted = generate(model, pad_rows(rows, pad), 4, sampler, generator())
    mask = response_mask(tokens, often)
    for i, row in enumerate(rows):
        for response, score, real in zip(tokens[i], noted[i], mask[i], strict=True):
            with torch.no_grad():
                expected = naive_log_probs(model, row, response[real], sampler)
            torch.testing.assert_close(score[real], expected, atol=2e-5, rtol=1e-5)


def test_a_prompt_is_read_once_for_its_group(model, rows, tokenizer, rows_seen_by):
    prompts = pad_rows(rows, tokenizer.pad_token_id)
    sampler = Sampler(4, pad=tokenizer.pad_token_id)
    seen = rows_seen_by(
        model.base_model.get_input_embeddings(),
        lambda: generate(model, prompts[:1].repeat(2, 1), 8, sampler, generator()),
    )
    assert seen[0] == (2,) and all(shape == (16,) for shape in seen[1:])
    assert len(seen) == 4  # the last token is written, not read


# What may differ between models that are called alike, and who makes their masks.
VARIANTS = {
    "grouped queries": ("qwen2", {"num_key_value_heads": 1}, True),
    "grouped queries of llama": ("llama", {"num_key_value_heads": 1}, True),
    "sliding window": (
        "qwen2",
        {"sliding_window": 4, "layer_types": ["full_attention", "sliding_attention"]},
        False,
    ),
    "another attention": ("gpt2", {"_attn_implementation": "eager"}, False),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_of_a_model_write_and_score_as_each_text_alone(
    variant, rows, tokenizer, naive_log_probs
):
    name, changes, ready = VARIANTS[variant]
    plain = make_tiny_model(tokenizer, name, hidden_size=32, num_heads=2)
    for key, value in changes.items():
        setattr(plain.config, key, value)
    torch.manual_seed(0)
    model = type(plain)(plain.config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3)
    assert takes_ready_masks(model) == ready
    pad = tokenizer.pad_token_id
    prompts, sampler = pad_rows(rows, pad), Sampler(8, pad=pad)
    tokens, noted = generate(model, prompts, 3, sampler, generator())
    scored = response_log_probs(model, prompts, tokens, sampler)
    torch.testing.assert_close(scored, noted, atol=2e-5, rtol=1e-5)
    for i, row in enumerate(rows):
        with torch.no_grad():
            alone = naive_log_probs(model, row, tokens[i, 0], sampler)
        torch.testing.assert_close(noted[i, 0], alone, atol=2e-5, rtol=1e-5)


def test_what_was_sampled_can_be_learned_from(model, rows, tokenizer):
    """Tensors that were made in inference mode would be refused by autograd."""
    prompts = pad_rows(rows, tokenizer.pad_token_id)
    sampler = Sampler(4, pad=tokenizer.pad_token_id)
    tokens, noted = generate(model, prompts, 2, sampler, generator())
    assert not tokens.is_inference() and not noted.is_inference()
    scores = response_log_probs(model, prompts, tokens, sampler)
    ((scores - noted).exp() * noted).sum().backward()
    assert any(weight.grad.any() for weight in model.parameters())


def test_the_cache_holds_what_that_of_transformers_holds_and_copies_nothing():
    ours, theirs = RoomyLayer(9), DynamicLayer()
    noise, places = generator(), set()
    for pos, chosen in [(4, [0, 0, 1]), (1, None), (1, [0, 2]), (3, None)]:
        rows = 2 if theirs.get_seq_length() == 0 else len(theirs.keys)
        new = torch.randn(2, rows, 3, pos, 5, generator=noise)
        for mine, other in zip(ours.update(*new), theirs.update(*new), strict=True):
            assert torch.equal(mine, other)
        if chosen is not None:
            ours.batch_select_indices(torch.tensor(chosen))
            theirs.batch_select_indices(torch.tensor(chosen))
        places.add(ours.keys.data_ptr())
    assert torch.equal(ours.values, theirs.values)
    assert len(places) == 2  # after the prompt, and after rows were dropped


def test_equal_generators_give_equal_text(model, rows, tokenizer):
    prompts = pad_rows(rows, tokenizer.pad_token_id)
    sampler = Sampler(6, pad=tokenizer.pad_token_id)
    first, again, other = (
        generate(model, prompts, 4, sampler, generator(seed))[0] for seed in (3, 3, 4)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"temperature": 2.0}, {"top_k": 3}])
def test_first_tokens_follow_the_policy(model, rows, settings):
    prompt, drawn = torch.tensor([rows[2]]), 5_000
    sampler = Sampler(1, **settings)
    tokens, _ = generate(model, prompt, drawn, sampler, generator())
    with torch.no_grad():
        probs = sampler.log_probs(model(prompt).logits[0, -1]).exp()
    shares = torch.bincount(tokens.flatten(), minlength=len(probs)) / drawn
    error = (probs * (1 - probs) / drawn).sqrt()
    assert ((shares - probs).abs() <= 5 * error + 1e-4).all()
    if "top_k" in settings:
        assert (shares > 0).sum() == 3


def test_a_prompt_that_does_not_fit_is_named(model, rows, tokenizer):
    prompts = pad_rows(rows, tokenizer.pad_token_id)
    with pytest.raises(ValueError, match=r"response 250, but the model knows 256"):
        generate(model, prompts, 2, Sampler(250, pad=tokenizer.pad_token_id))


def test_a_compiled_model_samples_and_scores_the_same(rows, tokenizer):
    model = make_tiny_model(tokenizer, hidden_size=16, num_layers=1, num_heads=2)
    compiled = copy.deepcopy(model)
    compiled.base_model.compile(backend="eager", dynamic=True)  # without a C++ compiler
    pad = tokenizer.pad_token_id
    prompts, sampler = pad_rows(rows, pad), Sampler(10, pad=pad)
    tokens, noted = generate(model, prompts, 4, sampler, generator())
    same, again = generate(compiled, prompts, 4, sampler, generator())
    assert torch.equal(tokens, same) and not again.requires_grad
    torch.testing.assert_close(noted, again, atol=1e-5, rtol=1e-5)
    ours, theirs = (
        response_log_probs(each, prompts, tokens, sampler) for each in (model, compiled)
    )
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    theirs.sum().backward()
    assert all(weight.grad is not None for weight in compiled.parameters())
