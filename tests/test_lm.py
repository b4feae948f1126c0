"""Any causal LM as a policy: what is noted, scored and learned is each text's alone.

The fast road is held against one text at a time without padding or cache, on three
architectures; models that it cannot take must be scored as well, and say so. Then the
tokenizer, tiny models and adapters.
"""

import copy
import shlex
import shutil
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    Qwen2Config,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from benchmarks.architectures import small
from grpo_course import install
from grpo_course.sampling import Sampler, pad_rows, response_mask
from grpo_course.text import lm
from grpo_course.text.adapters import merge_adapter
from grpo_course.text.environment import Environment
from grpo_course.text.evaluation import greedy_scores
from grpo_course.text.generation import generate
from grpo_course.text.gsm8k import GSM8K
from grpo_course.text.lm import EXPECTED, CausalPolicy, probe_line, sampler_gap
from grpo_course.text.memory import print_estimate
from grpo_course.text.models import (
    has_adapter,
    load_model,
    load_shape,
    load_tokenizer,
    require_whole_model,
    save_model,
    text_config,
)
from grpo_course.text.prompts import decode_responses, prompt_text
from grpo_course.text.responses import TAGS
from grpo_course.text.runs import Run
from grpo_course.text.scoring import (
    Prefix,
    chunked_log_probs,
    make_recompute,
    response_log_probs,
)
from grpo_course.text.tasks import Problem
from grpo_course.text.tiny import MODELS, make_tiny_model, make_tokenizer
from grpo_course.text.training import (
    GRPOConfig,
    load_trained,
    make_optimizer,
    make_policy,
    make_start,
)

TRIALS = 4
CLOSE = {"atol": 2e-5, "rtol": 1e-5}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def scaled_up(model, factor=3):
    """Weights so large that the next token is no longer a fair die."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(factor)
    return model.eval()


@pytest.fixture(scope="session")
def rows(tokenizer, easy_problems):
    """Prompts of unequal lengths, as lists."""
    questions = [p.question for p in easy_problems[:5]]
    texts = [questions[0][:9], "a", *questions[2:]]
    encoded = [tokenizer(prompt_text(tokenizer, t, None)).input_ids for t in texts]
    assert len(set(map(len, encoded))) >= 4
    return encoded


@pytest.fixture
def prompts(rows, tokenizer):
    return pad_rows(rows, tokenizer.pad_token_id)


@pytest.fixture(scope="session", params=MODELS)
def model(request, tokenizer):
    sizes = {"hidden_size": 32, "num_heads": 2}
    return scaled_up(make_tiny_model(tokenizer, request.param, **sizes))


@pytest.fixture(scope="session")
def often(model, rows, tokenizer):
    """As EOS, this token ends the rows at the most different lengths."""
    sampler = Sampler(12, pad=tokenizer.pad_token_id)
    tokens, _ = generate(model, pad_rows(rows, sampler.pad), 8, sampler, generator())

    def lengths(eos):
        return response_mask(tokens, eos).sum(-1).unique().numel()

    return max(tokens.unique().tolist(), key=lengths)


def alone(model, prompt, response, sampler):
    """The scores of one text, without padding or cache; truncated by transformers."""
    text = torch.tensor([*prompt, *response.tolist()])[None]
    logits = model(text).logits[0, len(prompt) - 1 : -1] / sampler.temperature
    if sampler.top_k is not None:
        logits = TopKLogitsWarper(sampler.top_k)(text, logits)
    if sampler.top_p is not None:
        logits = TopPLogitsWarper(sampler.top_p)(text, logits)
    return logits.log_softmax(-1).gather(-1, response[:, None]).squeeze(-1)


def assert_all_alone(model, rows, tokens, scores, mask, sampler, **close):
    """Each text's scores are those it has alone. Returns the latter, a list a text."""
    expected = []
    for i, row in enumerate(rows):
        for response, score, real in zip(tokens[i], scores[i], mask[i], strict=True):
            expected.append(alone(model, row, response[real], sampler))
            torch.testing.assert_close(score[real], expected[-1], **close or CLOSE)
    return expected


def rows_read(module, call):
    """The shapes of the tokens that an embedding got."""
    seen = []
    hook = module.register_forward_hook(lambda _, x, __: seen.append(tuple(x[0].shape)))
    call()
    hook.remove()
    return seen


