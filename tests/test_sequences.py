"""World 2: the model, its samples and scores, its two tasks, its exact answers."""

import copy

import pytest
import torch

from grpo_course.formulas import compute_deltas
from grpo_course.lessons.answer_tree import AnswerTree
from grpo_course.loop import Rollout
from grpo_course.sampling import Sampler, pad_rows, response_mask, shifted_log_probs
from grpo_course.sequences import (
    ASK,
    SHARE_LENGTH,
    SequencePolicy,
    TinyLM,
    all_sort_prompts,
    draw_prompts,
    place_reward,
    response_logits,
    sample_sequences,
    share_reward,
    sorted_numbers,
    token_share,
    train_share,
    train_sort,
)

# The model against torch's own GRU, and its seed axis against single models


def as_torch(model):
    """torch.nn.GRU with the weights of a model without a seed axis."""
    gru = torch.nn.GRU(model.hidden_size, model.hidden_size, batch_first=True)
    with torch.no_grad():
        gru.weight_ih_l0.copy_(model.input_weights.T)
        gru.weight_hh_l0.copy_(model.hidden_weights.T)
        gru.bias_ih_l0.copy_(model.input_bias[0])
        gru.bias_hh_l0.copy_(model.hidden_bias[0])
    return gru


def test_it_is_the_gru_of_torch():
    model = TinyLM(7, hidden_size=5)
    tokens = torch.randint(7, (4, 6), generator=torch.Generator().manual_seed(0))
    states, _ = as_torch(model)(model.embedding[tokens])
    torch.testing.assert_close(model.read(tokens), states, atol=1e-6, rtol=0)
    expected = states @ model.head_weights + model.head_bias
    torch.testing.assert_close(model(tokens), expected, atol=1e-6, rtol=0)


def test_seeds_side_by_side_are_the_single_models():
    tokens = torch.tensor([[1, 2, 3], [4, 0, 0]])
    together = TinyLM(5, hidden_size=4, seeds=(3, 0))
    alone = TinyLM(5, hidden_size=4)
    torch.testing.assert_close(together(tokens)[1], alone(tokens))
    own = torch.stack([tokens.flip(0), tokens])  # other tokens for each seed
    torch.testing.assert_close(together(own)[1], alone(tokens))
    assert not torch.allclose(together(tokens)[0], alone(tokens))


def test_reading_can_be_carried_on_and_what_is_not_real_leaves_the_state_alone():
    model, tokens = TinyLM(5), torch.tensor([[0, 0, 3, 4]])
    first = model.read(tokens[:, :2])[:, -1]
    torch.testing.assert_close(
        model.read(tokens[:, 2:], first), model.read(tokens)[:, 2:]
    )
    padded = model.read(tokens, real=torch.tensor([[False, False, True, True]]))
    torch.testing.assert_close(padded[:, -1], model.read(tokens[:, 2:])[:, -1])
    assert not torch.allclose(padded[:, -1], model.read(tokens)[:, -1])


# What is noted while sampling is what a separate forward pass says


EOS, PAD = 2, 0
ROWS = [[3], [1, 4, 3], [4, 0]]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("pad", "temperature"), [(PAD, 0.7), (EOS, 1.0)])
def test_what_is_noted_is_what_a_plain_forward_pass_scores(pad, temperature):
    model, prompts = TinyLM(5), pad_rows(ROWS, pad)
    sampler = Sampler(6, eos=EOS, pad=pad, temperature=temperature)
    responses, noted = sample_sequences(model, prompts, 8, sampler, generator())
    mask = response_mask(responses, EOS)
    assert (responses[~mask] == pad).all() and (noted[~mask] == 0).all()
    assert mask.all(-1).any() and (~mask).any()  # cut off and ended ones were there
    policy = SequencePolicy(model, sampler)
    scored = policy.log_probs(Rollout(prompts, responses, mask))
    torch.testing.assert_close(scored[mask], noted[mask], atol=1e-5, rtol=0)
    for i, row in enumerate(ROWS):
        for response, score, real in zip(responses[i], noted[i], mask[i], strict=True):
            text = torch.tensor([row + response[real].tolist()])
            logits = model(text) / temperature
            expected = shifted_log_probs(logits, text)[0, len(row) - 1 :]
            torch.testing.assert_close(score[real], expected, atol=1e-5, rtol=0)


