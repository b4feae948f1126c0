"""The sort model: plain loops, seeds side by side, sampling frequencies, errors."""

from itertools import product

import pytest
import torch
from torch import Generator

from grpo_course.sort import SortModel, compute_log_probs, generate_responses

PROMPTS = torch.tensor([[1, 0, 2], [3, 2, 4], [1, 2, 2]])


def make_model(init_scale=1.0, seeds=(5,)):
    return SortModel(5, 10, 3, 3, init_scale, seeds)


def without_seed_axis(model, seed=0):
    """One model of those side by side, as a model of its own."""
    alone = SortModel(5, 10, 3, 3)
    alone.load_state_dict({n: w[seed].clone() for n, w in model.state_dict().items()})
    return alone


def generators(*numbers):
    return [Generator().manual_seed(number) for number in numbers]


def logits_by_loops(model, prompt):
    """The forward pass of one prompt on lists: -> [pos][vocab]"""
    embedding = model.embedding.tolist()
    encode, decode = model.encode_weights.tolist(), model.decode_weights.tolist()
    dims = range(len(embedding[0]))
    encoded = [
        sum(
            embedding[token][i] * encode[pos][i][d]
            for pos, token in enumerate(prompt)
            for i in dims
        )
        for d in dims
    ]
    decoded = [[sum(encoded[d] * w[d][o] for d in dims) for o in dims] for w in decode]
    return [
        [sum(x * e for x, e in zip(d, row, strict=True)) for row in embedding]
        for d in decoded
    ]


def chi_square(counts, probs):
    expected = probs * counts.sum()
    return ((counts - expected).square() / expected).sum().item()


def test_forward_equals_plain_loops():
    model = without_seed_axis(make_model())
    expected = [logits_by_loops(model, prompt) for prompt in PROMPTS.tolist()]
    torch.testing.assert_close(
        model(PROMPTS), torch.tensor(expected), rtol=1e-4, atol=1e-4
    )


def test_a_longer_answer_than_prompt_has_its_own_positions():
    model = SortModel(5, 10, 3, 4)
    expected = [logits_by_loops(model, prompt) for prompt in PROMPTS.tolist()]
    assert model(PROMPTS).shape == (3, 4, 5)
    torch.testing.assert_close(
        model(PROMPTS), torch.tensor(expected), rtol=1e-4, atol=1e-4
    )


def test_two_seeds_side_by_side_equal_one_each():
    both = make_model(seeds=(3, 4))
    drawn = generate_responses(PROMPTS, both, 20, generators(13, 14))
    assert both(PROMPTS).shape == (2, 3, 3, 5) and drawn.shape == (2, 3, 20, 3)
    for i, seed in enumerate((3, 4)):
        alone = make_model(seeds=(seed,))
        torch.testing.assert_close(both(PROMPTS)[i], alone(PROMPTS)[0])
        responses = generate_responses(PROMPTS, alone, 20, generators(13 + i))
        assert torch.equal(drawn[i], responses[0])
        torch.testing.assert_close(
            compute_log_probs(PROMPTS, drawn, both)[i],
            compute_log_probs(PROMPTS, responses, alone)[0],
        )
    assert not torch.equal(drawn[0], drawn[1])


def test_a_model_without_seeds_computes_the_same():
    seeded = make_model(seeds=(3, 4))
    alone = without_seed_axis(seeded, 1)
    torch.testing.assert_close(alone(PROMPTS), seeded(PROMPTS)[1])
    responses = generate_responses(PROMPTS, alone, 6, generators(14)[0])
    both = generate_responses(PROMPTS, seeded, 6, generators(13, 14))
    assert torch.equal(responses, both[1])
    torch.testing.assert_close(
        compute_log_probs(PROMPTS, responses, alone),
        compute_log_probs(PROMPTS, both, seeded)[1],
    )


def test_seeds_leave_torchs_own_random_numbers_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    make_model(seeds=(3, 4))
    assert torch.equal(before, torch.get_rng_state())
    first = SortModel(5, 10, 3, 3)
    torch.manual_seed(0)
    assert torch.equal(first.embedding, SortModel(5, 10, 3, 3).embedding)


def test_log_probs_are_the_log_of_the_softmax():
    model = without_seed_axis(make_model())
    responses = generate_responses(PROMPTS, model, 7, generators(0)[0])
    log_probs = compute_log_probs(PROMPTS, responses, model)
    probs = model(PROMPTS).exp() / model(PROMPTS).exp().sum(-1, keepdim=True)
    for batch, trial, pos in product(range(3), range(7), range(3)):
        expected = probs[batch, pos, responses[batch, trial, pos]].log()
        torch.testing.assert_close(log_probs[batch, trial, pos], expected)