# --- Sampling


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "same_pad"),
    [
        ({}, True),
        ({"temperature": 0.7}, False),
        ({"top_p": 0.7, "temperature": 1.5}, True),
        ({"top_k": 20, "top_p": 0.9}, False),
    ],
)
def test_what_is_noted_is_what_each_text_scores_alone(
    model, rows, often, settings, same_pad, tokenizer
):
    """And every response ends at its first EOS, with padding behind it."""
    pad = often if same_pad else tokenizer.pad_token_id
    sampler = Sampler(12, eos=often, pad=pad, **settings)
    tokens, noted = generate(model, pad_rows(rows, pad), 8, sampler, generator())
    assert tokens.shape == noted.shape == (5, 8, 12)
    mask = response_mask(tokens, often)
    lengths = mask.sum(-1)
    assert (tokens[~mask] == pad).all() and (noted[~mask] == 0).all()
    last = tokens.gather(-1, lengths[..., None] - 1).squeeze(-1)
    assert ((last == often) | (lengths == 12)).all()
    assert (last == often).any() and lengths.unique().numel() > 1
    with torch.no_grad():
        assert_all_alone(model, rows, tokens, noted, mask, sampler)
    scored = response_log_probs(model, pad_rows(rows, pad), tokens, sampler, mask)
    torch.testing.assert_close(scored, noted, **CLOSE)


def test_a_prompt_is_read_once_for_its_group(model, prompts, tokenizer):
    sampler = Sampler(4, pad=tokenizer.pad_token_id)
    embedding, twice = model.get_input_embeddings(), prompts[:1].repeat(2, 1)
    length = prompts.shape[-1]
    seen = rows_read(embedding, lambda: generate(model, twice, 8, sampler, generator()))
    assert seen == [(2, length)] + 3 * [(16, 1)]  # the last token is not read
    tokens = torch.ones(2, 8, 4, dtype=torch.long)
    seen = rows_read(
        embedding, lambda: response_log_probs(model, twice, tokens, sampler)
    )
    assert seen == [(1, length), (16, 3)]


