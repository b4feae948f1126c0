"""Bugs of bookkeeping: which token, which row, which count."""

from collections.abc import Callable

import torch
from torch import Tensor

from grpo_course.classroom.bugs.bug import Bug


def unshifted_scores(logits: Tensor, tokens: Tensor) -> Tensor:
    """[batch pos vocab], int [batch pos] -> log-probs of tokens 1, 2, ... [batch pos]

    The logits at position t are the forecast of token t + 1.
    """
    log_probs = logits.log_softmax(-1)[:, 1:]
    return log_probs.gather(-1, tokens[:, 1:, None]).squeeze(-1)


def repaired_scores(logits: Tensor, tokens: Tensor) -> Tensor:
    """[batch pos vocab], int [batch pos] -> log-probs of tokens 1, 2, ... [batch pos]

    The logits at position t are the forecast of token t + 1.
    """
    log_probs = logits.log_softmax(-1)[:, :-1]
    return log_probs.gather(-1, tokens[:, 1:, None]).squeeze(-1)


def counting_logits(tokens: Tensor, vocab_size: int = 6) -> Tensor:
    """A model that counts: after k it forecasts k + 1. -> [batch pos vocab]"""
    following = (tokens + 1) % vocab_size
    return 2.0 * torch.nn.functional.one_hot(following, vocab_size).float()


def reads_what_it_wrote(score: Callable) -> bool:
    """A sequence that the model would write itself must be likely."""
    tokens = torch.tensor([[0, 1, 2, 3, 4, 5]])
    return bool((score(counting_logits(tokens), tokens).exp() > 0.5).all())


UNSHIFTED = Bug(
    name="old log-probabilities shifted by one",
    symptom="tokens are clipped at the first inner step; learning gets stuck",
    probe="ratio 1 before the first update? is text it would write itself likely?",
    cause="logits at t score token t; they forecast token t + 1",
    repaired_line="log_probs = logits.log_softmax(-1)[:, :-1]",
    broken=unshifted_scores,
    repaired=repaired_scores,
    healthy=reads_what_it_wrote,
)


def padded_mask(tokens: Tensor, eos: int) -> Tensor:
    """int [batch pos] -> bool [batch pos], True where a token counts."""
    seen = (tokens == eos).cumsum(dim=-1)
    return ~(seen > 1)


def repaired_mask(tokens: Tensor, eos: int) -> Tensor:
    """int [batch pos] -> bool [batch pos], True where a token counts."""
    is_eos = (tokens == eos).long()
    return is_eos.cumsum(dim=-1) - is_eos == 0  # no EOS before this token


def mask_counts(mask: Callable) -> list[int]:
    """Tokens kept of 3 that end with EOS; padding is another token, then EOS too."""
    rows = torch.tensor([[5, 7, 2, 0, 0, 0], [5, 7, 2, 2, 2, 2]])
    return mask(rows, 2).sum(dim=-1).tolist()


EOS_MASK = Bug(
    name="padding inside the mask",
    symptom="all responses have the same, full length",
    probe="count the kept tokens of a response that you can read",
    cause="the mask ends at the second EOS; padding has none",
    repaired_line="return is_eos.cumsum(dim=-1) - is_eos == 0",
    broken=padded_mask,
    repaired=repaired_mask,
    healthy=lambda mask: mask_counts(mask) == [3, 3],
)


def shuffled_rows(prompts: Tensor, num_responses: int) -> Tensor:
    """int [batch pos] -> one row for each response, groups one after the other."""
    return prompts.repeat(num_responses, 1)


def repaired_rows(prompts: Tensor, num_responses: int) -> Tensor:
    """int [batch pos] -> one row for each response, groups one after the other."""
    return prompts.repeat_interleave(num_responses, dim=0)


def groups_are_pure(repeat_rows: Callable) -> bool:
    """Cut into groups, every group holds one prompt only."""
    prompts = torch.tensor([[1, 0, 2], [3, 2, 4], [1, 2, 3]])
    groups = repeat_rows(prompts, 4).view(3, 4, 3)
    return bool((groups == prompts[:, None]).all())


ROW_ORDER = Bug(
    name="groups that mix prompts",
    symptom="slow learning; easy prompts look good, hard ones bad",
    probe="print the prompts of one group: are they equal?",
    cause="rows repeated as ABCABC, cut into groups as if AABBCC",
    repaired_line="prompts.repeat_interleave(num_responses, dim=0)",
    broken=shuffled_rows,
    repaired=repaired_rows,
    healthy=groups_are_pure,
)


def mean_of_means(per_token: Tensor, mask: Tensor, size: int) -> Tensor:
    """[row pos], bool [row pos] -> token mean, `size` rows at a time -> scalar"""
    means = []
    for part, kept in zip(per_token.split(size), mask.split(size), strict=True):
        means.append(torch.where(kept, part, 0.0).sum() / kept.sum())
    return torch.stack(means).mean()


def repaired_token_mean(per_token: Tensor, mask: Tensor, size: int) -> Tensor:
    """[row pos], bool [row pos] -> token mean, `size` rows at a time -> scalar"""
    total = torch.zeros(())
    for part, kept in zip(per_token.split(size), mask.split(size), strict=True):
        total = total + torch.where(kept, part, 0.0).sum() / mask.sum()
    return total


def size_does_not_matter(mean: Callable) -> bool:
    """A batch in one piece and in pieces gives the same number."""
    per_token = torch.arange(24.0).reshape(4, 6)
    mask = torch.arange(6) < torch.tensor([[1], [2], [6], [5]])
    values = torch.stack([mean(per_token, mask, size) for size in (4, 2, 1)])
    return torch.allclose(values.to(per_token), per_token[mask].mean())


MEAN_OF_MEANS = Bug(
    name="mean of means",
    symptom="the loss changes with the size of the micro-batches",
    probe="the same batch in one piece and in two: one number?",
    cause="each micro-batch divides by its own number of tokens",
    repaired_line="torch.where(kept, part, 0.0).sum() / mask.sum()",
    broken=mean_of_means,
    repaired=repaired_token_mean,
    healthy=size_does_not_matter,
)
