"""Write one token after another, carrying the hidden state along."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from einops import rearrange, repeat
from torch import Generator, Tensor

from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.validation import require_at_least, require_finite
from grpo_course.sequences.masks import response_mask
from grpo_course.sequences.model import TinyLM
from grpo_course.sequences.scoring import (
    prompt_state,
    require_context,
    require_temperature,
    response_logits,
    token_log_probs,
)

Generators = Generator | Sequence[Generator] | None


@dataclass(frozen=True)
class Sampler:
    """How to write: the settings that sampling and scoring must share.

    `eos` ends a response, None never does. `pad` fills up what comes after it, and
    stands in front of short prompts; None where all have one length.
    """

    max_new_tokens: int
    eos: int | None = None
    pad: int | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        require_at_least("max_new_tokens", self.max_new_tokens, 1)
        require_temperature(self.temperature)
        if self.eos is not None and self.pad is None:
            raise ValueError(
                f"eos={self.eos} ends responses early, so a token must fill them up: "
                "set pad. It may be the same token."
            )

    def mask(self, responses: Tensor) -> Tensor | None:
        """Which tokens the policy chose; None if it chose all of them."""
        return None if self.eos is None else response_mask(responses, self.eos)


@torch.no_grad()
def sample_sequences(
    model: TinyLM,
    prompts: Tensor,
    num_responses: int,
    sampler: Sampler,
    generator: Generators = None,
    greedy: bool = False,
) -> tuple[Tensor, Tensor]:
    """Responses and the log-probs noted on the way; both [... batch trial pos].

    int [batch pos] in. pos is always max_new_tokens: after EOS come `pad` tokens with
    log-probability 0, which no policy chose. A model with a seed axis needs a
    generator for each seed. With greedy, the likeliest token at each step.
    Raises ValueError for prompts that do not fit the context.
    """
    require_at_least("num_responses", num_responses, 1)
    require_context(prompts, sampler.max_new_tokens, model.context_length)
    hidden = prompt_state(model, prompts, sampler.pad)
    hidden = repeat(
        hidden, "... batch dim -> ... (batch trial) dim", trial=num_responses
    )
    finished = torch.zeros(hidden.shape[:-1], dtype=torch.bool, device=hidden.device)
    tokens, scores = [], []
    for _ in range(sampler.max_new_tokens):
        logits = model.head(hidden)
        token = draw(logits / sampler.temperature, generator, greedy)
        score = token_log_probs(logits, token, sampler.temperature)
        if sampler.eos is not None:
            token = torch.where(finished, sampler.pad, token)
            score = torch.where(finished, 0.0, score)
            finished = finished | (token == sampler.eos)
        tokens.append(token)
        scores.append(score)
        hidden = model.read(token[..., None], hidden)[..., 0, :]
    pattern = "pos ... (batch trial) -> ... batch trial pos"
    both = (torch.stack(tokens), torch.stack(scores))
    return tuple(rearrange(x, pattern, trial=num_responses) for x in both)


def draw(logits: Tensor, generator: Generators, greedy: bool) -> Tensor:
    """One token for each row. [... rows vocab] -> int [... rows]"""
    if greedy:
        return logits.argmax(dim=-1)
    probs = logits.float().softmax(dim=-1)
    require_finite("the policy's probabilities", probs, "try a smaller learning rate")
    if probs.ndim == 2:
        return torch.multinomial(probs, 1, generator=generator).squeeze(-1)
    if isinstance(generator, Generator | None) or len(generator) != len(probs):
        raise ValueError(
            f"the model has {len(probs)} seeds, so `generator` must be a list of "
            f"{len(probs)} generators, one for each."
        )
    pairs = zip(probs, generator, strict=True)
    drawn = [torch.multinomial(p, 1, generator=g).squeeze(-1) for p, g in pairs]
    return torch.stack(drawn)


class SequencePolicy:
    """A language model with its sampler and its random numbers, as the loop wants it.

    A deep copy of it is a frozen reference: the loop makes one where beta is not 0
    and asks it for log-probabilities only, without a gradient.
    """

    def __init__(self, model: TinyLM, sampler: Sampler, generator: Generators = None):
        self.model, self.sampler, self.generator = model, sampler, generator

    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        """int [batch pos] -> a rollout with responses [... batch trial pos]"""
        responses, _ = sample_sequences(
            self.model, prompts, num_responses, self.sampler, self.generator
        )
        return Rollout(prompts, responses, self.sampler.mask(responses))

    def log_probs(self, rollout: Rollout) -> Tensor:
        """-> [... batch trial pos], at the temperature of the sampler"""
        logits = response_logits(
            self.model, rollout.prompts, rollout.responses, self.sampler.pad
        )
        return token_log_probs(logits, rollout.responses, self.sampler.temperature)

    def answer(self, prompts: Tensor) -> Tensor:
        """The greedy response to each prompt. int [batch pos] -> int [... batch pos]"""
        responses, _ = sample_sequences(
            self.model, prompts, 1, self.sampler, greedy=True
        )
        return responses[..., 0, :]