# What may differ between models that are called alike.
VARIANTS = {
    "grouped queries": ("qwen2", {"num_key_value_heads": 1}),
    "sliding window": (
        "qwen2",
        {"sliding_window": 4, "layer_types": ["full_attention", "sliding_attention"]},
    ),
    "another attention": ("gpt2", {"_attn_implementation": "eager"}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_of_a_model(variant, rows, prompts, tokenizer):
    name, changes = VARIANTS[variant]
    plain = make_tiny_model(tokenizer, name, hidden_size=32, num_heads=2)
    for key, value in changes.items():
        setattr(plain.config, key, value)
    torch.manual_seed(0)
    model = scaled_up(type(plain)(plain.config))
    sampler = Sampler(8, pad=tokenizer.pad_token_id)
    policy = CausalPolicy(model, sampler, generator())
    assert policy.read_once
    rollout = policy.sample(prompts, 3)
    scored, mask = policy.log_probs(rollout), torch.ones(5, 3, 8, dtype=torch.bool)
    torch.testing.assert_close(scored, rollout.sampled_log_probs, **CLOSE)
    assert_all_alone(model, rows, rollout.responses, scored, mask, sampler)


@pytest.mark.slow
def test_a_compiled_model_samples_and_scores_the_same(prompts, tokenizer):
    model = make_tiny_model(tokenizer, hidden_size=16, num_layers=1, num_heads=2)
    compiled = copy.deepcopy(model)
    compiled.base_model.compile(backend="eager", dynamic=True)  # without a C++ compiler
    sampler = Sampler(10, pad=tokenizer.pad_token_id)
    one, other = (CausalPolicy(m, sampler, generator()) for m in (model, compiled))
    rollout, same = one.sample(prompts, 4), other.sample(prompts, 4)
    assert torch.equal(rollout.responses, same.responses)
    torch.testing.assert_close(rollout.sampled_log_probs, same.sampled_log_probs)
    scores = other.log_probs(rollout)
    torch.testing.assert_close(one.log_probs(rollout), scores, atol=1e-5, rtol=1e-5)
    scores.sum().backward()
    assert all(weight.grad is not None for weight in compiled.parameters())


# --- Scores and gradients


@pytest.fixture
def rollout(model, prompts, often, tokenizer):
    """Ragged prompts and ragged responses: prompts, responses, mask, sampler."""
    sampler, noise = Sampler(10, eos=often, pad=tokenizer.pad_token_id), generator()
    endless = replace(sampler, eos=None)
    tokens, _ = generate(model, prompts, TRIALS, endless, noise)
    lengths = torch.randint(1, 10, tokens.shape[:2], generator=noise)
    mask = torch.arange(10) < lengths[..., None]
    return prompts, torch.where(mask, tokens, sampler.pad), mask, sampler


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return [weight.grad.clone() for weight in model.parameters()]


def assert_close_gradients(ours, expected):
    for mine, other in zip(ours, expected, strict=True):
        size = other.abs().max().item()
        torch.testing.assert_close(mine, other, atol=2e-5 * size + 1e-9, rtol=1e-3)


def uneven(tokens):
    """Weights of a loss in which no two tokens could change places unnoticed."""
    return torch.randn(tokens.shape, generator=generator(1))


@pytest.mark.slow
def test_scores_and_gradients_are_those_of_each_text_alone(model, rows, rollout):
    prompts, tokens, mask, sampler = rollout
    sampler = replace(sampler, temperature=0.7)
    ours = response_log_probs(model, prompts, tokens, sampler, mask)
    assert (ours[~mask] == 0).all() and (~mask).any()
    each = torch.cat(assert_all_alone(model, rows, tokens, ours, mask, sampler))
    weights = uneven(tokens)
    expected = gradients(model, (weights[mask] * each).sum())
    assert_close_gradients(gradients(model, (weights * ours).sum()), expected)


@pytest.mark.parametrize("settings", [{}, {"top_k": 5}])
def test_chunks_change_neither_scores_nor_gradients(model, rollout, settings):
    prompts, tokens, mask, sampler = rollout
    sampler, weights = replace(sampler, **settings), uneven(tokens)
    whole = response_log_probs(model, prompts, tokens, sampler, mask)
    most = 7 * model.config.vocab_size
    parts = response_log_probs(model, prompts, tokens, sampler, mask, most)
    torch.testing.assert_close(parts, whole, atol=1e-6, rtol=1e-6)
    expected = gradients(model, (weights * whole).sum())
    assert_close_gradients(gradients(model, (weights * parts).sum()), expected)


def test_a_chunk_is_all_that_is_held():
    """Of what the backward pass keeps, nothing is as wide as the vocabulary."""
    vocab, rows = 1000, 64
    head = torch.nn.Linear(8, vocab)
    hidden = torch.randn(rows, 8, requires_grad=True)

    def kept(most_logits):
        sizes = []

        def note(x):
            sizes.append(x.numel())
            return x

        with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
            given = head, hidden, torch.arange(rows), Sampler(1)
            chunked_log_probs(*given, most_logits)
        return max(sizes)

    assert kept(rows * vocab) >= rows * vocab
    assert kept(16 * vocab) <= 8 * vocab  # the weights of the head


def test_a_minibatch_that_cuts_through_groups_scores_the_same(model, rollout):
    """And a first token alone; a token outside the top has a score, too."""
    prompts, tokens, mask, sampler = rollout
    whole = response_log_probs(model, prompts, tokens, sampler, mask)
    order = torch.randperm(len(prompts) * TRIALS)[:13]
    part = response_log_probs(
        model,
        prompts.repeat_interleave(TRIALS, 0)[order],
        tokens.flatten(0, 1)[order][:, None],
        sampler,
        mask.flatten(0, 1)[order][:, None],
    )
    torch.testing.assert_close(part[:, 0], whole.flatten(0, 1)[order], **CLOSE)
    first = response_log_probs(model, prompts, tokens[..., :1], sampler)
    torch.testing.assert_close(first, whole[..., :1], **CLOSE)
    likeliest = replace(sampler, top_k=1)
    scores = response_log_probs(model, prompts, tokens, likeliest, mask)
    assert scores.isfinite().all() and (scores < -0.1).any()


@pytest.mark.parametrize("read_once", [True, False])
def test_a_batch_without_a_token_that_counts(model, rollout, read_once):
    """As `mask_truncated` makes it where every response was cut off."""
    prompts, tokens, mask, sampler = rollout
    given = model, prompts, tokens, sampler, torch.zeros_like(mask)
    scores = response_log_probs(*given, read_once=read_once)
    assert scores.shape == tokens.shape and (scores == 0).all()
    assert all((grad == 0).all() for grad in gradients(model, scores.sum()))


# --- Models that the fast road cannot take

SMALL = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "bos_token_id": None,
    "eos_token_id": 3,
    "pad_token_id": 0,
}
LINEAR = {
    "head_dim": 8,
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
ALTERS = "a scale or a cap changes its logits"
KEEPS = "keep something else"
OTHERS = {
    "cohere": ({"logit_scale": 0.0625}, ALTERS),
    "granite": ({"logits_scaling": 8.0}, ALTERS),
    "gemma2": ({"head_dim": 8, "final_logit_softcapping": 30.0}, ALTERS),
    "lfm2": ({"layer_types": ["conv", "full_attention"]}, KEEPS),
    "qwen3_5_text": (LINEAR, KEEPS),
    "mamba": ({"state_size": 4}, KEEPS),
    "qwen3": ({"head_dim": 8}, None),
    "gemma3_text": ({"head_dim": 8, "sliding_window": 4}, None),
    "bloom": ({}, None),
}
UNEVEN = [[5, 9, 11], [4, 8, 15, 16, 23], [7, 33, 21, 20], [42, 2, 1, 6]]


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_any_model_is_scored_as_its_own_forward_pass_scores(name, capsys):
    changes, why = OTHERS[name]
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **SMALL | changes)
    model = scaled_up(AutoModelForCausalLM.from_config(config), 1.5)
    model.generation_config.repetition_penalty = 1.5  # somebody's taste, not ours
    sampler = Sampler(8, eos=3, pad=0, top_k=40, temperature=1.2)
    policy, lines = CausalPolicy(model, sampler, generator()), capsys.readouterr().out
    assert policy.read_once == (why is None)
    assert lines == "" if why is None else lines.count("\n") == 1 and why in lines

    rollout = policy.sample(pad_rows(UNEVEN, 0), 6)
    scores, mask, tokens = policy.log_probs(rollout), rollout.mask, rollout.responses
    assert (~mask).any() and (tokens[~mask] == 0).all()
    close = {"atol": 1e-5, "rtol": 0}
    torch.testing.assert_close(scores, rollout.sampled_log_probs, **close)
    each = assert_all_alone(model, UNEVEN, tokens, scores, mask, sampler, **close)
    weights = uneven(tokens)
    expected = gradients(model, (weights[mask] * torch.cat(each)).sum())
    assert_close_gradients(gradients(model, (weights * scores).sum()), expected)
    with torch.no_grad():  # as a reference scores, some prompts at a time
        reference = copy.deepcopy(policy).log_probs(rollout)
    torch.testing.assert_close(reference, scores.detach(), **close)

    state = policy.generator.get_state()
    torch.manual_seed(1)  # torch's own random numbers play no part
    later = policy.sample(rollout.prompts, 2).responses
    policy.generator.set_state(state)
    torch.manual_seed(2)
    assert torch.equal(later, policy.sample(rollout.prompts, 2).responses)
    greedy = policy.sample(rollout.prompts, 1, greedy=True).responses[:, 0]
    first = [model(torch.tensor([row])).logits[0, -1].argmax() for row in UNEVEN]
    assert greedy[:, 0].tolist() == torch.stack(first).tolist()


@pytest.mark.parametrize("kind", ["t5", "llava"])
def test_what_is_no_causal_language_model_is_refused_in_words(kind, tmp_path):
    """Where transformers lists all those that are."""
    AutoConfig.for_model(kind).save_pretrained(tmp_path)
    for load in (load_shape, load_model):
        with pytest.raises(ValueError, match=f"of the type '{kind}'.* hold.$"):
            load(tmp_path)


def test_positions_of_a_model_that_also_sees_are_counted():
    config = small(AutoConfig.for_model("gemma3"))
    text_config(config).max_position_embeddings = 16
    model = AutoModelForCausalLM.from_config(config)
    with pytest.raises(ValueError, match="the model knows 16 positions"):
        CausalPolicy(model, Sampler(12, eos=3, pad=0)).sample(pad_rows(UNEVEN, 0), 1)


class Broken(GPT2LMHeadModel):
    """It cannot read on from a cache, and scales its logits."""

    def forward(self, *args, past_key_values=None, use_cache=None, **kwargs):
        if use_cache:
            raise IndexError("list index out of range")
        out = super().forward(*args, use_cache=False, **kwargs)
        out.logits = out.logits / 8
        return out


class Moody(GPT2LMHeadModel):
    """It says other things where it reads on from a cache."""

    def forward(self, *args, use_cache=None, **kwargs):
        out = super().forward(*args, use_cache=use_cache, **kwargs)
        out.logits = out.logits * (2.0 if use_cache else 0.5)
        return out


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Broken, r"Broken: its own generate\(\) fails \(IndexError.* Qwen2.* hold\.$"),
        (Moody, r"Moody: its own generate\(\) samples from"),
    ],
)
def test_a_model_that_cannot_be_sampled_from_is_refused(kind, words):
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2)
    with pytest.raises(ValueError, match=words):
        CausalPolicy(scaled_up(kind(config), 10), Sampler(5))


