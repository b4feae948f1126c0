"""World 1: rewards, model, exact truth and runs, against plain loops and by hand."""

import copy
from fractions import Fraction
from itertools import product
from math import exp, prod

import numpy as np
import pytest
import torch
from torch import Generator

from grpo_course.loop import TrainConfig, train
from grpo_course.sort import (
    BATCH_REWARDS,
    SORT_PROMPTS,
    SortModel,
    all_responses,
    all_rewards,
    compute_log_probs,
    compute_reward,
    exact_entropy,
    exact_expected_reward,
    exact_pair_gradients,
    exact_policy_gradient,
    exact_sorted_probability,
    generate_responses,
    make_policy,
    push_of,
    reward_one_by_one,
    rollout_reward,
    run_policy_gradient,
    sampled_group_gradients,
    sort_distance_reward,
    sort_exact_reward,
    sort_inclusion_ordering_reward,
    sort_multiset_reward,
)

PROMPTS = torch.tensor([[1, 0, 2], [3, 2, 4], [2, 2, 0]])
REWARDS = all_rewards(PROMPTS[:1], 5, sort_inclusion_ordering_reward)[0].double()
TRIPLES = list(product(range(5), repeat=3))


def generators(*numbers):
    return [Generator().manual_seed(number) for number in numbers]


# Rewards


each_reward = pytest.mark.parametrize(
    "reward_fn", BATCH_REWARDS, ids=lambda f: f.__name__
)


def all_rows(vocab_size, length):
    """Every row of that length over the vocabulary, as lists."""
    return [list(row) for row in product(range(vocab_size), repeat=length)]


PROMPT_ROWS = all_rows(5, 3)


def all_answers(prompts, vocab_size):
    """The same full list of responses for each prompt. -> int [batch all pos]"""
    responses = torch.tensor(all_rows(vocab_size, prompts.shape[-1]))
    return responses.expand(len(prompts), *responses.shape)


def hackable(reward_fn):
    """The prompts for which another response earns as much as the sorted prompt."""
    best = all_rewards(torch.tensor(PROMPT_ROWS), 5, reward_fn)
    best = best == best.amax(dim=-1, keepdim=True)
    return [
        prompt
        for prompt, row in zip(PROMPT_ROWS, best, strict=True)
        if [PROMPT_ROWS[i] for i in row.nonzero().flatten()] != [sorted(prompt)]
    ]


WORKED = {  # response to the prompt 3 1 0 2: distance, inclusion, multiset, exact
    (0, 1, 2, 3): (4, 7, 7, 1),
    (7, 2, 2, 5): (1, 3, 3, 0),
    (0, 3, 1, 2): (1, 6, 6, 0),
    (1, 1, 1, 1): (1, 4, 4, 0),
}
NAMED = (
    sort_distance_reward,
    sort_inclusion_ordering_reward,
    sort_multiset_reward,
    sort_exact_reward,
)


@pytest.mark.parametrize(("response", "earned"), WORKED.items())
def test_worked_examples(response, earned):
    """On lists, and on rows of tensors, which public code passes too."""
    prompt, row = [3, 1, 0, 2], list(response)
    assert tuple(reward_fn(prompt, row) for reward_fn in NAMED) == earned
    rows = torch.tensor(prompt), torch.tensor(row)
    assert tuple(reward_fn(*rows) for reward_fn in NAMED) == earned


@each_reward
@pytest.mark.parametrize(
    ("prompts", "vocab"),
    [
        (PROMPT_ROWS, 5),
        ([[3, 1, 0, 2], [2, 2, 0, 1], [1, 1, 1, 1], [0, 3, 3, 0]], 4),
    ],
)
def test_tensor_path_equals_list_path(reward_fn, prompts, vocab):
    rows, prompt_rows = all_rows(vocab, len(prompts[0])), torch.tensor(prompts)
    responses = all_answers(prompt_rows, vocab)
    by_tensor = compute_reward(prompt_rows, responses, reward_fn)
    assert by_tensor.tolist() == [[reward_fn(p, r) for r in rows] for p in prompts]
    assert by_tensor.dtype == torch.float32
    assert len(by_tensor.unique()) > 1  # one that is always the same passes too easily
    twin = BATCH_REWARDS[reward_fn]  # may be passed itself
    assert torch.equal(compute_reward(prompt_rows, responses, twin), by_tensor)
    # Leading axes pass through both paths.
    responses = torch.stack([responses, responses.flip(1)])
    by_tensor = compute_reward(prompt_rows, responses, reward_fn)
    one_by_one = reward_one_by_one(prompt_rows, responses, reward_fn)
    assert by_tensor.shape == responses.shape[:-1]
    assert torch.equal(by_tensor, one_by_one)


