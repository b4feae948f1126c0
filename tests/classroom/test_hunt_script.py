"""The healthy script is right by the course's own functions, and learns."""

import pytest
import torch

from grpo_course.classroom.hunt.base import Tokenizer, load_model
from grpo_course.classroom.hunt.script import Trainer
from grpo_course.formulas import compute_deltas, compute_kl_penalty, compute_loss


def stepped(**settings):
    """A trainer that has left its reference, with a rollout that it is half through."""
    trainer = Trainer(**settings)
    trainer.step()
    batch = trainer.collect()
    trainer.update(batch)
    return trainer, batch


def test_deltas_are_the_normalized_rewards():
    batch = Trainer(seed=1).collect()
    deltas = compute_deltas(batch.rewards.view(-1, 8), "normalized_rewards")
    assert torch.allclose(batch.deltas, deltas.flatten(), atol=1e-5)


def test_loss_and_gradient_are_those_of_the_course():
    trainer, batch = stepped(seed=3, beta=0.3, micro_batch_size=64)
    new = trainer.score(batch).detach().requires_grad_()
    losses, _ = trainer.token_losses(new, batch)
    losses[batch.mask].sum().div(batch.mask.sum()).backward()
    leaf = new.detach()[None].requires_grad_()
    mask = batch.mask[None]
    loss = compute_loss(
        leaf,
        batch.deltas[None],
        "clipped",
        batch.old_log_probs[None],
        mask=mask,
        aggregation="token_mean",
    ) + 0.3 * compute_kl_penalty(
        leaf, batch.ref_log_probs[None], mask=mask, aggregation="token_mean"
    )
    loss.backward()
    assert torch.allclose(losses[batch.mask].mean(), loss, atol=1e-6)
    assert torch.allclose(new.grad[batch.mask], leaf.grad[0][batch.mask], atol=1e-7)
    assert not new.grad[~batch.mask].any()


def test_an_update_takes_the_gradient_of_the_whole_batch():
    gradients = []
    for size in (64, 16, 5):
        trainer = Trainer(seed=0, micro_batch_size=size, max_gradient_norm=1e9)
        _, norm = trainer.update(trainer.collect())
        gradients.append(norm)
    assert max(gradients) - min(gradients) < 1e-5


def test_scores_are_those_of_the_sampler():
    trainer = Trainer(seed=0)
    batch = trainer.collect()
    row = 5
    first = int(batch.mask[row].long().argmax()) + 1  # of the response
    tokens, attention = batch.tokens[row : row + 1], batch.attention[row : row + 1]
    logits, state = trainer.model(tokens[:, :first], attention[:, :first])
    for pos in range(first, int(batch.mask[row].sum()) + first):
        log_probs = (logits[0, -1] / trainer.settings.temperature).log_softmax(-1)
        expected = log_probs[tokens[0, pos]]
        assert torch.allclose(batch.old_log_probs[row, pos - 1], expected, atol=1e-5)
        logits, state = trainer.model(tokens[:, pos : pos + 1], state=state)


def test_the_mask_keeps_a_response_up_to_its_end():
    trainer = Trainer(seed=2)
    batch = trainer.collect()
    for row, kept, text in zip(
        batch.tokens[:, 1:], batch.mask, batch.texts, strict=True
    ):
        said = trainer.tokenizer.decode(row[kept], skip_special_tokens=False)
        assert said.removesuffix("<end>") == text
        assert said.endswith("<end>") or kept.sum() == trainer.settings.max_new_tokens


def test_rewards_by_hand():
    pay = Trainer(max_new_tokens=2).reward
    texts = ["= 1 3 12", "= 1 12 3", "= 3 1", "= 1 3 12 4", "1 3 12", "= 1,3,12"]
    assert [round(pay([3, 12, 1], text), 3) for text in texts] == [
        0.8,
        0.4,
        0.2,
        0.2,
        0.0,
        0.0,
    ]


def test_a_response_without_an_end_earns_nothing():
    trainer = Trainer(seed=0, max_new_tokens=6)
    batch = trainer.collect()
    ended = (batch.tokens == trainer.tokenizer.eos).any(dim=1)
    assert not ended.all() and not batch.rewards[~ended].any()
    assert batch.rewards[ended].any()


def test_encoding_a_text_is_no_way_back():
    tokenizer = Tokenizer()
    written = [tokenizer.tokens.index(letter) for letter in "= 12"]
    again = tokenizer.encode(tokenizer.decode(written))
    assert again != written and tokenizer.decode(again) == "= 12"


def test_the_adapter_starts_at_zero_and_the_base_stays():
    trainer, batch = stepped(seed=0)
    fresh = load_model(0).eval()
    assert torch.equal(fresh(batch.tokens)[0], load_model(5).eval()(batch.tokens)[0])
    with trainer.model.disable_adapter():
        base = trainer.model(batch.tokens)[0]
    assert torch.equal(base, fresh(batch.tokens)[0])
    assert not torch.allclose(trainer.model(batch.tokens)[0], base)


def test_runs_are_repeatable():
    logs = [Trainer(seed=4, num_steps=2).train() for _ in range(2)]
    assert logs[0] == logs[1]


@pytest.mark.slow
def test_it_learns():
    rises = []
    for seed in range(6):
        log = Trainer(seed=seed).train()
        rewards = torch.tensor([row["reward"] for row in log])
        rises.append(rewards[-5:].mean() - rewards[:2].mean())
        assert log[-1]["learning_rate"] == 0
    rises = torch.stack(rises)
    assert rises.mean() > 3 * rises.std() / len(rises) ** 0.5 and rises.mean() > 0.1
