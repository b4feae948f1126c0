"""Ground truth: sums to one, agrees with plain loops, autograd and sampling."""

from itertools import product
from math import exp, prod

import pytest
import torch
from torch import Generator

from grpo_course.exact import (
    all_log_probs,
    all_responses,
    all_rewards,
    best_paid_mistakes,
    exact_entropy,
    exact_expected_reward,
    exact_gradient_variance,
    exact_pair_gradients,
    exact_policy_gradient,
    exact_sorted_probability,
    exact_values,
    response_probs,
    response_scores,
    sampled_group_gradients,
)
from grpo_course.sort import (
    SortModel,
    compute_reward,
    generate_responses,
    sort_distance_reward,
    sort_inclusion_ordering_reward,
)

PROMPTS = torch.tensor([[1, 0, 2], [3, 2, 4], [2, 2, 0]])
REWARDS = all_rewards(PROMPTS[:1], 5, sort_inclusion_ordering_reward)[0].double()
TRIPLES = list(product(range(5), repeat=3))


def make_model(seeds=(5, 6), init_scale=0.5):
    return SortModel(5, 10, 3, 3, init_scale, seeds)


def make_logits(scale=1.0):
    generator = Generator().manual_seed(3)
    return torch.randn(3, 5, generator=generator, dtype=torch.float64) * scale


def plain_softmax(logits):
    weights = [exp(x) for x in logits]
    return [w / sum(weights) for w in weights]


def plain_probs(logits):
    """Probability of each response, in counting order. [pos][vocab] -> [all]"""
    rows = [plain_softmax(row) for row in logits]
    return [
        prod(row[x] for row, x in zip(rows, triple, strict=True)) for triple in TRIPLES
    ]


def assert_within_standard_errors(estimates, truth, limit=5):
    """The mean of [group pos vocab] lies within that many standard errors."""
    assert standard_errors_off(estimates, truth) < limit


def standard_errors_off(estimates, truth):
    error = estimates.std(0) / len(estimates) ** 0.5
    return ((estimates.mean(0) - truth).abs() / error).max().item()


def test_all_responses_in_counting_order():
    assert all_responses(5, 3).tolist() == [list(triple) for triple in TRIPLES]
    assert all_responses(4, 1).tolist() == [[0], [1], [2], [3]]
    with pytest.raises(ValueError, match=r"vocab_size=10 and length=7 make 10,000,000"):
        all_responses(10, 7)


def test_all_rewards_are_the_rewards_of_all_responses():
    rewards = all_rewards(PROMPTS, 5, sort_distance_reward)
    expected = [
        [sort_distance_reward(p, list(t)) for t in TRIPLES] for p in PROMPTS.tolist()
    ]
    assert rewards.tolist() == expected


def test_the_best_paid_mistakes_are_those_of_a_plain_search():
    reward_fn = sort_inclusion_ordering_reward
    mistakes, earned = best_paid_mistakes(PROMPTS, 5, reward_fn)
    for prompt, mistake, pay in zip(PROMPTS.tolist(), mistakes, earned, strict=True):
        wrong = [list(row) for row in TRIPLES if list(row) != sorted(prompt)]
        best = max(wrong, key=lambda row: reward_fn(prompt, row))
        assert (mistake.tolist(), pay.item()) == (best, reward_fn(prompt, best))
    assert mistakes[2].tolist() == [0, 0, 2]  # the hack of the repeated 2


@pytest.mark.parametrize("seeds", [None, (5, 6)])
def test_probabilities_of_all_responses_sum_to_one(seeds):
    probs = all_log_probs(make_model(seeds), PROMPTS).exp()
    assert probs.shape == ((3, 125) if seeds is None else (2, 3, 125))
    torch.testing.assert_close(probs.sum(-1), torch.ones(probs.shape[:-1]))
    torch.testing.assert_close(response_probs(make_logits()).sum().item(), 1.0)


def test_expected_reward_equals_a_plain_loop():
    model = make_model()
    exact = exact_expected_reward(model, PROMPTS, sort_inclusion_ordering_reward)
    for seed, batch in product(range(2), range(3)):
        probs = plain_probs(model(PROMPTS)[seed, batch].tolist())
        prompt = PROMPTS[batch].tolist()
        expected = sum(
            p * sort_inclusion_ordering_reward(prompt, list(t))
            for p, t in zip(probs, TRIPLES, strict=True)
        )
        assert exact[seed, batch].item() == pytest.approx(expected, rel=1e-5)


def test_values_begin_with_the_expected_reward_and_end_with_the_reward():
    model, response = make_model(), torch.tensor([0, 4, 2])
    values = exact_values(model, PROMPTS[0], response, sort_distance_reward)
    first = exact_expected_reward(model, PROMPTS, sort_distance_reward)[:, 0]
    torch.testing.assert_close(values[:, 0], first)
    paid = compute_reward(PROMPTS[:1], response[None, None], sort_distance_reward)
    torch.testing.assert_close(values[:, -1], paid.flatten().expand(2))
    probs = model(PROMPTS[:1])[:, 0, 1].softmax(-1)  # of the second token
    second = [
        exact_values(model, PROMPTS[0], torch.tensor([0, k, 2]), sort_distance_reward)
        for k in range(5)
    ]
    after = torch.stack([each[:, 2] for each in second], dim=-1)
    torch.testing.assert_close((probs * after).sum(-1), values[:, 1])


def test_expected_reward_equals_the_mean_of_many_samples():
    model, generators = make_model(), [Generator().manual_seed(i) for i in (1, 2)]
    responses = generate_responses(PROMPTS, model, 20_000, generators)
    rewards = compute_reward(PROMPTS, responses, sort_distance_reward)
    exact = exact_expected_reward(model, PROMPTS, sort_distance_reward)
    error = rewards.std(-1) / 20_000**0.5
    assert ((rewards.mean(-1) - exact).abs() < 5 * error).all()
    assert error.max() < 0.02  # else five of them would let anything pass


