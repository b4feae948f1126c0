"""Training on the sort task: seeds side by side, a plain loop, constant rewards."""

import pytest
import torch
from torch import Generator

from grpo_course.exact import exact_expected_reward, exact_sorted_probability
from grpo_course.formulas import DELTA_MODES
from grpo_course.loop import TrainConfig, train
from grpo_course.sort import (
    SORT_PROMPTS,
    compute_reward,
    make_policy,
    run_policy_gradient,
    sort_distance_reward,
    sort_inclusion_ordering_reward,
)

EPOCHS, STEPS, RESPONSES = 5, 4, 12
SIZES = {
    "num_epochs": EPOCHS,
    "num_steps_per_epoch": STEPS,
    "num_responses": RESPONSES,
}
CENTERED = {"deltas_mode": "centered_rewards"}
OPTIMIZERS = {"adam": (torch.optim.Adam, 1e-2), "sgd": (torch.optim.SGD, 0.1)}
WITHOUT_BASELINE = {"rewards", "max_rewards", "softmax_rewards"}
each_loss = pytest.mark.parametrize("loss_mode", ["naive", "unclipped", "clipped"])
each_optimizer = pytest.mark.parametrize("optimizer", OPTIMIZERS)


def train_policy(seeds, reward_fn=sort_distance_reward, optimizer="adam", **options):
    """The weights after a short run, and its history."""
    policy = make_policy(SORT_PROMPTS, seeds, init_scale=0.3)
    make, learning_rate = OPTIMIZERS[optimizer]
    history = train(
        policy,
        SORT_PROMPTS,
        lambda rollout: compute_reward(rollout.prompts, rollout.responses, reward_fn),
        make(policy.model.parameters(), lr=learning_rate),
        TrainConfig(**(SIZES | CENTERED | options)),
    )
    return dict(policy.model.named_parameters()), history


def plain_log_probs(weights, responses=None):
    """[batch pos vocab], or of the responses [batch trial pos], prompt by prompt."""
    embedding, encode, decode = weights.values()
    rows = []
    for prompt in SORT_PROMPTS:
        encoded = sum(embedding[x] @ w for x, w in zip(prompt, encode, strict=True))
        rows.append(torch.stack([embedding @ (encoded @ w) for w in decode]))
    table = torch.stack(rows).log_softmax(-1)
    if responses is None:
        return table
    return torch.stack(
        [
            torch.stack([row[torch.arange(3), response] for response in group])
            for row, group in zip(table, responses, strict=True)
        ]
    )


def plain_sample(weights, generator):
    probs = plain_log_probs(weights).exp().detach().reshape(9, -1)
    drawn = torch.multinomial(probs, RESPONSES, replacement=True, generator=generator)
    return drawn.reshape(3, 3, RESPONSES).movedim(2, 1)


def plain_loss(loss_mode, log_probs, old, deltas):
    ratio, deltas = (log_probs - old).exp(), deltas[..., None]
    if loss_mode == "naive":
        return -(deltas * log_probs).mean()
    if loss_mode == "unclipped":
        return -(deltas * ratio).mean()
    return -torch.min(deltas * ratio, deltas * ratio.clamp(0.8, 1.2)).mean()


def plain_training(seed, loss_mode, optimizer):
    """The loop of one seed written out, without a seed axis. -> weights, losses"""
    model = make_policy(SORT_PROMPTS, (seed,), init_scale=0.3).model
    weights = {
        n: w[0].detach().clone().requires_grad_() for n, w in model.named_parameters()
    }
    make, learning_rate = OPTIMIZERS[optimizer]
    stepper = make(weights.values(), lr=learning_rate)
    generator, losses = Generator().manual_seed(1000 + seed), []
    for _ in range(EPOCHS):
        responses = plain_sample(weights, generator)
        rewards = torch.tensor(
            [
                [sort_distance_reward(prompt, response) for response in group]
                for prompt, group in zip(
                    SORT_PROMPTS.tolist(), responses.tolist(), strict=True
                )
            ]
        )
        deltas = rewards - rewards.mean(1, keepdim=True)
        old = plain_log_probs(weights, responses).detach()
        for _ in range(STEPS):
            log_probs = plain_log_probs(weights, responses)
            losses.append(plain_loss(loss_mode, log_probs, old, deltas))
            stepper.zero_grad()
            losses[-1].backward()
            stepper.step()
    return weights, torch.stack(losses).detach()


@each_loss
@each_optimizer
def test_training_equals_a_plain_loop(loss_mode, optimizer):
    weights, history = train_policy((5,), optimizer=optimizer, loss_mode=loss_mode)
    expected, losses = plain_training(5, loss_mode, optimizer)
    start = make_policy(SORT_PROMPTS, (5,), init_scale=0.3).model
    for name, weight in weights.items():
        torch.testing.assert_close(weight[0], expected[name], rtol=0, atol=1e-5)
        moved = (weight - start.get_parameter(name)).abs().max()
        assert moved > 1e-3  # else untrained weights would agree as well
    torch.testing.assert_close(history.curve("loss")[:, 0], losses, rtol=0, atol=1e-5)


