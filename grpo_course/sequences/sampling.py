"""Write one token after another, carrying the hidden state along."""

import torch
from einops import rearrange, repeat
from torch import Tensor

from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.sampler import Generators, Sampler, draw, pick
from grpo_course.algorithm.validation import require_at_least, require_inside
from grpo_course.sequences.model import TinyLM
from grpo_course.sequences.scoring import prompt_state, require_context, response_logits


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
    Raises ValueError for prompts that do not fit the context, and for an eos or pad
    that the model cannot write.
    """
    require_at_least("num_responses", num_responses, 1)
    require_own_tokens(sampler, model.vocab_size)
    require_context(prompts, sampler.max_new_tokens, model.context_length)
    hidden = prompt_state(model, prompts, sampler.pad)
    hidden = repeat(
        hidden, "... batch dim -> ... (batch trial) dim", trial=num_responses
    )
    finished = torch.zeros(hidden.shape[:-1], dtype=torch.bool, device=hidden.device)
    tokens, scores = [], []
    for _ in range(sampler.max_new_tokens):
        log_probs = sampler.log_probs(model.head(hidden))
        token = draw(log_probs, generator, greedy)
        score = pick(log_probs, token)
        if sampler.eos is not None and sampler.pad is not None:
            token = torch.where(finished, sampler.pad, token)
            score = torch.where(finished, 0.0, score)
            finished = finished | (token == sampler.eos)
        tokens.append(token)
        scores.append(score)
        hidden = model.read(token[..., None], hidden)[..., 0, :]
    pattern, trial = "pos ... (batch trial) -> ... batch trial pos", num_responses
    responses = rearrange(torch.stack(tokens), pattern, trial=trial)
    return responses, rearrange(torch.stack(scores), pattern, trial=trial)


def require_own_tokens(sampler: Sampler, vocab_size: int) -> None:
    """Check that a sampler's eos and pad, where it has them, are in the vocabulary."""
    if not isinstance(sampler, Sampler):
        raise TypeError(
            f"sampler={sampler!r} is no Sampler. Pass Sampler(max_new_tokens), say."
        )
    words = {"at least": 0, "below": vocab_size}
    for name in ("eos", "pad"):
        if (token := getattr(sampler, name)) is not None:
            require_inside(name, token, words, ", as the model's vocabulary is")


class SequencePolicy:
    """A language model with its sampler and its random numbers, as the loop wants it.

    A deep copy of it is a frozen reference: the loop makes one where beta is not 0
    and asks it for log-probabilities only, without a gradient.
    """

    def __init__(self, model: TinyLM, sampler: Sampler, generator: Generators = None):
        self.model, self.sampler, self.generator = model, sampler, generator

    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        """int [batch pos] -> a rollout with responses [... batch trial pos]"""
        responses, noted = sample_sequences(
            self.model, prompts, num_responses, self.sampler, self.generator
        )
        mask, finished = self.sampler.mask(responses), self.sampler.finished(responses)
        return Rollout(prompts, responses, mask, noted, finished)

    def log_probs(self, rollout: Rollout) -> Tensor:
        """-> [... batch trial pos], under the settings of the sampler"""
        logits = response_logits(
            self.model, rollout.prompts, rollout.responses, self.sampler.pad
        )
        return self.sampler.token_log_probs(logits, rollout.responses)

    def answer(self, prompts: Tensor) -> Tensor:
        """The greedy response to each prompt. int [batch pos] -> int [... batch pos]"""
        responses, _ = sample_sequences(
            self.model, prompts, 1, self.sampler, greedy=True
        )
        return responses[..., 0, :]