def test_probability_of_the_sorted_answer_is_the_one_in_the_list():
    model = make_model()
    exact = exact_sorted_probability(model, PROMPTS)
    listed = all_log_probs(model, PROMPTS).exp()
    for batch, prompt in enumerate(PROMPTS.tolist()):
        place = TRIPLES.index(tuple(sorted(prompt)))
        torch.testing.assert_close(exact[:, batch], listed[:, batch, place])


def test_entropy_is_that_of_torchs_categorical():
    model = make_model()
    entropy = torch.distributions.Categorical(logits=model(PROMPTS)).entropy()
    torch.testing.assert_close(exact_entropy(model, PROMPTS), entropy.mean(-1))


@pytest.mark.parametrize("measure", [exact_sorted_probability, exact_entropy])
def test_measures_of_seeds_side_by_side_are_those_of_each(measure):
    both = measure(make_model((5, 6)), PROMPTS)
    for i, seed in enumerate((5, 6)):
        torch.testing.assert_close(both[i], measure(make_model((seed,)), PROMPTS)[0])


def test_scores_are_the_gradients_of_the_log_probabilities():
    logits = make_logits().requires_grad_()
    scores = response_scores(logits.detach())
    for i in (0, 7, 62, 124):
        log_prob = response_probs(logits)[i].log()
        (gradient,) = torch.autograd.grad(log_prob, logits)
        torch.testing.assert_close(scores[i], gradient, rtol=0, atol=1e-12)


def test_policy_gradient_is_the_gradient_of_the_expected_reward():
    logits = make_logits().requires_grad_()
    joint = torch.einsum("i,j,k->ijk", *logits.softmax(-1)).flatten()
    (gradient,) = torch.autograd.grad((joint * REWARDS).sum(), logits)
    exact = exact_policy_gradient(logits.detach(), REWARDS)
    assert gradient.abs().max() > 0.01
    torch.testing.assert_close(exact, gradient, rtol=0, atol=1e-10)


def plain_gradient_variance(logits, rewards, baseline):
    """Total variance of (R - baseline) * score, logit by logit."""
    probs, rows = plain_probs(logits), [plain_softmax(row) for row in logits]
    total = 0.0
    for pos, token in product(range(3), range(5)):
        values = [
            (r - baseline) * ((triple[pos] == token) - rows[pos][token])
            for r, triple in zip(rewards, TRIPLES, strict=True)
        ]
        first = sum(p * v for p, v in zip(probs, values, strict=True))
        total += sum(p * (v - first) ** 2 for p, v in zip(probs, values, strict=True))
    return total


@pytest.mark.parametrize("baseline", [0.0, 2.5, -3.0, 100.0])
@pytest.mark.parametrize("scale", [0.0, 1.0])  # 0 is the uniform policy
def test_gradient_variance_equals_plain_enumeration(baseline, scale):
    logits = make_logits(scale)
    exact = exact_gradient_variance(logits, REWARDS, baseline).item()
    expected = plain_gradient_variance(logits.tolist(), REWARDS.tolist(), baseline)
    assert exact == pytest.approx(expected, rel=1e-9)


def test_the_best_baseline_weighs_rewards_by_their_squared_scores():
    logits = make_logits()
    lengths = response_probs(logits) * response_scores(logits).square().sum((1, 2))
    best = ((lengths * REWARDS).sum() / lengths.sum()).item()
    lowest = exact_gradient_variance(logits, REWARDS, best).item()
    for step in (-2.0, -0.1, 0.1, 2.0):  # a parabola with its bottom at `best`
        variance = exact_gradient_variance(logits, REWARDS, best + step).item()
        assert variance == pytest.approx(lowest + step**2 * lengths.sum().item())
    assert 5 * lowest < exact_gradient_variance(logits, REWARDS, 0.0)


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


@pytest.mark.parametrize(
    "mode", ["centered_rewards", "normalized_rewards", "max_rewards"]
)
def test_sampled_groups_of_two_agree_with_all_pairs(mode):
    logits = make_logits()
    probs, gradients = exact_pair_gradients(logits, REWARDS, mode)
    mean = torch.einsum("p,pij->ij", probs, gradients)
    generator = Generator().manual_seed(0)
    sampled = sampled_group_gradients(logits, REWARDS, mode, 2, 20_000, generator)
    assert sampled.shape == (20_000, 3, 5)
    assert_within_standard_errors(sampled, mean)
    variance = (probs[:, None, None] * (gradients - mean).square()).sum()
    assert sampled.var(0).sum().item() == pytest.approx(variance.item(), rel=0.05)


@pytest.mark.parametrize("size", [2, 4, 8])
def test_centering_rescales_the_gradient_by_one_minus_one_over_g(size):
    logits, generator = make_logits(), Generator().manual_seed(1)
    truth = exact_policy_gradient(logits, REWARDS)
    sampled = sampled_group_gradients(
        logits, REWARDS, "centered_rewards", size, 20_000, generator
    )
    assert_within_standard_errors(sampled, truth * (size - 1) / size)
    assert standard_errors_off(sampled, truth) > 5  # the test tells the factor from one


@pytest.mark.parametrize("mode", ["rewards", "centered_rewards"])
def test_rewards_of_the_reward_functions_work_with_double_logits(mode):
    rewards, logits = REWARDS.float(), make_logits()  # compute_reward gives float32
    _, gradients = exact_pair_gradients(logits, rewards, mode)
    assert gradients.dtype == torch.float64
    assert sampled_group_gradients(logits, rewards, mode, 2, 3).dtype == torch.float64
