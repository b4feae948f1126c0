"""The course's own probes of the loss and of the update. True means healthy."""

from collections.abc import Callable
from types import SimpleNamespace

import torch


def ratios_start_at_one(make_trainer: Callable) -> bool:
    """The first inner step compares a policy with itself."""
    trainer = make_trainer()
    stats, _ = trainer.update(trainer.collect())
    return (stats[3] - 1).abs().max() < 1e-3


def ratios_leave_one(make_trainer: Callable) -> bool:
    """The second inner step does not."""
    trainer = make_trainer(learning_rate=0.01)
    batch = trainer.collect()
    trainer.update(batch)
    stats, _ = trainer.update(batch)
    return (stats[3] - 1).abs().max() > 1e-3


def better_responses_gain(make_trainer: Callable) -> bool:
    """One step makes the better responses likelier, with one inner step too."""
    trainer = make_trainer(num_inner_steps=1, beta=0.0)
    batch = trainer.collect()
    before = trainer.score(batch).detach()
    trainer.update(batch)
    gain = (trainer.score(batch) - before) * batch.deltas[:, None]
    return gain[batch.mask].mean() > 1e-4


def bad_tokens_are_pulled_back(make_trainer: Callable) -> bool:
    """A bad token at ratio 2 is pulled down; at ratio 1/2 it is let go."""
    trainer, pulls = make_trainer(beta=0.0), []
    for old in (-3.0, -1.0):
        new = torch.tensor([[-2.0]], requires_grad=True)
        token = token_with(old_log_probs=old, ref_log_probs=-2.0, deltas=-1.0)
        losses, _ = trainer.token_losses(new, token)
        pulls.append(torch.autograd.grad(losses.sum(), new)[0].item())
    return pulls[0] > 0 == pulls[1]


def kl_pulls_back(make_trainer: Callable) -> bool:
    """Without rewards, the loss pulls a token down where the policy is above its
    reference, and up where it is below."""
    trainer, pulls = make_trainer(beta=1.0), []
    for reference in (-3.0, -1.0):
        new = torch.tensor([[-2.0]], requires_grad=True)
        token = token_with(old_log_probs=-2.0, ref_log_probs=reference, deltas=0.0)
        losses, _ = trainer.token_losses(new, token)
        pulls.append(torch.autograd.grad(losses.sum(), new)[0].item())
    return pulls[0] > 0 > pulls[1]


def kl_is_right_on_average(make_trainer: Callable) -> bool:
    """Averaged exactly over a policy of two tokens, the logged KL is the KL."""
    policy, reference = torch.tensor([[0.9], [0.1]]), torch.tensor([[0.4], [0.6]])
    new = policy.log()
    tokens = SimpleNamespace(
        old_log_probs=new, ref_log_probs=reference.log(), deltas=torch.zeros(2)
    )
    _, stats = make_trainer().token_losses(new, tokens)
    exact = (policy * (policy / reference).log()).sum()
    return torch.allclose((policy * stats[1]).sum(), exact, atol=1e-4)


def reference_stays_behind(make_trainer: Callable) -> bool:
    """After a few updates, the reference scores another text than the policy does."""
    trainer = make_trainer(learning_rate=0.01)
    batch = trainer.collect()
    for _ in range(3):
        trainer.update(batch)
    batch = trainer.collect()
    gap = batch.old_log_probs - batch.ref_log_probs
    return gap[batch.mask].abs().max() > 1e-3


def parts_make_no_difference(make_trainer: Callable) -> bool:
    """The gradient of a batch is the same in one part and in many."""
    norms = []
    for size in (8, 1000):
        trainer = make_trainer(micro_batch_size=size)
        _, norm = trainer.update(trainer.collect())
        norms.append(norm)
    return abs(norms[0] - norms[1]) <= 1e-3 * norms[1]


def rate_lasts_to_the_end(make_trainer: Callable) -> bool:
    """Before the last of two rollouts, the learning rate is not used up."""
    trainer = make_trainer(num_steps=2, num_inner_steps=3)
    trainer.step()
    return trainer.schedule.get_last_lr()[0] > 0


def token_with(**values: float) -> SimpleNamespace:
    """A batch of one token, as far as the loss looks at it."""
    names = {name: torch.tensor([[value]]) for name, value in values.items()}
    return SimpleNamespace(**(names | {"deltas": names["deltas"][0]}))