@pytest.mark.parametrize("read_once", [True, False])
def test_every_token_that_ends_a_turn_ends_it(tokenizer, tmp_path, read_once):
    """Those that only generation_config lists, too: `generate` itself stops there."""
    made = make_tiny_model(tokenizer, hidden_size=16, num_layers=1, num_heads=2)
    ends = tokenizer.eos_token_id, *tokenizer("a?").input_ids
    made.generation_config.eos_token_id = [*ends]
    save_model(made, tokenizer, tmp_path)
    model, again = load_model(tmp_path), load_tokenizer(tmp_path)
    policy = make_policy(GRPOConfig(max_new_tokens=4, device="cpu"), model, again)
    policy.read_once, pad = read_once, again.pad_token_id
    assert policy.sampler.eos == ends
    environment = Environment([Problem("3+4?", "7")], again, GSM8K.rewards)
    for end in ends:
        likely = torch.tensor([end])
        hook = model.get_output_embeddings().register_forward_hook(
            lambda _, __, logits, end=likely: logits.index_fill(-1, end, 99.0)
        )
        rollout = policy.sample(environment.ask([0]), 2)
        greedy = greedy_scores(policy, environment)
        hook.remove()
        assert rollout.responses.tolist() == [[[end, pad, pad, pad]] * 2]
        assert rollout.finished.all() and rollout.mask.sum() == 2
        assert decode_responses(again, rollout) == [["", ""]]
        assert greedy.texts == [[""]]


