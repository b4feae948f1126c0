"""Scores of tokens under given logits: whose they are, and what does not line up."""

import pytest
import torch

from grpo_course.algorithm.scoring import shifted_log_probs, token_log_probs


def test_each_token_is_scored_by_the_logits_beside_it():
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    tokens = torch.tensor([[0, 4, 2], [1, 1, 3]])
    scores = token_log_probs(logits, tokens, temperature=0.5)
    for row in range(2):
        for pos in range(3):
            exps = (logits[row, pos] / 0.5).exp()
            expected = (exps[tokens[row, pos]] / exps.sum()).log()
            torch.testing.assert_close(scores[row, pos], expected)


@pytest.mark.parametrize("shape", [(1, 3), (1, 5), (2, 4), (4,)])
def test_tokens_that_do_not_stand_beside_their_logits_are_named(shape):
    tokens = torch.zeros(shape, dtype=torch.long)
    with pytest.raises(ValueError, match=r"^tokens has shape .* logits.* \[1, 4\]"):
        token_log_probs(torch.zeros(1, 4, 5), tokens)


def test_a_text_and_logits_of_another_length_are_named():
    with pytest.raises(ValueError, match=r"tokens has shape \[1, 2\].*\[1, 3\]"):
        shifted_log_probs(torch.zeros(1, 4, 5), torch.zeros(1, 3, dtype=torch.long))