@each_loss
@each_optimizer
def test_seeds_side_by_side_equal_one_at_a_time(loss_mode, optimizer):
    together, history = train_policy(
        (3, 4, 5), optimizer=optimizer, loss_mode=loss_mode
    )
    for i, seed in enumerate((3, 4, 5)):
        alone, its_history = train_policy(
            (seed,), optimizer=optimizer, loss_mode=loss_mode
        )
        for name, weight in together.items():
            torch.testing.assert_close(weight[i], alone[name][0], rtol=0, atol=1e-5)
        for curve in ("loss", "mean_reward"):
            torch.testing.assert_close(
                history.curve(curve)[:, i],
                its_history.curve(curve)[:, 0],
                rtol=0,
                atol=1e-5,
            )
    assert not torch.equal(together["embedding"][0], together["embedding"][1])


@pytest.mark.parametrize("deltas_mode", DELTA_MODES)
@each_optimizer
def test_only_deltas_without_a_baseline_move_on_a_constant_reward(
    deltas_mode, optimizer
):
    weights, history = train_policy(
        (3, 4), lambda prompt, response: 0.1, optimizer, deltas_mode=deltas_mode
    )
    start = make_policy(SORT_PROMPTS, (3, 4), init_scale=0.3).model
    for name, weight in weights.items():
        untouched = torch.equal(weight, start.get_parameter(name))
        assert untouched == (deltas_mode not in WITHOUT_BASELINE)
    torch.testing.assert_close(
        history.curve("mean_reward"), torch.full((EPOCHS * STEPS, 2), 0.1)
    )


def test_run_policy_gradient_is_that_training_with_exact_measures():
    history = run_policy_gradient(
        EPOCHS,
        STEPS,
        num_responses=RESPONSES,
        deltas_mode="centered_rewards",
        loss_mode="clipped",
        reward_fn=sort_distance_reward,
        seeds=(3, 4),
        init_scale=0.3,
        learning_rate=1e-2,
        epsilon=0.05,
    )
    _, same = train_policy((3, 4), loss_mode="clipped", epsilon=0.05)
    assert torch.equal(history.curve("loss"), same.curve("loss"))
    assert history.curve("loss").shape == (EPOCHS * STEPS, 2)
    for measure in ("expected_reward", "sorted_probability", "entropy"):
        assert history.curve(measure).shape == (EPOCHS + 1, 2)  # and one at the end


def test_the_exact_curves_start_and_end_at_the_models_own_values():
    history = run_policy_gradient(3, 2, num_responses=6, seeds=(3, 4), **CENTERED)
    start = make_policy(SORT_PROMPTS, (3, 4)).model
    fn = sort_inclusion_ordering_reward
    for name, measure in (
        (
            "expected_reward",
            lambda model: exact_expected_reward(model, SORT_PROMPTS, fn),
        ),
        (
            "sorted_probability",
            lambda model: exact_sorted_probability(model, SORT_PROMPTS),
        ),
    ):
        torch.testing.assert_close(
            history.curve(name)[0], measure(start).mean(-1).detach()
        )
        assert not torch.equal(history.final(name), history.curve(name)[0])
    assert not history.curve("expected_reward").requires_grad


def test_prompts_held_out_are_measured_and_not_trained_on():
    sizes = dict(num_responses=RESPONSES, seeds=(3, 4), learning_rate=1e-2)
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


def test_prompts_held_out_are_a_batch():
    with pytest.raises(ValueError, match="held_out"):
        run_policy_gradient(1, held_out=torch.tensor([1, 0, 2]))


def test_watching_changes_nothing():
    watched = run_policy_gradient(
        EPOCHS,
        STEPS,
        num_responses=RESPONSES,
        seeds=(3,),
        init_scale=0.3,
        learning_rate=1e-2,
    )
    _, unwatched = train_policy(
        (3,), sort_inclusion_ordering_reward, deltas_mode="rewards", loss_mode="naive"
    )
    assert torch.equal(watched.curve("loss"), unwatched.curve("loss"))


def test_the_same_seed_trains_the_same_twice_and_another_does_not():
    curves = [run_policy_gradient(3, 2, seeds=(s,)).curve("loss") for s in (5, 5, 6)]
    assert torch.equal(curves[0], curves[1]) and not torch.equal(curves[0], curves[2])


def test_the_running_example_is_learned():
    history = run_policy_gradient(
        40,
        loss_mode="clipped",
        reward_fn=sort_distance_reward,
        **CENTERED,
        seeds=range(4),
        init_scale=0.1,
        learning_rate=1e-2,
    )
    assert (history.curve("sorted_probability")[0] < 0.05).all()
    assert (history.final("sorted_probability") > 0.5).all()


def test_a_learners_own_reward_trains():
    def zeros(prompt, response):
        return float(response.count(0))

    history = run_policy_gradient(
        30,
        5,
        **CENTERED,
        reward_fn=zeros,
        init_scale=0.1,
        learning_rate=1e-2,
    )
    assert history.final("expected_reward") > 2 > history.curve("expected_reward")[0]


def test_weights_beyond_float_range_stop_with_epoch_and_step():
    says = r"the loss is nan in epoch 0, step 1.*learning rate"
    with pytest.raises(ValueError, match=says):
        run_policy_gradient(2, 3, optimizer=torch.optim.SGD, learning_rate=1e30)


def test_weights_beyond_float_range_stop_before_the_next_sample():
    with pytest.raises(ValueError, match=r"finite|learning rate"):
        run_policy_gradient(2, 1, optimizer=torch.optim.SGD, learning_rate=1e30)


def test_an_unknown_curve_lists_the_measures():
    history = run_policy_gradient(1, 1)
    with pytest.raises(
        ValueError, match=r"name='reward'.*entropy.*expected_reward.*loss"
    ):
        history.curve("reward")
