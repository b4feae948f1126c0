"""What 11_gsm8k_data claims: what a model writes that imitated what a mask marks."""

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor

from claims.report import VARIATIONS
from claims.runner import Claim, Setting
from grpo_course.lessons.exercises.nb11 import completion_mask
from grpo_course.lessons.solutions import (
    learn_tokenizer,
    row_log_probs,
    sample_texts,
    solution_batch,
)
from grpo_course.text.smollm2 import ShortAnswers, stated
from grpo_course.text.tiny import make_tiny_model


def whole(tokens: Tensor, begins: Tensor, eos: int) -> Tensor:
    """What the policy wrote."""
    return completion_mask.solution(tokens, begins, eos)


def endless(tokens: Tensor, begins: Tensor, eos: int) -> Tensor:
    """Without the last token."""
    return whole(tokens, begins, eos) & (tokens != eos)


def headless(tokens: Tensor, begins: Tensor, eos: int) -> Tensor:
    """Without the first token."""
    return whole(tokens, begins, eos) & ~begins


def everything(tokens: Tensor, begins: Tensor, eos: int) -> Tensor:
    """The prompt and the padding as well."""
    return torch.ones_like(begins)


@cache
def written(setting: Setting, mask_of: Callable[..., Tensor]) -> list[list[str]]:
    """What a model writes, trained as in the notebook. -> text [seed trial]"""
    task, texts = ShortAnswers(), []
    problems = task.problems("train", 10_000, seed=0)
    held_out = task.problems("validation", 64, seed=1)
    tokenizer = learn_tokenizer(problems[:500])
    for seed in setting.seeds:
        torch.manual_seed(seed)
        model = make_tiny_model(tokenizer, seed=seed)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3 * setting.rate)
        for _ in range(round(150 * setting.length)):
            some = [problems[i] for i in torch.randint(len(problems), (8,))]
            tokens, begins = solution_batch(tokenizer, some)
            mask = mask_of(tokens, begins, tokenizer.eos_token_id)
            log_probs = row_log_probs(model, tokens, tokenizer.pad_token_id)
            loss = -torch.where(mask[:, 1:], log_probs, 0.0).sum() / mask.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        groups = sample_texts(model, tokenizer, held_out, num_responses=2)
        texts.append([text for group in groups for text in group])
    return texts


def states(text: str) -> bool:
    """Whether it states a number."""
    return stated(text) is not None


def digitless(text: str) -> bool:
    """Whether it begins without a digit."""
    return not text[:1].isdigit()


def asks(text: str) -> bool:
    """Whether it holds a question mark."""
    return "?" in text


def share(
    setting: Setting, of: Callable[[str], bool], mask_of: Callable[..., Tensor] = whole
) -> Tensor:
    """The share of texts of which something holds. -> [seed]"""
    each = written(setting, mask_of)
    return torch.tensor([sum(map(of, texts)) / len(texts) for texts in each])


SLOW = {name: "it takes minutes" for name in VARIATIONS[1:]}
Imitated = partial(Claim, seeds=range(5), not_tried=SLOW)
# fmt: off
CLAIMS = (
    Imitated("11.end", "Without the ends of solutions, fewer texts state a number.",
        (partial(share, of=states), partial(share, of=states, mask_of=endless))),
    Imitated("11.start", "Without their first tokens, about as many state a number.",
        (partial(share, of=states), partial(share, of=states, mask_of=headless)),
        within=0.2),
    Imitated("11.all", "With all tokens marked, about as many state a number.",
        (partial(share, of=states), partial(share, of=states, mask_of=everything)),
        within=0.2),
    Imitated("11.begins", "Without their first tokens, more texts begin without digit.",
        (partial(share, of=digitless, mask_of=headless), partial(share, of=digitless))),
    Imitated("11.asks", "With all tokens marked, more texts hold a question mark.",
        (partial(share, of=asks, mask_of=everything), partial(share, of=asks))),
)
# fmt: on