# --- The policy


@pytest.fixture
def policy(model, often, tokenizer):
    sampler = Sampler(12, eos=often, pad=tokenizer.pad_token_id, temperature=1.1)
    return CausalPolicy(copy.deepcopy(model), sampler, generator())


def test_a_copy_is_a_frozen_reference(policy, prompts):
    rollout, reference = policy.sample(prompts, 4), copy.deepcopy(policy)
    with torch.no_grad():
        before = reference.log_probs(rollout)
        scaled_up(policy.model, 1.1)
        assert torch.equal(reference.log_probs(rollout), before)
        assert not torch.allclose(policy.log_probs(rollout), before)
    copied = copy.deepcopy(reference).sample(prompts, 4).responses
    assert torch.equal(copied, reference.sample(prompts, 4).responses)


def test_a_reference_is_scored_in_parts(policy, prompts, monkeypatch):
    """Some prompts at a time without a gradient; with one, the loop splits."""
    sizes, score = [], lm.response_log_probs

    def counted(model, prompts, *rest, **how):
        sizes.append(len(prompts))
        return score(model, prompts, *rest, **how)

    monkeypatch.setattr(lm, "response_log_probs", counted)
    rollout = policy.sample(prompts, 3)
    policy.prompts_at_once = 2
    reference, whole = copy.deepcopy(policy), policy.log_probs(rollout)
    for seen in (rollout, replace(rollout, mask=None)):
        with torch.no_grad():
            parts = reference.log_probs(seen)
        torch.testing.assert_close(parts[rollout.mask], whole[rollout.mask].detach())
    assert sizes == [5, 2, 2, 1, 2, 2, 1]


def test_dropout_is_off_and_recomputing_with_it_is_refused(prompts):
    config = GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2)
    policy = CausalPolicy(GPT2LMHeadModel(config), Sampler(5), generator())
    rollout = policy.sample(prompts % 50, 4)
    policy.model.train()  # as a trainer might
    scores = policy.log_probs(rollout).detach()
    torch.testing.assert_close(scores, rollout.sampled_log_probs, **CLOSE)
    make_recompute(policy.model)
    with pytest.raises(ValueError, match=r"recomputes in the backward.*has dropout"):
        policy.log_probs(rollout)