@pytest.mark.parametrize("number", [int, torch.tensor, np.float64, Fraction])
def test_a_learners_own_reward_goes_through_the_loop(number):
    def last_minus_first(prompt, response):
        assert type(prompt) is list and type(response[0]) is int
        return number(response[-1] - response[0] + 10 * prompt[0])

    prompts = torch.tensor([[1, 0, 2], [3, 2, 4]])
    responses = torch.arange(2 * 2 * 4 * 3).reshape(2, 2, 4, 3) ** 2 % 5
    rewards = compute_reward(prompts, responses, last_minus_first)
    offsets = torch.tensor([10.0, 30.0])[:, None]
    assert torch.equal(rewards, responses[..., -1] - responses[..., 0] + offsets)
    assert rewards.dtype == torch.float32


def test_exactly_the_prompts_with_a_repeat_can_be_hacked_and_with_one_reward_only():
    with_repeat = [p for p in PROMPT_ROWS if len(set(p)) < 3]
    assert len(with_repeat) == 65
    for reward_fn in NAMED:
        hacked = reward_fn is sort_inclusion_ordering_reward
        assert hackable(reward_fn) == (with_repeat if hacked else [])


# The model


def make_model(init_scale=1.0, seeds=(5,)):
    return SortModel(5, 10, 3, 3, init_scale, seeds)


def without_seed_axis(model, seed=0):
    """One model of those side by side, as a model of its own."""
    alone = SortModel(5, 10, 3, 3)
    alone.load_state_dict({n: w[seed].clone() for n, w in model.state_dict().items()})
    return alone


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


@pytest.mark.parametrize("length", [3, 4])
def test_forward_equals_plain_loops(length):
    model = SortModel(5, 10, 3, length)
    expected = [logits_by_loops(model, prompt) for prompt in PROMPTS.tolist()]
    torch.testing.assert_close(
        model(PROMPTS), torch.tensor(expected), rtol=1e-4, atol=1e-4
    )


def test_two_seeds_side_by_side_equal_one_each():
    """With a seed axis, and as a model of its own without one."""
    both = make_model(seeds=(3, 4))
    drawn = generate_responses(PROMPTS, both, 20, generators(13, 14))
    scores = compute_log_probs(PROMPTS, drawn, both)
    assert both(PROMPTS).shape == (2, 3, 3, 5) and drawn.shape == (2, 3, 20, 3)
    for i, seed in enumerate((3, 4)):
        one, bare = make_model(seeds=(seed,)), without_seed_axis(both, i)
        torch.testing.assert_close(both(PROMPTS)[i], one(PROMPTS)[0])
        torch.testing.assert_close(both(PROMPTS)[i], bare(PROMPTS))
        responses = generate_responses(PROMPTS, one, 20, generators(13 + i))
        assert torch.equal(drawn[i], responses[0])
        responses = generate_responses(PROMPTS, bare, 20, generators(13 + i)[0])
        assert torch.equal(drawn[i], responses)
        alone = compute_log_probs(PROMPTS, responses, bare)
        torch.testing.assert_close(scores[i], alone)
    assert not torch.equal(drawn[0], drawn[1])


def test_seeds_leave_torchs_own_random_numbers_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    make_model(seeds=(3, 4))
    assert torch.equal(before, torch.get_rng_state())
    policy = make_policy(SORT_PROMPTS, (3, 4), init_scale=0.0)
    assert [each.initial_seed() for each in policy.generator] == [1003, 1004]
    assert not policy.model(SORT_PROMPTS).any()
    first = SortModel(5, 10, 3, 3)
    torch.manual_seed(0)
    assert torch.equal(first.embedding, SortModel(5, 10, 3, 3).embedding)


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


# The truth


def make_logits():
    generator = Generator().manual_seed(3)
    return torch.randn(3, 5, generator=generator, dtype=torch.float64)


def plain_probs(logits):
    """Probability of each response, in counting order. [pos][vocab] -> [all]"""
    weights = [[exp(x) for x in row] for row in logits]
    totals = prod(map(sum, weights))
    return [prod(map(list.__getitem__, weights, each)) / totals for each in TRIPLES]


def standard_errors_off(estimates, truth):
    error = estimates.std(0) / len(estimates) ** 0.5
    return ((estimates.mean(0) - truth).abs() / error).max().item()


