"""How a policy writes: masks, what is sampled from, scores."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import TopKLogitsWarper, TopPLogitsWarper

from grpo_course.loop import Rollout
from grpo_course.sampling import (
    Sampler,
    draw,
    pad_rows,
    pick,
    prompt_mask,
    response_mask,
    shifted_log_probs,
    token_log_probs,
)
from grpo_course.sequences import SequencePolicy, TinyLM

# Masks: the end of a response, whatever fills it up, and the start of a prompt


EOS = 2


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_the_mask_is_that_of_a_plain_loop(row):
    for eos, several in ((EOS, [EOS]), ((EOS,), [EOS]), ((4, EOS), [4, EOS])):
        places = (i for i, token in enumerate(row) if token in several)
        length = next(places, len(row)) + 1
        expected = [pos < length for pos in range(len(row))]
        assert response_mask(torch.tensor([[row]]), eos)[0, 0].tolist() == expected


def test_a_sampler_says_which_responses_finished():
    tokens = torch.tensor([[[2, 1, 1], [2, 2, 2], [2, 2, 1]]])
    assert Sampler(3, eos=1, pad=1).finished(tokens).tolist() == [[True, False, True]]
    assert Sampler(3).finished(tokens) is None


def test_a_sampler_with_several_ends_stops_at_each():
    sampler = Sampler(9, eos=(1, 3), pad=0)
    policy = SequencePolicy(TinyLM(5), sampler, torch.Generator().manual_seed(0))
    rollout = policy.sample(torch.ones(2, 2, dtype=torch.long), 20)
    assert (rollout.responses[~rollout.mask] == 0).all()
    counts = rollout.mask.sum(dim=-1, keepdim=True)
    last = rollout.responses.gather(-1, counts - 1)[..., 0]
    assert {1, 3} <= {*last[rollout.finished].tolist()} <= {1, 3}


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=5), min_size=1))
def test_padding_on_the_left_ends_where_the_response_begins(rows):
    padded = pad_rows(rows, pad=0)
    mask = prompt_mask(padded, pad=0)
    assert mask[:, -1].all()
    assert [padded[i][m].tolist() for i, m in enumerate(mask)] == rows


def test_a_pad_token_inside_a_prompt_counts():
    rows = [[1], [1, 0]]
    assert pad_rows(rows, 0).tolist() == [[0, 1], [1, 0]]
    assert prompt_mask(pad_rows(rows, 0), 0).tolist() == [[False, True], [True, True]]
    assert pad_rows([[1], [1, 2]], 0, "right").tolist() == [[1, 0], [1, 2]]


# The settings that sampling and scoring share: temperature, top_k, top_p


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


LOGITS = 3 * torch.randn(4, 6, 30, generator=generator())


@pytest.mark.parametrize("temperature", [0.5, 1.0])
@pytest.mark.parametrize("top_p", [None, 0.05, 0.6, 1.0])
@pytest.mark.parametrize("top_k", [None, 1, 7, 30, 99])
def test_truncation_is_that_of_transformers(top_k, top_p, temperature):
    scores = LOGITS.flatten(0, 1) / temperature
    if top_k is not None:
        scores = TopKLogitsWarper(top_k)(None, scores)
    if top_p is not None and top_p < 1:
        scores = TopPLogitsWarper(top_p)(None, scores)
    expected = scores.log_softmax(-1).view_as(LOGITS)
    sampler = Sampler(1, temperature=temperature, top_k=top_k, top_p=top_p)
    torch.testing.assert_close(sampler.log_probs(LOGITS), expected)


def test_a_kept_token_is_scored_and_the_others_make_room():
    sampler = Sampler(1, top_k=3)
    worst = LOGITS.argmin(-1)
    without, kept = sampler.log_probs(LOGITS), sampler.log_probs(LOGITS, worst)
    assert (pick(without, worst) == -torch.inf).all()
    assert pick(kept, worst).isfinite().all()
    assert ((kept > -torch.inf).sum(-1) == 4).all()
    torch.testing.assert_close(kept.exp().sum(-1), torch.ones(4, 6))
    best = LOGITS.argmax(-1)
    assert torch.equal(sampler.log_probs(LOGITS, best), without)
    assert torch.equal(sampler.token_log_probs(LOGITS, worst), pick(kept, worst))
    assert sampler.log_probs(LOGITS.bfloat16()).dtype == torch.float32


def test_draws_stay_inside_the_top():
    log_probs = Sampler(1, top_k=2).log_probs(LOGITS[0])
    drawn = torch.stack([draw(log_probs, generator(seed)) for seed in range(200)])
    allowed = LOGITS[0].topk(2).indices
    assert (drawn[..., None] == allowed).any(-1).all()
    assert all(column.unique().numel() == 2 for column in drawn[:, :1].T)
    assert torch.equal(draw(log_probs, greedy=True), LOGITS[0].argmax(-1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws_are_those_of_multinomial_and_use_up_as_much(dtype):
    """Recorded results stay: the same tokens, and the same numbers for what follows."""
    ours, theirs = (torch.Generator().manual_seed(5) for _ in range(2))
    logits = torch.randn(64, 50, generator=torch.Generator().manual_seed(0)) * 3
    log_probs = logits.to(dtype).log_softmax(-1)
    log_probs[:, 7] = -torch.inf
    for _ in range(20):
        expected = torch.multinomial(log_probs.exp(), 1, generator=theirs).squeeze(-1)
        assert torch.equal(draw(log_probs, ours), expected)
    assert torch.equal(ours.get_state(), theirs.get_state())


@pytest.mark.parametrize("settings", [{"top_k": 2}, {"top_p": 0.5}])
def test_a_truncated_sequence_policy_scores_what_it_sampled(settings):
    policy = SequencePolicy(TinyLM(8), Sampler(5, **settings), generator())
    rollout = policy.sample(torch.tensor([[1, 2], [3, 4]]), 16)
    scores = policy.log_probs(rollout).detach()
    torch.testing.assert_close(scores, rollout.sampled_log_probs, atol=1e-5, rtol=0)
    plain = SequencePolicy(policy.model, Sampler(5)).log_probs(rollout)
    assert (scores >= plain - 1e-5).all() and (scores > plain + 0.1).any()


def test_a_score_is_finite_after_the_weights_moved():
    policy = SequencePolicy(TinyLM(8), Sampler(5, top_k=1), generator())
    rollout = policy.sample(torch.tensor([[1, 2]]), 4)
    assert (rollout.sampled_log_probs == 0).all()
    other = SequencePolicy(TinyLM(8, seeds=(3,)), policy.sampler)
    scores = other.log_probs(Rollout(rollout.prompts, rollout.responses[None]))
    assert scores.isfinite().all() and (scores < 0).any()


# Scores of tokens under given logits: whose they are, and what does not line up


def test_each_token_is_scored_by_the_logits_beside_it():
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    tokens = torch.tensor([[0, 4, 2], [1, 1, 3]])
    scores = token_log_probs(logits, tokens, temperature=0.5)
    for row in range(2):
        for pos in range(3):
            exps = (logits[row, pos] / 0.5).exp()
            expected = (exps[tokens[row, pos]] / exps.sum()).log()
            torch.testing.assert_close(scores[row, pos], expected)


# What a person would get wrong is refused: the argument, what was given, the cure


def settings(**knobs):
    return lambda: Sampler(**{"max_new_tokens": 3} | knobs)


def beside(*shape):
    """Tokens of another shape than the logits, [1 4 5]."""
    tokens = torch.zeros(shape, dtype=torch.long)
    return lambda: token_log_probs(torch.zeros(1, 4, 5), tokens)


def shifted(*shape):
    tokens = torch.zeros(shape, dtype=torch.long)
    return lambda: shifted_log_probs(torch.zeros(1, 4, 5), tokens)


BESIDE = r"^tokens has shape .* logits.* \[1, 4\]"
REFUSED = {
    "no new token": (settings(max_new_tokens=0), "max_new.*greater than or equal to 1"),
    "a top of none": (settings(top_k=0), "top_k.*greater than or equal to 1"),
    "no mass": (settings(top_p=0), "top_p.*greater than 0"),
    "more than all": (settings(top_p=1.5), "top_p.*less than or equal to 1"),
    "cold": (settings(temperature=0), "temperature.*greater than 0"),
    "a NaN": (settings(temperature=math.nan), "temperature.*a finite number"),
    "an end alone": (settings(eos=2), "eos=2 ends responses early.*set pad"),
    "a token less": (beside(1, 3), BESIDE),
    "another text": (shifted(1, 3), r"tokens has shape \[1, 2\].*\[1, 3\]"),
    "a third side": (lambda: pad_rows([[1]], 0, "up"), "side='up' is not known"),
    "no rows": (lambda: pad_rows([], 0), "rows has an empty row, or none"),
    "an empty row": (lambda: pad_rows([[1], []], 0), "rows has an empty row, or none"),
    "one row": (lambda: pad_rows([1, 2], 0), r"rows=\[1, 2\].*list of lists.*\[\[1, 2"),
    "tokens in a list": (lambda: response_mask([[1]], 2), "tokens is a list.*tensor"),
    "chances of NaN": (
        lambda: draw(torch.full((1, 3), torch.nan)),
        r"probabilities\[0, 0\] is nan",
    ),
    "a seed": (lambda: draw(torch.zeros(3, 4), 3), "generator=3.*torch.Generator"),
}


@pytest.mark.parametrize(("call", "says"), REFUSED.values(), ids=REFUSED)
def test_a_bad_call_is_refused(call, says):
    with pytest.raises((TypeError, ValueError), match=f"(?s){says}"):
        call()
