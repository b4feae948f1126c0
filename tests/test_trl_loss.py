"""Our loss, gradient, deltas and weights are those of TRL's own code, in float64.

TRL keeps its loss inside its trainer: `trl_loss` calls it there, unchanged, with given
tensors; `trl_batch` calls the step before it, which makes advantages of rewards.
"""

from collections import defaultdict
from itertools import product
from types import SimpleNamespace

import pytest
import torch
from einops import rearrange

from grpo_course import formulas, loop
from grpo_course.formulas import compute_deltas
from grpo_course.loop import Batch, Rollout, TrainConfig, Trainer
from grpo_course.text.trl import LOSS_TYPES, SCALES, to_trl_config

trl = pytest.importorskip("trl", reason="TRL is the optional extra `scale`")

TOLERANCE = 1e-9  # of the loss and of each number of its gradient, in float64
KL_TERMS = ((0.0, "k3"), (0.1, "k3"), (0.1, "corrected_k3"))  # beta, estimator
CLIPS = ({"epsilon": 0.2}, {"epsilon": 0.1, "epsilon_high": 0.4})
BATCH, TRIAL, POS = 3, 3, 7
TRL_ONLY = {"use_cpu": True, "bf16": False, "report_to": "none"}
TRL_ONLY |= {"per_device_train_batch_size": BATCH * TRIAL, "num_generations": TRIAL}


def bare_trainer(args, trainer_class=trl.GRPOTrainer, **parts):
    """TRL's trainer without model, data or optimizer: what these steps read, no more.

    `args` is its config; `parts` stand in for what it would have built.
    """
    from accelerate import Accelerator

    trainer = object.__new__(trainer_class)
    vars(trainer).update(vars(args))  # the constructor copies most of them too
    vars(trainer).update(
        args=args,
        use_vllm=False,
        epsilon_low=args.epsilon,
        epsilon_high=args.epsilon if args.epsilon_high is None else args.epsilon_high,
        aux_loss_enabled=False,
        _entropy_bonus_enabled=False,
        current_gradient_accumulation_steps=1,
        model=SimpleNamespace(training=True, is_gradient_checkpointing=False),
        accelerator=Accelerator(cpu=True),
        _metrics={"train": defaultdict(list)},
    )
    vars(trainer).update(parts)
    return trainer


def flat(rows):
    """[batch trial pos] -> [(batch trial) pos]; None stays None."""
    return None if rows is None else rearrange(rows, "b t pos -> (b t) pos")


def trl_loss(args, log_probs, deltas, mask, *, old=None, ref=None, weights=None):
    """What TRL's GRPOTrainer would minimize: a scalar, differentiable in log_probs.

    `args` is a trl.GRPOConfig. deltas [batch trial], all others [batch trial pos].
    Without `old` the batch is on-policy; `weights` are the sampler's.
    """
    new, mask = flat(log_probs), flat(mask)
    trainer = bare_trainer(
        args,
        use_vllm=weights is not None,
        _get_per_token_logps_and_entropies=lambda *_, **__: (
            new,
            torch.zeros_like(new).detach(),
            None,
        ),
    )
    inputs = {
        "prompt_ids": torch.zeros(len(new), 1, dtype=torch.long),
        "prompt_mask": torch.ones(len(new), 1, dtype=torch.long),
        "completion_ids": torch.zeros(new.shape, dtype=torch.long),
        "completion_mask": mask.long(),
        "advantages": deltas.flatten(),
        "num_items_in_batch": mask.sum(),
        "old_per_token_logps": flat(old),
        "ref_per_token_logps": flat(ref),
        "importance_sampling_ratio": flat(weights),
    }
    return trainer._compute_loss(None, inputs)


def trl_batch(args, rewards, old=None, sampled=None, trainer_class=trl.GRPOTrainer):
    """The batch that TRL learns from, of rewards [batch trial].

    `old` and `sampled` are log-probs [batch trial pos], without padding, the second of
    a vLLM that is not there.
    """
    rows, pos = rewards.numel(), 1 if old is None else old.shape[-1]
    ids, prompts = [[0] * pos] * rows, [[0]] * rows
    if trainer_class is trl.RLOOTrainer:
        written, scores = (prompts, ids, ids), torch.zeros(rows, pos)
    else:
        noted = None if sampled is None else flat(sampled).tolist()
        written, scores = (prompts, ids, None, ids, noted, {}, None, None), flat(old)
    trainer = bare_trainer(
        args,
        trainer_class,
        use_vllm=sampled is not None,
        _generate=lambda _: written,
        _calculate_rewards=lambda *_: rewards.reshape(rows, 1),
        _get_per_token_logps_and_entropies=lambda *_, **__: (scores, None, None),
        _tokenizer=SimpleNamespace(pad_token_id=0),
        reward_weights=torch.ones(1),
        reward_func_names=["reward"],
        reward_funcs=[None],
        environment_factories=None,
        environments=None,
        tools=[],
        ref_model=None,
        _logs=defaultdict(list) | {"rewards": defaultdict(list)},
        _pending_extra_logs={},
        _pending_metrics={},
    )
    return trainer._generate_and_score_completions([{"prompt": ""}] * rows)


class Given:
    """A policy that says what it is told."""

    def __init__(self, log_probs):
        self.leaf = log_probs

    def sample(self, prompts, num_responses):
        raise AssertionError("nothing is to be sampled")

    def log_probs(self, rollout):
        return self.leaf