@pytest.mark.parametrize("read_once", [True, False])
def test_recomputing_in_the_backward_pass_changes_nothing(policy, prompts, read_once):
    policy.read_once = read_once
    rollout, found = policy.sample(prompts, 4), []
    for _ in range(2):
        scores = policy.log_probs(rollout)
        found.append((scores.detach(), gradients(policy.model, scores.square().sum())))
        make_recompute(policy.model)
    (plain, expected), (recomputed, gradient) = found
    torch.testing.assert_close(recomputed, plain, **CLOSE)
    assert_close_gradients(gradient, expected)


def test_autocast_multiplies_in_bfloat16_and_scores_in_float32(policy, prompts):
    rollout = policy.sample(prompts, 4)
    exact = policy.log_probs(rollout)
    policy.autocast = torch.bfloat16
    rounded = policy.log_probs(rollout)
    assert rounded.dtype == torch.float32 and not torch.equal(rounded, exact)
    assert (rounded - exact).abs().mean() < 0.1
    rounded.sum().backward()
    assert policy.sample(prompts, 2).sampled_log_probs.dtype == torch.float32


def test_weights_are_cast_once_a_rollout_with_the_same_numbers(
    policy, prompts, monkeypatch
):
    policy.autocast, state = torch.bfloat16, policy.generator.get_state()
    own = [*policy.model.parameters()]
    once, seen = policy.sample(prompts, 4), []
    monkeypatch.setattr(lm, "cast_once", lambda *_: nullcontext())
    policy.generator.set_state(state)
    each_time = policy.sample(prompts, 4)
    assert torch.equal(once.responses, each_time.responses)
    assert torch.equal(once.sampled_log_probs, each_time.sampled_log_probs)
    monkeypatch.undo()

    def stop(*_, **__):
        seen.append(policy.model.get_output_embeddings().weight.dtype)
        raise KeyboardInterrupt

    monkeypatch.setattr(lm, "generate", stop)
    with pytest.raises(KeyboardInterrupt):
        policy.sample(prompts, 4)
    assert seen == [torch.bfloat16]
    assert all(a is b for a, b in zip(own, policy.model.parameters(), strict=True))


def test_the_probe_sees_a_scorer_that_is_another_and_stops(
    policy, prompts, monkeypatch
):
    line, state = probe_line(policy, prompts), policy.generator.get_state()
    assert "rounding in float32 explains 0.0001" in line and "more" not in line
    assert sampler_gap(policy, prompts).mean() < 1e-5
    assert torch.equal(state, policy.generator.get_state())
    policy.sampler = replace(policy.sampler, temperature=1e-4)  # which would tell apart
    assert sampler_gap(policy, prompts).mean() < 1e-5
    policy.autocast = torch.bfloat16
    assert 1e-5 < sampler_gap(policy, prompts).mean() < EXPECTED[torch.bfloat16]
    assert "rounding in bfloat16 explains 0.05" in probe_line(policy, prompts)
    scores, states = CausalPolicy.log_probs, Prefix.read
    with monkeypatch.context() as patch:
        patch.setattr(CausalPolicy, "log_probs", lambda *a: scores(*a) + 0.2)
        with pytest.raises(ValueError, match=r"This is more: .* Try --dtype float32"):
            probe_line(policy, prompts)
    monkeypatch.setattr(Prefix, "read", lambda *a: 1.1 * states(*a))  # both err alike
    with pytest.raises(ValueError, match="This is more"):
        probe_line(policy, prompts)


# --- Tokenizer, tiny models, models on disk

TEXTS = [
    "Mia has 12 apples and gets 7 more. How many apples does Mia have now?",
    "<think>12+7=19</think><answer>19</answer>",
]
TOKENIZER = make_tokenizer(TEXTS * 10)


def test_tags_and_digits_are_tokens_of_their_own_and_padding_stands_in_front():
    for tag in TAGS:
        ids = TOKENIZER(f"x{tag}y").input_ids
        assert len(ids) == 3
        assert TOKENIZER.decode(ids, skip_special_tokens=True) == f"x{tag}y"
    assert TOKENIZER.tokenize("12+345") == ["1", "2", "+", "3", "4", "5"]
    assert TOKENIZER.tokenize("has 12 apples")[-3:-1] == ["1", "2"]
    assert len(TOKENIZER.tokenize(TEXTS[0])) < 25
    batch = TOKENIZER(["3+4", "3+4+5"], padding=True).input_ids
    assert batch[0][:2] == [TOKENIZER.pad_token_id] * 2
    assert batch[0][2:] == TOKENIZER("3+4").input_ids
    assert TOKENIZER.pad_token_id != TOKENIZER.eos_token_id