def test_log_probs_carry_a_gradient_and_samples_do_not():
    model = make_model()
    responses = generate_responses(PROMPTS, model, 4, generators(0))
    assert not responses.is_floating_point() and not responses.requires_grad
    compute_log_probs(PROMPTS, responses, model).sum().backward()
    assert all(weight.grad.abs().max() > 0 for weight in model.parameters())


def test_sampling_frequencies_are_the_probabilities():
    model = without_seed_axis(make_model(init_scale=0.3))
    probs = model(PROMPTS[:1]).softmax(-1)[0]  # [pos vocab]
    responses = generate_responses(PROMPTS[:1], model, 50_000, generators(1)[0])[0]
    joint = torch.einsum("i,j,k->ijk", *probs).flatten().detach()
    counts = (responses * torch.tensor([25, 5, 1])).sum(-1).bincount(minlength=125)
    # 124 degrees of freedom: mean 124, standard deviation 15.7; five of them is 203.
    assert chi_square(counts, joint) < 203
    assert chi_square(counts, torch.full((125,), 1 / 125)) > 1000
    assert chi_square(counts, joint.roll(1)) > 1000


def test_a_group_is_not_one_response_repeated():
    responses = generate_responses(PROMPTS, make_model(0.1), 50, generators(0))
    assert all(len(group.unique(dim=0)) > 20 for group in responses[0])


def test_a_small_init_scale_makes_the_policy_nearly_uniform():
    for scale, low, high in ((1e-3, 0, 0.01), (1.0, 0.1, 0.8)):
        probs = make_model(scale, seeds=range(4))(PROMPTS).softmax(-1)
        assert low <= (probs - 1 / 5).abs().max() <= high


def test_init_scale_is_a_factor_on_the_logits():
    small, large = make_model(0.25)(PROMPTS), make_model(1.0)(PROMPTS)
    torch.testing.assert_close(small * 4, large)


@pytest.mark.parametrize(
    ("prompts", "error", "says"),
    [
        (
            torch.tensor([[1, 0, 5]]),
            ValueError,
            "prompts holds.* 0 to 5.*larger vocab_size",
        ),
        (torch.tensor([[-1, 0, 2]]), ValueError, "prompts holds.* -1 to 2.*0 to 4"),
        (
            torch.tensor([[1.0, 0, 2]]),
            ValueError,
            "prompts holds.*float32.*whole numbers",
        ),
        (torch.tensor([[1, 0]]), ValueError, "prompts has 2 numbers.*built for 3"),
        (
            torch.tensor([1, 0, 2]),
            ValueError,
            r"prompts has shape \[3\].*prompts\[None\]",
        ),
        ([[1, 0, 2]], TypeError, r"prompts is a list.*torch\.tensor"),
    ],
)
def test_bad_prompts_are_named(prompts, error, says):
    with pytest.raises(error, match=says):
        make_model()(prompts)


@pytest.mark.parametrize(
    ("responses", "says"),
    [
        (torch.full((1, 3, 2, 3), 5), "responses holds.*5 to 5.*0 to 4"),
        (torch.zeros(1, 3, 2, 3), "responses holds.*float32.*whole numbers"),
        (torch.zeros(1, 3, 2, 4).long(), "responses has 4 numbers.*built for 3"),
        (torch.zeros(3, 3).long(), r"responses has shape \[3, 3\].*batch trial pos"),
    ],
)
def test_bad_responses_are_named(responses, says):
    with pytest.raises(ValueError, match=says):
        compute_log_probs(PROMPTS, responses, make_model())


@pytest.mark.parametrize(
    "shape",
    [(2, 2, 4, 3), (2, 5, 4, 3), (1, 3, 4, 3), (3, 3, 4, 3), (3, 4, 3)],
    ids=[
        "batch too small",
        "batch too large",
        "seeds missing",
        "seeds over",
        "no seed axis",
    ],
)
def test_responses_of_other_prompts_or_seeds_are_named(shape):
    responses = torch.zeros(shape, dtype=torch.long)
    with pytest.raises(ValueError, match="responses"):
        compute_log_probs(PROMPTS, responses, make_model(seeds=(3, 4)))


@pytest.mark.parametrize("number", [0, -1])
def test_a_group_needs_a_response(number):
    with pytest.raises(ValueError, match=f"num_responses={number}.*at least 1"):
        generate_responses(PROMPTS, make_model(), number, generators(0))


@pytest.mark.parametrize("given", [None, Generator(), [], generators(1)])
def test_each_seed_needs_its_generator(given):
    says = r"generator=.*2 seeds.*one torch\.Generator for each seed"
    with pytest.raises(ValueError, match=says):
        generate_responses(PROMPTS, make_model(seeds=(3, 4)), 2, given)