def drawn(number):
    """New, old, reference and sampler's log-probs, deltas, a ragged mask."""
    generator = torch.Generator().manual_seed(number)
    draw = {"generator": generator, "dtype": torch.float64}
    shape = (BATCH, TRIAL, POS)
    new = -3 - torch.rand(shape, **draw) * 3  # so that the others are below 0 too
    old, ref, sampled = (new + torch.randn(shape, **draw) * 0.7 for _ in range(3))
    lengths = torch.randint(0, POS + 1, shape[:-1], generator=generator)
    mask = torch.arange(POS) < lengths[..., None]
    return new, old, ref, sampled, torch.randn(shape[:-1], **draw), mask


def trainer_of(leaf, config):
    """A trainer whose policy says what it is told; nobody asks for a response."""
    optimizer = torch.optim.SGD([torch.zeros(1)])
    return Trainer(
        Given(leaf), torch.zeros(BATCH, 1), lambda _: None, optimizer, config
    )


def gradient_of(loss, leaf):
    return torch.autograd.grad(loss, leaf)[0]


def errors(config, number=0, on_policy=False):
    """The largest difference from TRL: in the loss, in its gradient."""
    new, old, ref, sampled, deltas, mask = drawn(number)
    leaf = new.requires_grad_()
    rollout = Rollout(torch.zeros(BATCH, 1), mask.long(), mask, sampled)
    weights, ours = None, deltas
    if config.sampler_cap is not None:
        weights = formulas.sampler_weights(old, sampled, config.sampler_cap)
        ours = loop.correct_deltas(deltas, rollout, old, config.sampler_cap)
    batch = Batch(
        rollout,
        deltas,
        ours,
        None if on_policy else old,
        ref if config.kl_penalty else None,
    )
    loss, _ = trainer_of(leaf, config).loss(batch)
    theirs = trl_loss(
        to_trl_config(config, **TRL_ONLY),
        leaf,
        deltas,
        mask,
        old=batch.old_log_probs,
        ref=batch.ref_log_probs,
        weights=weights,
    )
    gap = gradient_of(loss, leaf) - gradient_of(theirs, leaf)
    return (loss - theirs).abs().item(), gap.abs().max().item()


def compared_settings(loss_mode, mean, level):
    """A loss that TRL has too, with all KL terms and clip ranges.

    But for the corrected KL beside a response's ratio, where TRL means another loss.
    Few tokens, wide log-probs: each bound must be reached to be tested.
    """
    for (beta, estimator), clip in product(KL_TERMS, CLIPS):
        if (estimator, level) == ("corrected_k3", "sequence"):
            continue
        yield TrainConfig(
            loss_mode=loss_mode,
            aggregation=mean,
            ratio_level=level,
            kl_penalty=beta,
            kl_estimator=estimator,
            max_length=11,
            dual_clip=1.6,
            num_responses=TRIAL,
            **clip,
        )


@pytest.mark.slow
@pytest.mark.parametrize("level", formulas.RATIO_LEVELS)
@pytest.mark.parametrize("pair", LOSS_TYPES, ids="-".join)
def test_loss_and_gradient(pair, level):
    for config in compared_settings(*pair, level):
        for on_policy, number in product((False, True), range(2)):
            assert max(errors(config, number, on_policy)) < TOLERANCE, config


@pytest.mark.parametrize("pair", LOSS_TYPES, ids="-".join)
def test_loss_and_gradient_with_a_sampler_of_its_own(pair):
    config = TrainConfig(
        loss_mode=pair[0], aggregation=pair[1], max_length=11, sampler_cap=1.3
    )
    for number in range(3):
        assert max(errors(config, number)) < TOLERANCE


def test_the_weights_of_the_sampler():
    _, old, _, sampled, deltas, _ = drawn(3)
    sampled = sampled.float().double()
    args = to_trl_config(TrainConfig(sampler_cap=1.3, num_responses=TRIAL), **TRL_ONLY)
    theirs = trl_batch(args, deltas, old, sampled)["importance_sampling_ratio"]
    ours = formulas.sampler_weights(old, sampled, 1.3)
    assert (ours == 1.3).any() and (ours < 1).any()
    torch.testing.assert_close(flat(ours), theirs, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("mode", SCALES)
@pytest.mark.parametrize(
    ("batch", "trial", "tolerance"),
    # TRL takes n / (n - 1) in float32: exact for groups of 3 and batches of 9, wrong by
    # up to 6e-8 of itself for groups of 8.
    [(3, 3, TOLERANCE), (4, 8, 1e-7)],
)
def test_deltas(mode, batch, trial, tolerance):
    args = TRL_ONLY | {"per_device_train_batch_size": batch * trial}
    config = TrainConfig(deltas_mode=mode, num_responses=trial)
    args = to_trl_config(config, **args | {"num_generations": trial})
    for number in range(5):
        draw = {"generator": torch.Generator().manual_seed(number)}
        rewards = torch.randn((batch, trial), **draw, dtype=torch.float64)
        theirs = trl_batch(args, rewards)["advantages"].reshape(rewards.shape)
        ours = compute_deltas(rewards, mode)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)


# TRL's RLOOTrainer, which no config of ours is translated for: what TRL.md says.


@pytest.mark.parametrize(
    ("normalize", "mode"), [(False, "leave_one_out"), (True, "whitened_rewards")]
)
def test_deltas_of_rloo(normalize, mode):
    """Up to the 1e-4 that both add, TRL to a spread that is G / (G - 1) of ours."""
    args = trl.RLOOConfig(**TRL_ONLY, beta=0.0, normalize_advantages=normalize)
    for number in range(5):
        rewards = drawn(number)[-2]
        theirs = trl_batch(args, rewards, trainer_class=trl.RLOOTrainer)["advantages"]
        ours = compute_deltas(rewards, mode).flatten()
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=TOLERANCE)