@pytest.mark.parametrize("architecture", MODELS)
def test_what_was_saved_comes_back_the_same(architecture, tmp_path):
    """transformers chooses the tokenizer's class by the model that lies beside it."""
    model = make_tiny_model(TOKENIZER, architecture, hidden_size=16, num_heads=2)
    save_model(model, TOKENIZER, tmp_path)
    again = load_tokenizer(tmp_path)
    assert again.get_vocab() == TOKENIZER.get_vocab()
    assert again.chat_template == TOKENIZER.chat_template
    assert again.padding_side == "left" and again.eos_token == "<|im_end|>"
    for text in (*TEXTS, "17  dogs\n<answer>\t-3.50</answer> café"):
        assert again(text).input_ids == TOKENIZER(text).input_ids
        assert again.decode(again(text).input_ids) == text
    same, prompts = load_model(tmp_path), torch.tensor([TOKENIZER("3+4").input_ids])
    assert torch.equal(same(prompts).logits, model(prompts).logits)


def test_the_seed_makes_the_model_and_leaves_other_random_numbers_alone(tokenizer):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, again, other = (make_tiny_model(tokenizer, seed=s) for s in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    pairs = list(zip(first.parameters(), again.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(first.lm_head.weight, other.lm_head.weight)
    assert isinstance(first.config, Qwen2Config)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda *given: generate(*given, 0, Sampler(5)), "num_responses=0"),
        (
            lambda *given: generate(*given, 2, Sampler(250)),
            "response 250, .*knows 256",
        ),
        (lambda *_: load_model("no where"), "No folder of that name is here"),
    ],
)
def test_bad_calls(call, says, model, prompts):
    with pytest.raises((ValueError, FileNotFoundError), match=says):
        call(model, prompts)


# --- Adapters

ADAPTED = {"lora_rank": 4, "num_epochs": 4, "learning_rate": 3e-2, "save_every": 2}
ADAPTED |= {"held_out_every": 2, "eval_problems": 5}
needs_peft = pytest.mark.skipif(
    find_spec("peft") is None, reason="peft is the optional extra `lora`"
)


