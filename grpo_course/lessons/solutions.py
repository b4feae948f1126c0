"""Made problems and their worked solutions as tokens, for a tiny model to imitate."""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.sampling import Sampler, pad_rows, shifted_log_probs
from grpo_course.text.gsm8k import SHORT_SYSTEM_PROMPT
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.prompts import decode_responses, prompt_text
from grpo_course.text.responses import conversation_text
from grpo_course.text.smollm2 import ShortAnswers
from grpo_course.text.stories import WordProblem
from grpo_course.text.tasks import Problem
from grpo_course.text.tiny import make_tokenizer


def learn_tokenizer(problems: Sequence[WordProblem]) -> PreTrainedTokenizerBase:
    """A tokenizer learned from the problems, their solutions and the system prompt."""
    gold = ShortAnswers().gold
    return make_tokenizer(
        conversation_text(p.question, gold(p), SHORT_SYSTEM_PROMPT) for p in problems
    )


def encode(tokenizer: PreTrainedTokenizerBase, texts: list[str], side: str) -> Tensor:
    """Texts, padded on a side. -> int [batch pos]"""
    ids = tokenizer(texts, add_special_tokens=False).input_ids
    return pad_rows(ids, tokenizer.pad_token_id, side)


def prompts_of(
    tokenizer: PreTrainedTokenizerBase, problems: Sequence[Problem]
) -> Tensor:
    """The problems as prompts, padded on the left. -> int [batch pos]"""
    texts = [prompt_text(tokenizer, p.question, SHORT_SYSTEM_PROMPT) for p in problems]
    return encode(tokenizer, texts, "left")


def solution_batch(
    tokenizer: PreTrainedTokenizerBase, problems: Sequence[WordProblem]
) -> tuple[Tensor, Tensor]:
    """Prompts and their solutions in one row each, and where the solutions begin.

    -> int [batch pos], bool [batch pos]
    """
    prompts = prompts_of(tokenizer, problems)
    solved = [ShortAnswers().gold(p) + str(tokenizer.eos_token) for p in problems]
    rows = torch.cat([prompts, encode(tokenizer, solved, "right")], dim=-1)
    begins = torch.zeros_like(rows, dtype=torch.bool)
    begins[:, prompts.shape[1]] = True
    return rows, begins


def row_log_probs(model: PreTrainedModel, tokens: Tensor, pad: int) -> Tensor:
    """The log-probability of each token but the first. [batch pos] -> [batch pos-1]"""
    real = (tokens != pad).long()
    places = (real.cumsum(dim=-1) - 1).clamp(min=0)
    logits = model(tokens, attention_mask=real, position_ids=places).logits
    return shifted_log_probs(logits, tokens)


def sample_texts(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    problems: Sequence[Problem],
    num_responses: int = 8,
) -> list[list[str]]:
    """What a model writes to each problem, seeded. -> text [problem trial]"""
    torch.manual_seed(0)
    ends = {"eos": tokenizer.eos_token_id, "pad": tokenizer.pad_token_id}
    policy = CausalPolicy(model, Sampler(max_new_tokens=40, **ends))
    rollout = policy.sample(prompts_of(tokenizer, problems), num_responses)
    return decode_responses(tokenizer, rollout)