def test_seeds_sample_side_by_side_what_each_samples_alone():
    prompts, sampler = pad_rows(ROWS, PAD), Sampler(4, eos=EOS, pad=PAD)
    together = TinyLM(5, seeds=(1, 0))
    both, noted = sample_sequences(
        together, prompts, 3, sampler, [generator(9), generator(7)]
    )
    alone, score = sample_sequences(TinyLM(5), prompts, 3, sampler, generator(7))
    assert both.shape == (2, 3, 3, 4)
    assert torch.equal(both[1], alone)
    torch.testing.assert_close(noted[1], score)
    policy = SequencePolicy(together, sampler)
    scored = policy.log_probs(Rollout(prompts, both, sampler.mask(both)))
    mask = sampler.mask(both)
    torch.testing.assert_close(scored[mask], noted[mask], atol=1e-5, rtol=0)


def test_greedy_text_is_the_likeliest_at_each_step():
    model, prompts = TinyLM(6), torch.tensor([[1, 2], [3, 4]])
    answers = SequencePolicy(model, Sampler(5)).answer(prompts)
    logits = model(torch.cat([prompts, answers], dim=-1))
    assert torch.equal(logits[:, 1:-1].argmax(-1), answers)


# The world in which every response is listed, against what can be counted by hand


@pytest.mark.parametrize(
    ("num_words", "longest", "count"), [(2, 4, 31), (1, 3, 4), (3, 2, 13)]
)
def test_every_response_is_listed_once(num_words, longest, count):
    world = AnswerTree(num_words, longest)
    assert len(world.responses) == len(world.responses.unique(dim=0)) == count


def test_chances_sum_to_one_and_a_uniform_policy_ends_geometrically():
    world = AnswerTree(2, 4)
    logits = world.random_logits(range(5))
    total = world.chances(logits).sum(-1)
    torch.testing.assert_close(total, torch.ones(5, dtype=torch.float64))
    length = (world.chances(0 * logits[:1]) * world.lengths).sum()
    assert length.item() == pytest.approx(1 + 2 / 3 + 4 / 9 + 8 / 27)


def test_a_state_is_what_was_written():
    world = AnswerTree(2, 4)
    seen = {}
    for row, states, kept in zip(
        world.responses, world.states, world.mask, strict=True
    ):
        for pos in kept.nonzero().flatten().tolist():
            seen.setdefault(states[pos].item(), set()).add(tuple(row[:pos].tolist()))
    assert all(len(before) == 1 for before in seen.values())
    assert len(set.union(*seen.values())) == len(seen) == 15


def test_the_expected_update_is_the_average_over_all_groups():
    world = AnswerTree(1, 3)
    logits = world.random_logits(range(2)).requires_grad_()
    reward = torch.tensor([0.0, 1, 0, 1]).double()
    groups = torch.cartesian_prod(*[torch.arange(4)] * 3)  # [group trial]
    log_probs = world.log_probs(logits).sum(-1)[:, groups]
    chance = log_probs.detach().sum(-1).exp()
    deltas = compute_deltas(reward[groups], "centered_rewards")
    weight = 1 / world.lengths[groups].sum(-1, keepdim=True)
    average = (chance * (deltas * weight * log_probs).sum(-1)).sum()
    (expected,) = torch.autograd.grad(average, logits)
    made = world.expected_update(
        logits, reward, lambda length: 1 / length.sum(-1, keepdim=True), 3
    )
    torch.testing.assert_close(made, expected)


# The two tasks: rewards, prompts, runs of several seeds


def test_token_share_counts_what_the_policy_wrote():
    responses = torch.tensor([[[1, 1, 2, 1], [0, 3, 3, 2], [1, 1, 1, 1]]])
    mask = torch.tensor([[[1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]]]).bool()
    expected = torch.tensor([[2 / 3, 0.0, 0.0]])
    torch.testing.assert_close(token_share(responses, mask, 1), expected)
    unmasked = share_reward(1)(Rollout(responses[:, 0], responses))
    torch.testing.assert_close(unmasked, torch.tensor([[0.75, 0.0, 1.0]]))


def test_the_sort_rewards_on_worked_examples():
    responses = torch.tensor([[[1, 2, 3], [1, 3, 2], [5, 5, 5]]])
    rollout = Rollout(torch.tensor([[3, 1, 2, ASK]]), responses)
    torch.testing.assert_close(place_reward(rollout), torch.tensor([[1.0, 1 / 3, 0.0]]))


def test_all_prompts_and_their_answers():
    prompts = all_sort_prompts()
    assert prompts.shape == (216, 4) and (prompts[:, -1] == ASK).all()
    assert len(prompts.unique(dim=0)) == 216
    are_sorted = (sorted_numbers(prompts) == prompts[:, :-1]).all(dim=-1)
    assert are_sorted.sum() == 56  # 6 + 2 choose 3


