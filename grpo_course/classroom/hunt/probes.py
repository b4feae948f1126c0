"""The course's own probes: each asks one thing of a trainer. True means healthy.

`make_trainer(**settings)` builds a fresh trainer of the script under test.
"""

from collections.abc import Callable

import torch
from torch.nn.functional import pad

Probe = Callable[[Callable], bool]


# What is written, masked and scored.


def own_words_look_likely(make_trainer: Callable) -> bool:
    """Nearly greedy samples must be nearly certain to the policy that wrote them."""
    batch = make_trainer(temperature=0.01).collect()
    return batch.old_log_probs[batch.mask].mean() > -0.1


def surprise_equals_entropy(make_trainer: Callable) -> bool:
    """On average, -log pi of a sample is the entropy of pi, whatever pi is."""
    trainer = make_trainer(temperature=1.5, num_responses=64)
    batch = trainer.collect()
    logits, _ = trainer.model(batch.tokens, batch.attention)
    log_probs = (logits[:, :-1] / 1.5).log_softmax(-1)
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    return (-batch.old_log_probs - entropy)[batch.mask].mean().abs() < 0.1


def padding_leaves_no_trace(make_trainer: Callable) -> bool:
    """Three more tokens of padding in front change no score."""
    trainer = make_trainer()
    batch = trainer.collect()
    before = trainer.score(batch)
    batch.tokens = pad(batch.tokens, (3, 0), value=trainer.tokenizer.pad)
    batch.attention = pad(batch.attention, (3, 0), value=False)
    return torch.allclose(trainer.score(batch)[:, 3:], before, atol=1e-4)


def mask_keeps_the_response(make_trainer: Callable) -> bool:
    """The kept tokens of a finished response are its text and its end, no more."""
    trainer = make_trainer()
    batch = trainer.collect()
    rows = zip(batch.tokens[:, 1:], batch.mask, batch.texts, strict=True)
    return all(
        trainer.tokenizer.decode(row[kept], skip_special_tokens=False) == f"{text}<end>"
        for row, kept, text in rows
        if trainer.tokenizer.eos in row
    )


def trained_on_what_was_sampled(make_trainer: Callable) -> bool:
    """The last tokens of the batch are those that `sample` returned."""
    trainer, sampled = make_trainer(), []
    sample = trainer.sample

    def noted(*given: torch.Tensor) -> torch.Tensor:
        sampled.append(sample(*given))
        return sampled[-1]

    trainer.sample = noted
    batch = trainer.collect()
    return torch.equal(batch.tokens[:, -sampled[0].shape[1] :], sampled[0])


# What is paid, and what becomes of it.


def groups_share_a_prompt(make_trainer: Callable) -> bool:
    """All rows of a group ask the same."""
    trainer = make_trainer()
    problems, size = trainer.collect().problems, trainer.settings.num_responses
    groups = [problems[i : i + size] for i in range(0, len(problems), size)]
    return all(problem == group[0] for group in groups for problem in group)


def rewards_fit_their_prompts(make_trainer: Callable) -> bool:
    """Graded once more beside its own prompt, a text earns what it earned, or was
    cut off."""
    trainer = make_trainer()
    batch = trainer.collect()
    paid = zip(batch.problems, batch.texts, batch.rewards.tolist(), strict=True)
    return all(
        earned == 0 or abs(earned - trainer.reward(numbers, text)) < 1e-5
        for numbers, text, earned in paid
    )


def cut_off_pays_nothing(make_trainer: Callable) -> bool:
    """Without an end token there is no reward; a low limit makes many such rows."""
    trainer = make_trainer(max_new_tokens=6)
    batch = trainer.collect()
    ended = (batch.tokens == trainer.tokenizer.eos).any(dim=1)
    return not batch.rewards[~ended].any()


def one_answer_is_paid(make_trainer: Callable) -> bool:
    """A wrong answer followed by the right one earns less than the right one."""
    pay = make_trainer().reward
    return pay([3, 1], "= 3 1 = 1 3") < pay([3, 1], "= 1 3")


def right_answer_is_paid(make_trainer: Callable) -> bool:
    """A right answer, written by hand with its end, goes through to a reward."""
    trainer = make_trainer()
    written = trainer.tokenizer.encode("= 1 3<end><pad><pad>")
    _, rewards = trainer.pay([[3, 1]], torch.tensor([written]))
    return rewards.item() > 0.5


def tied_groups_are_silent(make_trainer: Callable) -> bool:
    """Equal rewards give deltas of zero, whatever their value."""
    trainer = make_trainer()
    size = trainer.settings.num_responses
    rewards = torch.tensor([0.1, 0.2, 0.3, 0.6, 0.7]).repeat_interleave(size)
    return trainer.compute_deltas(rewards).abs().max() < 0.01


def groups_stand_alone(make_trainer: Callable) -> bool:
    """A bonus for all responses to one prompt changes no delta."""
    trainer = make_trainer()
    rewards = torch.rand(2, trainer.settings.num_responses)
    bonus = torch.tensor([[0.0], [1.0]])
    plain, paid = (
        trainer.compute_deltas(each.flatten()) for each in (rewards, rewards + bonus)
    )
    return torch.allclose(plain, paid, atol=1e-3)