def test_all_responses_in_counting_order():
    assert all_responses(5, 3).tolist() == [list(triple) for triple in TRIPLES]
    assert all_responses(4, 1).tolist() == [[0], [1], [2], [3]]


def test_expected_reward_equals_a_plain_loop():
    model = make_model(0.5, seeds=(5, 6))
    right = exact_sorted_probability(model, PROMPTS)
    exact = exact_expected_reward(model, PROMPTS, sort_inclusion_ordering_reward)
    for seed, batch in product(range(2), range(3)):
        probs = plain_probs(model(PROMPTS)[seed, batch].tolist())
        prompt = PROMPTS[batch].tolist()
        expected = sum(
            p * sort_inclusion_ordering_reward(prompt, list(t))
            for p, t in zip(probs, TRIPLES, strict=True)
        )
        assert exact[seed, batch].item() == pytest.approx(expected, rel=1e-5)
        chance = probs[TRIPLES.index(tuple(sorted(prompt)))]
        assert right[seed, batch].item() == pytest.approx(chance, rel=1e-5)


def test_entropy_is_that_of_torchs_categorical():
    model = make_model(0.5, seeds=(5, 6))
    entropy = torch.distributions.Categorical(logits=model(PROMPTS)).entropy()
    torch.testing.assert_close(exact_entropy(model, PROMPTS), entropy.mean(-1))


def test_policy_gradient_is_the_gradient_of_the_expected_reward():
    logits = make_logits().requires_grad_()
    joint = torch.einsum("i,j,k->ijk", *logits.softmax(-1)).flatten()
    (gradient,) = torch.autograd.grad((joint * REWARDS).sum(), logits)
    exact = exact_policy_gradient(logits.detach(), REWARDS)
    assert gradient.abs().max() > 0.01
    torch.testing.assert_close(exact, gradient, rtol=0, atol=1e-10)
    probs = logits.detach().softmax(-1)
    pushes = push_of(all_responses(5, 3), REWARDS[:, None, None], probs)
    mean = (joint.detach()[:, None, None] * pushes).sum(0)
    torch.testing.assert_close(mean, gradient, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("mode", "factor"),
    [("rewards", 1), ("leave_one_out", 1), ("centered_rewards", 0.5)],
)
def test_mean_over_all_pairs_is_the_true_gradient_times_a_factor(mode, factor):
    logits = make_logits()
    probs, gradients = exact_pair_gradients(logits, REWARDS, mode)
    assert probs.shape == (125**2,) and gradients.shape == (125**2, 3, 5)
    assert probs.sum().item() == pytest.approx(1, abs=1e-12)
    mean = torch.einsum("p,pij->ij", probs, gradients)
    truth = exact_policy_gradient(logits, REWARDS)
    torch.testing.assert_close(mean, factor * truth, rtol=0, atol=1e-10)


def test_sampled_groups_agree_with_all_pairs_and_centering_rescales_by_their_size():
    logits = make_logits()
    truth = exact_policy_gradient(logits, REWARDS)

    def sampled(mode, size):
        numbers = Generator().manual_seed(0)
        return sampled_group_gradients(logits, REWARDS, mode, size, 20_000, numbers)

    for mode in ("centered_rewards", "normalized_rewards", "max_rewards"):
        probs, gradients = exact_pair_gradients(logits, REWARDS, mode)
        mean, found = torch.einsum("p,pij->ij", probs, gradients), sampled(mode, 2)
        assert found.shape == (20_000, 3, 5)
        assert standard_errors_off(found, mean) < 5
        variance = (probs[:, None, None] * (gradients - mean).square()).sum()
        assert found.var(0).sum().item() == pytest.approx(variance.item(), rel=0.05)
    found = sampled("centered_rewards", 4)  # by one minus one over the size
    assert standard_errors_off(found, truth * 3 / 4) < 5
    assert standard_errors_off(found, truth) > 5  # the test tells the factor from one


# Runs


# That the loop is the one written out, test_loop and test_by_hand look at.

CENTERED = {"deltas_mode": "centered_rewards"}
SIZES = {"num_epochs": 5, "num_steps_per_epoch": 4, "num_responses": 12}