def test_prompts_are_drawn_by_epoch_without_repetition():
    draw = draw_prompts(all_sort_prompts(), 16, seed=0)
    assert torch.equal(draw(3), draw(3)) and not torch.equal(draw(3), draw(4))
    assert len(draw(0).unique(dim=0)) == 16


def test_a_run_can_be_repeated_and_nothing_beside_it_changes_it():
    """Neither other seeds nor an observer, whose look joins its history."""

    def write(policy):
        asked = torch.zeros(1, 5).long()
        return {"texts": copy.deepcopy(policy).sample(asked, 2).responses[:, 0]}

    _, usual = train_share((0, 3), 2)
    _, alone = train_share((3,), 2)
    _, seen = train_share((0, 3), 2, observe=write)
    curve = usual.curve("mean_reward")
    assert torch.equal(curve, seen.curve("mean_reward"))
    assert torch.equal(curve[:, 1:], alone.curve("mean_reward"))
    assert seen.epochs("texts").shape == (2, 2, 2, SHARE_LENGTH)


@pytest.mark.slow
def test_an_end_is_learned_alike_whatever_the_padding_is():
    def curves(pad, aggregation):
        ends = Sampler(SHARE_LENGTH, eos=2, pad=pad)
        knobs = {"sampler": ends, "aggregation": aggregation}
        _, history = train_share((0, 1), 2, **knobs)
        return torch.stack([history.curve(n) for n in ("mean_reward", "mean_length")])

    for aggregation in ("sequence_mean", "token_mean"):
        own, other = (curves(pad, aggregation) for pad in (2, 9))
        assert torch.equal(own, other)
        assert 1 < own[1, 0].mean() < SHARE_LENGTH


def test_a_sampler_of_ones_own_lets_responses_end():
    limit = Sampler(6, eos=ASK, pad=ASK)
    few = {"num_epochs": 1, "num_steps_per_epoch": 1, "sampler": limit}
    policy, history = train_sort(lambda rollout: rollout.finished.float(), **few)
    assert policy.sampler == limit
    assert 1 < history.final("mean_length").item() < 6


# What a person would get wrong is refused: the argument, what was given, the cure


PROMPTS = torch.tensor([[1, 2], [3, 4]])
TOKENS = torch.zeros(2, 3, 4, dtype=torch.long)


def sample(prompts=PROMPTS, num_responses=2, model=None, sampler=None, generator=None):
    parts = model or TinyLM(5), prompts, num_responses, sampler or Sampler(3)
    return sample_sequences(*parts, generator)


TWO, SHORT = TinyLM(5, seeds=(0, 1)), TinyLM(5, context_length=8)
LONG = torch.ones(1, 5).long()
CALLS = [
    (lambda: AnswerTree(10, 6), "number of responses"),
    (lambda: TinyLM(5, hidden_size=0), "hidden_size=0.*at least 1"),
    (lambda: TinyLM(5, seeds=3), r"seeds=3.*one at least: seeds=\(0,\)"),
    (lambda: TinyLM(5)(TOKENS + 5), "tokens holds.*numbers 0 to 4"),
    (lambda: sample(sampler=Sampler(3, (1, 7), 0)), "eos=7, but .*below 5"),
    (lambda: sample(sampler=Sampler(3, 2, 99)), "pad=99, but .*below 5"),
    (lambda: sample(model=TWO), r"2 seeds.*one torch\.Generator for each"),
    (lambda: sample(LONG, model=SHORT, sampler=Sampler(4)), "has 5 tokens.*holds 8"),
    (lambda: sample(PROMPTS.float()), "float32.*whole numbers"),
    (lambda: sample(num_responses=0), "num_responses=0.*at least 1"),
    (lambda: SequencePolicy(TWO, None).sample(PROMPTS, 2), "sampler=None is no Samp"),
    (lambda: sample(generator=3), "generator=3.*torch.Gener"),
    (lambda: response_logits(TWO, PROMPTS[:1], TOKENS), ".1, 2.*agree in batch"),
    (lambda: train_sort(seeds=None), r"seeds=\(\).*list one at least"),
    (lambda: train_sort(num_prompts=217), "count=217, but there are 216"),
]


@pytest.mark.parametrize(("call", "says"), CALLS)
def test_a_call_is_refused(call, says):
    with pytest.raises((TypeError, ValueError), match=says):
        call()
