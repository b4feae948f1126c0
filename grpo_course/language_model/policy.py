"""A Hugging Face causal LM as the policy of the one loop."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Generator, Tensor, nn
from transformers import PreTrainedModel

from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.sampler import Sampler
from grpo_course.language_model.generation import generate
from grpo_course.language_model.log_probs import response_log_probs


class CausalPolicy:
    """Any causal LM with its sampler and its random numbers, as the loop wants it.

    It works where the model lies, CPU or GPU, and knows tokens only, no text. A deep
    copy of it is a frozen reference.

    Dropout is off in both methods. The old log-probs and the new ones must come from
    one and the same function of the weights: with dropout, the ratio of a policy to
    itself is far from 1, and clipping throws good samples away.

    Args:
        model: gives logits as its output embedding times its last hidden state. After
            `model.base_model.compile(dynamic=True)` (torch.compile; it needs a C++
            compiler) the same model is faster once it has run for a minute.
        sampler: how to write; scores follow the same settings.
        generator: random numbers on the model's device; None: torch's own.
        autocast: a dtype to multiply in, torch.bfloat16 on a GPU. The softmax stays
            in float32. None: the dtype of the weights.
        prompts_at_once: whose responses are scored in one forward pass where no
            gradient is asked for, as for a reference; None: all. With a gradient, the
            loop splits the batch itself.

    Raises ValueError for a model that does more to its logits, and for one that
    recomputes in the backward pass (gradient checkpointing) and has dropout.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        sampler: Sampler,
        generator: Generator | None = None,
        autocast: torch.dtype | None = None,
        prompts_at_once: int | None = None,
    ):
        self.model, self.sampler, self.generator = model.eval(), sampler, generator
        self.autocast, self.prompts_at_once = autocast, prompts_at_once
        require_plain_head(model)

    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        """int [batch pos], padded on the left -> responses [batch trial pos]"""
        self.model.eval()
        prompts = prompts.to(self.model.device)
        with self.precision():
            responses, noted = generate(
                self.model, prompts, num_responses, self.sampler, self.generator
            )
        mask, finished = self.sampler.mask(responses), self.sampler.finished(responses)
        return Rollout(prompts, responses, mask, noted, finished)

    def log_probs(self, rollout: Rollout) -> Tensor:
        """-> float32 [batch trial pos], under the settings of the sampler"""
        # transformers recomputes in training mode only, so there is no other way.
        recompute = self.model.is_activation_checkpointing and torch.is_grad_enabled()
        if recompute:
            require_no_dropout(self.model)
        self.model.train(recompute)
        rows = len(rollout.prompts)
        most = rows if torch.is_grad_enabled() else self.prompts_at_once or rows
        columns = rollout.prompts, rollout.responses, rollout.mask
        parts = zip(*[in_parts(column, most, rows) for column in columns], strict=True)
        with self.precision():
            scores = [
                response_log_probs(self.model, prompts, responses, self.sampler, mask)
                for prompts, responses, mask in parts
            ]
        return torch.cat(scores)

    @torch.no_grad()
    def answer(self, prompts: Tensor) -> Tensor:
        """The greedy response to each prompt. int [batch pos] -> int [batch pos]"""
        self.model.eval()
        prompts = prompts.to(self.model.device)
        with self.precision():
            responses, _ = generate(self.model, prompts, 1, self.sampler, greedy=True)
        return responses[:, 0]

    def precision(self) -> AbstractContextManager:
        """Where the matrix products run in another dtype than the weights'."""
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(self.model.device.type, self.autocast)


def in_parts(column: Tensor | None, most: int, rows: int) -> Sequence[Tensor | None]:
    """A column of a rollout in parts of at most so many rows."""
    if column is None:
        return [None] * -(-rows // most)
    return column.split(most)


@torch.no_grad()
def require_plain_head(model: PreTrainedModel) -> None:
    """Check on two tokens that logits are the output embedding of the last state.

    Sampling and scoring go through both parts by hand, to make few logits at a time.
    """
    tokens = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    given = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    hidden = model.base_model(**given).last_hidden_state
    ours = model.get_output_embeddings()(hidden)
    theirs = model(**given).logits
    if ours.shape != theirs.shape or not torch.allclose(ours, theirs, atol=1e-3):
        raise ValueError(
            f"{type(model).__name__} does more to its logits than to multiply its "
            "last hidden state with its output embedding (a scale, a cap), so its "
            "scores would be wrong here. Qwen2, Llama and GPT-2 models do not."
        )


def require_learning(model: PreTrainedModel) -> None:
    """Check that a model that is to be trained is not frozen."""
    if not any(weight.requires_grad for weight in model.parameters()):
        raise ValueError(
            "the model is frozen: none of its weights takes a gradient, so nothing "
            "can be learned. Call model.requires_grad_(True) first."
        )


def require_no_dropout(model: PreTrainedModel) -> None:
    """Check that training mode changes nothing but the recomputing."""
    on = [name for name, part in model.named_modules() if dropout_of(part)]
    if on:
        raise ValueError(
            "the model recomputes in the backward pass, which needs training mode, "
            f"and has dropout there (first in {on[0]}). Set the dropout to 0 in its "
            "config before making or loading it."
        )


def dropout_of(part: nn.Module) -> float:
    """The dropout rate of one module, 0 if it has none."""
    return (
        part.p
        if isinstance(part, nn.Dropout)
        else getattr(part, "attention_dropout", 0.0)
    )