@pytest.fixture(params=["qwen2", "gpt2"])  # whose linear layers are of two kinds
def base(request, tokenizer, tmp_path):
    """The folder of a small random model."""
    sizes = {"hidden_size": 16, "num_layers": 2, "num_heads": 2}
    model = make_tiny_model(tokenizer, request.param, **sizes)
    save_model(model, tokenizer, tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture
def begun(start, base, tmp_path):
    """A run with an adapter at its start."""
    given = ADAPTED | {"model": str(base)}
    return lambda **changes: start(tmp_path / "run", **given | changes)


@pytest.mark.slow
def test_a_resumed_run_and_an_evaluation_stop_where_the_probe_fails(
    start, base, tmp_path, monkeypatch
):
    run = start(tmp_path / "run", model=str(base), num_epochs=1)
    assert "rounding in float32 explains" in run.agreement
    scores = CausalPolicy.log_probs
    monkeypatch.setattr(CausalPolicy, "log_probs", lambda *a: scores(*a) + 0.2)
    with pytest.raises(ValueError, match="This is more"):
        Run(tmp_path / "run", show=False)
    with pytest.raises(ValueError, match="This is more"):
        load_trained(run.config, run.newest(), "validation")


@needs_peft
@pytest.mark.slow
def test_a_run_with_an_adapter_resumes_bit_for_bit(begun, tmp_path):
    run = begun(gradient_checkpointing=True)
    assert run.go().epochs("kl")[-1] > 0
    last = tmp_path / "run" / "checkpoints" / "000004"
    names = ("metrics.jsonl", "checkpoints/000004/adapter_model.safetensors")
    whole = [(tmp_path / "run" / name).read_bytes() for name in names]
    assert has_adapter(last) and not (last / "model.safetensors").exists()
    shutil.rmtree(last)
    Run(tmp_path / "run", show=False).go()
    assert [(tmp_path / "run" / name).read_bytes() for name in names] == whole


@needs_peft
def test_only_the_adapter_learns_and_the_reference_is_the_base(begun, base):
    run = begun()
    run.go()
    learned = {n for n, w in run.policy.model.named_parameters() if w.requires_grad}
    assert learned and all("lora_" in name for name in learned)
    rollout = run.policy.sample(run.environment.prompts(0), 2)
    config = replace(run.config, lora_rank=0)
    plain = make_policy(config, load_model(base), run.tokenizer)
    with torch.no_grad():
        before, own = plain.log_probs(rollout), run.policy.log_probs(rollout)
        reference = copy.deepcopy(run.policy)
        assert torch.allclose(reference.log_probs(rollout), before, atol=1e-5)
        assert not torch.allclose(own, before, atol=1e-3)
        assert torch.equal(run.policy.log_probs(rollout), own)  # on again
        again, _ = load_trained(run.config, run.newest(), "validation")
        assert torch.allclose(again.log_probs(rollout), own, atol=1e-5)
    groups = make_optimizer(run.config, run.policy).param_groups
    assert sum(len(group["params"]) for group in groups) == len(learned)
    config = replace(config, model=str(run.newest()))
    for begin in (
        lambda: make_start(config, run.problems),
        lambda: print_estimate(config),
    ):
        with pytest.raises(ValueError, match="merge the two"):
            begin()


@needs_peft
def test_a_model_or_adapter_without_a_tokenizer_is_refused_with_a_cure_that_works(
    begun, base
):
    """Of some, transformers makes a tokenizer that reads nothing; of others, none."""
    newest = begun().newest()
    for folder, made_from in ((newest, f"'{base}'"), (base, "'OWNER/MODEL'")):
        for file in folder.glob("tokenizer*"):
            file.rename(folder / f"_{file.name}")
        with pytest.raises(ValueError, match="has no tokenizer") as refused:
            load_tokenizer(folder)
        cure = str(refused.value).rpartition("beside it: ")[2]
        assert f"from_pretrained({made_from})" in cure
        if folder == newest:
            exec(cure, {"AutoTokenizer": AutoTokenizer})
            assert load_tokenizer(newest).chat_template


@needs_peft
@pytest.mark.slow
def test_an_adapter_is_merged_as_the_error_says_and_as_peft_does(
    begun, base, tmp_path, monkeypatch
):
    import peft

    run = begun()
    run.go()
    with pytest.raises(ValueError, match="merge the two") as refused:
        require_whole_model(run.newest())
    *_, command = str(refused.value).partition("--model merged: ")
    monkeypatch.chdir(tmp_path)
    exec(shlex.split(command)[2], {})  # python -c ...
    words = torch.arange(9)[None]
    with torch.no_grad():
        merged, own = load_model("merged")(words).logits, load_model(run.newest())
        theirs = peft.AutoPeftModelForCausalLM.from_pretrained(run.newest())
        torch.testing.assert_close(merged, own(words).logits)
        torch.testing.assert_close(merged, theirs.merge_and_unload()(words).logits)
        assert not torch.allclose(merged, load_model(base)(words).logits, atol=1e-3)
    config = replace(run.config, model="merged", lora_rank=0)
    assert make_start(config, run.problems)
    with pytest.raises(FileExistsError, match="there already"):
        merge_adapter(run.newest(), "merged")


@needs_peft
def test_an_adapter_notes_where_its_model_is_and_says_so_where_it_is_gone(
    begun, base, tmp_path, monkeypatch
):
    """The run names it as its user did, from the folder that they work in."""
    monkeypatch.chdir(tmp_path)
    newest = begun(model="base").newest()
    monkeypatch.chdir(tmp_path.parent)
    again = load_model(newest)
    assert again.peft_config["default"].base_model_name_or_path == str(base)
    assert load_shape(newest).hidden_size == 16
    base.rename(tmp_path / "other")
    words = r"which is not there any more. Put it back, or .*adapter_config\.json"
    for load in (load_model, load_shape):
        with pytest.raises(FileNotFoundError, match=words):
            load(newest)


def test_without_peft_an_error_names_the_extra(begun, monkeypatch):
    monkeypatch.setattr(install, "lacking", lambda needed: needed)
    with pytest.raises(ImportError, match=r"needs the package peft(.|\n)*pip install"):
        begun()