def test_run_policy_gradient_is_a_training_with_exact_measures():
    knobs = {"loss_mode": "clipped", "epsilon": 0.05, "reward_fn": sort_distance_reward}
    knobs |= {"init_scale": 0.3, "learning_rate": 1e-2}
    history = run_policy_gradient(**SIZES | CENTERED | knobs, seeds=(3, 4))
    policy = make_policy(SORT_PROMPTS, (3, 4), init_scale=0.3)
    start = copy.deepcopy(policy.model)
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=1e-2)
    config = TrainConfig(**SIZES | CENTERED, epsilon=0.05)
    reward = rollout_reward(sort_distance_reward)
    same = train(policy, SORT_PROMPTS, reward, optimizer, config)
    assert torch.equal(history.curve("loss"), same.curve("loss"))
    paid = exact_expected_reward(start, SORT_PROMPTS, sort_distance_reward)
    first = history.curve("expected_reward")[0]
    torch.testing.assert_close(first, paid.mean(-1).detach())
    for measure in ("expected_reward", "sorted_probability", "entropy"):
        assert history.curve(measure).shape == (6, 2)  # and one at the end


def test_prompts_held_out_are_measured_and_not_trained_on():
    sizes = {"num_responses": 12, "seeds": (3, 4), "learning_rate": 1e-2}
    others = torch.tensor([[4, 4, 0], [2, 1, 3]])
    run = run_policy_gradient(3, 2, held_out=others, **sizes)
    assert torch.equal(
        run.curve("loss"), run_policy_gradient(3, 2, **sizes).curve("loss")
    )
    start = exact_sorted_probability(make_policy(SORT_PROMPTS, (3, 4)).model, others)
    curve = run.curve("held_out_probability")
    torch.testing.assert_close(curve[0], start.mean(-1).detach())
    assert curve.shape == (4, 2) and not torch.equal(curve[0], curve[-1])
    same = run_policy_gradient(3, 2, held_out=SORT_PROMPTS, **sizes)
    for name in ("held_out_probability", "sorted_probability"):
        assert torch.equal(same.curve(name), run.curve("sorted_probability"))
    assert torch.equal(same.curve("held_out_answer"), run.curve("answer"))
    assert run.final("held_out_answer").shape == (2, 2, 3)


# What a person would get wrong is refused: the argument, what was given, the cure.


def quick(**knobs):
    return run_policy_gradient(1, 1, **knobs)


def asked(prompts):
    return make_model()(prompts)


def scored(*shape, value=0):
    responses = torch.full(shape, value)
    return compute_log_probs(PROMPTS, responses, make_model(seeds=(3, 4)))


def sampled(generator):
    return generate_responses(PROMPTS, make_model(seeds=(3, 4)), 2, generator)


def rewarded(prompts, responses, reward_fn=sort_distance_reward):
    given = (torch.zeros(s, dtype=torch.long) for s in (prompts, responses))
    return compute_reward(*given, reward_fn)


BAD_CALLS = [
    (lambda: sort_distance_reward([1, 0], [0]), "1 numbers.* has 2"),
    (lambda: rewarded((3, 3), (2, 4, 3)), "3, 3.*batch and pos"),
    (lambda: rewarded((3,), (2, 4, 3)), r"prompts\[None\]"),
    (lambda: rewarded((2, 3), (2, 3)), r"responses\[None\]"),
    (lambda: compute_reward([[1]], [[[1]]], sort_exact_reward), "is a list"),
    (lambda: quick(reward_fn=lambda p, r: None), "NoneType.*`return` missing"),
    (lambda: quick(reward_fn=lambda p, r: torch.ones(1)), "is one number"),
    (lambda: SortModel(5, 10, 3, 3, seeds=3), r"seeds=3.*seeds=\(0,\)"),
    (lambda: quick(seeds=()), r"seeds=\(\).*one at least"),
    (lambda: asked(torch.ones(1, 3)), "prompts holds.*whole numbers"),
    (lambda: asked(torch.tensor([[1, 0]])), "2 numbers.*built for 3"),
    (lambda: asked(torch.tensor([1, 0, 2])), "prompts has shape"),
    (lambda: scored(2, 3, 4, 3, value=5), "responses holds.*to 5"),
    (lambda: scored(3, 4, 3), "a seed axis first"),
    (lambda: sampled(Generator()), "2 seeds.*one torch.Generator for"),
    (lambda: sampled(None), "generator=None.*2 seeds"),
    (lambda: all_responses(10, 7), "10,000,000 responses"),
    (lambda: all_rewards(PROMPTS, 2, len), "larger vocab_size"),
    (lambda: quick(held_out=PROMPTS[0]), "prompts has shape .3"),
    (lambda: quick(prompts=[[1, 0, 2]]), "prompts is a list"),
]


@pytest.mark.parametrize(("call", "says"), BAD_CALLS)
def test_a_bad_call_is_refused(call, says):
    with pytest.raises((TypeError, ValueError), match=f"(?s){says}"):
        call()
